# SPDX-License-Identifier: Apache-2.0
"""What columns count for: correlations, categories, missing cells; and a private picture of the rows."""
import json
import re
import unittest

import numpy as np

from support import BUDGET_FLAGS, OK, SEEDED, USAGE, AppTest

LARGE = ["--epsilon", 20, "--delta", "1e-6", *SEEDED]


def column(name, **keys):
    lines = [f"{key} = {json.dumps(value)}" for key, value in {"name": name, **keys}.items()]
    return "[[column]]\n" + "\n".join(lines) + "\n"


class Columns(AppTest):
    def fit(self, *args):
        self.run_program(*args)
        model = np.load(self.path("model.npz"))
        return model, json.loads(bytes(model["manifest.json"]))


class Correlations(Columns):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(5)
        common = random.normal(size=(20000, 1))
        rows = random.normal(size=(20000, 8))
        rows[:, :4] = 0.6 * rows[:, :4] + 0.8 * common
        self.rows = np.clip(rows, -4, 4) / 4 * np.array([1, 0.5, 0.4, 0.3] * 2) + 0.1
        np.save(self.path("d.npy"), self.rows)

    def test_components_are_those_of_the_correlation_matrix_at_no_cost(self):
        common = ["d.npy", "--range=-1.2:1.2", *LARGE]
        plain, before = self.fit("pca", *common, "--components", 2)
        model, manifest = self.fit("pca", *common, "--components", 2, "--scale", "correlation", "--report", "report.html")
        self.assertEqual(manifest["events"], before["events"], "the same answers, the same charge")
        self.assertEqual(manifest["options"]["scale"], "correlation")
        values, vectors = np.linalg.eigh(np.corrcoef(self.rows.T))
        self.assertGreater(abs(model["components"][0] @ vectors[:, -1]), 0.99)
        self.assertLess(abs(plain["components"][0] @ vectors[:, -1]), 0.9, "the longest column rules a covariance")
        self.assertAlmostEqual(model["eigenvalues"][0], values[-1], delta=0.1)
        self.assertEqual(model["verdict"][0], 3)
        self.assertLess(model["eigenvalues_low"][0], values[-1])
        self.assertGreater(model["eigenvalues_high"][0], values[-1])
        np.testing.assert_allclose(model["spread"], self.rows.std(0) / 1.2, rtol=0.1)
        report = (self.folder / "report.html").read_text()
        self.assertIn("divided by its deviation", report)
        self.run_program("transform", "model.npz", "d.npy", "--out", "s.npy")
        features = (self.rows - model["offset"]) * model["scale"] - model["mean"]
        np.testing.assert_allclose(np.load(self.path("s.npy")), features / model["spread"] @ model["components"].T, atol=1e-9)

    def test_a_covariance_holds_both_matrices(self):
        model, manifest = self.fit("covariance", "d.npy", "--range=-1.2:1.2", *LARGE, "--scale", "correlation", "--report", "report.html")
        np.testing.assert_allclose(model["correlation"], np.corrcoef(self.rows.T), atol=0.1)
        np.testing.assert_allclose(model["covariance"], np.cov(self.rows.T) / 1.44, atol=0.01)
        self.run_program("regress", "--from", "model.npz", "--target", "1", "--out", "r.npz")

    def test_a_column_that_hardly_varies_is_left_out_and_said(self):
        rows = self.rows.copy()
        rows[:, 3] = 0.1
        np.save(self.path("d.npy"), rows)
        model, manifest = self.fit("pca", "d.npy", "--range=-1.2:1.2", *LARGE, "--components", 2, "--scale", "correlation")
        self.assertEqual(manifest["left_out"], [4])
        self.assertTrue(any("too little" in warning for warning in manifest["warnings"]))
        self.assertLess(abs(model["components"][0][3]), 1e-12)

    def test_it_is_refused_before_the_charge_where_no_matrix_or_mean_is_released(self):
        common = ["pca", "d.npy", "--range=-1.2:1.2", *BUDGET_FLAGS, "--components", 2, "--scale", "correlation"]
        for more, said in ((["--method", "adaptive-power"], "gram"), (["--method", "spiked"], "gram"),
                           (["--center", "range"], "mean"), (["--center", "none"], "mean")):
            done = self.run_program(*common, *more, expect=USAGE)
            self.assertIn("--scale", done.stderr)
            self.assertIn(said, done.stderr)
        self.assertEqual(self.charged(), [])
        _, manifest = self.fit(*common, "--method", "auto", *SEEDED)
        self.assertEqual(manifest["method"], "gram")


class Categories(Columns):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(6)
        self.kinds = [f"k{i}" for i in range(12)]
        self.a, self.b = random.normal(size=(2, 8000)).clip(-3, 3)
        self.b = 0.3 * self.b + 0.95 * self.a
        self.kind = random.choice(self.kinds, size=8000)
        self.write_rows()

    def write_rows(self, missing=0):
        lines = ["a,b,kind"]
        for i, (a, b, kind) in enumerate(zip(self.a, self.b, self.kind)):
            lines.append(f"{a:.4f},{b:.4f},{kind}" if i >= missing else ",,")
        self.write("d.csv", "\n".join(lines) + "\n")
        self.schema()

    def schema(self, number={}, category={}):
        self.write("s.toml", column("a", kind="numeric", lower=-3, upper=3, **number)
                   + column("b", kind="numeric", lower=-3, upper=3)
                   + column("kind", kind="categorical", values=self.kinds, **category))

    def test_a_column_of_twelve_values_is_as_long_as_one_number(self):
        model, manifest = self.fit("pca", "d.csv", "--schema", "s.toml", "--components", 2, "--row-bound", "range", *LARGE, "--report", "report.html")
        self.assertAlmostEqual(manifest["options"]["row_bound"], 3**0.5, places=6)
        self.assertEqual(manifest["columns"][2]["weight"], 1)
        self.assertIn("as long as one number", (self.folder / "report.html").read_text())
        first = model["components"][0]
        self.assertGreater(first[0]**2 + first[1]**2, 0.95, "the numbers, not the categories")
        self.schema(category={"weight": 12**0.5})
        _, manifest = self.fit("pca", "d.csv", "--schema", "s.toml", "--components", 2, "--row-bound", "range", *LARGE)
        self.assertAlmostEqual(manifest["options"]["row_bound"], 14**0.5, places=6)
        self.assertAlmostEqual(manifest["columns"][2]["weight"], 12**0.5)

    def test_missing_cells_count_as_public_values_and_every_row_stays(self):
        self.write_rows(missing=800)
        common = ["pca", "d.csv", "--schema", "s.toml", "--components", 2, *LARGE, "--diagnostics"]
        self.run_program(*common, expect=3)
        done = self.run_program(*common, "--missing", "category")
        self.assertIn("0 counted as zero", done.stderr)
        model = np.load(self.path("model.npz"))
        manifest = json.loads(bytes(model["manifest.json"]))
        self.assertEqual(manifest["features"][-1], "kind=missing")
        self.assertEqual(manifest["columns"][0]["missing"], 0)
        self.assertEqual(manifest["columns"][2]["missing"], "missing")
        self.assertEqual(manifest["options"]["missing"], "category")
        share = model["mean"][-1] / model["scale"][-1] + model["offset"][-1]
        self.assertAlmostEqual(share, 0.1, delta=0.02, msg="a tenth of the rows")
        # transform follows the rule of the model
        self.run_program("transform", "model.npz", "d.csv", "--out", "s.npy")
        scores = np.load(self.path("s.npy"))
        self.assertEqual(scores.shape, (8000, 2))
        self.assertTrue((scores[:800] == scores[0]).all())

        self.schema(number={"missing": 3}, category={"missing": "k3"})
        self.run_program(*common, "--missing", "value")
        model = np.load(self.path("model.npz"))
        manifest = json.loads(bytes(model["manifest.json"]))
        self.assertEqual(len(manifest["features"]), 14)
        self.assertEqual((manifest["columns"][0]["missing"], manifest["columns"][2]["missing"]), (3, "k3"))
        self.assertAlmostEqual(model["mean"][0], 0.1 + 0.9 * self.a[800:].mean() / 3, delta=0.02)

    def test_a_row_without_class_or_target_has_no_place(self):
        self.write_rows(missing=80)
        done = self.run_program("regress", "d.csv", "--schema", "s.toml", "--target", "b", *LARGE, "--missing", "value",
                                "--diagnostics")
        self.assertIn("80 counted as zero", done.stderr)
        done = self.run_program("fda", "d.csv", "--schema", "s.toml", "--label", "kind", "--components", 1, *LARGE, "--missing",
                                "category", "--diagnostics")
        self.assertIn("80 counted as zero", done.stderr)
        self.assertNotIn("missing", json.loads(bytes(np.load(self.path("model.npz"))["manifest.json"]))["classes"])


class ScorePlot(Columns):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(7)
        self.group = np.array(["left", "right"])[random.integers(0, 2, size=20000)]
        rows = random.normal(size=(20000, 5)) * 0.08
        rows[:, 0] += np.where(self.group == "left", -0.5, 0.5)
        self.rows = rows
        self.write("d.csv", "a,b,c,d,e,group\n" + "".join(
            ",".join(f"{x:.4f}" for x in row) + f",{group}\n" for row, group in zip(rows, self.group)))
        self.common = ["pca", "d.csv", "--header", "yes", "--range=-1:1", "--components", 2, "--epsilon", 2, "--delta", "1e-6",
                       *SEEDED]

    def test_a_picture_of_two_groups(self):
        model, manifest = self.fit(*self.common, "--columns", "1-5", "--score-plot", "--report", "report.html")
        self.assertEqual(manifest["options"]["score_plot"], 0.1)
        self.assertEqual(manifest["events"][-1]["label"], "score counts")
        weights = {e["label"]: float(re.search(r"(?:mu|epsilon)=([^,]+)", e["mechanism"])[1]) ** 2 for e in manifest["events"]}
        self.assertAlmostEqual(weights["score counts"] / sum(weights.values()), 0.1, delta=0.002)
        counts, edges = model["score_counts"], model["score_edges"]
        deviation = manifest["score_plot"]["deviation"]
        self.assertEqual(counts.shape[0] + 1, edges.shape[1])
        self.assertLess(abs(counts.sum() - 20000), 6 * deviation * counts.size**0.5)
        along = counts.sum(1)
        middle = len(along) // 2
        self.assertLess(along[middle], 0.2 * along.max(), "two groups, and few between them")
        report = (self.folder / "report.html").read_text()
        self.assertIn("Where the rows lie", report)
        self.assertIn('class="density"', report)
        self.assertEqual(manifest["score_plot"]["standing"], "holds")
        self.assertEqual(self.charged()[-1]["purpose"], "pca, method gram, components 2, score plot")

    def test_by_class(self):
        model, manifest = self.fit(*self.common, "--score-plot", 0.2, "--label", "group", "--classes", "left|right", "--report",
                                   "report.html")
        self.assertEqual(manifest["classes"], ["left", "right"])
        self.assertEqual(len(manifest["features"]), 5)
        m = model["score_counts"].shape[1]
        left, right = model["score_counts"].reshape(2, m, m)
        at = (model["score_edges"][0, 1:] + model["score_edges"][0, :-1]) / 2
        mean = lambda counts: (counts.sum(1) * at).sum() / counts.sum()
        self.assertGreater(abs(mean(left) - mean(right)), 0.8)
        self.assertEqual((self.folder / "report.html").read_text().count("Where the rows lie"), 2)

    def test_people_count_once(self):
        lines = (self.folder / "d.csv").read_text().splitlines()
        self.write("p.csv", lines[0] + ",who\n" + "".join(f"{line},{i // 4}\n" for i, line in enumerate(lines[1:])))
        self.run_program("pca", "p.csv", "--header", "yes", "--columns", "1-5", *self.common[4:], "--person", "who", "--score-plot", 0.3)
        model = np.load(self.path("model.npz"))
        deviation = json.loads(bytes(model["manifest.json"]))["score_plot"]["deviation"]
        counts = model["score_counts"]
        self.assertLess(abs(counts.sum() - 5000), 6 * deviation * counts.size**0.5)

    def test_refusals_before_the_charge(self):
        for args in (["--score-plot", 0.95], ["--score-plot", 0], ["--score-plot", "some"], ["--label", "group", "--classes", "left|right"],
                     ["--score-plot", "--calibration", "paper", "--method", "gram"]):
            self.run_program(*self.common, *args, expect=USAGE)
        self.run_program(*[1 if arg == 2 and at == 6 else arg for at, arg in enumerate(self.common)], "--score-plot", expect=USAGE)
        self.assertEqual(self.charged(), [])

    def test_a_forecast_counts_its_share(self):
        forecast = lambda *args: self.run_json("plan", "pca", "--rows", 3000, "--columns", 10, "--components", 2, *BUDGET_FLAGS,
                                               "--gap", 5, *args)
        without, given = forecast(), forecast("--score-plot", 0.8)
        self.assertNotEqual(json.dumps(without, sort_keys=True), json.dumps(given, sort_keys=True))


if __name__ == "__main__":
    unittest.main()
