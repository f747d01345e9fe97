# SPDX-License-Identifier: Apache-2.0
"""mpirun -n R eigenveil ... --engine mpi: the release of one process, bit for bit, and failures that leave nothing."""
import ctypes
import ctypes.util
import gzip
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

import numpy as np

from support import BAD_INPUT, BUDGET_FLAGS, OK, PROGRAM, USAGE, AppTest, png

MPIRUN = ["mpirun", "-q", "--allow-run-as-root", "--oversubscribe"]
WITHOUT = shutil.which("mpirun") is None or "built without MPI" in subprocess.run(
    [PROGRAM, "pca", "x", "--components", "1", *BUDGET_FLAGS, "--engine", "mpi"], capture_output=True, text=True).stderr


def write_hdf5(path, rows):
    """With the C library that the program uses: Debian's h5py is one more package."""
    library = ctypes.CDLL(ctypes.util.find_library("hdf5_serial") or ctypes.util.find_library("hdf5"))
    number, default = ctypes.c_int64, ctypes.c_int64(0)

    def call(name, *args):
        function = getattr(library, name)
        function.restype = number if "create" in name else ctypes.c_int
        result = function(*args)
        assert result >= 0, name
        return number(result)

    call("H5open")
    double = number.in_dll(library, "H5T_NATIVE_DOUBLE_g")
    rows = np.ascontiguousarray(rows, dtype=float)
    file = call("H5Fcreate", path.encode(), ctypes.c_uint(2), default, default)
    space = call("H5Screate_simple", 2, (ctypes.c_uint64 * 2)(*rows.shape), None)
    table = call("H5Dcreate2", file, b"x", double, space, default, default, default)
    call("H5Dwrite", table, double, default, default, default, rows.ctypes.data_as(ctypes.c_void_p))
    call("H5Dclose", table)
    call("H5Fclose", file)


@unittest.skipIf(WITHOUT, "no MPI here")
class Mpi(AppTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(5)
        n = 1500
        self.rows = random.normal(size=(n, 6)) * [3, 2, 1, 1, 1, 1]
        self.rows[:, 3] += self.rows[:, 0]
        self.rows = np.c_[self.rows, random.integers(1, 4, size=n)]
        np.save(self.path("d.npy"), self.rows)
        lines = [",".join(map(repr, map(float, row))) for row in self.rows]
        text = "\n".join(["a,b,c,d,e,f,g", *lines]) + "\n"
        self.write("d.csv", text)
        self.write("d.csv.gz", gzip.compress(text.encode()))
        np.savez(self.path("d.npz"), x=self.rows)
        write_hdf5(self.path("d.h5"), self.rows)
        (self.folder / "parts").mkdir()
        for i, part in enumerate(np.array_split(self.rows, 5)):
            np.save(self.path(f"parts/{i}.npy"), part)
        self.before = self.files()

    def mpi(self, ranks, *args, expect=OK):
        return self.run_program(*MPIRUN[1:], "-n", ranks, PROGRAM, *args, "--engine", "mpi", program=MPIRUN[0], expect=expect)

    def same(self, command, data, *args, ranks=(1, 2, 3)):
        args = [*args, "--header", "yes"] if ".csv" in data else args
        args = [command, data, *args, *BUDGET_FLAGS, "--no-ledger", "--insecure-seed", 7, "--quiet"]
        self.run_program(*args, "--out", "one.npz")
        one = (self.folder / "one.npz").read_bytes()
        for count in ranks:
            with self.subTest(command=args, ranks=count):
                self.mpi(count, *args, "--out", "many.npz")
                self.assertEqual((self.folder / "many.npz").read_bytes(), one)
                (self.folder / "many.npz").unlink()
        return np.load(self.path("one.npz"))

    PCA = ("--components", 2, "--columns", "1-6", "--row-bound", 8)

    def test_every_command_releases_what_one_process_does(self):
        pca = self.PCA
        self.same("pca", "d.npy", *pca)
        self.same("pca", "d.npy", *pca, "--method", "adaptive-power", "--rounds", 3)
        self.same("pca", "d.npy", *pca, "--method", "spiked")
        self.same("pca", "d.npy", *pca[:4], "--range", "-20:20", "--center", "private", "--row-bound", "auto",
                  ranks=(3,))
        self.same("pca", "d.npy", *pca, "--method", "auto", ranks=(2,))
        self.same("covariance", "d.npy", *pca[2:])
        gep = ("--row-bound", 8, "--components", 1)
        self.same("cca", "d.npy", "--x-columns", "1-3", "--y-columns", "4-6", *gep)
        self.same("cca", "d.npy", "--x-columns", "1-3", "--y-columns", "4-6", *gep, "--noise", "each-step", "--rounds", 2,
                  ranks=(2,))
        self.same("fda", "d.npy", "--label", 7, "--classes", "1|2|3", *gep)
        self.same("sir", "d.npy", "--response", 1, "--cuts", "-2,0,2", *gep)

    def test_every_format(self):
        reference = None
        for data in ("d.npy", "d.csv", "d.csv.gz", "d.npz", "d.h5", "parts"):
            arrays = self.same("pca", data, *self.PCA)
            reference = reference or {name: arrays[name] for name in ("components", "eigenvalues", "mean")}
            for name, array in reference.items():
                self.assertEqual(array.tobytes(), arrays[name].tobytes(), data)
        for data in ("d.csv", "parts"):
            self.same("fda", data, "--label", 7, "--classes", "1.0|2.0|3.0", "--components", 1, "--row-bound", 8, ranks=(3,))
            self.same("sir", data, "--response", 1, "--cuts", "-2,0,2", "--components", 1, "--row-bound", 8, ranks=(2,))

    def test_pairs_of_clip(self):
        random = np.random.default_rng(3)
        labels = random.integers(0, 3, size=601)
        pixels = random.integers(0, 60, size=(601, 8, 8))
        pixels[np.arange(601), 2 * labels] = 250
        (self.folder / "images").mkdir()
        for i, image in enumerate(pixels):
            self.write(f"images/{i:03}.png", png(image))
        np.savetxt(self.path("labels.csv"), labels, fmt="%d")
        self.write("names.txt", "top\nmiddle\nbottom\n")
        self.write("captions.txt", "".join(f"a bar at the {('top', 'middle', 'bottom')[k]}\n" for k in labels))
        np.save(self.path("x.npy"), self.rows[:, :3])
        self.write("y.csv", "".join(f"{a!r},{b!r}\n" for a, b in self.rows[:, 3:5].tolist()))
        classes = ("--images", "images", "--labels", "labels.csv", "--class-names", "names.txt")
        self.same("clip", "fit", *classes, ranks=(3,))
        self.same("clip", "fit", *classes, "--image-encoder", "pixels", "--method", "cross", ranks=(2,))
        self.same("clip", "fit", "--images", "images", "--captions", "captions.txt", "--image-encoder", "pixels", "--dim", 2, ranks=(2,))
        self.same("clip", "fit", "--x", "x.npy", "--y", "y.csv", "--method", "whitened", "--dim", 2, ranks=(2,))
        before = self.files()
        for args, words, code in [(["--method", "batch"], "leave --engine out", USAGE), ([], "rank 1: images/500.png", BAD_INPUT)]:
            if code == BAD_INPUT:
                self.write("images/500.png", png(pixels[0])[:-20])
            done = self.mpi(2, "clip", "fit", *classes, "--image-encoder", "pixels", *args, *BUDGET_FLAGS, expect=code)
            self.assertIn(words, done.stderr)
        self.assertEqual((self.files(), self.charged()), (before, []))
        # What is missing is zero at every rank, and none of them looks at its own rows for what was stated.
        zero = ("--missing", "zero-row", "--image-shape", "8x8")
        self.same("clip", "fit", *classes, "--image-encoder", "pixels", "--method", "cross", *zero, ranks=(2,))
        self.write("y.csv", "tall\n" + "1,2\n" * 599 + "1\n")
        np.save(self.path("x.npy"), self.rows[:601, :3])
        self.same("clip", "fit", "--x", "x.npy", "--y", "y.csv", "--y-fields", 2, "--method", "cross", "--dim", 2, *zero[:2], ranks=(3,))

    def test_rows_with_gaps_stay_zero_in_every_share(self):
        self.rows[::50, 2] = np.nan
        np.save(self.path("d.npy"), self.rows)
        self.same("pca", "d.npy", *self.PCA[:4], "--range", "-20:20", "--center", "private", "--missing", "zero-row",
                  ranks=(2, 3))

    def test_without_mpirun_it_is_one_rank(self):
        args = ["pca", "d.npy", *self.PCA, *BUDGET_FLAGS, "--insecure-seed", 7]
        self.run_program(*args, "--out", "one.npz", "--no-ledger")
        self.run_program(*args, "--out", "many.npz", "--no-ledger", "--engine", "mpi")
        self.assertEqual((self.folder / "one.npz").read_bytes(), (self.folder / "many.npz").read_bytes())

    def test_one_release_one_charge_one_voice(self):
        done = self.mpi(3, "pca", "d.csv", "--header", "yes", *self.PCA, *BUDGET_FLAGS, "--json", "--quiet")
        self.assertEqual(done.stdout.count("\n"), 1)
        self.assertEqual(done.stderr, "")
        self.assertEqual(len(self.charged()), 1)
        self.assertIn('"rows":1500', done.stdout.replace(" ", "").replace("1500.0", "1500"))

    def refuse(self, ranks, data, *words, args=(), expect=BAD_INPUT):
        before = self.files()
        header = ["--header", "yes"] if ".csv" in data else []
        done = self.mpi(ranks, "pca", data, *header, *self.PCA, *BUDGET_FLAGS, *args, expect=expect)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(done.stderr.count("eigenveil: rank"), 1 if "rank" in "".join(words) else 0)
        self.assertEqual(self.files(), before, "no output file")
        self.assertEqual(self.charged(), [], "nothing reserved")

    def test_a_bad_row_of_one_rank(self):
        self.rows[1200, 1] = np.nan
        np.save(self.path("d.npy"), self.rows)
        self.refuse(2, "d.npy", "rank 1: d.npy, row 1201, column '2'")
        lines = (self.folder / "d.csv").read_text().splitlines()
        lines[1201] = lines[1201].replace(",", ",tall,", 1)
        self.write("d.csv", "\n".join(lines))
        self.refuse(2, "d.csv", "rank ", "d.csv: row 1201 (line 1202)")
        lines[1201] = lines[1200].split(",")[0] + ",," + ",".join(lines[1200].split(",")[2:])
        self.write("d.csv", "\n".join(lines))
        self.refuse(3, "d.csv", "rank ", "d.csv, row 1201, column 'b'")
        part = np.load(self.path("parts/1.npy"))
        part[7, 1] = np.inf
        np.save(self.path("parts/1.npy"), part)
        self.refuse(2, "parts", "rank 1: parts/1.npy, row 8, column '2'")

    def test_what_is_wrong_before_rows_are_read(self):
        self.refuse(2, "nothing.npy", "no such file")
        self.refuse(2, "d.npy", "rank 0: --memory", args=("--memory", "1M"), expect=USAGE)
        self.refuse(2, "d.npy", args=("--out", "nowhere/model.npz"), expect=USAGE)
        self.refuse(2, "d.npy", "--engine", args=("--engine", "cloud"), expect=USAGE)

    def test_a_killed_rank_ends_the_job(self):
        np.save(self.path("large.npy"), np.random.default_rng(1).normal(size=(400_000, 40)).astype("f4"))
        args = ["pca", "large.npy", "--row-bound", 10, "--components", 2, *BUDGET_FLAGS, "--method", "adaptive-power",
                "--rounds", 60, "--no-ledger", "--yes"]
        job = subprocess.Popen([*MPIRUN, "-n", "2", PROGRAM, *map(str, args), "--engine", "mpi"], cwd=self.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in job.stderr:  # rows are being asked for
            if "asking" in line:
                break
        ranks = [int(p) for p in pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()]
        self.assertEqual(len(ranks), 2)
        os.kill(ranks[1], signal.SIGKILL)
        job.communicate(timeout=120)
        self.assertNotEqual(job.returncode, 0)
        deadline = time.time() + 30
        while os.path.exists(f"/proc/{ranks[0]}") and time.time() < deadline:
            time.sleep(0.1)
        self.assertFalse(os.path.exists(f"/proc/{ranks[0]}"), "no rank outlives the job")
        self.assertEqual([f for f in self.files() if f not in self.before], ["large.npy"])


if __name__ == "__main__":
    unittest.main()
