# SPDX-License-Identifier: Apache-2.0
"""BLEU-1..4, ROUGE-L and CIDEr of captions, and exact match of answers. A caption is a list of words; each has several
references. Checked against values computed by hand: tests/app/test_text_metrics.py."""
import collections
import math


def ngrams(words, n):
    return collections.Counter(tuple(words[i:i + n]) for i in range(len(words) - n + 1))


def bleu(captions, references, most=4):
    """[BLEU-1, ..., BLEU-most] of the whole corpus (Papineni et al. 2002): clipped n-gram precisions, their geometric
    mean, times the brevity penalty against the reference closest in length."""
    hits, totals = [0] * most, [0] * most
    length = reference_length = 0
    for caption, refs in zip(captions, references):
        length += len(caption)
        reference_length += min((abs(len(r) - len(caption)), len(r)) for r in refs)[1]
        for n in range(1, most + 1):
            allowed = collections.Counter()
            for ref in refs:
                allowed |= ngrams(ref, n)
            found = ngrams(caption, n)
            hits[n - 1] += sum((found & allowed).values())
            totals[n - 1] += sum(found.values())
    penalty = 1.0 if length > reference_length else math.exp(1 - reference_length / max(length, 1))
    scores, log_sum = [], 0.0
    for n in range(most):
        if hits[n] == 0:
            scores += [0.0] * (most - n)
            break
        log_sum += math.log(hits[n] / totals[n])
        scores.append(penalty * math.exp(log_sum / (n + 1)))
    return scores


def common_subsequence(a, b):
    row = [0] * (len(b) + 1)
    for x in a:
        before = 0
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], before + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


def rouge_l(captions, references, beta=1.2):
    """Mean over captions of the F-measure (Lin 2004) of the best precision and the best recall among the references."""
    total = 0.0
    for caption, refs in zip(captions, references):
        lengths = [common_subsequence(caption, ref) for ref in refs]
        precision = max(lengths) / max(len(caption), 1)
        recall = max(length / len(ref) for length, ref in zip(lengths, refs))
        if precision > 0 and recall > 0:
            total += (1 + beta**2) * precision * recall / (recall + beta**2 * precision)
    return total / len(captions)


def cider(captions, references, most=4):
    """CIDEr (Vedantam et al. 2015): 10 times the mean cosine of tf-idf n-gram vectors with each reference, over n = 1..4.
    A document of the idf is the set of references of one caption."""
    score = 0.0
    for n in range(1, most + 1):
        documents = collections.Counter()
        for refs in references:
            documents.update(set().union(*(ngrams(ref, n) for ref in refs)))

        def vector(words):
            return {g: c * math.log(len(references) / max(1, documents[g])) for g, c in ngrams(words, n).items()}

        for caption, refs in zip(captions, references):
            a = vector(caption)
            for ref in refs:
                b = vector(ref)
                norms = math.sqrt(sum(x * x for x in a.values()) * sum(x * x for x in b.values()))
                if norms > 0:
                    score += sum(x * b.get(g, 0.0) for g, x in a.items()) / norms / len(refs)
    return 10 * score / most / len(captions)


def exact_match(answers, truths):
    return sum(a == t for a, t in zip(answers, truths)) / len(truths)
