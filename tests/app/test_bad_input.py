# SPDX-License-Identifier: Apache-2.0
"""Every bad file: exit 3, a message with file (and row and column), nothing charged, nothing written."""
import gzip
import os
import shutil
import struct
import unittest

import numpy as np

from support import BAD_INPUT, BUDGET_FLAGS, PROGRAM, AppTest


class BadInput(AppTest):
    def refuse(self, name, *words, args=()):
        before = set(self.files())
        header = ["--header", "yes"] if ".csv" in name else []
        done = self.run_program("pca", name, "--range", "0:1", "--components", 2, *BUDGET_FLAGS, "--out", "model.npz",
                                "--report", "report.html", *header, *args, expect=BAD_INPUT)
        for word in (name, *words):
            self.assertIn(word, done.stderr)
        self.assertEqual(set(self.files()), before, "no output file")
        self.assertEqual(self.charged(), [], "nothing reserved")
        self.assertEqual(done.stderr.strip().count("eigenveil: Traceback"), 0)

    def test_ragged_rows(self):
        self.write("d.csv", "a,b,c\n1,2,3\n1,2\n")
        self.refuse("d.csv", "row 2")

    def test_text_in_a_numeric_column(self):
        self.write("d.csv", "a,b,c\n1,2,3\n1,tall,3\n")
        self.refuse("d.csv", "row 2", "'b'", "tall")

    def test_nan_and_infinity(self):
        for text in ("nan", ""):
            self.write("d.csv", f"a,b,c\n1,2,3\n1,{text},3\n")
            self.refuse("d.csv", "row 2", "'b'")
        np.save(self.path("d.npy"), np.array([[0.1, 0.2, 0.3], [0.1, np.nan, 0.3]]))
        self.refuse("d.npy", "row 2", "'2'")
        np.save(self.path("inf.npy"), np.array([[0.1, 0.2, 0.3], [0.1, np.inf, 0.3]]))
        done = self.run_program("pca", "inf.npy", "--row-bound", 1, "--components", 1, *BUDGET_FLAGS, expect=BAD_INPUT)
        self.assertIn("row 2", done.stderr)
        self.run_program("pca", "d.npy", "--range", "0:1", "--components", 1, *BUDGET_FLAGS, "--missing", "zero-row")

    def test_blank_lines_are_rows(self):
        self.write("d.csv", "a,b,c\n1,2,3\n\n1,2,3\n")
        self.refuse("d.csv", "row 2", "blank")

    def test_empty_and_no_columns(self):
        self.write("empty.csv", "")
        self.refuse("empty.csv", "empty")
        np.save(self.path("none.npy"), np.zeros((5, 0)))
        self.refuse("none.npy", "column")

    def test_truncated_files(self):
        np.save(self.path("d.npy"), np.random.rand(100, 5))
        whole = (self.folder / "d.npy").read_bytes()
        for keep in (0, 5, 50, 127, 1000, len(whole) - 1):
            self.write("short.npy", whole[:keep])
            self.refuse("short.npy")
        idx = struct.pack(">HBBII", 0, 8, 2, 50, 4) + bytes(200)
        self.write("short.idx", idx[:-1])
        self.refuse("short.idx")
        packed = gzip.compress(b"a,b\n" + b"0.5,0.25\n" * 5000)
        self.write("short.csv.gz", packed[:-20])
        self.refuse("short.csv.gz")
        self.write("short.idx.gz", gzip.compress(idx)[:-9])
        self.refuse("short.idx.gz")
        np.savez(self.path("d.npz"), x=np.random.rand(100, 5))
        self.write("short.npz", (self.folder / "d.npz").read_bytes()[:2000])
        self.refuse("short.npz")
        self.write("short.h5", b"\x89HDF\r\n\x1a\n" + bytes(100))
        self.refuse("short.h5")

    def test_wrong_dimensions_and_too_many_components(self):
        np.save(self.path("cube.npy"), np.zeros((3, 4, 5)))
        self.refuse("cube.npy", "dimension")
        np.save(self.path("thin.npy"), np.zeros((3, 1)))
        self.refuse("thin.npy", "--components")

    def test_directories_missing_and_unreadable_files(self):
        (self.folder / "folder").mkdir()
        self.refuse("folder", "director")
        self.refuse("missing.csv")
        self.write("secret.csv", "a,b\n1,2\n")
        os.chmod(self.path("secret.csv"), 0)
        if os.geteuid() != 0:
            self.refuse("secret.csv", "permission")

    def test_unreadable_file_as_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become another user")
        self.write("secret.csv", "a,b\n1,2\n")
        os.chmod(self.path("secret.csv"), 0)
        for folder in (self.folder, self.home):
            os.chmod(folder, 0o777)

        def become_nobody():
            os.setgid(65534)
            os.setuid(65534)

        program = shutil.copy(PROGRAM, self.path("program"))  # the build may lie where nobody may look
        done = self.run_program("pca", "secret.csv", "--header", "yes", "--range", "0:1", "--components", 1, *BUDGET_FLAGS,
                                expect=BAD_INPUT, program=program, preexec_fn=become_nobody)
        self.assertRegex(done.stderr.lower(), "permission|may not be read|readable")

    def test_categories_outside_the_list(self):
        self.write("s.toml", '[[column]]\nname="sex"\nkind="categorical"\nvalues=["F","M"]\n'
                             '[[column]]\nname="age"\nkind="numeric"\nlower=0\nupper=120\n')
        self.write("d.csv", "age,sex\n50,F\n60,X\n")
        done = self.run_program("pca", "d.csv", "--schema", "s.toml", "--components", 1, *BUDGET_FLAGS, expect=BAD_INPUT)
        for word in ("d.csv", "row 2", "sex", "X"):
            self.assertIn(word, done.stderr)
        self.assertEqual(self.charged(), [])
        self.write("s.toml", '[[column]]\nname="sex"\nkind="categorical"\nvalues=["F","M","?"]\nother="?"\n'
                             '[[column]]\nname="age"\nkind="numeric"\nlower=0\nupper=120\n')
        self.run_program("pca", "d.csv", "--schema", "s.toml", "--components", 1, *BUDGET_FLAGS)
        names = str(np.load(self.path("model.npz"))["manifest.json"])
        self.assertIn("sex=F", names)

    def test_ledger_that_cannot_be_written(self):
        np.save(self.path("d.npy"), np.random.rand(100, 3))
        self.write("notes.txt", "this is no ledger, it is a text file that is longer than a header " * 5)
        for ledger in ("notes.txt", "d.npy/ledger.db", "/proc/ledger.db"):
            with self.subTest(ledger):
                args = ["pca", "d.npy", "--range", "0:1", "--components", "1", *BUDGET_FLAGS, "--ledger", ledger]
                done = self.run_program(*args, "--out", "model.npz", expect=BAD_INPUT)
                self.assertIn(ledger.split("/")[-1], done.stderr)
                self.assertNotIn("model.npz", self.files())


if __name__ == "__main__":
    unittest.main()
