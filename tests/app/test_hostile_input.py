# SPDX-License-Identifier: Apache-2.0
"""Files and options that were made to do harm: small models that unpack to large ones, values that were left empty, outputs that
are somebody's ledger, and what --json tells about rows."""
import json
import resource
import unittest
import zipfile

import numpy as np

from support import BAD_INPUT, BUDGET_FLAGS, INTERNAL, OK, SANITIZED, USAGE, AppTest, png

FIT = ("--range", "0:5", "--components", 1, *BUDGET_FLAGS)


class HostileInput(AppTest):
    def setUp(self):
        super().setUp()
        rows = np.random.default_rng(1).uniform(0, 5, size=(200, 3))
        np.save(self.path("rows.npy"), rows)
        self.write("rows.csv", "id,a,b\n" + "".join(f"p{i % 20},{a:.3f},{b:.3f}\n" for i, (a, b, _) in enumerate(rows)))

    def test_an_empty_value_is_not_taken_for_none(self):
        """Of a variable that a script did not set: without a data set nothing is limited, without a person a row is one."""
        for option in "--dataset", "--person", "--ledger", "--schema", "--report":
            with self.subTest(option):
                args = ["pca", "rows.csv", "--header", "yes", "--columns", "a,b", *FIT]
                for given in ([option, ""], [f"{option}=", "--yes"]):
                    done = self.run_program(*args, *given, expect=USAGE)
                    self.assertEqual(done.stdout, "")
                    self.assertIn(f"{option} is empty", done.stderr)
                    self.assertEqual(self.charged(), [])
        self.assertEqual(self.files(), ["rows.csv", "rows.npy"])

    def test_toml_that_is_deep_ends_in_a_sentence(self):
        """Schemas and a site's own file; PinsAreNamesAndHashes has the keys of sites."""
        deep = "x" + ".x" * 100000
        commands = [["pca", "rows.csv", "--components", 1, *BUDGET_FLAGS, "--schema"], ["plan", "--rows", 20000, "--schema"]]
        if "coordinate" in self.run_program("--help").stdout:
            commands.append(["site", "serve", "--config"])
        for text in f"{deep} = 1\n", f"[{deep}]\n", "a = " + "[" * 100000, f"a = {{ {deep} = 1 }}\n":
            self.write("deep.toml", text)
            for command in commands:
                with self.subTest(f"{command[0]}: {text[:7]}"):
                    done = self.run_program(*command, "deep.toml", expect=BAD_INPUT)
                    self.assertIn("deep.toml: has a key of more than 16 dots", done.stderr)
        self.assertEqual(self.charged(), [])

    @unittest.skipIf(SANITIZED, "the address sanitizer needs more address space than the limit leaves")
    def test_too_little_memory_ends_in_a_sentence(self):
        """Of whichever thread it is too little. Where nobody says otherwise it is seen before."""
        plan = ("plan", "--columns", 100000, "--rows", 20000, "--quiet", "--threads", 2, "--memory")
        for mib in 1500, 1600, 1800:
            within = lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
            self.assertIn("out of memory", self.run_program(*plan, "100G", expect=INTERNAL, preexec_fn=within).stderr)
        done = self.run_program(*plan, "auto", expect=USAGE, preexec_fn=within)
        self.assertIn("forecast for 100,000 columns takes more than", done.stderr)

    def test_a_schema_of_more_categories_than_memory_holds_is_refused(self):
        values = ",".join(f'"{i}"' for i in range(300000))
        self.write("s.toml", f'[[column]]\nname = "c"\nkind = "categorical"\nvalues = [{values}]\n')
        for command in ["plan", "--schema", "s.toml"], ["plan", "cca", "--x-columns", 150000, "--y-columns", 150000]:
            done = self.run_program(*command, "--rows", 20000, "--memory", "1G", expect=USAGE)
            self.assertIn("a forecast for 300,000 columns takes more than the 1024 MiB of --memory", done.stderr)

    def test_what_is_printed_as_an_object_does_not_tell_how_many_rows_there_are(self):
        told = set()
        for folder in "one", "none":
            (self.folder / folder).mkdir()
        (self.folder / "one" / "i.png").write_bytes(png(np.zeros((2, 2))))
        self.write("one.csv", "1,2\n")
        self.write("none.csv", "")
        for data in ["one.csv", "--header", "no"], ["none.csv", "--header", "no"], ["one"]:
            for adjacency in "replace-one", "add-remove-one":
                done = self.run_program("pca", *data, *FIT, "--adjacency", adjacency, "--json", expect=BAD_INPUT)
                told.add(done.stdout)
                self.assertIn("--fields", done.stderr)
        self.write("names.txt", "x\ny\n")
        self.write("labels.csv", "0\n")
        done = self.run_program("clip", "fit", "--images", "one", "--labels", "labels.csv", "--class-names", "names.txt", *BUDGET_FLAGS,
                                "--json", expect=BAD_INPUT)
        told.add(done.stdout)
        self.assertIn("--image-shape", done.stderr)
        self.assertEqual(len(told), 1, told)
        self.assertIn("for the operator alone", told.pop())

    def test_no_id_ends_a_run_that_forgives(self):
        rows = np.random.default_rng(1).uniform(0, 5, size=(200, 3))
        rows[:, 0] = np.arange(200) // 4
        fit = ["pca", "ids.npy", "--person", 1, *FIT, "--no-ledger", "--missing", "zero-row"]
        for odd in 0.5, 2.0**53, -1e300, np.inf, np.nan:
            with self.subTest(odd):
                rows[7, 0] = odd
                np.save(self.path("ids.npy"), rows)
                self.run_program(*fit, "--missing-person", "own")
                # Only what is not there is missing: other odd numbers are somebody's id.
                self.run_program(*fit, expect=BAD_INPUT if np.isnan(odd) else OK)

    def test_a_small_file_does_not_become_a_large_model(self):
        self.run_program("pca", "rows.npy", *FIT, "--no-ledger")
        with zipfile.ZipFile(self.path("model.npz")) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        manifest = members["manifest.json"].decode().rstrip()[:-1]

        def limit():
            if not SANITIZED:  # whose own tables need more
                resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

        for unit in '"",', "[],", "{},":
            with zipfile.ZipFile(self.path("bomb.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
                for name, data in members.items():
                    archive.writestr(name, data if name != "manifest.json" else f'{manifest}, "zzz": [{unit * (20 << 20)}0]}}')
            self.assertLess((self.folder / "bomb.npz").stat().st_size, 100000)
            done = self.run_program("report", "bomb.npz", expect=BAD_INPUT, preexec_fn=limit)
            self.assertIn("more than a model of this file's size can have", done.stderr)
        self.run_program("report", "model.npz", preexec_fn=limit)

    def test_a_model_of_many_columns_is_read_back(self):
        """Its manifest is most of the file: that alone is no reason to refuse it."""
        np.save(self.path("wide.npy"), np.random.default_rng(1).uniform(0, 5, size=(30, 20000)))
        self.run_program("pca", "wide.npy", *FIT, "--method", "power", "--rounds", 1, "--center", "range", "--no-ledger")
        self.run_program("report", "model.npz")

    def test_nothing_is_written_over_a_ledger(self):
        """By commands too that know of no ledger."""
        self.run_program("ledger", "create", "d", "--epsilon", 3, "--delta", 1e-5)
        self.run_program("ledger", "create", "d", "--epsilon", 3, "--delta", 1e-5, "--ledger", "own.csv")
        self.run_program("pca", "rows.npy", *FIT)
        standard = str((self.home / "data" / "eigenveil" / "ledger.db").relative_to(self.folder))
        for command in (["report", "model.npz", "--out"], ["transform", "model.npz", "rows.npy", "--out"],
                        ["schema", "init", "rows.csv", "--header", "yes", "--out"],
                        ["regress", "--from", "model.npz", "--target", "1", "--out"]):
            for ledger in standard, f"{standard}.key", "own.csv", "own.csv.anchor":
                with self.subTest(command=command, ledger=ledger):
                    done = self.run_program(*command, ledger, expect=None)
                    self.assertEqual(done.returncode, USAGE, done.stderr)
        self.run_program("ledger", "verify")
        self.run_program("ledger", "verify", "--ledger", "own.csv")
        self.assertEqual(len(self.charged()), 1)


if __name__ == "__main__":
    unittest.main()
