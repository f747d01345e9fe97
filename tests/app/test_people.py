# SPDX-License-Identifier: Apache-2.0
"""--person: what is protected is a person, with all their rows."""
import json
import os
import re
import shutil
import subprocess
import unittest
import zipfile

import numpy as np

from support import BAD_INPUT, BUDGET, BUDGET_FLAGS, OK, PROGRAM, SANITIZED, USAGE, AppTest, drop_found_noise

MPIRUN = ["-q", "--allow-run-as-root", "--oversubscribe", "-n", 3, PROGRAM]
WITHOUT_MPI = shutil.which("mpirun") is None or "built without MPI" in subprocess.run(
    [PROGRAM, "pca", "x", "--components", "1", *BUDGET_FLAGS, "--engine", "mpi"], capture_output=True, text=True).stderr

SCHEMA = "".join(f'[[column]]\nname = "{name}"\nkind = "numeric"\nlower = -5\nupper = 5\n' for name in "abcd")
CLASSED = SCHEMA + '[[column]]\nname = "kind"\nkind = "categorical"\nvalues = ["x", "y"]\n'
FITS = {"gram": ("pca", "--components", 2), "private mean and bound": ("pca", "--components", 1, "--center", "private", "--row-bound", "auto"),
        "adaptive": ("pca", "--components", 2, "--method", "adaptive-power", "--rounds", 2),
        "power": ("pca", "--components", 2, "--method", "power", "--rounds", 2),
        "sphere": ("pca", "--components", 2, "--method", "sphere"), "score plot": ("pca", "--components", 2, "--score-plot", .3),
        "spiked": ("pca", "--components", 1, "--method", "spiked"), "covariance": ("covariance",),
        "cca": ("cca", "--x-columns", "a,b", "--y-columns", "c,d", "--components", 1),
        "fda": ("fda", "--label", "kind", "--components", 1), "sir": ("sir", "--response", "a", "--cuts", "-1,0,1", "--components", 1),
        "regress": ("regress", "--target", "a"), "pilot": ("pca", "--components", 1, "--method", "pilot")}


class People(AppTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(7)
        self.write("numbers.toml", SCHEMA)
        self.write("classed.toml", CLASSED)

    def table(self, people, order=None, name="d.csv", ids=None):
        """Rows of people, who have 1 to 6 each."""
        random = np.random.default_rng(3)
        rows = []
        for person in range(people):
            centre = random.uniform(-2, 2, size=4)
            for _ in range(random.integers(1, 7)):
                values = ",".join(f"{x:.3f}" for x in centre + random.uniform(-1, 1, size=4))
                rows.append(f"{values},{'xy'[person % 2]},{ids(person) if ids else person}")
        rows = rows if order is None else [rows[i] for i in order(len(rows))]
        self.write(name, "\n".join(["a,b,c,d,kind,who", *rows]) + "\n")
        return rows

    def fit(self, fit, *options, data="d.csv", out="m.npz", ranks=None):
        schema = "classed.toml" if FITS[fit][0] == "fda" else "numbers.toml"
        args = [FITS[fit][0], data, *FITS[fit][1:], "--schema", schema, *BUDGET_FLAGS, "--insecure-seed", 5, "--no-ledger", "--out", out, *options]
        if ranks:
            self.run_program(*MPIRUN, *args, program="mpirun")
        else:
            self.run_program(*args)
        return np.load(self.path(out)), json.loads(zipfile.ZipFile(self.path(out)).read("manifest.json"))

    def assert_same_arrays(self, one, two):
        self.assertEqual(one.files, two.files)
        for name in one.files:
            if name != "manifest.json":
                self.assertEqual(one[name].tobytes(), two[name].tobytes(), name)

    def test_with_one_row_each_releases_are_those_without_people(self):
        rows = self.random.uniform(-3, 3, size=(3000, 4)).round(3)
        lines = [",".join(map(str, row)) + f",{'xy'[i % 2]},{i}" for i, row in enumerate(rows)]
        self.write("d.csv", "\n".join(["a,b,c,d,kind,who", *lines]) + "\n")
        for fit in FITS:
            for adjacency in ("replace-one", "add-remove-one"):
                with self.subTest(fit=fit, adjacency=adjacency):
                    people, told = self.fit(fit, "--person", "who", "--adjacency", adjacency)
                    without, plain = self.fit(fit, "--adjacency", adjacency, out="n.npz")
                    self.assert_same_arrays(people, without)
                    self.assertEqual(told["noise"], plain["noise"])
                    self.assertEqual(told.get("people"), plain.get("rows"))
                    self.assertEqual(told.get("noisy_people"), plain.get("noisy_rows"))

    def test_the_order_of_rows_and_threads_do_not_matter(self):
        for fit in FITS:
            with self.subTest(fit=fit):
                self.table(1500)
                one, _ = self.fit(fit, "--person", "who", "--threads", 1)
                self.table(1500, order=lambda n: np.random.default_rng(1).permutation(n))
                two, _ = self.fit(fit, "--person", "who", "--threads", 2, "--memory", "160M", out="n.npz")
                self.assert_same_arrays(one, two)

    def test_many_rows_have_the_noise_of_one(self):
        """Twenty copies of each row, weighed 1/20: every answer has the noise that one row each gives. The first to the last digit;
        later ones follow earlier answers (directions, means), which differ by 2^-32 or so."""
        rows = self.random.uniform(-3, 3, size=(2000, 4)).round(3)
        for each in (1, 20):
            lines = [",".join(map(str, row)) + f",{'xy'[i % 2]},{i}" for i, row in enumerate(rows) for _ in range(each)]
            self.write(f"d{each}.csv", "\n".join(["a,b,c,d,kind,who", *lines]) + "\n")
        # With rows:20 what all rows weigh is private under replace-one too, where half a percent of the budget tells it.
        for fit in FITS:
            for adjacency, weight in (("replace-one", "equal"), ("add-remove-one", "equal"), ("add-remove-one", "rows:20")):
                with self.subTest(fit=fit, adjacency=adjacency, weight=weight):
                    options = ["--person", "who", "--adjacency", adjacency]
                    _, one = self.fit(fit, *options, data="d1.csv")
                    _, many = self.fit(fit, *options, "--person-weight", weight, data="d20.csv")
                    self.assertEqual([(n["label"], n["entries"]) for n in many["noise"]], [(n["label"], n["entries"]) for n in one["noise"]])
                    self.assertEqual(many["noise"][0], one["noise"][0])
                    np.testing.assert_allclose([n["deviation"] for n in many["noise"]], [n["deviation"] for n in one["noise"]], rtol=1e-6)
                    self.assertEqual(many.get("people"), one.get("people"))

    def test_people_count_alike_or_rows_do(self):
        # Half have 2 rows of 0, half 20 rows of 1, in a column of its own: means .5, .71 (rows:5) and .91.
        lines = [f"{v},0,{p}" for p in range(2000) for v in [p % 2] * (20 if p % 2 else 2)]
        self.write("d.csv", "\n".join(["v,z,who", *lines]) + "\n")
        args = ["pca", "d.csv", "--header", "yes", "--range", "-2:2", "--components", 1, "--center", "private", "--no-ledger",
                "--epsilon", 50, "--delta", 1e-6, "--insecure-seed", 1, "--out", "m.npz"]
        for options, expected in ((["--person", "who"], .5), (["--person", "who", "--person-weight", "rows:5"], 5 / 7),
                                  (["--columns", "v,z"], 20 / 22), (["--person", "who", "--max-rows-per-person", 1], .5)):
            self.run_program(*args, *options)
            mean = 2 * np.load(self.path("m.npz"))["mean"][0]
            self.assertAlmostEqual(mean, expected, delta=.02, msg=options)

    def test_what_is_told_and_what_is_not(self):
        rows = self.table(500)
        for adjacency in ("replace-one", "add-remove-one"):
            for options in ([], ["--person-weight", "rows:3"]):
                done = self.run_program("pca", "d.csv", "--schema", "numbers.toml", "--person", "who", "--components", 1, *BUDGET_FLAGS,
                                        "--adjacency", adjacency, "--report", "r.html", "--no-ledger", "--out", "m.npz", *options)
                manifest = json.loads(zipfile.ZipFile(self.path("m.npz")).read("manifest.json"))
                report = (self.folder / "r.html").read_text()
                self.assertIn("one person, with all their rows", manifest["guarantee"])
                self.assertIn("one person, with all their rows", report)
                self.assertEqual(manifest["person"]["weight"], options[1] if options else "equal")
                self.assertFalse({"rows", "noisy_rows"} & manifest.keys())
                self.assertEqual(manifest.get("people"), 500 if adjacency == "replace-one" and not options else None)
                count = str(len(rows))
                for text in (done.stdout, done.stderr, json.dumps(manifest), report):
                    self.assertNotIn(count, re.sub(r"\d+\.\d+", "", text), "how many rows there are is private")

    def test_no_fit_tells_how_many_rows_there_are(self):
        """4,771 rows of 1,237 people, one of whom has 1,733: no output of any fit has the first or the last number."""
        lines = []
        for person in range(1237):
            for _ in range(1733 if person == 600 else 2 + (person < 566)):
                lines.append(",".join(f"{x:.2f}" for x in self.random.uniform(-3, 3, size=4)) + f",{'xy'[person % 2]},p{person}")
        self.write("d.csv", "\n".join(["a,b,c,d,kind,who", *lines]) + "\n")
        self.assertEqual(len(lines), 4771)
        self.run_program("ledger", "create", "visits", "--epsilon", 900, "--delta", 1e-5, "--person", "who", "--ledger", "l.db")
        private = re.compile(r"(?<![\w.])(4,?771|1,?733)(?!\w)")
        for fit in FITS:
            for options in ([], ["--person-weight", "rows:7"]):
                with self.subTest(fit=fit, options=options):
                    schema = "classed.toml" if FITS[fit][0] == "fda" else "numbers.toml"
                    for told in ([], ["--json"]):
                        done = self.run_program(FITS[fit][0], "d.csv", *FITS[fit][1:], "--schema", schema, *BUDGET_FLAGS, "--ledger", "l.db", "--dataset",
                                                "visits", "--person", "who", "--report", "r.html", "--out", "m.npz", *options, *told)
                        for text in (done.stdout, done.stderr):
                            self.assertIsNone(private.search(text), text)
                    model = np.load(self.path("m.npz"))
                    texts = [bytes(model["manifest.json"]).decode(), re.sub(r"<(style|svg|script).*?</\1>", "", (self.folder / "r.html").read_text(), flags=re.S)]
                    for text in texts:
                        self.assertIsNone(private.search(text), private.search(text) and text[max(0, private.search(text).start() - 80):][:160])
                    for name in model.files:
                        if name != "manifest.json" and model[name].dtype.kind in "fiu":
                            self.assertFalse(np.isin(model[name], (4771, 1733)).any(), name)
        for shown in (["ledger", "show", "visits"], ["ledger", "show", "visits", "--json"]):
            self.assertIsNone(private.search(self.run_program(*shown, "--ledger", "l.db").stdout))

    def test_neighbours_in_a_person_leave_the_same_words(self):
        """One person replaced by another with many more rows: all the same but what noise was added to."""
        rows = self.table(1500)
        told = []
        for own in (["1,1,1,1,x,0"], [f"{i % 5},-4,4,{-(i % 3)},y,0" for i in range(50)]):
            self.write("d.csv", "\n".join(["a,b,c,d,kind,who", *[r for r in rows if not r.endswith(",0")], *own]) + "\n")
            for fit in FITS:
                model, manifest = self.fit(fit, "--person", "who")
                for key in ("warnings", "ridge", "noise_edge", "error_rates", "noise_variance", "coefficients", "least_variation",
                            "residual_variance", "r_squared", "widening", "second_moments", "verdicts", "noisy_people"):
                    manifest.pop(key, None)
                drop_found_noise(manifest)
                if manifest["options"].get("row_bound_kind") == "private":
                    manifest["options"].pop("row_bound")
                told.append((fit, manifest, {name: model[name].shape for name in model.files if name != "manifest.json"}))
        half = len(told) // 2
        for one, two in zip(told[:half], told[half:]):
            self.assertEqual(one, two)

    def test_a_ledger_has_one_unit(self):
        self.table(200)
        self.run_program("ledger", "create", "visits", "--epsilon", 5, "--delta", 1e-6, "--person", "who")
        self.run_program("ledger", "create", "rows", "--epsilon", 5, "--delta", 1e-6)
        self.table(150, name="e.csv")
        args = ["pca", "d.csv", "--schema", "numbers.toml", "--components", 1, *BUDGET_FLAGS]
        self.run_program(*args, "--person", "who", "--dataset", "visits")
        for options in (["--dataset", "visits"], ["--dataset", "rows", "--person", "who"], ["--dataset", "visits", "--person", "kind"]):
            data = "e.csv" if "rows" in options else "d.csv"
            done = self.run_program("pca", data, *args[2:], *options, expect=BUDGET)
            self.assertIn("What one costs says nothing about the other", " ".join(done.stderr.split()))
        shown = self.run_program("ledger", "show", "visits").stdout
        self.assertIn("one person, with all their rows (column 'who')", shown)
        self.assertEqual(self.run_json("ledger", "show", "visits")["unit"], "person")
        self.assertEqual(self.run_json("ledger", "show", "rows")["unit"], "row")
        self.run_program("ledger", "create", "x", "--epsilon", 5, "--delta", 1e-6, "--unit", "patient", expect=USAGE)
        # Without a data set it is recorded, each unit by itself.
        self.run_program("pca", "e.csv", *args[2:], "--person", "who")
        self.run_program("pca", "e.csv", *args[2:])

    def test_bad_input(self):
        args = ["pca", "d.csv", "--schema", "numbers.toml", "--components", 1, *BUDGET_FLAGS, "--no-ledger"]
        self.table(100, ids=lambda p: "" if p == 7 else p)
        done = self.run_program(*args, "--person", "who", expect=BAD_INPUT)
        self.assertIn("the person's id is missing", done.stderr)
        self.run_program(*args, "--person", "who", "--missing-person", "own")
        manifest = json.loads(zipfile.ZipFile(self.path("model.npz")).read("manifest.json"))
        self.assertIn("several people", " ".join(manifest["warnings"]))
        self.table(100)
        for options, code, words in ((["--person", "nobody"], BAD_INPUT, "no column 'nobody'"), (["--person", "a"], USAGE, "take it out of the schema"),
                                     (["--person", "1-2"], USAGE, "more than one column"), (["--person-weight", "rows:3"], USAGE, "--person"),
                                     (["--person", "who", "--person-weight", "rows:0"], USAGE, "rows:M"),
                                     (["--person", "who", "--delta", 1e-30], USAGE, "1e-18"),
                                     (["--person", "who", "--method", "spiked", "--guarantee", "model", "--noise-variance", 1, "--spike", 1], USAGE,
                                      "independent rows")):
            base = [a for a in args if "--delta" not in options or a not in ("--delta", "1e-6")]
            done = self.run_program(*base, *options, expect=code)
            self.assertIn(words, " ".join(done.stderr.split()), options)
        done = self.run_program("pca", "d.csv", "--header", "yes", "--columns", "a,who", "--range", "0:1", "--components", 1, *BUDGET_FLAGS, "--no-ledger",
                                "--person", "who", expect=USAGE)
        self.assertIn("cannot be a feature too", done.stderr)

    def test_an_id_is_no_class_no_response_and_in_no_view(self):
        self.table(100)
        for fit in (("fda", "--label", "WHO", "--components", 1), ("sir", "--response", "WHO", "--cuts", "20,50", "--components", 1),
                    ("regress", "--target", "WHO"), ("cca", "--x-columns", "a,b", "--y-columns", "c,WHO", "--components", 1),
                    ("pca", "--columns", "a,WHO", "--components", 1), ("covariance", "--columns", "1-4,WHO")):
            for person in ("who", "6"):
                for feature in ("who", "6"):
                    with self.subTest(fit=fit, person=person, feature=feature):
                        args = [str(a).replace("WHO", feature) for a in fit]
                        rows = ["--columns", "a,b,c,d"] if fit[0] in ("fda", "sir") else []
                        classes = ["--classes", "1|2"] if fit[0] == "fda" else []
                        done = self.run_program(args[0], "d.csv", *args[1:], *rows, *classes, "--header", "yes", "--range", "-5:200", *BUDGET_FLAGS,
                                                "--no-ledger", "--person", person, expect=USAGE)
                        self.assertIn("says whose row it is", " ".join(done.stderr.split()))

    def test_an_id_that_is_unique_is_said_to_the_operator_alone(self):
        args = ["pca", "d.csv", "--schema", "numbers.toml", "--components", 1, *BUDGET_FLAGS, "--no-ledger", "--person", "who"]
        self.table(100)
        self.assertNotIn("its own person", self.run_program(*args, "--diagnostics").stderr)
        lines = [f"1,1,1,1,x,{i}" for i in range(50)]
        self.write("d.csv", "\n".join(["a,b,c,d,kind,who", *lines]) + "\n")
        self.assertIn("every row is its own person", self.run_program(*args, "--diagnostics").stderr)
        # It stops nothing; whoever said yes in advance hears nothing that rows decide, and no release has it.
        rows = self.random.uniform(-3, 3, size=(20000, 4)).round(2)
        self.write("d.csv", "\n".join(["a,b,c,d,kind,who", *[",".join(map(str, row)) + f",x,{i}" for i, row in enumerate(rows)]]) + "\n")
        told = self.run_program(*args, "--json", "--report", "r.html", yes=False)
        self.assertIn("every row is its own person", told.stderr)
        for text in (told.stdout, (self.folder / "r.html").read_text(), self.run_program(*args).stderr, self.run_program(*args, "--quiet", yes=False).stderr):
            self.assertNotIn("own person", text)

    def test_ids_are_texts(self):
        lines = [f"1,1,1,1,x,{'0' * (i % 2)}{i // 2}" for i in range(100)]
        self.write("d.csv", "\n".join(["a,b,c,d,kind,who", *lines]) + "\n")
        _, manifest = self.fit("gram", "--person", "who")
        self.assertEqual(manifest["people"], 100)

    def test_numbers_are_ids_if_they_are_whole(self):
        rows = self.random.uniform(-1, 1, size=(1000, 3))
        rows[:, 2] = np.arange(1000) // 4
        np.save(self.path("d.npy"), rows)
        args = ["pca", "d.npy", "--range", "-1:1", "--components", 1, *BUDGET_FLAGS, "--no-ledger", "--person", 3, "--out", "m.npz"]
        self.run_program(*args)
        self.assertEqual(json.loads(zipfile.ZipFile(self.path("m.npz")).read("manifest.json"))["people"], 250)
        rows[5, 2] = .5
        np.save(self.path("d.npy"), rows)
        self.assertIn("no integer below 2^53", self.run_program(*args, expect=BAD_INPUT).stderr)

    def sum_of_squares(self, data, *options):
        """The Gram's first entry times the number of people: what one person can move by one."""
        self.run_program("covariance", data, "--center", "none", "--row-bound", 1, "--missing-person", "own", "--epsilon", 900, "--delta", 1e-6,
                         "--insecure-seed", 7, "--no-ledger", "--out", "m.npz", *options)
        with zipfile.ZipFile(self.path("m.npz")) as model:
            return np.load(self.path("m.npz"))["second_moments"][0, 0] * json.loads(model.read("manifest.json"))["people"]

    def test_no_id_makes_a_person_many(self):
        """One person has 1 row or 40, with an id that is no whole number."""
        for kind, ids in (("f8", 2. ** 60), ("f8", 1.5), ("f8", np.inf), ("i8", 2 ** 60)):
            found = []
            for rows in (1, 40):
                others = np.column_stack([np.arange(200), np.zeros(200)])
                np.save(self.path("d.npy"), np.vstack([others, np.tile([ids, 1], (rows, 1))]).astype(kind))
                found.append(self.sum_of_squares("d.npy", "--range", "-1:1", "--person", 1, "--missing", "zero-row"))
            self.assertAlmostEqual(found[1], found[0], delta=.5, msg=f"{kind} {ids}")

    def test_no_spelling_of_an_id_makes_a_person_many(self):
        """A field is the same id in quotes or not, with blanks around it or none, on CRLF lines, beside breaks and in long text."""
        for ids in (["q", '"q"'], ["q", "q ", "  q", "q\t"], ["q", "q"], ['"a""b"'], ['"a\nb"'], ["z" * 70000]):
            lines = ["who,a", *[f"p{i},0" for i in range(200)], *[f"{x},1" for x in ids * (12 // len(ids))]]
            for end in ("\n", "\r\n"):
                (self.folder / "d.csv").write_bytes((end.join(lines) + end).encode())
                found = self.sum_of_squares("d.csv", "--header", "yes", "--range", "-1:1", "--person", "who")
                self.assertAlmostEqual(found, 1, delta=.3, msg=ids[0][:9])
        rows = np.zeros((212, 2))
        rows[:200, 0] = np.arange(1, 201)
        rows[200:, 0] = [0., -0.] * 6
        rows[200:, 1] = 1
        np.save(self.path("d.npy"), rows)
        self.assertAlmostEqual(self.sum_of_squares("d.npy", "--range", "-1:1", "--person", 1), 1, delta=.3)

    def test_no_malformed_line_makes_a_person_many(self):
        rule = '[[column]]\nname = "a"\nkind = "numeric"\nlower = -1\nupper = 1\nmissing = 1\n'
        self.write("one.toml", 'header = "yes"\n' + rule)
        for line in ("q", "q,1,2", 'q,"1"2', ""):
            found = []
            for rows in (1, 40):
                lines = ["who,a", *[f"p{i},0" for i in range(200)], *[line] * rows]
                self.write("d.csv", "\n".join(lines) + "\n")
                found.append(self.sum_of_squares("d.csv", "--schema", "one.toml", "--person", "who", "--missing", "value"))
            self.assertAlmostEqual(found[1], found[0], delta=.5, msg=line)
        self.write("d.csv", "a,who\n0,p\n0\n")
        done = self.run_program("covariance", "d.csv", "--schema", "one.toml", "--person", "who", "--missing", "value", *BUDGET_FLAGS,
                                "--no-ledger", expect=BAD_INPUT)
        self.assertIn("the line is malformed, so that nobody knows whose it is", " ".join(done.stderr.split()))

    def test_numbers_of_32_bits_are_ids_below_2_24(self):
        rows = self.random.uniform(-1, 1, size=(100, 3)).astype("f4")
        rows[:, 2] = np.arange(100) + 2. ** 24
        np.save(self.path("d.npy"), rows)
        done = self.run_program("pca", "d.npy", "--range", "-1:1", "--components", 1, *BUDGET_FLAGS, "--no-ledger", "--person", 3,
                                expect=BAD_INPUT)
        self.assertIn("no integer below 2^24", done.stderr)

    def test_a_list_of_ids_is_read_as_a_column_is(self):
        x = self.random.normal(size=(300, 4))
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), x[:, :3])
        fit = ["clip", "fit", "--x", "x.npy", "--y", "y.npy", "--dim", 1, *BUDGET_FLAGS, "--insecure-seed", 1, "--no-ledger", "--method", "cross",
               "--person", "who.txt", "--out", "m.npz"]
        (self.folder / "who.txt").write_bytes(b"\xef\xbb\xbfp0\r\n" + b"".join(b"p%d%s\n" % (i // 2, b" " * (i % 3)) for i in range(1, 300)))
        self.run_program(*fit)
        self.assertEqual(json.loads(zipfile.ZipFile(self.path("m.npz")).read("manifest.json"))["people"], 150)
        (self.folder / "who.txt").write_bytes(b"".join((b'"p ""%d"""\r\n' if i % 2 else b' "p ""%d""" \n') % (i // 2) for i in range(298)) + b'q\n"q"')
        self.run_program(*fit)
        self.assertEqual(json.loads(zipfile.ZipFile(self.path("m.npz")).read("manifest.json"))["people"], 150)
        self.write("who.txt", "".join("NA\n" if i == 3 else f"p{i // 2}\n" for i in range(300)))
        self.assertIn("the person's id is missing", self.run_program(*fit, expect=BAD_INPUT).stderr)

    def test_another_list_of_people_is_not_paid_for(self):
        x = self.random.normal(size=(300, 4))
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), x[:, :3])
        self.write("who.txt", "".join(f"p{i // 10}\n" for i in range(300)))
        (self.folder / "other").mkdir()
        self.write("other/who.txt", "".join(f"{i}\n" for i in range(300)))
        fit = ["clip", "fit", "--x", "x.npy", "--y", "y.npy", "--dim", 1, *BUDGET_FLAGS, "--method", "cross", "--out", "m.npz"]
        for made in (["--data", "x.npy", "--data", "y.npy", "--data", "who.txt"], []):
            with self.subTest(made=made):
                ledger = ["--ledger", f"{len(made)}.db"]
                self.run_program("ledger", "create", "visits", "--epsilon", 9, "--delta", 1e-5, "--person", "who", *made, *ledger)
                self.run_program(*fit, "--person", "who.txt", "--dataset", "visits", *ledger)
                for dataset in (["--dataset", "visits"], []):
                    done = self.run_program(*fit, "--person", "other/who.txt", *dataset, *ledger, expect=BUDGET)
                    self.assertIn("is not the list of people that data set 'visits' knows", " ".join(done.stderr.split()))
                readable, writable = os.pipe()
                os.write(writable, b"".join(b"%d\n" % i for i in range(300)))
                os.close(writable)
                done = self.run_program(*fit, "--person", f"/dev/fd/{readable}", "--dataset", "visits", *ledger, expect=USAGE, pass_fds=(readable,))
                os.close(readable)
                self.assertIn("give --person as a file", " ".join(done.stderr.split()))
                (self.folder / "copy").mkdir(exist_ok=True)
                shutil.copy(self.path("who.txt"), self.path("copy/who.txt"))
                self.run_program(*fit, "--person", "copy/who.txt", "--dataset", "visits", *ledger)

    def test_no_other_file_of_a_data_set_is_its_list_of_people(self):
        """Each line of a view, read as an id, would be a person of its own."""
        x = self.random.normal(size=(300, 4)).round(6)
        for name, columns in (("x.csv", 4), ("y.csv", 3)):
            np.savetxt(self.path(name), x[:, :columns], delimiter=",", fmt="%.6f")
        self.write("who.txt", "".join(f"p{i // 10}\n" for i in range(300)))
        (self.folder / "other").mkdir()
        fit = ["clip", "fit", "--x", "x.csv", "--y", "y.csv", "--dim", 1, *BUDGET_FLAGS, "--method", "cross", "--out", "m.npz"]
        files = ["--data", "x.csv", "--data", "y.csv"]
        for made in ([*files, "--data", "who.txt"], [*files], []):
            with self.subTest(made=made):
                ledger = ["--ledger", f"{len(made)}.db"]
                self.run_program("ledger", "create", "visits", "--epsilon", 9, "--delta", 1e-5, "--person", "who", *made, *ledger)
                # Among the files of the beginning, or with the first charge where there were none: else there is no list.
                expect = BUDGET if made == files else OK
                self.run_program(*fit, "--person", "who.txt", "--dataset", "visits", *ledger, expect=expect)
                for name in ("x.csv", "y.csv"):
                    shutil.copy(self.path(name), self.path("other/who.csv"))
                    done = self.run_program(*fit, "--person", "other/who.csv", "--dataset", "visits", *ledger, expect=BUDGET)
                    self.assertIn("is not the list of people that data set 'visits' knows", " ".join(done.stderr.split()))
        self.write("other/who.txt", "another\n")
        done = self.run_program("ledger", "create", "v", "--epsilon", 9, "--delta", 1e-5, "--person", "who", "--data", "who.txt", "--data",
                                "other/who.txt", expect=USAGE)
        self.assertIn("both called as the people are", done.stderr)

    @unittest.skipIf(WITHOUT_MPI, "no MPI here")
    @unittest.skipIf(SANITIZED, "MPI itself leaks")
    def test_ranks_that_share_people_release_what_one_process_does(self):
        self.table(1500, order=lambda n: np.random.default_rng(2).permutation(n))
        weights = [[], ["--adjacency", "add-remove-one"], ["--person-weight", "rows:3"]]
        for place, fit in enumerate(FITS):
            options = weights[place % 3]
            with self.subTest(fit=fit, options=options):
                one, told = self.fit(fit, "--person", "who", *options)
                self.fit(fit, "--person", "who", "--engine", "mpi", *options, out="n.npz", ranks=3)
                self.assert_same_arrays(one, np.load(self.path("n.npz")))
                self.assertEqual(told, json.loads(zipfile.ZipFile(self.path("n.npz")).read("manifest.json")))
        # Which rows are kept is chance, but not how many: of rows that are alike it does not matter which.
        self.write("e.csv", "a,b,who\n" + "".join(f"{p % 5 - 2},1,{p}\n" for i in range(9) for p in range(400) if i <= p % 9))
        kept = ["covariance", "e.csv", "--header", "yes", "--range", "-2:2", "--person", "who", "--max-rows-per-person", 4, *BUDGET_FLAGS,
                "--insecure-seed", 3, "--no-ledger"]
        self.run_program(*kept, "--out", "m.npz")
        self.run_program(*MPIRUN, *kept, "--engine", "mpi", "--out", "n.npz", program="mpirun")
        self.assert_same_arrays(np.load(self.path("m.npz")), np.load(self.path("n.npz")))
        # A rank that fails keeps no other waiting.
        self.table(300, ids=lambda p: "" if p == 200 else p)
        done = self.run_program(*MPIRUN, "pca", "d.csv", "--schema", "numbers.toml", "--components", 1, *BUDGET_FLAGS, "--no-ledger", "--person",
                                "who", "--engine", "mpi", program="mpirun", expect=BAD_INPUT)
        self.assertIn("the person's id is missing", done.stderr)

    @unittest.skipIf(WITHOUT_MPI, "no MPI here")
    @unittest.skipIf(SANITIZED, "MPI itself leaks")
    def test_ranks_share_pairs_of_people(self):
        x = self.random.normal(size=(1000, 6))
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), x[:, :5] + .3 * self.random.normal(size=(1000, 5)))
        np.savetxt(self.path("x.csv"), x, delimiter=",")
        np.savetxt(self.path("y.csv"), x[:, :5], delimiter=",")
        self.write("who.txt", "".join(f"{i * i % 97 if i % 31 else ''}\n" for i in range(1000)))
        fit = ["clip", "fit", "--dim", 2, "--epsilon", 3, "--delta", 1e-5, "--insecure-seed", 1, "--no-ledger", "--missing-person", "own"]
        for ending in ("npy", "csv"):  # that say how many rows they have, and that do not
            views = ["--x", f"x.{ending}", "--y", f"y.{ending}"]
            for options in (["--method", "cross"], ["--method", "whitened", "--person-weight", "rows:3"]):
                with self.subTest(ending=ending, options=options):
                    self.run_program(*fit, *views, *options, "--person", "who.txt", "--out", "m.npz")
                    self.run_program(*MPIRUN, *fit, *views, *options, "--person", "who.txt", "--engine", "mpi", "--out", "n.npz", program="mpirun")
                    one, many = np.load(self.path("m.npz")), np.load(self.path("n.npz"))
                    self.assert_same_arrays(one, many)
                    self.assertEqual(bytes(one["manifest.json"]), bytes(many["manifest.json"]))
            for lines, word in ((999, "fewer"), (1001, "more"), (1300, "more")):
                self.write("other.txt", "".join(f"{i}\n" for i in range(lines)))
                done = self.run_program(*MPIRUN, *fit, *views, "--person", "other.txt", "--engine", "mpi", program="mpirun", expect=BAD_INPUT)
                self.assertIn(f"has {word} lines than there are pairs", " ".join(done.stderr.split()))

    def test_pairs_of_people(self):
        x = self.random.normal(size=(600, 6))
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), x[:, :5] + .3 * self.random.normal(size=(600, 5)))
        self.write("each.txt", "".join(f"{i}\n" for i in range(600)))
        self.write("patient.txt", "".join(f"{i // 3}\n" for i in range(600)))
        self.write("short.txt", "1\n2\n")
        for method in ("cross", "whitened", "batch", "pair"):
            training = ["--sample-rate", .1, "--steps", 5, "--clip", 1] if method in ("batch", "pair") else []
            fit = ["clip", "fit", "--x", "x.npy", "--y", "y.npy", "--method", method, "--dim", 2, "--epsilon", 3, "--delta", 1e-5,
                   "--insecure-seed", 1, "--no-ledger", *training]
            for out, options in (("m.npz", []), ("e.npz", ["--person", "each.txt"]), ("p.npz", ["--person", "patient.txt"])):
                self.run_program(*fit, *options, "--out", out)
            without, each, people = (np.load(self.path(out)) for out in ("m.npz", "e.npz", "p.npz"))
            self.assert_same_arrays(without, each)
            self.assertNotEqual(each["image_weights"].tobytes(), people["image_weights"].tobytes())
            manifest = json.loads(bytes(people["manifest.json"]))
            self.assertEqual(manifest["person"]["column"], "patient")
            self.assertEqual(manifest.get("people"), None if training else 200)
        self.run_program(*fit, "--person", "short.txt", expect=BAD_INPUT)

    def test_pairs_count_alike_up_to_so_many(self):
        x = self.random.normal(size=(1200, 6))
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), x[:, :5] + .3 * self.random.normal(size=(1200, 5)))
        self.write("patient.txt", "".join(f"{i // 3}\n" for i in range(1200)))
        self.write("holes.txt", "".join(f"{i // 3 if i % 6 else ''}\n" for i in range(1200)))
        fit = ["clip", "fit", "--x", "x.npy", "--y", "y.npy", "--dim", 2, "--epsilon", 20, "--delta", 1e-5, "--insecure-seed", 1, "--no-ledger",
               "--person", "patient.txt", "--out", "m.npz"]

        def manifest(*options):
            self.run_program(*fit, *options)
            return json.loads(zipfile.ZipFile(self.path("m.npz")).read("manifest.json"))
        for method in ("cross", "whitened"):
            for adjacency in ("replace-one", "add-remove-one"):
                for weight, total in (("rows:6", 200), ("rows:2", 400)):
                    told = manifest("--method", method, "--adjacency", adjacency, "--person-weight", weight)
                    self.assertEqual(told["person"]["weight"], weight)
                    self.assertNotIn("people", told)
                    self.assertAlmostEqual(told["noisy_people"], total, delta=30)
        self.assertEqual(manifest("--method", "cross", "--max-rows-per-person", 1)["people"], 400)
        training = ["--sample-rate", .1, "--steps", 5, "--clip", 1]
        for method in ("batch", "pair"):
            told = [(manifest("--method", method, *training, *options), np.load(self.path("m.npz"))["image_weights"].tobytes())
                    for options in ([], ["--person-weight", "rows:9"], ["--max-rows-per-person", 1])]
            self.assertEqual(len({weights for _, weights in told}), 3)
            self.assertEqual([manifest["person"]["weight"] for manifest, _ in told], ["equal", "rows:9", "equal"])
            self.assertEqual(told[0][0]["noise"], told[1][0]["noise"])
        fit[fit.index("patient.txt")] = "holes.txt"
        self.assertIn("the person's id is missing", self.run_program(*fit, expect=BAD_INPUT).stderr)
        told = manifest("--missing-person", "own", "--method", "cross")
        self.assertEqual(told["people"], 400 + 200)
        self.assertIn("several people", " ".join(told["warnings"]))

    def test_matrices_of_people(self):
        x = self.random.normal(size=(3000, 4))
        np.save(self.path("a.npy"), x.T @ x / 3000)
        np.save(self.path("b.npy"), np.eye(4))
        fit = ["gep", "--matrix-a", "a.npy", "--matrix-b", "b.npy", "--sensitivity-a", 1e-3, "--sensitivity-b", 1e-4, "--components", 1,
               *BUDGET_FLAGS, "--insecure-seed", 1, "--dataset", "visits", "--out", "m.npz"]
        self.run_program("ledger", "create", "visits", "--epsilon", 5, "--delta", 1e-6, "--person", "who")
        self.assertIn("one row", self.run_program(*fit, "--rows", 3000, expect=BUDGET).stderr)
        self.run_program(*fit, "--people", 150, "--person", "who", "--report", "r.html")
        manifest = json.loads(zipfile.ZipFile(self.path("m.npz")).read("manifest.json"))
        self.assertEqual(manifest["people"], 150)
        self.assertNotIn("rows", manifest)
        self.assertIn("stated as those of a person", manifest["person"]["estimand"])
        self.assertIn("one person, with all their rows", (self.folder / "r.html").read_text())

    def test_forecasts_of_people(self):
        for task, args in (("pca", ["--columns", 10, "--components", 2]), ("regress", ["--columns", 4]), ("fda", ["--columns", 5]),
                           ("clip", ["--x-columns", 3, "--y-columns", 3, "--steps", 5])):
            with self.subTest(task=task):
                plan = ["plan", task, *args, *BUDGET_FLAGS]
                people = self.run_json(*plan, "--people", 4000, "--rows-per-person", 20)
                rows = self.run_json(*plan, "--rows", 4000)
                self.assertEqual((people["people"], people["rows_per_person"]), (4000, 20))
                self.assertNotIn("people", rows)
                self.assertEqual([m["noise"] for m in people["methods"]], [m["noise"] for m in rows["methods"]], "as much as for one row each")
                self.assertEqual([m["error"] for m in people["methods"]], [m["error"] for m in rows["methods"]])
                self.assertIn("of 20 times as many", " ".join(people["warnings"]))
                self.assertIn("4,000 people with about 20 rows each", self.run_program(*plan, "--people", 4000, "--rows-per-person", 20).stdout)

    def test_one_person_with_all_rows(self):
        lines = ["1,1,1,1,x,same" for _ in range(30000)]
        self.write("d.csv", "\n".join(["a,b,c,d,kind,who", *lines]) + "\n")
        model, manifest = self.fit("gram", "--person", "who")
        self.assertEqual(manifest["people"], 1)


if __name__ == "__main__":
    unittest.main()
