# SPDX-License-Identifier: Apache-2.0
"""What becomes zero: the mean by default, found with a share of the budget, its error counted."""
import json
import unittest

import numpy as np

from support import BUDGET_FLAGS, USAGE, AppTest


class Centring(AppTest):
    def release(self, rows, *args):
        np.save(self.path("rows.npy"), rows)
        self.run_program(args[0], "rows.npy", *args[1:], *BUDGET_FLAGS, "--insecure-seed", 1)
        model = np.load(self.path("model.npz"))
        return model, json.loads(bytes(model["manifest.json"]))

    def test_independent_columns_far_from_the_middle_have_no_correlation(self):
        rows = 0.8 + 0.2 * np.random.default_rng(1).uniform(-1, 1, size=(20000, 6))
        views = ["--range", "0:1", "--x-columns", "1-3", "--y-columns", "4-6", "--components", 1]
        about_middle, _ = self.release(rows, "cca", *views, "--center", "range")
        self.assertGreater(about_middle["correlations"][0], 0.5, "it finds the mean")
        model, manifest = self.release(rows, "cca", *views)
        self.assertEqual(manifest["options"]["center"], "mean")
        np.testing.assert_allclose(model["mean"], 2 * rows.mean(0) - 1, atol=0.05)
        self.assertLess(model["correlations"][0], 0.3)

    def test_the_error_of_the_mean_is_told_taken_out_and_counted(self):
        rows = np.random.default_rng(2).uniform(-1, 1, size=(300, 10))
        for command in (["pca", "--components", 10], ["covariance"]):
            model, manifest = self.release(rows, *command, "--range=-1:1")
            tau = manifest["mean_deviation"]
            noise = {one["label"]: one["deviation"] for one in manifest["noise"]}
            self.assertAlmostEqual(tau, noise["column sums"] / 300, delta=1e-6 * tau)
            self.assertGreaterEqual(manifest["noise_edge"], tau**2 * 10)
        self.assertEqual(manifest["second_moments"]["mean_deviation"], tau)
        values = np.linalg.eigvalsh(model["second_moments"] - tau**2 * np.eye(10))
        np.testing.assert_allclose(model["eigenvalues"], np.maximum(values[::-1], 0), atol=1e-9)

    def test_a_short_row_bound_is_found_in_two_steps(self):
        rows = 0.8 + 0.02 * np.random.default_rng(3).normal(size=(20000, 20))
        gram = ("pca", "--method", "gram", "--components", 2)
        _, manifest = self.release(rows, *gram, "--range", "0:1", "--row-bound", 0.4)
        self.assertEqual([e["label"] for e in manifest["events"]], ["column sums", "refined column sums", "covariance"])
        _, manifest = self.release(rows, *gram, "--range", "0:1", "--row-bound", "auto")
        self.assertEqual([e["label"] for e in manifest["events"]],
                         ["first row bound", "column sums", "rough row bound", "refined column sums", "row bound", "covariance"])
        self.assertLess(manifest["options"]["row_bound"], 1)
        self.assertEqual(self.release(rows, *gram, "--range", "0:1")[1]["events"], manifest["events"])
        _, manifest = self.release(rows, *gram, "--range", "0:1", "--row-bound", "range")
        self.assertEqual([e["label"] for e in manifest["events"]], ["column sums", "covariance"])

    def test_explicit_choices_stay(self):
        rows = np.random.default_rng(4).uniform(0, 1, size=(2000, 4))
        for center, labels in (("range", ["covariance"]), ("none", ["covariance"]),
                               ("private", ["column sums", "covariance"])):
            _, manifest = self.release(rows, "pca", "--components", 1, "--range", "0:1", "--row-bound", "range", "--center", center)
            self.assertEqual([e["label"] for e in manifest["events"]], labels)
            self.assertEqual(manifest["options"]["center"], center)
            self.assertEqual("mean_deviation" in manifest, center == "private")
        _, manifest = self.release(rows, "pca", "--components", 1, "--range", "0:1", "--method", "gram", "--calibration",
                                   "paper", "--no-ledger")
        self.assertEqual(manifest["options"]["center"], "range", "a paper has no budget for a mean")
        self.run_program("regress", "rows.npy", "--target", 1, "--range", "0:1", "--center", "mean", *BUDGET_FLAGS,
                         expect=USAGE)


if __name__ == "__main__":
    unittest.main()
