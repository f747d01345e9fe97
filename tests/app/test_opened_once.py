# SPDX-License-Identifier: Apache-2.0
"""Rows are opened once per fit, whatever the command and the format, so that a pipe is as good as a file."""
import ctypes
import gzip
import os
import re
import struct
import unittest

import numpy as np

from support import BAD_INPUT, BUDGET_FLAGS, PROGRAM, USAGE, AppTest

SEEDED = [*BUDGET_FLAGS, "--insecure-seed", 7, "--threads", 1, "--quiet"]
# Every command that fits one table, by the options that it needs.
FITS = {
    "pca": ["--components", 2],
    "covariance": [],
    "cca": ["--x-columns", "1-3", "--y-columns", "4-6", "--components", 1],
    "fda": ["--label", 7, "--classes", "0|1", "--components", 1],
    "sir": ["--response", 8, "--response-range", "-8:8", "--slices", 4, "--components", 1],
    "regress": ["--target", 8],
}


class Opens:
    """How often files are opened meanwhile. Accesses are watched too: equal events in a row count as one."""
    OPEN, ACCESS, CLOSE = 0x20, 0x01, 0x10

    def __init__(self, *paths):
        self.paths, self.libc = paths, ctypes.CDLL(None, use_errno=True)

    def __enter__(self):
        self.queue = self.libc.inotify_init1(os.O_NONBLOCK)
        self.watches = [self.libc.inotify_add_watch(self.queue, p.encode(), self.OPEN | self.ACCESS | self.CLOSE)
                        for p in self.paths]
        assert min(self.watches) >= 0
        return self

    def __exit__(self, *_):
        events, self.counts = b"", [0] * len(self.paths)
        while True:
            try:
                events += os.read(self.queue, 1 << 16)
            except BlockingIOError:
                break
        os.close(self.queue)
        for at in range(0, len(events), 16):
            watch, mask, _, length = struct.unpack_from("iIII", events, at)
            assert length == 0, "files have no names in them"
            self.counts[self.watches.index(watch)] += bool(mask & self.OPEN)


class OpenedOnce(AppTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        n = 3000
        x = random.normal(size=(n, 6))
        self.rows = np.c_[x, x[:, 0] > 0, x[:, 1] + 0.3 * random.normal(size=n)]
        np.savetxt(self.path("t.csv"), self.rows, delimiter=",", header="a,b,c,u,v,w,label,response", comments="")
        np.save(self.path("t.npy"), self.rows)
        np.savez(self.path("t.npz"), rows=self.rows)

    def fit(self, command, data, *more):
        header = ["--header", "yes"] if ".csv" in data or data == "/dev/stdin" else []
        return [command, data, *FITS[command], "--range", "-8:8", *header, *SEEDED, *more]

    def piped(self, file, *args, **kwargs):
        return self.run_program("-c", f'cat {file} | "$0" "$@"', PROGRAM, *args, program="/bin/sh", **kwargs)

    def arrays(self):
        model = np.load(self.path("model.npz"))
        return {name: model[name].tolist() for name in model.files if name != "manifest.json"}

    def test_every_command_that_fits_a_table_is_here(self):
        commands = self.run_program("--help").stdout.split("Subcommands:")[1].split("Examples:")[0]
        listed = re.findall(r"^  ([a-z]+)", commands, re.M)
        fits = [c for c in listed if c != "plan" and "--row-bound" in self.run_program(c, "--help").stdout]
        self.assertEqual(sorted(fits), sorted(FITS))

    def test_a_file_is_opened_once_by_every_fit(self):
        for command in FITS:
            for file in ("t.csv", "t.npy", "t.npz"):
                with self.subTest(command=command, file=file), Opens(self.path(file)) as opens:
                    self.run_program(*self.fit(command, file, "--no-ledger"))
                self.assertEqual(opens.counts, [1])

    def test_a_ledger_reads_a_file_once_more_to_know_it(self):
        self.run_program("ledger", "create", "d", "--epsilon", 2, "--delta", 1e-6)
        with Opens(self.path("t.csv")) as opens:
            self.run_program(*self.fit("cca", "t.csv", "--dataset", "d"))
        self.assertEqual(opens.counts, [2])

    def test_matrices_and_both_views_are_opened_once(self):
        np.save(self.path("A.npy"), np.eye(4))
        np.save(self.path("B.npy"), np.eye(4))
        with Opens(self.path("A.npy"), self.path("B.npy")) as opens:
            self.run_program("gep", "--matrix-a", "A.npy", "--matrix-b", "B.npy", "--sensitivity-a", 0.01, "--sensitivity-b",
                             0.01, "--rows", 3000, "--components", 1, *SEEDED, "--no-ledger")
        self.assertEqual(opens.counts, [1, 1])
        np.save(self.path("x.npy"), self.rows[:, :3])
        np.save(self.path("y.npy"), self.rows[:, 3:6])
        with Opens(self.path("x.npy"), self.path("y.npy")) as opens:
            self.run_program("clip", "fit", "--x", "x.npy", "--y", "y.npy", "--dim", 2, *SEEDED, "--no-ledger")
        self.assertEqual(opens.counts, [1, 1])
        images = np.random.default_rng(1).integers(0, 255, size=(400, 64)).astype("u1")
        np.save(self.path("images.npy"), images)
        self.write("labels.csv", "0\n1\n" * 200)
        self.write("names.txt", "one\ntwo\n")
        with Opens(self.path("images.npy"), self.path("labels.csv")) as opens:
            self.run_program("clip", "fit", "--images", "images.npy", "--labels", "labels.csv", "--class-names", "names.txt",
                             "--image-encoder", "pixels", *SEEDED, "--no-ledger")
        self.assertEqual(opens.counts, [1, 1])

    def test_a_pipe_gives_the_model_of_the_file(self):
        packed = {"t.csv": "t.csv.gz", "t.npy": "t.npy.gz"}
        for file, name in packed.items():
            self.write(name, gzip.compress((self.folder / file).read_bytes()))
        np.save(self.path("f.npy"), np.asfortranarray(self.rows))
        for command in FITS:
            self.run_program(*self.fit(command, "t.csv", "--no-ledger"))
            expected = self.arrays()
            for file in ("t.csv", "t.npy") if command != "cca" else ("t.csv", "t.npy", "f.npy", *packed.values()):
                with self.subTest(command=command, file=file):
                    os.remove(self.path("model.npz"))
                    self.piped(file, *self.fit(command, "/dev/stdin", "--no-ledger"))
                    self.assertEqual(self.arrays(), expected)

    def test_a_named_pipe_is_opened_once(self):
        os.mkfifo(self.path("pipe.csv"))
        self.run_program("-c", 'cat t.csv > pipe.csv & "$0" "$@"; wait', PROGRAM, *self.fit("sir", "pipe.csv", "--no-ledger"),
                         program="/bin/sh")
        self.assertTrue(self.arrays())

    def test_who_pays_for_the_rows_of_a_pipe_must_be_said(self):
        refused = self.piped("t.csv", *self.fit("pca", "/dev/stdin"), expect=USAGE)
        self.assertIn("--dataset", refused.stderr)
        self.assertEqual(self.charged(), [])
        self.run_program("ledger", "create", "d", "--epsilon", 2, "--delta", 1e-6)
        self.piped("t.csv", *self.fit("pca", "/dev/stdin", "--dataset", "d"))
        self.assertEqual(len(self.charged()), 1)

    def test_what_a_pipe_cannot_hold_is_refused_in_words(self):
        self.assertIn("copy it to a file", self.piped("t.npz", *self.fit("pca", "/dev/stdin", "--no-ledger"),
                                                      expect=BAD_INPUT).stderr)
        self.write("cut.npy", (self.folder / "t.npy").read_bytes()[:-8])
        self.assertIn("truncated", self.piped("cut.npy", *self.fit("pca", "/dev/stdin", "--no-ledger"),
                                              expect=BAD_INPUT).stderr)
        self.write("long.npy", (self.folder / "t.npy").read_bytes() + b"x")
        self.assertIn("goes on", self.piped("long.npy", *self.fit("pca", "/dev/stdin", "--no-ledger"), expect=BAD_INPUT).stderr)
        unstated = [a for a in self.fit("pca", "/dev/stdin", "--no-ledger") if a not in ("--header", "yes")]
        self.assertIn("--header yes", self.piped("t.csv", *unstated, expect=USAGE).stderr)


if __name__ == "__main__":
    unittest.main()
