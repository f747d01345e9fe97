# SPDX-License-Identifier: Apache-2.0
"""A file larger than --memory works, stays within it, and gives the same release."""
import os
import unittest

import numpy as np

from support import BUDGET_FLAGS, PROGRAM, AppTest

MEGABYTE = 1 << 20


class Memory(AppTest):
    def peak(self, *args):
        """Runs the program in a child of its own and returns the largest resident set, in bytes."""
        pid = os.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.environ.update(HOME=str(self.home), XDG_DATA_HOME=str(self.home))
            os.execv(PROGRAM, [PROGRAM, *map(str, args), "--quiet", "--json", "--force"])
        _, status, usage = os.wait4(pid, 0)
        self.assertEqual(status, 0)
        return usage.ru_maxrss * 1024

    def test_resident_set_stays_within_the_limit(self):
        rows = np.random.default_rng(1).integers(0, 255, size=(800_000, 100), dtype="u1")
        np.save(self.path("d.npy"), rows)  # 320 MB on the lattice
        args = ["pca", "d.npy", "--range", "0:255", "--components", 3, *BUDGET_FLAGS, "--insecure-seed", 1, "--no-ledger"]
        small = self.peak(*args, "--memory", "160M", "--out", "small.npz")
        large = self.peak(*args, "--memory", "2G", "--out", "large.npz")
        self.assertGreater(large, 320 * MEGABYTE, "the rows fit in memory there")
        self.assertLess(small, 160 * MEGABYTE)
        self.assertEqual((self.folder / "small.npz").read_bytes(), (self.folder / "large.npz").read_bytes())

    def test_people_stay_within_it_too(self):
        """A million and a half people, who do not fit; and one who has all rows."""
        random = np.random.default_rng(2)
        rows = random.integers(-99, 99, size=(3_000_000, 5)).astype("i4")
        args = ["pca", "d.npy", "--range", "-99:99", "--components", 1, *BUDGET_FLAGS, "--insecure-seed", 1, "--no-ledger", "--person", 5, "--yes"]
        for ids in (random.integers(0, 1_500_000, size=3_000_000), np.zeros(3_000_000)):
            rows[:, 4] = ids
            np.save(self.path("d.npy"), rows)
            small = self.peak(*args, "--memory", "160M", "--out", "small.npz")
            large = self.peak(*args, "--memory", "2G", "--out", "large.npz")
            self.assertLess(small, 160 * MEGABYTE)
            if ids.any():
                self.assertGreater(large, 160 * MEGABYTE, "48 MB of rows twice, 48 MB of ids, tables")
            self.assertEqual((self.folder / "small.npz").read_bytes(), (self.folder / "large.npz").read_bytes())

    def test_each_step_needs_little_for_many_columns(self):
        rows = np.random.default_rng(3).normal(size=(400, 50000)).astype(np.float32)
        np.save(self.path("wide.npy"), rows)
        args = ["cca", "wide.npy", "--x-columns", "1-25000", "--y-columns", "25001-50000", "--row-bound", 250, "--components",
                1, *BUDGET_FLAGS, "--no-ledger", "--yes"]
        peak = self.peak(*args, "--noise", "each-step", "--rounds", 3, "--memory", "300M", "--threads", 2)
        self.assertLess(peak, 300 * MEGABYTE, "d^2 numbers would be 20 GB")
        self.assertEqual(np.load(self.path("model.npz"))["x_weights"].shape, (25000, 1))
        # left to itself it finds the same way
        self.assertEqual(self.run_json(*args, "--rounds", 1)["method"], "each-step")


if __name__ == "__main__":
    unittest.main()
