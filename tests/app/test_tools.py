# SPDX-License-Identifier: Apache-2.0
"""transform, account, ledger, schema, generate, and formats end to end."""
import gzip
import json
import resource
import struct
import subprocess
import unittest
import zipfile

import numpy as np

from support import SANITIZED, BAD_INPUT, BUDGET_FLAGS, OK, PROGRAM, SOURCE, USAGE, AppTest


class Transform(AppTest):
    def setUp(self):
        super().setUp()
        self.rows = np.random.default_rng(2).uniform(0, 10, size=(300, 4))
        np.savetxt(self.path("d.csv"), self.rows, delimiter=",", header="a,b,c,d", comments="", fmt="%.17g")
        self.run_program("pca", "d.csv", "--header", "yes", "--range", "0:10", "--components", 3, *BUDGET_FLAGS, "--center", "private")

    def expected(self):
        m = np.load(self.path("model.npz"))
        return ((np.clip(self.rows, 0, 10) - m["offset"]) * m["scale"] - m["mean"]) @ m["components"].T

    def test_scores_are_the_projection(self):
        done = self.run_program("transform", "model.npz", "d.csv", "--out", "s.csv")
        self.assertIn("NOT private", done.stdout)
        np.testing.assert_allclose(np.loadtxt(self.path("s.csv"), delimiter=",", skiprows=1), self.expected(), atol=1e-9)
        self.run_program("transform", "model.npz", "d.csv", "--out", "s.npy")
        np.testing.assert_allclose(np.load(self.path("s.npy")), self.expected(), atol=1e-12)

    def test_refusals_leave_nothing(self):
        self.write("other.csv", "a,b,x,d\n1,2,3,4\n")
        self.run_program("transform", "model.npz", "other.csv", "--out", "s.csv", expect=BAD_INPUT)
        self.run_program("transform", "d.csv", "d.csv", "--out", "s.csv", expect=BAD_INPUT)
        self.run_program("transform", "model.npz", "d.csv", "--out", "s.xlsx", expect=USAGE)
        self.assertNotIn("s.csv", self.files())


class Account(AppTest):
    def test_epsilon_and_delta_are_inverse_and_right(self):
        result = self.run_json("account", "--delta", "1e-6", "--event", "gaussian:mu=0.08,count=8", "--event",
                               "pure:epsilon=0.05,count=8")
        self.assertAlmostEqual(result["epsilon"] / 1.1218759, 1, delta=0.005)
        back = self.run_json("account", "--epsilon", result["epsilon"], "--event", "gaussian:mu=0.08,count=8", "--event",
                             "pure:epsilon=0.05,count=8")
        self.assertAlmostEqual(back["delta"] / 1e-6, 1, delta=0.02)
        poisson = self.run_json("account", "--delta", "1e-5", "--event", "poisson-gaussian:q=0.01,sigma=1,count=1000")
        self.assertAlmostEqual(poisson["epsilon"] / 1.8282369, 1, delta=0.005)

    def test_refusals(self):
        for args in (["--event", "gaussian:mu=1"], ["--delta", "1e-6", "--epsilon", "1", "--event", "gaussian:mu=1"],
                     ["--delta", "1e-6", "--event", "gaussian:mu=-1"], ["--delta", "1e-6", "--event", "gaussian:sigma=1"],
                     ["--delta", "1e-6", "--event", "uniform:a=1"], ["--delta", "2", "--event", "gaussian:mu=1"],
                     ["--delta", "1e-6", "--event", "poisson-gaussian:q=2,sigma=1"], ["--delta", "1e-6"]):
            with self.subTest(args):
                self.run_program("account", *args, expect=USAGE)

    def test_budgets_beyond_what_is_proved_are_refused_by_every_command(self):
        np.save(self.path("d.npy"), np.eye(4))
        commands = (["account", "--event", "gaussian:mu=1"], ["ledger", "create", "x"], ["plan", "pca"],
                    ["pca", "d.npy", "--row-bound", 1, "--components", 1], ["covariance", "d.npy", "--row-bound", 1])
        for command in commands:
            for epsilon, delta, words in ((5000, 1e-6, "0.000001 and 1000"), (1e-7, 1e-6, "0.000001 and 1000"),
                                          ("inf", 1e-6, "0.000001 and 1000"), ("nan", 1e-6, "0.000001 and 1000"),
                                          (1, 0.99, "1e-300 and 0.5"), (1, 1e-310, "1e-300 and 0.5"),
                                          (1, "nan", "1e-300 and 0.5"), (1, 0, "1e-300 and 0.5")):
                budget = ["--epsilon", epsilon, "--delta", delta]
                if command[0] == "account":
                    budget = budget[:2] if words.endswith("1000") else budget[2:]
                if command[0] == "plan":
                    budget += ["--rows", 100, "--columns", 4, "--components", 1]
                with self.subTest(command=command[:2], budget=budget):
                    done = self.run_program(*command, *budget, expect=USAGE)
                    self.assertIn(words, " ".join(done.stderr.split()))
        done = self.run_program("account", "--delta", 1e-6, "--event", "pure:epsilon=100,count=20", expect=USAGE)
        self.assertIn("above 1000", " ".join(done.stderr.split()))


class LedgerCommand(AppTest):
    def test_create_list_show(self):
        self.assertIn("ledger create", self.run_program("ledger", "list").stdout)
        self.run_program("ledger", "create", "a b'c", "--epsilon", 2, "--delta", 1e-6, "--person", "patient")
        self.run_program("ledger", "create", "a b'c", "--epsilon", 3, "--delta", 1e-6, expect=USAGE)
        shown = self.run_program("ledger", "show", "a b'c").stdout
        self.assertIn("patient", shown)
        self.assertEqual(self.run_json("ledger", "list")["datasets"][0]["epsilon"], 2)
        self.run_program("ledger", "show", "nobody", expect=USAGE)
        self.run_program("ledger", "create", "x", "--epsilon", 0, "--delta", 1e-6, expect=USAGE)
        self.assertEqual(self.run_json("ledger", "release-unused", "a b'c")["returned"], 0)
        self.run_program("ledger", expect=USAGE)

    def test_other_adjacency_is_refused(self):
        np.save(self.path("d.npy"), np.random.rand(100, 3))
        self.run_program("ledger", "create", "p", "--epsilon", 2, "--delta", 1e-6, "--adjacency", "add-remove-one")
        args = ["pca", "d.npy", "--range", "0:1", "--components", 1, *BUDGET_FLAGS, "--dataset", "p"]
        self.run_program(*args, expect=USAGE)
        self.run_program(*args, "--adjacency", "add-remove-one")


class SchemaCommand(AppTest):
    def test_template_has_names_but_no_values(self):
        self.write("p.csv", "age,city,score\n41.5,Oslo,977\n83.25,Rome,13\n")
        text = self.run_program("schema", "init", "p.csv", "--header", "yes").stdout
        for name in ("age", "city", "score", "numeric", "categorical"):
            self.assertIn(name, text)
        for secret in ("41.5", "83.25", "Oslo", "Rome", "977"):
            self.assertNotIn(secret, text)
        self.run_program("schema", "init", "p.csv", "--header", "yes", "--out", "p.toml")
        done = self.run_program("pca", "p.csv", "--schema", "p.toml", "--components", 1, *BUDGET_FLAGS, expect=3)
        self.assertIn("p.toml", done.stderr)


class Generate(AppTest):
    def test_same_seed_same_file_and_the_truth_is_true(self):
        args = ["generate", "gaussian", "--rows", 40000, "--columns", 8, "--gap", 6, "--components", 2]
        self.run_program(*args, "--seed", 1, "--out", "a.npy", "--truth", "t.npz")
        self.run_program(*args, "--seed", 1, "--out", "b.npy")
        self.run_program(*args, "--seed", 2, "--out", "c.npy")
        read = [(self.folder / f"{n}.npy").read_bytes() for n in "abc"]
        self.assertEqual(read[0], read[1])
        self.assertNotEqual(read[0], read[2])
        rows, truth = np.load(self.path("a.npy")), np.load(self.path("t.npz"))
        covariance = rows.T @ rows / len(rows)
        self.assertAlmostEqual(np.trace(covariance), 1, delta=0.02)
        values, vectors = np.linalg.eigh(covariance)
        np.testing.assert_allclose(values[-2:], truth["eigenvalues"], rtol=0.05)
        self.assertGreater(np.linalg.norm(truth["components"] @ vectors[:, -2:]) ** 2 / 2, 0.995)

    def test_sparse_and_spiked(self):
        self.run_program("generate", "sparse", "--rows", 3000, "--columns", 50, "--sparsity", 5, "--components", 2,
                         "--spike", 20, "--seed", 1, "--out", "s.npy", "--truth", "s.npz")
        truth = np.load(self.path("s.npz"))
        self.assertEqual(np.count_nonzero(np.abs(truth["components"]).sum(axis=0)), 5)
        np.testing.assert_allclose(truth["components"] @ truth["components"].T, np.eye(2), atol=1e-12)
        self.run_program("generate", "spiked", "--rows", 20000, "--columns", 20, "--components", 3, "--spike", 4,
                         "--noise-variance", 0.5, "--seed", 1, "--out", "k.npy", "--truth", "k.npz")
        values = np.linalg.eigvalsh(np.cov(np.load(self.path("k.npy")).T))
        np.testing.assert_allclose(values[-3:], 4.5, rtol=0.1)
        np.testing.assert_allclose(values[:-3], 0.5, rtol=0.15)

    def test_refusals(self):
        for args in (["--rows", 0, "--columns", 5], ["--rows", 5, "--columns", 5, "--components", 6],
                     ["--rows", 5, "--columns", 5, "--gap", 0.5]):
            self.run_program("generate", "gaussian", *args, "--out", "x.npy", expect=USAGE)
        self.run_program("generate", "gaussian", "--rows", 5, "--columns", 5, "--out", "x.csv", expect=USAGE)


class Formats(AppTest):
    """The same rows in every format give the same release for the same seed."""

    def release(self, name, *extra, expect=OK):
        facts = ["--header", "yes" if name == "header.csv" else "no"] if ".csv" in name else []
        facts += ["--delimiter", "semicolon"] if name == "semicolon.csv" else []
        self.run_program("pca", name, *facts, "--range", "0:255", "--components", 2, *BUDGET_FLAGS, "--insecure-seed", 1,
                         "--no-ledger", "--out", "m.npz", *extra, expect=expect)
        return np.load(self.path("m.npz"))["components"]

    def test_all_formats_agree(self):
        rows = np.random.default_rng(5).integers(0, 256, size=(500, 6))
        np.save(self.path("d.npy"), rows.astype("f8"))
        expected = self.release("d.npy")
        text = "\r\n".join(",".join(map(str, row)) for row in rows)
        self.write("plain.csv", text)
        self.write("header.csv", '\ufeffa,b,"c, d",e,f,g\n' + "\n".join(",".join(f'"{x}"' for x in row) for row in rows))
        self.write("semicolon.csv", text.replace(",", ";"))
        self.write("packed.csv.gz", gzip.compress(text.encode()))
        for dtype in ("f4", "i2", "i4", "i8", "u1", ">f8", ">i4"):
            np.save(self.path(f"{dtype.strip('>')}{'b' if '>' in dtype else ''}.npy"), rows.astype(dtype))
        np.save(self.path("fortran.npy"), np.asfortranarray(rows.astype("f8")))
        np.savez(self.path("d.npz"), x=rows)
        np.savez_compressed(self.path("packed.npz"), x=rows, y=rows[:10])
        idx = struct.pack(">HBBIII", 0, 8, 3, 500, 2, 3) + rows.astype("u1").tobytes()
        self.write("images.idx", idx)
        self.write("images.idx.gz", gzip.compress(idx))
        for name in self.files():
            if name in ("d.npy", "m.npz", "packed.npz"):
                continue
            with self.subTest(name):
                np.testing.assert_array_equal(self.release(name), expected)
        np.testing.assert_array_equal(self.release("packed.npz", "--member", "x"), expected)
        self.release("packed.npz", expect=BAD_INPUT)
        np.testing.assert_array_equal(self.release("d.npy", "--columns", "1-6"), expected)
        # an option with a list does not swallow the file that follows it
        self.run_program("pca", "--columns", "a,b", "header.csv", "--header", "yes", "--range", "0:255", "--components", 2, *BUDGET_FLAGS)
        self.assertEqual(np.load(self.path("model.npz"))["components"].shape, (2, 2))


HOSTILE = "\x1b[2Jx\x07\r\x9b31m\u202egnp.\u2028\u200b\x7f"


class Terminal(AppTest):
    """Names from files, headers, schemas and ledgers move no cursor, begin no line and hide nothing."""

    def clean(self, done):
        for text in (done.stdout, done.stderr):
            for character in text:
                self.assertTrue(character == "\n" or character.isprintable(), repr(text))
        return done

    def test_hostile_names_are_shown_as_they_are_spelled(self):
        columns = ['"a\n%s"' % HOSTILE, "b", '"c\nNote. All is well"']
        rows = np.random.default_rng(2).uniform(0, 1, size=(200, 3)).round(3)
        self.write("d.csv", ",".join(columns) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
        fit = ("pca", "d.csv", "--range", "0:1", "--components", 2, *BUDGET_FLAGS, "--no-ledger", "--report", "r.html")
        self.clean(self.run_program(*fit, expect=USAGE))
        self.clean(self.run_program(*fit, "--header", "yes"))
        self.clean(self.run_program(*fit, "--header", "yes", "--json"))
        self.clean(self.run_program(*fit, "--header", "no", expect=BAD_INPUT))
        self.clean(self.run_program(*fit, "--header", "yes", "--columns", "z", expect=BAD_INPUT))
        self.clean(self.run_program("schema", "init", "d.csv", "--header", "yes"))
        self.clean(self.run_program("transform", "model.npz", "d.csv", "--header", "yes", "--out", "s.csv"))
        self.write("other.csv", "x,y\n1,2\n")
        self.clean(self.run_program("transform", "model.npz", "other.csv", "--header", "yes", "--out", "s.csv", expect=BAD_INPUT))
        report = (self.folder / "r.html").read_text()
        self.assertEqual({character for character in report if not character.isprintable()}, {"\n"})

    def test_hostile_paths_options_and_data_sets(self):
        np.save(self.path("d.npy"), np.random.rand(50, 2))
        name = "n" + HOSTILE.replace("\r", "")
        (self.folder / "d.npy").rename(self.folder / f"{name}.npy")
        out = f"{name}.npz"
        self.clean(self.run_program("pca", f"{name}.npy", "--range", "0:1", "--components", 1, *BUDGET_FLAGS, "--out", out,
                                    "--no-ledger"))
        self.clean(self.run_program("pca", f"{name}.csv", "--range", "0:1", "--components", 1, *BUDGET_FLAGS, expect=BAD_INPUT))
        self.clean(self.run_program(name, expect=USAGE))
        self.clean(self.run_program("pca", "--" + name, expect=USAGE))
        self.clean(self.run_program("ledger", "list"))
        self.clean(self.run_program("ledger", "list", "--json"))

    def test_one_file_speaks(self):
        for path in sorted((SOURCE / "apps" / "eigenveil").glob("*.?pp")):
            if path.name not in ("terminal.cpp", "terminal.hpp"):
                for word in ("fmt::print", "std::cout", "std::cerr", "printf(", "puts(", "write_out("):
                    self.assertNotIn(word, path.read_text(), f"{path.name}: tell and complain make names harmless")


class HostileModels(AppTest):
    def setUp(self):
        super().setUp()
        np.save(self.path("d.npy"), np.random.default_rng(2).normal(size=(300, 3)))
        self.run_program("pca", "d.npy", "--row-bound", 5, "--components", 1, *BUDGET_FLAGS, "--insecure-seed", 1, "--no-ledger")

    def spoil(self, change):
        arrays = dict(np.load(self.path("model.npz")))
        manifest = json.loads(bytes(arrays.pop("manifest.json")).decode())
        change(manifest)
        with zipfile.ZipFile(self.path("bad.npz"), "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array)
            archive.writestr("manifest.json", json.dumps(manifest))

    def test_wrong_types_end_in_a_sentence(self):
        manifest = json.loads(bytes(np.load(self.path("model.npz"))["manifest.json"]).decode())
        for key in manifest:
            for value in (None, -1, 1e308, "x", [], [3], {"a": 1}, True):
                with self.subTest(key=key, value=value):
                    self.spoil(lambda m: m.update({key: value}))
                    done = subprocess.run([PROGRAM, "transform", self.path("bad.npz"), self.path("d.npy"), "--out",
                                           self.path("s.npy"), "--quiet", "--force"], capture_output=True, text=True)
                    self.assertIn(done.returncode, (OK, USAGE, BAD_INPUT), done.stderr)

    def test_a_model_that_is_not_private_is_not_called_so(self):
        done = self.run_program("transform", "model.npz", "d.npy", "--out", "s.npy")
        self.assertIn("NOT PRIVATE", done.stdout)
        self.assertNotIn("The model is.", done.stdout)
        self.assertFalse(self.run_json("transform", "model.npz", "d.npy", "--out", "s.npy")["model_private"])
        done = self.run_program("pca", "d.npy", "--row-bound", 5, "--components", 1, *BUDGET_FLAGS, "--no-ledger",
                                "--insecure-seed", 1)
        self.assertTrue(done.stdout.startswith("NOT PRIVATE"))
        self.run_program("pca", "d.npy", "--row-bound", 5, "--components", 1, *BUDGET_FLAGS, "--no-ledger")
        self.assertIn("The model is.", self.run_program("transform", "model.npz", "d.npy", "--out", "s.npy").stdout)

    @unittest.skipIf(SANITIZED, "the address sanitizer needs more address space than the limit leaves")
    def test_an_archive_that_unpacks_to_gigabytes_takes_little_memory(self):
        with zipfile.ZipFile(self.path("bomb.npz"), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            with archive.open("components.npy", "w", force_zip64=True) as member:
                head = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, 1), }" % (1 << 26)
                member.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.ljust(117).encode() + b"\n")
                for _ in range(128):
                    member.write(bytes(1 << 22))
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        done = self.run_program("transform", "bomb.npz", "d.npy", "--out", "s.npy", expect=BAD_INPUT, preexec_fn=limit)
        self.assertIn("more than a model", done.stderr)


if __name__ == "__main__":
    unittest.main()
