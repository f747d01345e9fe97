# SPDX-License-Identifier: Apache-2.0
"""Files that are there are not overwritten without --force, and never through a link; what was paid for is never lost."""
import os
import sqlite3
import unittest

import numpy as np

from support import BUDGET_FLAGS, OK, USAGE, AppTest, Running

FREE = ["--no-ledger", "--quiet"]


class Outputs(AppTest):
    def setUp(self):
        super().setUp()
        np.save(self.path("d.npy"), np.random.default_rng(1).uniform(0, 1, (300, 3)))
        np.save(self.path("s.npy"), np.eye(2))

    def fit(self, *more):
        return ["pca", "d.npy", "--range", "0:1", "--components", 1, *BUDGET_FLAGS, *more]

    def refused(self, *args, what):
        """Without --force: what is there stays, and nothing is charged."""
        before = (self.folder / what).read_bytes() if (self.folder / what).exists() else None
        done = self.run_program(*args, expect=USAGE, force=False)
        self.assertRegex(done.stderr, rf"{what}: is there already.*--force")
        self.assertEqual((self.folder / what).read_bytes() if (self.folder / what).exists() else None, before)
        self.assertEqual(self.charged(), [])

    def test_every_command_that_writes_asks_for_force(self):
        self.run_program(*self.fit(*FREE, "--out", "m.npz"), force=False)
        self.run_program("covariance", "d.npy", "--range", "0:1", *BUDGET_FLAGS, *FREE, "--center", "private", "--out", "c.npz",
                         force=False)
        self.write("old", "precious")
        matrices = ["--matrix-a", "s.npy", "--matrix-b", "s.npy", "--sensitivity-a", 1, "--sensitivity-b", 1, "--rows", 9]
        commands = [
            self.fit("--out", "old"), self.fit("--report", "old"),
            ["covariance", "d.npy", "--range", "0:1", *BUDGET_FLAGS, "--out", "old"],
            ["cca", "d.npy", "--x-columns", "1", "--y-columns", "2-3", "--range", "0:1", "--components", 1, *BUDGET_FLAGS,
             "--out", "old"],
            ["sir", "d.npy", "--response", "1", "--response-range", "0:1", "--range", "0:1", "--components", 1, *BUDGET_FLAGS,
             "--out", "old"],
            ["gep", *matrices, "--components", 1, *BUDGET_FLAGS, "--out", "old"],
            ["regress", "d.npy", "--range", "0:1", "--target", "1", *BUDGET_FLAGS, "--out", "old"],
            ["regress", "--from", "c.npz", "--target", "1", "--out", "old"],
            ["clip", "fit", "--x", "d.npy", "--y", "d.npy", *BUDGET_FLAGS, "--out", "old"],
            ["clip", "embed", "m.npz", "--x", "d.npy", "--out", "old"],
            ["clip", "train", "--module", "m.pt", "--data", "m.npz", "--sample-rate", 0.1, "--steps", 1, "--clip", 1,
             *BUDGET_FLAGS, "--out", "old"],
            ["transform", "m.npz", "d.npy", "--out", "old"],
            ["report", "m.npz", "--out", "old"],
            ["generate", "gaussian", "--rows", 9, "--columns", 2, "--out", "old"],
            ["generate", "gaussian", "--rows", 9, "--columns", 2, "--out", "new.npy", "--truth", "old"],
            ["plan", "pca", "--rows", 900, "--columns", 2, "--components", 1, *BUDGET_FLAGS, "--plot", "old"],
            ["schema", "init", "d.npy", "--out", "old"],
        ]
        for args in commands:
            with self.subTest(args[:2]):
                self.refused(*args, what="old")
        self.assertNotIn("new.npy", self.files())

    def test_the_default_name_counts_too(self):
        self.run_program(*self.fit(*FREE), force=False)
        self.refused(*self.fit(), what="model.npz")

    def test_force_replaces_the_file(self):
        self.write("old", "precious")
        self.run_program(*self.fit(*FREE, "--out", "old", "--force"), force=False)
        self.assertIn("components", np.load(self.path("old")).files)
        self.run_program("transform", "old", "d.npy", "--out", "scores.csv", force=False)
        self.run_program("transform", "old", "d.npy", "--out", "scores.csv", "--force", force=False)
        self.assertEqual([name for name in self.files() if name.startswith(".")], [])

    def test_a_link_is_neither_replaced_nor_followed(self):
        self.write("target", "precious")
        os.symlink("target", self.path("link.npz"))
        os.symlink("nowhere", self.path("loose.npz"))
        for name in ("link.npz", "loose.npz"):
            self.refused(*self.fit("--out", name), what=name)
            done = self.run_program(*self.fit("--out", name, "--force"), expect=USAGE)
            self.assertIn("is a link", done.stderr)
            self.assertTrue((self.folder / name).is_symlink())
        self.assertEqual((self.folder / "target").read_text(), "precious")
        self.assertNotIn("nowhere", self.files())
        self.assertEqual(self.charged(), [])

    def test_a_folder_is_no_file(self):
        (self.folder / "place").mkdir()
        for more in ([], ["--force"]):
            self.assertIn("is a directory", self.run_program(*self.fit("--out", "place", *more), expect=USAGE).stderr)

    def test_a_name_that_was_taken_meanwhile_costs_nothing(self):
        """Two runs with the same name: what the second paid for is beside what the first wrote."""
        self.run_program("ledger", "create", "people", "--epsilon", 5, "--delta", 1e-6, "--ledger", "l.db")
        holder = sqlite3.connect(self.path("l.db"), isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        run = Running(self, *self.fit("--dataset", "people", "--ledger", "l.db", "--report", "model.html", "--yes"))
        run.wait_for("reserving budget")
        self.write("model.npz", "of another run")
        self.write("model.html", "of another run")
        holder.execute("ROLLBACK")
        holder.close()
        code, out, err = run.finish()
        self.assertEqual(code, OK, err)
        self.assertIn("model.npz was taken meanwhile, and is not overwritten: model-2.npz", err)
        self.assertIn("Model:  model-2.npz", out)
        for name in ("model.npz", "model.html"):
            self.assertEqual((self.folder / name).read_text(), "of another run")
        self.assertIn("<html", (self.folder / "model-2.html").read_text())
        self.assertIn("is the file that was written for entry 1",
                      self.run_program("ledger", "verify", "model-2.npz", "--ledger", "l.db").stdout)

    def test_keys_are_never_replaced(self):
        self.run_program("federation", "request", "north", "--out", "north.csr")
        self.run_program("federation", "request", "north", "--out", "north.csr", "--force", expect=USAGE)
        done = self.run_program("federation", "request", "north", "--out", "north.csr", expect=USAGE)
        if "no federation" not in done.stderr:
            self.assertIn("never overwritten", done.stderr)


if __name__ == "__main__":
    unittest.main()
