# SPDX-License-Identifier: Apache-2.0
"""Two files that differ in one row: from the file to the manifest everything is the same but what noise was added to.

The noise is seeded, so that whatever else differs must come from the row. Of the released numbers (arrays, and the few
manifest entries computed from them) the shapes are compared; everything else byte by byte.
"""
import json
import re
import shutil
import unittest
import zipfile

import numpy as np

from federation import FederationTest
from support import BAD_INPUT, BUDGET_FLAGS, OK, PROGRAM, USAGE, AppTest, drop_found_noise, png
from test_clip_train import WITHOUT as WITHOUT_TORCH
from test_mpi import MPIRUN
from test_mpi import WITHOUT as WITHOUT_MPI

ROWS = 300
HEADER = "a,b,c,d,kind"
SCHEMA = "".join(f'[[column]]\nname = "{name}"\nkind = "numeric"\nlower = -5\nupper = 5\n' for name in "abcd")
SCHEMA += '[[column]]\nname = "kind"\nkind = "categorical"\nvalues = ["x", "y"]\n'
NUMBERS = "".join(f'[[column]]\nname = "{name}"\nkind = "numeric"\nlower = -5\nupper = 5\n' for name in "abcd")
# Made from noisy answers: post-processing of what was paid for.
RELEASED = {"noisy_rows", "noisy_people", "ridge", "noise_edge", "error_rates", "noise_variance", "warnings", "coefficients",
            "least_variation", "residual_variance", "r_squared", "widening", "second_moments", "verdicts", "mean_deviation", "left_out", "score_plot"}
# Verdicts are there or not by what was released; a grid of scores has cells by the released number of rows.
JUDGED = re.compile(r"(.*_(estimate|low|high|deviation)|angle|verdict.*|variance_share.*|score_.*)")
BAD_ROWS = {"text": "1,tall,0.5,2,x", "nan": "1,nan,0.5,2,x", "infinite": "1,inf,0.5,2,x", "huge": "1,1e300,-1e300,2,x",
            "long": f"1,{'9' * 30000},0.5,2,x", "long text": f"1,{'t' * 30000},0.5,2,x", "empty": "", "blank": "   ",
            "no values": ",,,,", "short": "1,2", "wide": "1,2,3,4,x,6,7", "unlisted": "1,2,3,4,z",
            "quote": '"1"2,3,4,0,x', "names": HEADER, "formula": "=1,2,3,4,x", "nul": "1,\0,3,4,x"}
FITS = {"gram": ("pca", "--components", 2), "adaptive": ("pca", "--components", 2, "--method", "adaptive-power", "--rounds", 2),
        "power": ("pca", "--components", 2, "--method", "power", "--rounds", 2),
        "sparse": ("pca", "--components", 1, "--method", "sparse-power", "--sparsity", 2, "--rounds", 2),
        "spiked": ("pca", "--components", 1, "--method", "spiked"), "sphere": ("pca", "--components", 2, "--method", "sphere"),
        "correlation": ("pca", "--components", 2, "--scale", "correlation"), "correlations": ("covariance", "--scale", "correlation"),
        "scores": ("pca", "--components", 2, "--score-plot", 0.2, "--label", "kind", "--classes", "x|y", "--unlisted", "drop"), "private bound": ("pca", "--components", 1, "--center", "private", "--row-bound", "auto"),
        "covariance": ("covariance",), "cca": ("cca", "--x-columns", "a,b", "--y-columns", "c,d", "--components", 1),
        "fda": ("fda", "--label", "kind", "--classes", "x|y", "--unlisted", "drop", "--components", 1),
        "sir": ("sir", "--response", "a", "--cuts", "-1,0,1", "--components", 1), "regress": ("regress", "--target", "a")}


def masked(text):
    """Numbers, bars, their alignment, and notes about released numbers are post-processing of noise; words are not."""
    text = re.sub(r"^ +Coefficients for .*?(?=^(Note|Model))", "", text, flags=re.M | re.S)
    text = re.sub(r"^Note\. .*\n+", "", text, flags=re.M)
    text = re.sub(r"^Verdict\. .*?(?=^  (Noise alone|Ridge|Every other))", "", text, flags=re.M | re.S)
    text = re.sub(r"^  Picture of the rows: .*\n", "", text, flags=re.M)
    text = re.sub(r'<div class="caution".*?</div>', "", text, flags=re.S)
    text = re.sub(r"[-+]?(\d+(,\d{3})*(\.\d+)?|\.\d+)(e[-+]?\d+)?%?", "0", text)
    return re.sub(r"[ #]+", " ", text)


class Neighbours(AppTest):
    header, unit = HEADER, ()

    def setUp(self):
        super().setUp()
        numbers = np.random.default_rng(3).uniform(-2, 2, size=(ROWS, 4)).round(3)
        self.rows = [",".join(map(str, row)) + ("," + "xy"[i % 2]) for i, row in enumerate(numbers)]
        self.write("all.toml", SCHEMA)
        self.write("numbers.toml", NUMBERS)

    def run_with(self, args, expect):
        return self.run_program(*args, expect=expect)

    def released(self, fit, rows, *options, expect=OK):
        """Everything that leaves, with the released numbers taken out."""
        self.write("d.csv", "\n".join([self.header, *rows]) + "\n")
        for old in ("model.npz", "report.html"):
            (self.folder / old).unlink(missing_ok=True)
        shutil.rmtree(self.folder / "books", ignore_errors=True)
        (self.folder / "books").mkdir()
        adjacency = options[options.index("--adjacency") + 1] if "--adjacency" in options else "replace-one"
        self.run_program("ledger", "create", "people", "--epsilon", 20, "--delta", 1e-5, "--adjacency", adjacency, *self.unit,
                         "--ledger", "books/ledger.db")
        schema = "all.toml" if FITS[fit][0] == "fda" else "numbers.toml"
        args = [FITS[fit][0], "d.csv", *FITS[fit][1:], "--schema", schema, "--epsilon", 8, "--delta", 1e-6, "--insecure-seed", 5, "--dataset",
                "people", "--ledger", "books/ledger.db", "--report", "report.html", "--threads", 1, *self.unit, *options]
        words = self.run_with(args, expect)
        told = {"stdout": masked(words.stdout), "stderr": words.stderr}
        shown = self.run_json("ledger", "show", "people", "--ledger", "books/ledger.db")
        told["ledger"] = re.sub(r'"(time|created|at|id|when|mark)": ("[^"]*"|\d+)', "", json.dumps(shown, sort_keys=True))
        if expect != OK:
            return told
        model = np.load(self.path("model.npz"))
        told["arrays"] = {name: (model[name].shape, str(model[name].dtype)) for name in model.files
                          if name != "manifest.json" and not JUDGED.fullmatch(name)}
        manifest = json.loads(bytes(model["manifest.json"]).decode())
        told["keys"] = sorted(set(manifest) - {"verdicts", "left_out"})  # there or not by what was released
        drop_found_noise(manifest)
        if adjacency == "add-remove-one":
            for answer in manifest["noise"]:
                if answer["label"] == "score counts":
                    answer.pop("entries")
        told["manifest"] = {key: value for key, value in manifest.items() if key not in RELEASED}
        if manifest["options"].get("row_bound_kind") == "private":
            manifest["options"].pop("row_bound")
        if adjacency == "add-remove-one":
            self.assertNotIn("rows", manifest)
        report = (self.folder / "report.html").read_text()
        report = re.sub(r"<section>\s*<h2>(Scree plot|Components|What was found)</h2>.*?</section>", "", report, flags=re.S)
        # Nor are the words that it explains and the arrays that it lists, where these are verdicts.
        report = re.sub(r"<dt>.*?</dd>\s*", "", report, flags=re.S)
        report = re.sub(r"^(\w+) = model\[.*\n", lambda line: "" if JUDGED.fullmatch(line[1]) else line[0], report, flags=re.M)
        told["report"] = masked(report)
        return told

    def test_a_row_that_cannot_be_read_costs_itself_alone(self):
        for fit in FITS:
            expected = self.released(fit, self.rows, "--missing", "zero-row")
            for kind in BAD_ROWS if fit == "gram" else ("text", "empty"):
                for place in (0, ROWS - 1):
                    with self.subTest(fit=fit, kind=kind, place=place):
                        rows = list(self.rows)
                        rows[place] = BAD_ROWS[kind]
                        self.assertEqual(self.released(fit, rows, "--missing", "zero-row"), expected)

    def test_a_last_row_that_never_ends_costs_itself_alone(self):
        expected = self.released("gram", self.rows, "--missing", "zero-row")
        for last in '1,"2,3,4,x', f'1,"2{"," * 70000}', '"':
            with self.subTest(last[:20]):
                self.assertEqual(self.released("gram", [*self.rows[:-1], last], "--missing", "zero-row"), expected)

    def test_the_bad_row_is_the_zero_row_and_the_others_are_what_they_were(self):
        """The arrays too: a bad row gives what a row of no values gives, wherever it stands and whatever it holds."""
        arrays = []
        for bad in (",,,,x", "1,tall,0.5,2,x", "", "1,2,3", '"1"2,,,,x'):
            rows = list(self.rows)
            rows[7] = bad
            self.released("gram", rows, "--missing", "zero-row")
            arrays.append((self.folder / "model.npz").read_bytes())
        self.assertEqual(len(set(arrays)), 1)

    def test_a_missing_cell_counts_as_a_public_value_and_its_row_stays(self):
        for rule in ("value", "category"):
            for fit in ("gram", "fda", "regress"):
                expected = self.released(fit, self.rows, "--missing", rule)
                for kind in BAD_ROWS if fit == "gram" else ("text", "empty"):
                    with self.subTest(fit=fit, kind=kind, rule=rule):
                        rows = list(self.rows)
                        rows[9] = BAD_ROWS[kind]
                        self.assertEqual(self.released(fit, rows, "--missing", rule), expected)
        models = []
        for row in (",1,,2,x", "tall,1,NA,2,x", "0,1,0,2,x"):  # 0 is the middle
            rows = list(self.rows)
            rows[7] = row
            self.released("gram", rows, "--missing", "value")
            models.append((self.folder / "model.npz").read_bytes())
        self.assertEqual(len(set(models)), 1)

    def test_by_default_a_bad_row_is_an_error_for_the_operator_and_costs_nothing(self):
        told = []
        for kind in ("text", "nan", "empty", "wide", "quote"):
            rows = list(self.rows)
            rows[9] = BAD_ROWS[kind]
            told.append(self.released("gram", rows, expect=BAD_INPUT))
            self.assertIn("row 10", told[-1]["stderr"])
            self.assertEqual(told[-1]["stdout"], "")
            self.assertNotIn("model.npz", self.files())
            self.assertNotIn("report.html", self.files())
        self.assertEqual(len({one["ledger"] for one in told}), 1)
        self.assertNotIn("gram", told[0]["ledger"], "nothing was charged")

    def test_a_row_more_or_less_changes_nothing_but_noise(self):
        options = ("--missing", "zero-row", "--adjacency", "add-remove-one")
        for fit in FITS:
            expected = self.released(fit, self.rows, *options)
            others = {"first": self.rows[1:], "last": self.rows[:-1], "a bad one more": self.rows + ["tall"]}
            for kind, rows in others.items():
                with self.subTest(fit=fit, kind=kind):
                    self.assertEqual(self.released(fit, rows, *options), expected)
            with self.subTest(fit=fit, kind="one or none"):
                few = self.released(fit, self.rows[:1], *options)
                self.assertEqual(self.released(fit, [], *options), few)
                self.assertEqual(few, expected)

    def test_vectors_in_pairs(self):
        """clip fit: the same, for pairs more or less."""
        def fit(n):
            for name in ("x", "y"):
                np.save(self.path(f"{name}.npy"), np.random.default_rng(1).normal(size=(400, 3))[:n])
            done = self.run_json("clip", "fit", "--x", "x.npy", "--y", "y.npy", "--method", "whitened", "--dim", 2, "--epsilon",
                                 1, "--delta", 1e-6, "--adjacency", "add-remove-one", "--insecure-seed", 5, "--no-ledger")
            return {key: value for key, value in done.items() if key not in RELEASED}
        self.assertEqual(fit(400), fit(399))
        self.assertEqual(fit(400), fit(1))
        self.assertEqual(fit(400), fit(0))

    def clip_fit(self, *files):
        """What leaves, with the released numbers taken out; and the arrays."""
        done = self.run_json("clip", "fit", *files, "--dim", 2, "--epsilon", 1, "--delta", 1e-6, "--missing", "zero-row",
                             "--insecure-seed", 5, "--no-ledger", "--threads", 1)
        model = np.load(self.path("model.npz"))
        arrays = [model[name].tobytes() for name in model.files if name != "manifest.json"]
        return {key: value for key, value in done.items() if key not in RELEASED}, arrays

    def neighbours(self, fit, good, bad, places):
        """Each bad row costs itself alone, wherever it stands, and all of them are the same row."""
        for place in places:
            expected, _ = fit(good)
            seen = []
            for row in bad:
                rows = list(good)
                rows[place] = row
                with self.subTest(row=repr(row), place=place):
                    told, arrays = fit(rows)
                    self.assertEqual(told, expected)
                    seen.append(arrays)
            self.assertTrue(all(one == seen[0] for one in seen), "a bad row counts as zero")

    def test_pairs_with_a_caption_that_is_none(self):
        """Of images too: the last caption is a line like any other."""
        np.save(self.path("images.npy"), np.random.default_rng(2).integers(0, 255, size=(40, 16)))

        def fit(captions):
            self.write("captions.txt", "".join(line + "\n" for line in captions))
            return self.clip_fit("--images", "images.npy", "--captions", "captions.txt", "--image-encoder", "pixels")
        self.neighbours(fit, [f"a bar {i % 3}" for i in range(40)], ["", "   ", "...", "\r"], (0, 39))
        self.write("captions.txt", "\n".join(["a bar"] * 40))
        self.run_program("clip", "fit", "--images", "images.npy", "--captions", "captions.txt", "--image-encoder", "pixels",
                         "--epsilon", 1, "--delta", 1e-6, "--missing", "zero-row", "--no-ledger", expect=BAD_INPUT)

    def test_pairs_with_numbers_labels_and_images_that_are_none(self):
        np.save(self.path("y.npy"), np.random.default_rng(3).normal(size=(40, 3)))

        def vectors(lines):
            self.write("x.csv", "".join(line + "\n" for line in lines))
            return self.clip_fit("--x", "x.csv", "--x-fields", 3, "--y", "y.npy")
        self.neighbours(vectors, [f"{i},1,2" for i in range(40)], ["", "1,tall,2", "1,2", "1,inf,2", "1,2,3,4"], (0, 39))

        np.save(self.path("images.npy"), np.random.default_rng(2).integers(0, 255, size=(40, 16)))
        self.write("names.txt", "lying\nstanding\noblique\n")

        def labels(lines):
            self.write("labels.csv", "".join(line + "\n" for line in lines))
            return self.clip_fit("--images", "images.npy", "--labels", "labels.csv", "--class-names", "names.txt",
                                 "--image-encoder", "pixels")
        self.neighbours(labels, [str(i % 3) for i in range(40)], ["", "7", "-1", "0.5", "tall"], (0, 39))

        self.write("captions.txt", "a bar\na stick\n" * 10)
        (self.folder / "images").mkdir()

        def images(files):
            for i, data in enumerate(files):
                self.write(f"images/{i:02}.png", data)
            return self.clip_fit("--images", "images", "--captions", "captions.txt", "--image-encoder", "pixels",
                                 "--image-shape", "4x4")
        picture = png(np.arange(16).reshape(4, 4))
        self.neighbours(images, [png(np.full((4, 4), i)) for i in range(20)], [b"", picture[:40], png(np.zeros((5, 4)))],
                        (0, 19))


    def test_an_image_of_a_folder_that_is_none_costs_itself_alone(self):
        """The first too, by which the others would be measured; nor does one of another shape tell what the others are."""
        (self.folder / "images").mkdir()

        def fit(files, *options, expect=OK):
            for i, data in enumerate(files):
                self.write(f"images/{i:02}.png", data)
            self.run_program("pca", "images", "--range", "0:255", "--row-bound", "range", "--center", "range", "--method", "gram",
                             "--components", 1, "--epsilon", 1000, "--delta", 1e-6, "--missing", "zero-row", "--insecure-seed", 5,
                             "--no-ledger", *options, expect=expect)
            return None if expect != OK else np.load(self.path("model.npz"))["eigenvalues"].item()
        good = [png(np.full((4, 4), 8 * i)) for i in range(30)]
        fit(good, expect=USAGE)
        whole = fit(good, "--fields", 16)
        for place in 0, 29:
            bad = [fit([*good[:place], one, *good[place + 1:]], "--fields", 16)
                   for one in (b"", good[0][:40], b"no image", png(np.zeros((5, 4))))]
            self.assertEqual(len(set(bad)), 1, bad)
            self.assertLess(abs(bad[0] / whole - 1), 0.2)
            self.assertLess(abs(fit([*good[:place], png(np.zeros((2, 8))), *good[place + 1:]], "--fields", 16) / whole - 1), 0.2)


class NeighboursOfPeople(Neighbours):
    """Files that differ in all rows of one person."""

    header, unit = HEADER + ",who", ("--person", "who")

    def setUp(self):
        super().setUp()
        self.rows = [f"{row},p{i // 3}" for i, row in enumerate(self.rows)]

    def without(self, person, instead=()):
        return [row for row in self.rows if not row.endswith(f",{person}")] + list(instead)

    def test_a_person_more_or_less_changes_nothing_but_noise(self):
        options = ("--missing", "zero-row", "--adjacency", "add-remove-one")
        many = ["1,2,3,4,x,p7"] * 40
        for fit in ("gram", "adaptive", "correlation", "private bound", "regress"):
            expected = self.released(fit, self.rows, *options)
            others = {"first": self.without("p0"), "last": self.without("p99"), "bad rows": self.without("p7", ["tall,,,,x,p7"] * 3),
                      "many rows": self.without("p7", many), "another name": self.without("p7", [row.replace("p7", "=Z9") for row in many])}
            for kind, rows in others.items():
                with self.subTest(fit=fit, kind=kind):
                    self.assertEqual(self.released(fit, rows, *options), expected)

    def test_the_same_number_of_people_of_other_rows(self):
        expected = self.released("gram", self.rows, "--missing", "zero-row")
        for rows in (self.without("p7", ["1,2,3,4,x,p7"]), self.without("p7", ["tall,,,,x,p7"] * 30), self.without("p7", ["1,2,3,4,x,other"])):
            self.assertEqual(self.released("gram", rows, "--missing", "zero-row"), expected)


# What is inherited is run once.
for name in [name for name in dir(Neighbours) if name.startswith("test_")]:
    setattr(NeighboursOfPeople, name, None)


@unittest.skipIf(WITHOUT_MPI, "no MPI here")
class NeighboursOfManyProcesses(Neighbours):
    def run_with(self, args, expect):
        return self.run_program(*MPIRUN[1:], "-n", 2, PROGRAM, *args, "--engine", "mpi", program=MPIRUN[0], expect=expect)

    def test_a_row_changes_nothing_but_noise_wherever_it_is_read(self):
        expected = self.released("gram", self.rows, "--missing", "zero-row")
        for kind in ("text", "empty", "quote", "long"):
            for place in (0, ROWS // 2, ROWS - 1):
                with self.subTest(kind=kind, place=place):
                    rows = list(self.rows)
                    rows[place] = BAD_ROWS[kind]
                    self.assertEqual(self.released("gram", rows, "--missing", "zero-row"), expected)
        options = ("--missing", "zero-row", "--adjacency", "add-remove-one")
        expected = self.released("gram", self.rows, *options)
        for rows in (self.rows[1:], self.rows[:-1], self.rows + ["tall"]):
            self.assertEqual(self.released("gram", rows, *options), expected)


for name in [name for name in dir(Neighbours) if name.startswith("test_")]:
    setattr(NeighboursOfManyProcesses, name, None)


class NeighboursOfOtherInputs(AppTest):
    def test_matrices_that_differ_within_their_sensitivity(self):
        def fit(noise, change):
            A, B = np.diag([4.0, 2.0, 1.0, 1.0]), np.eye(4)
            A[0, 0] += change
            B[1, 2] = B[2, 1] = change / 2
            np.save(self.path("a.npy"), A)
            np.save(self.path("b.npy"), B)
            done = self.run_program("gep", "--matrix-a", "a.npy", "--matrix-b", "b.npy", "--sensitivity-a", 0.02, "--sensitivity-b", 0.02,
                                    "--rows", 500, "--components", 1, *BUDGET_FLAGS, "--noise", noise, "--insecure-seed", 5, "--no-ledger",
                                    "--report", "report.html")
            model = np.load(self.path("model.npz"))
            manifest = json.loads(bytes(model["manifest.json"]).decode())
            report = re.sub(r"<section>\s*<h2>(Scree plot|Components|What was found)</h2>.*?</section>", "",
                            (self.folder / "report.html").read_text(), flags=re.S)
            return ({key: value for key, value in manifest.items() if key not in RELEASED}, masked(done.stdout), done.stderr, masked(report),
                    {name: model[name].shape for name in model.files if name != "manifest.json" and not JUDGED.fullmatch(name)})
        for noise in ("once", "each-step"):
            self.assertEqual(fit(noise, 0.02), fit(noise, 0))

    @unittest.skipIf(WITHOUT_TORCH, WITHOUT_TORCH)
    def test_pairs_that_a_module_is_trained_on(self):
        """The trained file too: the same members of the same sizes, but for the parameters and their seal."""
        import torch
        from test_clip_train import Vectors
        torch.manual_seed(1)
        torch.jit.script(Vectors()).save(self.path("m.pt"))
        random = np.random.default_rng(3)
        images, tokens = random.uniform(0, 0.9, size=(400, 4)).astype(np.float32), random.integers(0, 5, size=(400, 4))

        def train(rows, **changed):
            parts = {"images": images.copy(), "tokens": tokens.copy()}
            for name, value in changed.items():
                parts[name][7] = value
            np.savez(self.path("pairs.npz"), **{name: part[:rows] for name, part in parts.items()})
            done = self.run_program("clip", "train", "--module", "m.pt", "--data", "pairs.npz", "--epsilon", 3, "--delta", 1e-5,
                                    "--sample-rate", 0.1, "--steps", 3, "--clip", 1, "--lr", 0.1, "--insecure-seed", 5, "--no-ledger", "--json")
            with zipfile.ZipFile(self.path("trained.pt")) as archive:
                members = {member.filename: member.file_size for member in archive.infolist()}
                told = {name: archive.read(name) for name in members if name.endswith((".py", ".json", ".debug_pkl"))}
            return done.stdout, done.stderr, members, told
        expected = train(400)
        for other in (train(399), train(2), train(400, images=1e30), train(400, tokens=-3), train(400, images=-0.0)):
            self.assertEqual(other, expected)


class NeighboursAtASite(FederationTest):
    """Noise at sites has no seed, so numbers are taken out; all else that coordinator and site say, keep and release is compared."""

    names = ("north", "south")
    budget, epsilon = 200, 40

    def config(self, name, **given):
        path = super().config(name, **given)
        text = (self.folder / f"{name}.toml").read_text()
        return self.write(f"{name}.toml", text.replace('missing = "error"', 'missing = "zero-row"').replace('"rows"', '"hidden"'))

    def study(self, number, change):
        original = (self.folder / "north.csv").read_text()
        lines = original.splitlines()
        change(lines)
        self.write("north.csv", "\n".join(lines) + "\n")
        sites = [self.site(name, log=f"{name}-{number}.log") for name in self.names]
        coordinator = self.coordinator(["pca", "--components", 2, "--row-bound", "range", "--center", "none", "--missing", "zero-row",
                                        "--adjacency", "add-remove-one"], "--journal",
                                       f"study-{number}", "--report", "report.html", log=f"coordinator-{number}.log")
        self.assert_finished(coordinator, *sites)
        self.write("north.csv", original)
        manifest = self.manifest()
        drop_found_noise(manifest)
        for drawn in ("created", "study", "sites"):
            manifest.get("federation", {}).pop(drawn, None)
        words = [masked(re.sub(r"\b(Study|Proposal) +[0-9a-f]+", r"\1", one.text())) for one in (coordinator, *sites)]
        totals = (self.folder / f"study-{number}" / "totals.bin").stat().st_size
        shapes = {name: self.model()[name].shape for name in self.model().files if name != "manifest.json" and not JUDGED.fullmatch(name)}
        return {"manifest": {key: value for key, value in manifest.items() if key not in RELEASED}, "words": words, "shapes": shapes,
                "totals": totals, "charges": [r["state"] for r in self.reservations("north")][-1]}

    def reservations(self, name):
        return self.run_json("ledger", "show", "hidden", "--ledger", f"{name}.db")["reservations"]

    def test_a_row_changes_nothing_but_noise(self):
        for name in self.names:
            self.run_program("ledger", "create", "hidden", "--epsilon", 400, "--delta", 1e-5, "--adjacency", "add-remove-one", "--ledger", f"{name}.db")

        def bad(lines):
            lines[1] = "1,tall,0.5,2,1,1,A"

        def fewer(lines):
            del lines[-1]

        def empty(lines):
            lines[-1] = ""
        expected = self.study(0, lambda lines: None)
        for number, change in enumerate((bad, fewer, empty)):
            with self.subTest(change.__name__):
                self.assertEqual(self.study(number + 1, change), expected)


if __name__ == "__main__":
    unittest.main()
