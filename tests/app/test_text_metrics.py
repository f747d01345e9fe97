# SPDX-License-Identifier: Apache-2.0
"""Scores of captions and answers against values computed by hand."""
import math
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["EIGENVEIL_SOURCE_DIR"]) / "bench" / "accuracy" / "clip"))
from text_metrics import bleu, cider, common_subsequence, exact_match, rouge_l


class TextMetrics(unittest.TestCase):
    def test_bleu_clips_counts_and_punishes_short_captions(self):
        # 1-grams: the (2 of 3 allowed) + cat (1) of 4; 2-grams: "the cat" of "the the", "the the", "the cat".
        scores = bleu(["the the the cat".split()], [["the cat on the mat".split()]])
        penalty = math.exp(1 - 5 / 4)
        self.assertAlmostEqual(scores[0], penalty * 3 / 4)
        self.assertAlmostEqual(scores[1], penalty * math.sqrt(3 / 4 * 1 / 3))
        self.assertEqual(scores[2:], [0, 0])
        # The closest reference in length counts: 4 words, so there is no penalty.
        self.assertAlmostEqual(bleu(["a b c d".split()],
                                    [["a b c d".split(), "a b c d e f".split()]])[3], 1)
        # A word counts as often as the reference that has it most often: once.
        self.assertAlmostEqual(bleu([["the", "the"]], [[["the", "cat"], ["the", "dog"]]])[0], 1 / 2)
        # Over the corpus: 3 of 4 words.
        self.assertAlmostEqual(bleu([["a", "b"], ["c", "x"]], [[["a", "b"]], [["c", "d"]]])[0], 3 / 4)

    def test_rouge_takes_the_longest_common_subsequence(self):
        self.assertEqual(common_subsequence("abcbdab", "bdcaba"), 4)
        # 3 of 4 words in order, against a reference of 5: P = 3/4, R = 3/5.
        score = rouge_l(["a b x d".split()], [["a b c d e".split()]])
        self.assertAlmostEqual(score, (1 + 1.44) * 0.75 * 0.6 / (0.6 + 1.44 * 0.75))
        self.assertEqual(rouge_l([["z"]], [[["a"]]]), 0)

    def test_cider_weighs_words_by_how_rare_they_are(self):
        # "a" is in both documents: weight 0. "cat", "dog", "red" have weight log 2. n = 1: cosines 1 and 1/sqrt(2);
        # n = 2: "a cat" 1; "a dog" against "a red", "red dog" 0; longer ones: none.
        score = cider([["a", "cat"], ["a", "dog"]], [[["a", "cat"]], [["a", "red", "dog"]]])
        self.assertAlmostEqual(score, 10 / 4 * ((1 + 1 / math.sqrt(2)) / 2 + 1 / 2))
        # Two references, one of them hit: half of it.
        both = cider([["cat"], ["dog"]], [[["cat"], ["cow"]], [["dog"], ["pig"]]])
        self.assertAlmostEqual(both, 10 / 4 * 0.5)

    def test_exact_match(self):
        self.assertEqual(exact_match([1, 2, 3, 4], [1, 9, 0, 4]), 0.5)


if __name__ == "__main__":
    unittest.main()
