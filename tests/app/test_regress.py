# SPDX-License-Identifier: Apache-2.0
"""eigenveil regress: coefficients with intervals, from rows or from a released covariance; what is refused, and what it costs."""
import json
import re
import shutil
import subprocess
import unittest
import zipfile

import numpy as np

from federation import FederationTest
from support import BAD_INPUT, BUDGET_FLAGS, PROGRAM, SANITIZED, SEEDED, SOURCE, USAGE, AppTest

PATIENTS = ["--schema", SOURCE / "examples" / "patients.toml"]
MPIRUN = ["mpirun", "-q", "--allow-run-as-root", "--oversubscribe", "-n", 2]
WITHOUT_MPI = shutil.which("mpirun") is None or "built without MPI" in subprocess.run(
    [PROGRAM, "pca", "x", "--components", "1", *BUDGET_FLAGS, "--engine", "mpi"], capture_output=True, text=True).stderr


def manifest_of(path):
    return json.loads(bytes(np.load(path)["manifest.json"]))


class Regress(AppTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        x = random.uniform(0, 10, size=(20000, 3))
        y = 20 + x @ [2, 0, -1] + random.normal(size=20000)
        self.truth = {"(intercept)": 20, "a": 2, "b": 0, "c": -1}
        self.rows = np.c_[x[:, 0], y, x[:, 1:]]
        self.write("rows.csv", "a,y,b,c\n" + "\n".join(",".join(f"{v:.6f}" for v in row) for row in self.rows) + "\n")
        self.bounds = ["--header", "yes", "--range", "0:10", "--range", "y=0:50"]
        self.fit = ["regress", "rows.csv", "--target", "y", *self.bounds, *BUDGET_FLAGS]
        self.free = ["--no-ledger", *SEEDED]

    def assert_near(self, result, truth):
        """Four deviations: an interval is 1.96 to each side."""
        for one in result["coefficients"]:
            middle, reach = (one["upper"] + one["lower"]) / 2, (one["upper"] - one["lower"]) / 2
            self.assertGreater(reach, 0)
            self.assertLess(abs(middle - truth[one["name"]]), 2.05 * reach, one)

    def test_coefficients_in_the_columns_own_units(self):
        for adjacency in ("replace-one", "add-remove-one"):
            result = self.run_json(*self.fit, *self.free, "--adjacency", adjacency, "--report", "r.html")
            self.assertEqual([c["name"] for c in result["coefficients"]], ["(intercept)", "a", "b", "c"])
            for one in result["coefficients"]:
                self.assertAlmostEqual(one["value"], self.truth[one["name"]], delta=1 if one["name"] == "(intercept)" else 0.2)
            self.assert_near(result, self.truth)
            self.assertAlmostEqual(result["residual_variance"]["value"], 1, delta=1.5)
            self.assertGreater(result["r_squared"]["value"], 0.9)
            self.assertEqual([e["label"] for e in result["events"]], ["covariance"], "one answer, and no count")
            page = (self.folder / "r.html").read_text()
            for word in ("Linear regression", "Coefficients", "95% interval", "compatible with no effect", "Target"):
                self.assertIn(word, page)
        text = self.run_program(*self.fit, *self.free).stdout
        for word in ("linear regression of 20,000 rows and 3 columns", "Coefficients for y", "R^2", "times as wide", "same variance everywhere"):
            self.assertIn(word, text)

    def test_predictions_need_no_target(self):
        self.run_program(*self.fit, *self.free)
        model = np.load(self.path("model.npz"))
        x = np.delete(self.rows, 1, axis=1)
        self.write("new.csv", "a,b,c\n" + "\n".join(",".join(map(repr, map(float, row))) for row in x[:50]) + "\n")
        for extra in ([], ["--predict"]):
            self.run_program("transform", "model.npz", "new.csv", "--out", "p.csv", *extra)
            lines = (self.folder / "p.csv").read_text().split()
            self.assertEqual(lines[0], "prediction")
            np.testing.assert_allclose(np.array(lines[1:], dtype=float),
                                       model["intercept"] + x[:50] @ model["coefficients"], atol=1e-6)
        page = manifest_of(self.path("model.npz"))
        self.assertEqual([c["name"] for c in page["columns"]], ["a", "b", "c"])

    def test_categories_become_dummies(self):
        result = self.run_json("regress", SOURCE / "examples" / "patients.csv", *PATIENTS, "--target", "systolic", "--epsilon",
                               8, "--delta", 1e-6, *self.free)
        self.assertEqual([c["name"] for c in result["coefficients"]],
                         ["(intercept)", "age", "sex=M", "diastolic", "weight"])
        self.assertTrue(any("hides whether anybody is in these categories" in w and "sex=other" in w for w in result["warnings"]))
        self.assertTrue(any("compared with the first of their column: sex=F" in w for w in result["warnings"]))
        self.run_program("transform", "model.npz", SOURCE / "examples" / "patients.csv", "--out", "p.npy")
        self.assertEqual(np.load(self.path("p.npy")).shape, (2000, 1))

    def test_a_covariance_may_lack_what_only_people_read(self):
        self.run_program("covariance", "rows.csv", *self.bounds, *BUDGET_FLAGS, "--center", "private", *self.free, "--out", "c.npz")
        manifest = manifest_of(self.path("c.npz"))
        for key in ("guarantee", "warnings", "rows", "events", "options"):
            manifest.pop(key)
        with zipfile.ZipFile(self.path("c.npz")) as whole, zipfile.ZipFile(self.path("bare.npz"), "w") as bare:
            for name in whole.namelist():
                bare.writestr(name, json.dumps(manifest) if name == "manifest.json" else whole.read(name))
        self.assertIn("none is stated", self.run_program("regress", "--from", "bare.npz", "--target", "y").stdout)

    def test_from_a_covariance_any_target_is_free(self):
        self.run_program("ledger", "create", "rows", "--epsilon", 1, "--delta", 1e-6)
        self.run_program("covariance", "rows.csv", *self.bounds, *BUDGET_FLAGS, "--center", "private", "--dataset", "rows",
                         *SEEDED, "--out", "c.npz")
        paid = self.charged()
        before = np.load(self.path("c.npz"))
        np.testing.assert_array_equal(before["second_moments"], before["second_moments"].T)
        result = self.run_json("regress", "--from", "c.npz", "--target", "y", "--report", "r.html")
        self.assertEqual([c["name"] for c in result["coefficients"]], ["(intercept)", "a", "b", "c"])
        for one in result["coefficients"][1:]:
            self.assertAlmostEqual(one["value"], self.truth[one["name"]], delta=0.6)
        other = self.run_json("regress", "--from", "c.npz", "--target", "a", "--out", "a.npz")
        self.assertEqual([c["name"] for c in other["coefficients"]], ["(intercept)", "y", "b", "c"])
        self.assertEqual(self.charged(), paid)
        self.assertFalse(result["private"], "its noise was seeded")
        self.run_program("covariance", "rows.csv", *self.bounds, *BUDGET_FLAGS, "--center", "private", "--no-ledger", "--out", "k.npz")
        self.assertTrue(self.run_json("regress", "--from", "k.npz", "--target", "y", "--out", "k-y.npz")["private"])
        self.assertEqual(result["events"], manifest_of(self.path("c.npz"))["events"], "what it cost is still said")
        self.run_program("transform", "model.npz", "rows.csv", "--out", "p.npy")
        self.assertLess(np.std(np.load(self.path("p.npy"))[:, 0] - self.rows[:, 1]), 4)

    def test_what_a_covariance_must_have(self):
        self.run_program("covariance", "rows.csv", *self.bounds, *BUDGET_FLAGS, *self.free, "--center", "range", "--out", "range.npz")
        self.refused("released without a mean", "--from", "range.npz", "--target", "y")
        self.run_program("covariance", "rows.csv", *self.bounds, *BUDGET_FLAGS, *self.free, "--out", "spiked.npz", "--method",
                         "spiked", "--rank", 1)
        self.refused("a spiked one is a model", "--from", "spiked.npz", "--target", "y")
        self.run_program("pca", "rows.csv", *self.bounds, "--components", 1, *BUDGET_FLAGS, *self.free, "--out", "pca.npz")
        self.refused("no covariance", "--from", "pca.npz", "--target", "y")
        self.run_program("covariance", SOURCE / "examples" / "patients.csv", *PATIENTS, *BUDGET_FLAGS, *self.free, "--center",
                         "private", "--out", "p.npz")
        self.refused("categorical", "--from", "p.npz", "--target", "sex")
        self.refused("no such column", "--from", "p.npz", "--target", "height")
        self.refused("excludes", "--from", "p.npz", "--target", "age", "--epsilon", 1)
        self.refused("excludes", "rows.csv", "--from", "p.npz", "--target", "age")

    def refused(self, words, *args, code=USAGE):
        before = self.files()
        done = self.run_program("regress", *args, expect=code)
        self.assertIn(words, done.stderr)
        self.assertEqual(self.files(), before)

    def test_refusals_cost_nothing(self):
        given = [*self.bounds, *BUDGET_FLAGS]
        self.refused("no column", "rows.csv", "--target", "z", *given, code=BAD_INPUT)
        self.refused("categorical", SOURCE / "examples" / "patients.csv", *PATIENTS, "--target", "sex", *BUDGET_FLAGS)
        self.refused("needs public ranges", "rows.csv", "--target", "y", "--header", "yes", "--row-bound", 9, *BUDGET_FLAGS)
        self.refused("--center private", "rows.csv", "--target", "y", *given, "--center", "private")
        self.refused("--row-bound auto", "rows.csv", "--target", "y", *given, "--row-bound", "auto")
        self.refused("--calibration paper", "rows.csv", "--target", "y", *given, "--calibration", "paper")
        self.refused("--ridge", "rows.csv", "--target", "y", *given, "--ridge", "much")
        self.refused("--ridge", "rows.csv", "--target", "y", *given, "--ridge", "-1")
        self.refused("--epsilon is required", "rows.csv", "--target", "y", *self.bounds)
        self.refused("give DATA", "--target", "y", *BUDGET_FLAGS)
        self.write("bad.csv", "a,y\n1,2\n3,x\n")
        self.refused("row 2", "bad.csv", "--target", "y", *given, code=BAD_INPUT)
        self.assertEqual(self.charged(), [])

    def test_a_crafted_covariance_ends_in_a_sentence(self):
        self.run_program("covariance", "rows.csv", *self.bounds, "--center", "private", *BUDGET_FLAGS, *self.free, "--out", "c.npz")
        arrays = dict(np.load(self.path("c.npz")))
        manifest = json.loads(bytes(arrays.pop("manifest.json")))
        moments = manifest["second_moments"]

        def refused(without=(), code=USAGE, numbers={}, **changes):
            with zipfile.ZipFile(self.path("bad.npz"), "w") as archive:
                for name, array in {**arrays, **numbers}.items():
                    if name not in without:
                        with archive.open(f"{name}.npy", "w") as member:
                            np.lib.format.write_array(member, array)
                archive.writestr("manifest.json", json.dumps({k: v for k, v in {**manifest, **changes}.items() if k not in without}))
            done = self.run_program("regress", "--from", "bad.npz", "--target", "y", "--out", "r.npz", expect=code)
            self.assertIn("--from", done.stderr)
            self.assertFalse((self.folder / "r.npz").exists())

        # Of a kind that nobody knows nothing is checked: it may lack what a covariance has.
        for name in ("mean", "offset", "scale", "features", "columns"):
            refused(without=[name], model="unheard-of")
        refused(model="pca")
        refused(model="unheard-of", columns=manifest["columns"][1:2])
        refused(code=BAD_INPUT, numbers={"second_moments": 1e300 * arrays["second_moments"]})
        refused(code=BAD_INPUT, numbers={"second_moments": np.full_like(arrays["second_moments"], 1e308)})
        refused(code=BAD_INPUT, second_moments={**moments, "rows": 1e308})

    def test_little_data_gets_no_interval(self):
        self.write("few.csv", "\n".join((self.folder / "rows.csv").read_text().split("\n")[:101]) + "\n")
        result = self.run_json("regress", "few.csv", *self.fit[2:], *self.free)
        self.assertTrue(all(c["lower"] is None and c["upper"] is None for c in result["coefficients"]))
        self.assertEqual(result["r_squared"], {"value": None, "lower": None, "upper": None})
        text = self.run_program("regress", "few.csv", *self.fit[2:], *self.free, "--report", "r.html").stdout
        self.assertIn("not determined", text)
        self.assertIn("no interval", text)
        self.assertIn("no interval", (self.folder / "r.html").read_text())

    def test_a_row_bound_and_zero_rows(self):
        result = self.run_json(*self.fit, *self.free, "--row-bound", 1.8, "--missing", "zero-row")
        self.assertTrue(any("shortened" in w for w in result["warnings"]))
        for one in result["coefficients"][1:]:
            self.assertAlmostEqual(one["value"], self.truth[one["name"]], delta=0.3)

    @unittest.skipIf(WITHOUT_MPI, "no MPI here")
    @unittest.skipIf(SANITIZED, "MPI itself leaks")
    def test_mpi_releases_the_same(self):
        self.run_program(*self.fit, *self.free, "--quiet", "--out", "one.npz")
        self.run_program(*MPIRUN[1:], PROGRAM, *self.fit, *self.free, "--quiet", "--out", "many.npz", "--engine", "mpi",
                         program=MPIRUN[0])
        self.assertEqual((self.folder / "one.npz").read_bytes(), (self.folder / "many.npz").read_bytes())

    def test_a_forecast_is_what_a_fit_then_finds_and_costs_nothing(self):
        question = ["plan", "regress", "--rows", 20000, "--columns", 4, "--explained", 0.6, "--spread", 0.25, *BUDGET_FLAGS]
        plan = self.run_json(*question, "--plot", "p.svg")
        (method,) = plan["methods"]
        self.assertEqual((method["method"], plan["columns"], plan["explained"]), ("shrunk", 4, 0.6))
        self.assertEqual([n["answer"] for n in method["noise"]], ["covariance"])
        for curve in ("error_by_rows", "error_by_epsilon"):
            self.assertGreater(method[curve][0][1], method[curve][-1][1], "more rows or epsilon, less error")
        self.assertEqual(self.run_json(*question)["methods"][0]["error"], method["error"], "made-up rows, fixed noise")
        # Rows of that kind, fitted: the mean error of eight fits is within 40% of the forecast.
        random = np.random.default_rng(5)
        x = random.normal(size=(20000, 4))
        y = np.sqrt(0.6 / 4) * x.sum(axis=1) + np.sqrt(0.4) * random.normal(size=20000)
        np.save(self.path("d.npy"), 0.25 * np.c_[x, y])
        exact = np.linalg.lstsq(np.c_[x, np.ones(20000)], y, rcond=None)[0][:4]
        errors = []
        for seed in range(8):
            self.run_program("regress", "d.npy", "--target", 5, "--range", "-1:1", *BUDGET_FLAGS, "--no-ledger", "--insecure-seed", seed)
            errors.append(np.linalg.norm(np.load(self.path("model.npz"))["coefficients"].ravel() - exact) / np.linalg.norm(exact))
        self.assertAlmostEqual(np.mean(errors) / method["error"], 1, delta=0.4)
        for wrong in (["--explained", 1], ["--spread", 0], ["--ridge", "much"], ["--rows", 1], ["--columns", 0], ["--row-bound", 0]):
            self.run_program("plan", "regress", *["--rows", 20000][: 0 if "--rows" in wrong else 2],
                             *["--columns", 4][: 0 if "--columns" in wrong else 2], *BUDGET_FLAGS, *wrong, expect=USAGE)
        self.assertEqual(self.charged(), [])

    def test_commands_of_the_help_run(self):  # test_readme runs those of the page
        shutil.copytree(SOURCE / "examples", self.folder / "examples")
        self.run_program("covariance", "examples/patients.csv", "--schema", "examples/patients.toml", *BUDGET_FLAGS, "--out", "covariance.npz")
        told = self.run_program("regress", "--help").stdout.replace("\\\n", " ")
        commands = [line.split()[1:] for line in told.splitlines() if re.match(r" *eigenveil \w+ .*--", line)]
        self.assertGreater(len(commands), 0)
        for command in commands:
            self.run_program(*command)


class RegressOfSites(FederationTest):
    def test_sites_release_what_their_rows_say(self):
        running = [self.site(name) for name in ("north", "south")]
        coordinator = self.coordinator(["regress", "--target", "d"], "--columns", "a,b,c", "--range", "-8:8",
                                       sites=("north", "south"))
        self.assertEqual(coordinator.wait(), 0, coordinator.text())
        for site in running:
            self.assertEqual(site.wait(), 0, site.text())
        self.assert_charged_once("north", "south")
        manifest = self.manifest()
        self.assertEqual(manifest["rows"], 4000)
        self.assertEqual(manifest["target"], "d")
        self.assertEqual([c["name"] for c in manifest["columns"]], ["a", "b", "c"])
        np.testing.assert_allclose(self.model()["coefficients"], [0.3, 0, 0], atol=0.1)


if __name__ == "__main__":
    unittest.main()
