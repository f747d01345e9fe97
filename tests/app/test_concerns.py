# SPDX-License-Identifier: Apache-2.0
"""Hopeless is said before it is paid: what asks for --yes, what it says, and that nothing is charged without it."""
import json
import unittest

import numpy as np

from support import BAD_INPUT, OK, USAGE, AppTest


class Concerns(AppTest):
    def setUp(self):
        super().setUp()
        np.save(self.path("rows.npy"), np.random.default_rng(1).uniform(-1, 1, size=(2000, 4)))
        np.save(self.path("wide.npy"), np.random.default_rng(2).uniform(-1, 1, size=(60, 40)))

    def args(self, epsilon=1, delta="1e-6", data="rows.npy"):
        return ["pca", data, "--range=-1:1", "--components", 1, "--epsilon", epsilon, "--delta", delta]

    def asked(self, args, words, expect=USAGE):
        """Refused without --yes, as an object under --json too; done with it, and the words are still said."""
        done = self.run_program(*args, expect=expect, yes=False)
        self.assertRegex(done.stderr, words)
        self.assertIn("--yes", done.stderr)
        told = json.loads(self.run_program(*args, "--json", expect=expect, yes=False).stdout)
        self.assertEqual(told["exit_code"], expect)
        if expect == USAGE:
            self.assertRegex(told["error"], words)
        else:
            self.assertNotRegex(told["error"], words, "what tells of rows is for the operator alone")
        self.assertEqual(self.charged(), [], "nothing was charged")
        self.assertFalse((self.folder / "model.npz").exists())
        said = self.run_program(*args, "--yes").stderr
        (self.assertRegex if expect == USAGE else self.assertNotRegex)(said, words)
        self.assertEqual(len(self.charged()), 1)

    def test_what_is_sound_is_not_asked_about(self):
        self.run_program(*self.args(), expect=OK, yes=False)
        self.run_program(*self.args(10), expect=OK, yes=False)

    def test_an_epsilon_above_ten(self):
        self.asked(self.args(10.5), "epsilon 10.5 is above 10")

    def test_a_delta_above_one_over_the_rows(self):
        self.asked(self.args(delta="1e-3"), "delta 0.001 is above 1 / rows")

    def test_a_shape_that_teaches_nothing(self):
        self.asked(self.args(0.1, data="wide.npy"), "60 rows of 40 columns and epsilon 0.1 the noise will hide everything")

    def test_every_command_says_it(self):
        """60 rows of 40 columns at epsilon 0.1 teach nothing, whatever is asked of them; whoever insists gets a release."""
        rows = np.load(self.path("wide.npy"))
        np.save(self.path("classes.npy"), np.hstack([rows, np.arange(60)[:, None] % 3]))
        np.save(self.path("x.npy"), rows[:, :20])
        np.save(self.path("y.npy"), rows[:, 20:])
        one = ["--components", 1]
        budget = ["--epsilon", 0.1, "--delta", "1e-6"]
        ranges = ["--range=-1:1", *budget]
        # Where methods are forecast against each other, the forecast says it.
        said = "60 rows of (39|40|41) columns and epsilon 0.1 the noise will hide everything|nothing will be learnt"
        for args in (["pca", "wide.npy", *one, *ranges, "--method", "power"],
                     ["pca", "wide.npy", *one, *ranges, "--method", "adaptive-power"],
                     ["pca", "wide.npy", *one, *ranges, "--method", "gram", "--sparsity", 5],
                     ["pca", "wide.npy", *one, *ranges, "--method", "spiked"],
                     ["covariance", "wide.npy", *ranges],
                     ["cca", "wide.npy", *one, *ranges, "--x-columns", "1-20", "--y-columns", "21-40"],
                     ["cca", "wide.npy", *one, *ranges, "--x-columns", "1-20", "--y-columns", "21-40", "--noise", "each-step"],
                     ["fda", "classes.npy", *one, *ranges, "--label", "41", "--classes", "0|1|2"],
                     ["fda", "classes.npy", *one, *ranges, "--label", "41", "--classes", "0|1|2", "--noise", "each-step"],
                     ["sir", "wide.npy", *one, *ranges, "--response", "40", "--response-range=-1:1", "--slices", 4],
                     ["sir", "wide.npy", *one, *ranges, "--response", "40", "--response-range=-1:1", "--slices", "private:4"],
                     ["regress", "wide.npy", *ranges, "--target", "40"],
                     ["clip", "fit", "--x", "x.npy", "--y", "y.npy", "--dim", 1, *budget]):
            with self.subTest(args=args):
                done = self.run_program(*args, "--out", "m.npz", expect=USAGE, yes=False)
                self.assertRegex(" ".join(done.stderr.split()), said)
                self.assertEqual(self.charged(), [])
                told = self.run_json(*args, "--no-ledger", "--insecure-seed", 1, "--out", "m.npz")
                if told.get("verdicts"):
                    self.assertEqual(set(told["verdicts"]["standing"]), {"noise"})
                if args[0] in ("fda", "sir"):
                    self.assertRegex(" ".join(told["warnings"]), "Noise hides every (class|slice)")

    def test_enough_rows_are_not_called_hopeless(self):
        rows = np.random.default_rng(3).uniform(-1, 1, size=(20000, 6))
        np.save(self.path("classes.npy"), np.hstack([rows, np.arange(20000)[:, None] % 3]))
        budget = ["--range=-1:1", "--components", 1, "--epsilon", 1, "--delta", "1e-6", "--no-ledger"]
        for args in (["fda", "classes.npy", "--label", "7", "--classes", "0|1|2"], ["sir", "classes.npy", "--columns", "1-5", "--response", "6", "--response-range=-1:1"],
                     ["sir", "classes.npy", "--columns", "1-5", "--response", "6", "--response-range=-1:1", "--slices", "private:5"],
                     ["pca", "classes.npy", "--columns", "1-6", "--method", "adaptive-power"]):
            self.run_program(*args, *budget, yes=False)

    def test_rows_that_would_count_as_zero(self):
        rows = np.load(self.path("rows.npy"))
        rows[7, 2] = np.nan
        np.save(self.path("holes.npy"), rows)
        self.asked([*self.args(data="holes.npy"), "--missing", "zero-row"], "1 of 2000 rows", BAD_INPUT)

    def test_private_numbers_of_rows_decide_nothing(self):
        """Under add-remove-one the number of rows is private: no concern follows it."""
        done = self.run_program(*self.args(0.1, "1e-1", "wide.npy"), "--adjacency", "add-remove-one", yes=False)
        self.assertNotIn("rows", done.stderr.replace("reading rows", "").replace("recentring rows", ""))

    def test_delta_auto_is_small_everywhere(self):
        for command in (self.args(delta="auto"),
                        ["covariance", "rows.npy", "--range=-1:1", "--epsilon", 1, "--delta", "auto"]):
            result = self.run_json(*command)
            self.assertAlmostEqual(result["delta"], 2000**-1.1, delta=1e-12)
        plan = self.run_json("plan", "pca", "--rows", 2000, "--columns", 3, "--components", 1, "--epsilon", 1, "--delta",
                             "auto")
        self.assertAlmostEqual(plan["delta"], 2000**-1.1, delta=1e-12)
        self.run_program(*self.args(delta="auto"), "--adjacency", "add-remove-one", expect=USAGE)
        self.run_program(*self.args(delta="small"), expect=USAGE)


if __name__ == "__main__":
    unittest.main()
