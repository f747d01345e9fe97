# SPDX-License-Identifier: Apache-2.0
"""eigenveil cca, fda, sir and gep: what is released, what it costs, what is refused."""
import json
import unittest

import numpy as np

from support import BAD_INPUT, BUDGET, BUDGET_FLAGS, SEEDED, USAGE, AppTest


def angle(a, b):
    return 1 - abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b)


class Gep(AppTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        n = 20000
        rows = random.normal(size=(n, 6))
        rows[:, 3] = 0.9 * rows[:, 0] + np.sqrt(1 - 0.81) * rows[:, 3]
        labels = random.integers(0, 3, size=n)
        self.means = np.array([[2, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0], [-2, -2, 0, 0, 0, 0]])
        np.save(self.path("views.npy"), rows)
        np.save(self.path("classes.npy"), np.c_[random.normal(size=(n, 6)) + self.means[labels], labels + 1])
        self.direction = np.array([0, 1, 1, 0, 0, 0]) / np.sqrt(2)
        explaining = random.normal(size=(n, 6))
        np.save(self.path("response.npy"), np.c_[explaining, np.exp(explaining @ self.direction)])
        bounds = ["--row-bound", 4, *BUDGET_FLAGS, *SEEDED]
        self.cca = ["cca", "views.npy", "--x-columns", "1-3", "--y-columns", "4-6", "--components", 1, *bounds]
        self.fda = ["fda", "classes.npy", "--label", 7, "--classes", "1|2|3", "--components", 2, *bounds]
        self.sir = ["sir", "response.npy", "--response", 7, "--cuts", "0.5,1,2", "--components", 1, *bounds]

    def manifest(self, name="model.npz"):
        return json.loads(bytes(np.load(self.path(name))["manifest.json"]))

    def test_cca_releases_weights_and_correlations(self):
        result = self.run_json(*self.cca, "--report", "r.html")
        model = np.load(self.path("model.npz"))
        self.assertEqual((model["x_weights"].shape, model["y_weights"].shape, model["correlations"].shape),
                         ((3, 1), (3, 1), (1,)))
        self.assertAlmostEqual(model["correlations"][0], 0.9, delta=0.05)
        self.assertLess(angle(model["x_weights"][:, 0], np.array([1, 0, 0])), 0.01)
        self.assertLess(angle(model["y_weights"][:, 0], np.array([1, 0, 0])), 0.01)
        self.assertEqual(result["method"], "once")
        self.run_program("transform", "model.npz", "views.npy", "--out", "s.npy")
        scores = np.load(self.path("s.npy"))
        self.assertEqual(scores.shape, (20000, 2))
        self.assertGreater(np.corrcoef(scores.T)[0, 1], 0.85)
        page = (self.folder / "r.html").read_text()
        for word in ("Canonical correlations", "1 canonical pair", "X1", "Y1", "correlation"):
            self.assertIn(word, page)

    def test_fda_predicts_classes(self):
        self.run_program(*self.fda, "--report", "r.html")
        model = np.load(self.path("model.npz"))
        self.assertEqual((model["scalings"].shape, model["class_means"].shape, model["priors"].shape),
                         ((6, 2), (3, 6), (3,)))
        np.testing.assert_allclose(model["class_means"], self.means, atol=0.2)
        np.testing.assert_allclose(model["priors"], 1 / 3, atol=0.03)
        self.run_program("transform", "model.npz", "classes.npy", "--predict", "--out", "labels.csv", "--columns", "1-6")
        predicted = (self.folder / "labels.csv").read_text().split()
        self.assertEqual(predicted[0], "class")
        truth = np.load(self.path("classes.npy"))[:, 6]
        right = np.mean(np.array(predicted[1:], dtype=float) == truth)
        self.assertGreater(right, 0.9)
        self.run_program("transform", "model.npz", "classes.npy", "--columns", "1-6", "--out", "s.csv")
        self.assertTrue((self.folder / "s.csv").read_text().startswith("ld1,ld2\n"))
        self.assertIn("Discriminant directions", (self.folder / "r.html").read_text())
        alias = self.run_json("lda", *self.fda[1:])
        self.assertEqual(alias["classes"], ["1", "2", "3"])

    def test_sir_finds_the_direction_by_any_slices(self):
        slices = [[], ["--slices", 10, "--response-range", "0:4"], ["--slices", "private:10", "--response-range", "0:10"]]
        for extra in slices:
            with self.subTest(extra):
                args = self.sir if not extra else [a for a in self.sir if a not in ("--cuts", "0.5,1,2")] + extra
                result = self.run_json(*args, "--report", "r.html")
                model = np.load(self.path("model.npz"))
                self.assertEqual(model["directions"].shape, (6, 1))
                self.assertLess(angle(model["directions"][:, 0], self.direction), 0.05)
                self.assertEqual(len(result["slices"]), len(model["slice_means"]))
        self.run_program("transform", "model.npz", "response.npy", "--columns", "1-6", "--out", "s.npy")

    def test_ties_of_the_response_stay_in_one_slice(self):
        rows = np.load(self.path("response.npy"))
        rows[:, 6] = np.where(rows[:, 6] < 1, 0.5, 2.0)  # both values are cut points
        np.save(self.path("ties.npy"), rows)
        result = self.run_json("sir", "ties.npy", *self.sir[2:])
        self.assertEqual(result["slices"], ["below 0.5", "0.5 to 1", "1 to 2", "2 and more"])
        # a cut belongs to the slice above it
        empty = [w.split("'")[1] for w in result["warnings"] if "takes no part" in w]
        self.assertEqual(empty, ["below 0.5", "1 to 2"])

    def test_a_pair_of_matrices(self):
        rows = np.load(self.path("views.npy"))
        norms = np.maximum(1, np.linalg.norm(rows, axis=1) / 4)
        S = (rows / norms[:, None]).T @ (rows / norms[:, None]) / len(rows)
        A, B = S.copy(), S.copy()
        A[:3, :3] = A[3:, 3:] = B[:3, 3:] = B[3:, :3] = 0
        np.save(self.path("a.npy"), A)
        np.savetxt(self.path("b.csv"), B, delimiter=",")
        args = ["gep", "--matrix-a", "a.npy", "--matrix-b", "b.csv", "--sensitivity-a", np.sqrt(2) * 16 / len(rows),
                "--sensitivity-b", np.sqrt(2) * 16 / len(rows), "--rows", len(rows), "--components", 1, *BUDGET_FLAGS, *SEEDED]
        for noise in ("once", "each-step"):
            self.run_program(*args, "--noise", noise, "--report", "r.html")
            vector = np.load(self.path("model.npz"))["vectors"][:, 0]
            self.assertLess(angle(vector, np.array([1, 0, 0, 1, 0, 0])), 0.05)
        self.assertRegex(" ".join(self.manifest()["warnings"]), "rests on the two sensitivities")
        self.run_program("transform", "model.npz", "views.npy", "--out", "s.npy")
        A[0, 1] = 7
        np.save(self.path("a.npy"), A)
        self.assertIn("not symmetric", self.run_program(*args, expect=BAD_INPUT).stderr)
        np.save(self.path("a.npy"), A[:5])
        self.assertIn("square", self.run_program(*args, expect=BAD_INPUT).stderr)
        self.assertEqual(len(self.charged()), 2)

    def test_manifest_events_reproduce_the_epsilon(self):
        for args in (self.cca, self.fda, self.sir):
            for extra in ([], ["--noise", "each-step", "--rounds", 5], ["--center", "private"],
                          ["--adjacency", "add-remove-one"], ["--sparsity", 3]):
                with self.subTest((args[0], extra)):
                    result = self.run_json(*args, *extra)
                    events = [f"--event={e['mechanism']},count={e['count']}" for e in result["events"]]
                    account = self.run_json("account", "--delta", "1e-6", *events)
                    self.assertLessEqual(account["epsilon"], 1.0001)
                    self.assertGreater(account["epsilon"], 0.998)
                    self.assertEqual("rows" in result, "add-remove-one" not in extra)
                    if "--sparsity" in extra:
                        model = np.load(self.path("model.npz"))
                        names = {"cca": ["x_weights", "y_weights"], "fda": ["scalings"], "sir": ["directions"]}[args[0]]
                        kept = sum(np.count_nonzero(np.abs(model[n]).sum(axis=1)) for n in names)
                        self.assertEqual(kept, 3)

    def test_the_papers_noise_is_stamped(self):
        for args in (self.cca, ["fda", *self.fda[1:6], "--components", 1, *self.fda[8:]], self.sir):
            result = self.run_json(*args, "--calibration", "paper", "--report", "r.html")
            self.assertEqual(result["calibration"], "paper")
            self.assertEqual(result["method"], "each-step")
            self.assertIn("aper calibration", (self.folder / "r.html").read_text())
            self.assertTrue(any("aper calibration" in w for w in result["warnings"]))
            events = [f"--event={e['mechanism']},count={e['count']}" for e in result["events"]]
            account = self.run_json("account", "--delta", "1e-6", *events)
            self.assertAlmostEqual(account["epsilon"], result["certified_epsilon"], places=6)
        for extra in (["--noise", "once"], ["--components", 2], ["--center", "private"],
                      ["--adjacency", "add-remove-one"]):
            args = self.cca[:6] + self.cca[8:] if "--components" in extra else self.cca
            self.run_program(*args, "--calibration", "paper", *extra, expect=USAGE)

    def test_budget_is_kept(self):
        self.run_program("ledger", "create", "people", "--epsilon", 1.2, "--delta", 1e-6)
        self.run_program(*self.fda, "--dataset", "people")
        self.run_program(*self.cca, "--dataset", "people", "--out", "second.npz", expect=BUDGET)
        self.assertNotIn("second.npz", self.files())

    def test_unlisted_labels_are_an_error_or_dropped(self):
        two = ["1|2" if a == "1|2|3" else 1 if a == 2 else a for a in self.fda]
        done = self.run_program(*two, expect=BAD_INPUT)
        self.assertRegex(done.stderr, r"classes.npy, row \d+, column '7': the label is not among the classes")
        self.assertEqual(self.charged(), [])
        self.run_program(*two, "--unlisted", "drop")
        model = dict(np.load(self.path("model.npz")))
        self.assertLess(angle(model["scalings"][:, 0], self.means[0] - self.means[1]), 0.02)
        # the same as without these rows, which would widen the classes
        rows = np.load(self.path("classes.npy"))
        np.save(self.path("classes.npy"), rows[rows[:, 6] < 3])
        self.run_program(*two)
        expected = np.load(self.path("model.npz"))
        for name in ("eigenvalues", "scalings"):  # from the same seed
            np.testing.assert_array_equal(model[name], expected[name])

    def test_a_class_without_rows_is_named(self):
        four = ["1|2|3|4" if a == "1|2|3" else a for a in self.fda]
        result = self.run_json(*four)
        self.assertTrue(any("'4'" in w and "takes no part" in w for w in result["warnings"]), result["warnings"])
        self.assertEqual(np.load(self.path("model.npz"))["priors"][3], 0)

    def test_schema_labels_and_views_work(self):
        rows = np.load(self.path("classes.npy"))
        text = "a,b,c,kind\n" + "".join(f"{r[0]},{r[1]},{r[2]},{'xyz'[int(r[6]) - 1]}\n" for r in rows[:5000])
        self.write("t.csv", text)
        columns = "".join(f'[[column]]\nname = "{c}"\nkind = "numeric"\nlower = -6\nupper = 6\n' for c in "abc")
        self.write("s.toml", columns + '[[column]]\nname = "kind"\nkind = "categorical"\nvalues = ["x", "y", "z"]\n')
        common = ["--schema", "s.toml", "--components", 1, *BUDGET_FLAGS]
        result = self.run_json("fda", "t.csv", "--label", "kind", *common)
        self.assertEqual(result["classes"], ["x", "y", "z"])
        self.assertEqual(self.manifest()["features"], ["a", "b", "c"])
        self.run_program("cca", "t.csv", "--x-columns", "c,a", "--y-columns", "kind", *common)
        self.assertEqual(self.manifest()["features"], ["c", "a", "kind=x", "kind=y", "kind=z"])
        self.assertEqual(np.load(self.path("model.npz"))["y_weights"].shape, (3, 1))
        self.run_program("transform", "model.npz", "t.csv", "--out", "s.csv")
        self.run_program("sir", "t.csv", "--response", "a", "--slices", 5, *common[:2], "--columns", "b", *common[2:],
                         expect=USAGE)
        self.run_program("fda", "t.csv", "--label", "kind", "--classes", "x|x", *common, expect=USAGE)
        self.run_program("fda", "t.csv", "--label", "a", *common, expect=USAGE)

    def test_wrong_options_are_refused(self):
        cases = [(self.cca, ["--sparsity", 9], "sparsity"), (self.cca, ["--rounds", 0], "rounds"),
                 (self.cca, ["--init", "admm"], "init"), (self.cca, ["--step", "x"], "step"),
                 (self.cca, ["--step", "-1"], "step"), (self.cca, ["--ridge", "-1"], "ridge"),
                 (self.cca, ["--noise", "each-step", "--init", "admm"], "admm"), (self.cca, ["--columns", "1"], "columns"),
                 (self.fda, ["--unlisted", "x"], "unlisted"), (self.sir, ["--slices", 3], "slices"),
                 (self.sir, ["--response", "1-2"], "one")]
        for args, extra, word in cases:
            with self.subTest(extra):
                if extra[0] == "--response":
                    args = args[:2] + args[4:]
                self.assertIn(word, self.run_program(*args, *extra, expect=USAGE).stderr)
        three = [3 if a == 2 else a for a in self.fda]
        self.assertIn("at most 2 directions", self.run_program(*three, expect=USAGE).stderr)
        four = [4 if a == 1 else a for a in self.cca]
        self.assertIn("smaller view", self.run_program(*four, expect=BAD_INPUT).stderr)
        descending = ["2,1" if a == "0.5,1,2" else a for a in self.sir]
        self.assertIn("ascend", self.run_program(*descending, expect=USAGE).stderr)
        without = [a for a in self.sir if a not in ("--cuts", "0.5,1,2")]
        self.assertIn("--response-range", self.run_program(*without, expect=USAGE).stderr)
        self.run_program("transform", "nothing.npz", "views.npy", "--out", "s.npy", expect=BAD_INPUT)
        self.run_program(*self.cca)
        self.assertIn("fda", self.run_program("transform", "model.npz", "views.npy", "--predict", "--out", "l.csv",
                                              expect=USAGE).stderr)

    def test_plans_forecast_both_noises_and_spend_nothing(self):
        budget = ["--rows", 20000, *BUDGET_FLAGS]
        for task, best in [(["cca", "--x-columns", 5, "--y-columns", 5, "--correlation", 0.8, "--plot", "p.svg"], 0.01),
                           (["fda", "--columns", 8, "--classes", 3, "--components", 2], 0.05),
                           (["sir", "--columns", 8, "--slices", 5], 0.05)]:
            with self.subTest(task):
                plan = self.run_json("plan", *task, *budget)
                self.assertEqual([m["method"] for m in plan["methods"]], ["once", "each-step"])
                self.assertLess(min(m["error"] for m in plan["methods"]), best)
                self.assertLess(plan["methods"][0]["rows_needed"], 20000)
                self.assertTrue(all(n["deviation"] > 0 for m in plan["methods"] for n in m["noise"]))
        self.assertIn("<svg", (self.folder / "p.svg").read_text())
        self.assertIn("best forecast", self.run_program("plan", "sir", "--columns", 4, *budget).stdout)
        for task in (["cca", "--x-columns", 5, "--y-columns", 5, "--correlation", 2],
                     ["cca", "--x-columns", 0, "--y-columns", 5], ["fda", "--columns", 4, "--components", 2],
                     ["sir", "--columns", 4, "--components", 2], ["sir", "--columns", 4, "--explained", 1]):
            self.run_program("plan", *task, *budget, expect=USAGE)
        self.assertEqual(self.charged(), [])


if __name__ == "__main__":
    unittest.main()
