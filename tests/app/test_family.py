# SPDX-License-Identifier: Apache-2.0
"""The PCA family, covariance and forecasts, as a user runs them."""
import hashlib
import json
import unittest
import zipfile

import numpy as np

from support import BAD_INPUT, BUDGET, BUDGET_FLAGS, SEEDED, SOURCE, USAGE, AppTest


def spiked_rows(n, d, k, spike=30.0, seed=1):
    random = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(random.normal(size=(d, k)))
    rows = random.normal(size=(n, d)) + np.sqrt(spike) * random.normal(size=(n, k)) @ basis.T
    return rows, basis


class Family(AppTest):
    FORECAST = ("--method", "auto", "--spectrum", "spectrum.txt")

    def setUp(self):
        super().setUp()
        np.savetxt(self.path("spectrum.txt"), 30 / np.arange(1, 21))
        self.rows, self.basis = spiked_rows(10000, 20, 2)
        np.save(self.path("d.npy"), self.rows)

    def fit(self, *args, command="pca"):
        components = ["--components", 2] if command == "pca" else []
        budget = [] if "--epsilon" in args else ["--epsilon", 1]
        return self.run_json(command, "d.npy", "--row-bound", 15, *components, "--delta", 1e-6, *budget, *args)

    def model(self):
        return np.load(self.path("model.npz"))

    def sin2(self):
        components = self.model()["components"]
        return 1 - np.linalg.norm(components[:2] @ self.basis) ** 2 / 2

    def test_every_method_finds_the_components(self):
        # From a random start `power` misses a component in one of twenty runs here.
        for method, options in (("gram", ()), ("power", ("--rounds", 3)), ("adaptive-power", ("--rounds", 3)),
                                ("sparse-power", ("--rounds", 3, "--sparsity", 20)), ("spiked", ()),
                                ("gram", ("--sparsity", 20)), ("auto", ()), ("adaptive-power", ("--rounds", "auto"))):
            with self.subTest(method=method, options=options):
                released = self.fit("--method", method, *options, *SEEDED, "--report", "report.html")
                self.assertLess(self.sin2(), 0.05)
                self.assertLessEqual(released["certified_epsilon"], 1)
                self.run_program("transform", "model.npz", "d.npy", "--out", "scores.npy")
                self.assertEqual(np.load(self.path("scores.npy")).shape, (10000, 2))
                self.assertIn("NOT PRIVATE", (self.folder / "report.html").read_text())

    def test_rounds_begin_where_a_released_model_points(self):
        self.fit("--method", "gram")
        (self.folder / "model.npz").rename(self.folder / "start.npz")
        one_round = ("--method", "sparse-power", "--sparsity", 20, "--rounds", 1, "--filter", "off")
        self.fit(*one_round, "--epsilon", 4)
        cold = self.sin2()
        released = self.fit(*one_round, "--epsilon", 4, "--start", "start.npz")
        self.assertEqual(released["private"], True)
        self.assertLess(self.sin2(), 0.01)
        self.assertGreater(cold, 0.1)  # one product of random directions
        self.fit("--method", "gram", *SEEDED)
        (self.folder / "model.npz").rename(self.folder / "seeded.npz")
        for args, code, says in ((("gram", "--start", "start.npz"), USAGE, "--method gram does not"),
                                 (("power", "--columns", "1-19", "--start", "start.npz"), BAD_INPUT, "20 features"),
                                 (("power", "--start", "seeded.npz"), BAD_INPUT, "NOT PRIVATE")):
            done = self.run_program("pca", "d.npy", "--row-bound", 15, "--components", 2, *BUDGET_FLAGS, "--method", *args,
                                    expect=code)
            self.assertIn(says, done.stderr)

    def test_what_a_release_began_with_is_told_beside_its_guarantee(self):
        """Where noise hides all rows a release may be what it began with, to the last digits: epsilon 0.001 is what it adds."""
        self.fit("--method", "gram", "--epsilon", 4)
        (self.folder / "model.npz").rename(self.folder / "start.npz")
        start = np.load(self.path("start.npz"))["components"]
        options = ("--method", "sparse-power", "--sparsity", 20, "--rounds", 1, "--epsilon", 0.001)
        shown = []
        for seed in range(4):
            begun = self.fit(*options, "--insecure-seed", seed, "--start", "start.npz", "--report", "report.html")
            shown.append(np.linalg.norm(self.model()["components"] @ start.T) ** 2 / 2)
        self.assertGreater(np.median(shown), 0.99)
        manifest = json.loads(bytes(self.model()["manifest.json"]).decode())
        self.assertEqual(manifest["start"], [{"adjacency": "replace-one", "delta": 1e-6, "epsilon": 4, "unit": "row",
                                              "sha256": hashlib.sha256((self.folder / "start.npz").read_bytes()).hexdigest()}])
        self.assertEqual(begun["start"], manifest["start"])
        words = "This release began with the directions of another one (epsilon 4, delta 0.000001)"
        self.assertTrue(any(warning.startswith(words) for warning in manifest["warnings"]))
        report = (self.folder / "report.html").read_text()
        self.assertEqual(report.count(words), 2, "a warning, and the guarantee word for word")
        self.assertIn("The release whose numbers it used.", report)
        self.assertIn(words, self.fit(*options, "--start", "start.npz")["guarantee"])
        self.fit(*options, *SEEDED)
        self.assertLess(np.linalg.norm(self.model()["components"] @ start.T) ** 2 / 2, 0.5)

    def test_a_chain_of_releases_can_be_opened_however_long_it_is(self):
        """Each promise was kept within the next one; the 32nd was paid for, and nobody could read it."""
        np.save(self.path("d.npy"), self.rows[:200])
        power, hashes = ("--method", "power", "--rounds", 1), []
        self.fit("--method", "gram", "--epsilon", 4)
        for number in range(34):
            (self.folder / "model.npz").rename(self.folder / "start.npz")
            hashes.insert(0, hashlib.sha256((self.folder / "start.npz").read_bytes()).hexdigest())
            begun = self.fit(*power, "--start", "start.npz")
        self.assertEqual([one["sha256"] for one in begun["start"]], hashes)
        self.assertEqual([one["epsilon"] for one in begun["start"]], [1] * 33 + [4])
        self.assertIn("epsilon 1, delta 0.000001; and 31 more)", begun["guarantee"])
        self.run_program("report", "model.npz", "--out", "report.html")
        self.assertIn("The 34 releases whose numbers it used", (self.folder / "report.html").read_text())

    def test_what_nobody_could_read_afterwards_is_refused_before_the_charge(self):
        self.fit("--method", "gram")
        arrays = dict(self.model())
        manifest = json.loads(bytes(arrays.pop("manifest.json")))
        many = [{"adjacency": "replace-one", "delta": 1e-6, "epsilon": 4, "sha256": f"{i:064}", "unit": "row"} for i in range(1001)]
        charged = len(self.charged())
        for changes, says in (({"start": many[:1000]}, "at the end of 1001 releases"), ({"start": many}, "at most 1000 promises"),
                              ({"adjacency": "x" * 100}, "nobody could read")):
            np.savez(self.path("start.npz"), **arrays)
            with zipfile.ZipFile(self.path("start.npz"), "a") as archive:
                archive.writestr("manifest.json", json.dumps({**manifest, **changes}))
            done = self.run_program("pca", "d.npy", "--row-bound", 15, "--components", 2, *BUDGET_FLAGS, "--method", "power", "--start",
                                    "start.npz", expect=BAD_INPUT)
            self.assertIn(says, done.stderr)
        self.assertEqual(len(self.charged()), charged)

    def test_a_start_that_promises_less_is_refused(self):
        rows = np.column_stack([self.rows, np.arange(10000) % 1000])
        np.save(self.path("p.npy"), rows)
        self.fit("--method", "gram")
        (self.folder / "model.npz").rename(self.folder / "rows.npz")
        self.fit("--method", "spiked", "--guarantee", "model", "--noise-variance", 1, "--spike", 30, "--no-ledger")
        (self.folder / "model.npz").rename(self.folder / "modelled.npz")
        charged = len(self.charged())
        power = ("--row-bound", 15, "--components", 2, *BUDGET_FLAGS, "--method", "power", "--start")
        for args, says in ((("d.npy", *power, "modelled.npz"), "under a model of its rows alone"),
                           (("p.npy", "--person", "21", *power, "rows.npz"), "this release for one person"),
                           (("d.npy", "--columns", "20,1-19", *power, "rows.npz"), "other features")):
            self.assertIn(says, self.run_program("pca", *args, expect=BAD_INPUT).stderr)
        self.assertEqual(len(self.charged()), charged)
        manifest = json.loads(bytes(np.load(self.path("rows.npz"))["manifest.json"]).decode())
        arrays = {name: array for name, array in np.load(self.path("rows.npz")).items() if name != "manifest.json"}
        for key, value in (("guarantee_kind", None), ("epsilon", None), ("delta", "small"), ("adjacency", None), ("features", None)):
            with zipfile.ZipFile(self.path("crafted.npz"), "w") as archive:
                for name, array in arrays.items():
                    with archive.open(f"{name}.npy", "w") as member:
                        np.save(member, array)
                archive.writestr("manifest.json", json.dumps({k: v for k, v in {**manifest, key: value}.items() if v is not None}))
            self.run_program("pca", "d.npy", *power, "crafted.npz", expect=BAD_INPUT)
        self.assertEqual(len(self.charged()), charged)

    def test_auto_says_what_it_chose_and_why(self):
        released = self.fit("--report", "report.html")
        self.assertEqual(released["method"], "pilot")
        self.assertIn(released["pilot"]["chosen"], ("gram", "sphere", "adaptive-power"))
        self.assertIn(released["pilot"]["sentence"].split(",")[0], (self.folder / "report.html").read_text())
        self.fit("--adjacency", "add-remove-one")
        self.assertEqual(self.fit("--columns", "1-6")["method"], "gram")

    def test_forecasts_say_what_they_chose_and_why(self):
        released = self.fit(*self.FORECAST)
        self.assertEqual(released["planner"]["chosen"].split(",")[0], released["method"])
        self.assertGreater(len(released["planner"]["forecasts"]), 2)
        done = self.run_program("pca", "d.npy", "--row-bound", 15, "--components", 2, *self.FORECAST, *BUDGET_FLAGS)
        self.assertIn("was chosen from public facts alone", done.stdout)
        self.run_program("pca", "d.npy", "--row-bound", 15, "--components", 2, *self.FORECAST, *BUDGET_FLAGS,
                         "--adjacency", "add-remove-one", expect=USAGE)
        self.run_program("pca", "d.npy", "--row-bound", 15, "--components", 2, *self.FORECAST, *BUDGET_FLAGS,
                         "--adjacency", "add-remove-one", "--expected-rows", 10000)

    def test_forecasts_use_nothing_but_public_facts(self):
        """Other rows of the same shape: the same forecast, to the last digit."""
        first = self.fit(*self.FORECAST)
        np.save(self.path("d.npy"), np.zeros_like(self.rows))
        self.assertEqual(self.fit(*self.FORECAST)["planner"], first["planner"])

    def test_forecasts_do_not_know_a_private_number_of_rows(self):
        options = (*self.FORECAST, "--adjacency", "add-remove-one", "--expected-rows", 5000)
        first = self.fit(*options)
        np.save(self.path("d.npy"), self.rows[:3000])
        self.assertEqual(self.fit(*options)["planner"], first["planner"])

    def test_covariance(self):
        truth = np.cov(self.rows.T)
        self.fit(*SEEDED, command="covariance")
        covariance = self.model()["covariance"]
        self.assertLess(np.linalg.norm(covariance - truth) / np.linalg.norm(truth), 0.2)
        self.assertGreaterEqual(np.linalg.eigvalsh(covariance).min(), -1e-9)
        self.fit("--method", "spiked", "--rank", 2, "--dense", *SEEDED, command="covariance")
        model = self.model()
        self.assertLess(np.linalg.norm(model["covariance"] - truth) / np.linalg.norm(truth), 0.1)
        u, values, s2 = model["components"], model["eigenvalues"], model["noise_variance"][0]
        np.testing.assert_allclose(u.T @ np.diag(values - s2) @ u + s2 * np.eye(20), model["covariance"], atol=1e-9)
        self.assertAlmostEqual(s2, 1, delta=0.1)
        self.fit("--method", "spiked", "--rank", "auto", *SEEDED, command="covariance")
        self.assertEqual(self.model()["components"].shape, (2, 20))
        self.assertNotIn("covariance", self.model())
        chosen = self.fit("--method", "auto", command="covariance")
        self.assertIn(chosen["method"], ("gram", "spiked"))
        self.run_program("transform", "model.npz", "d.npy", "--out", "scores.npy")

    def test_a_model_based_guarantee_is_stamped_and_must_be_allowed(self):
        options = ("--method", "spiked", "--guarantee", "model", "--noise-variance", 1, "--spike", 30)
        command = ("pca", "d.npy", "--row-bound", 15, "--components", 2, *BUDGET_FLAGS, *options)
        done = self.run_program(*command, expect=BUDGET)
        self.assertIn("--allow-model-based", done.stderr)
        self.run_program("ledger", "create", "strict", "--epsilon", 5, "--delta", 1e-5)
        self.run_program(*command, "--dataset", "strict", expect=BUDGET)
        self.assertEqual(self.charged(), [])
        # Refused, it has bound nothing: the file is free for another data set.
        self.run_program("ledger", "create", "model", "--epsilon", 5, "--delta", 1e-5, "--allow-model-based")
        done = self.run_program(*command, "--dataset", "model", "--report", "report.html")
        self.assertIn("model-based guarantee", done.stdout)
        self.assertIn("replace one by an independent copy", " ".join(done.stdout.split()))
        self.assertIn("with probability at least 0.99 (confidence 0.95)", " ".join(done.stdout.split()))
        self.assertIn("473 data sets", " ".join(done.stdout.split()))
        self.assertTrue("model-based guarantee" in (self.folder / "report.html").read_text())
        self.assertNotIn("holds for every data set", done.stdout)
        self.run_program(*command, *SEEDED, "--dataset", "model")
        self.assertLess(self.sin2(), 0.1)
        self.assertIn("guarantee model", self.charged()[0]["purpose"])
        self.assertIn("drawn from a model", self.run_program("ledger", "show", "model").stdout)
        released = self.run_json(*command[:-4], "--dataset", "model")  # sigma^2 and lambda from a pilot
        self.assertEqual(released["guarantee_kind"], "model")
        manifest = json.loads(bytes(np.load(self.path("model.npz"))["manifest.json"]))
        assumed = manifest["assumed_sensitivity"]
        self.assertEqual(released["assumed_sensitivity"], assumed)
        self.assertEqual((assumed["failure_probability"], assumed["confidence"], assumed["data_sets"]), (0.01, 0.95, 473))
        self.assertTrue(0 < assumed["projector"] < 1 and assumed["sum"] > 0)
        self.assertEqual([e["label"] for e in released["events"]], ["pilot", "projector", "eigenvalues"])

    def test_paper_calibration_is_charged_for_what_it_costs(self):
        released = self.fit("--method", "adaptive-power", "--rounds", 4, "--calibration", "paper", "--epsilon", 2)
        self.assertEqual(released["calibration"], "paper")
        honest = released["certified_epsilon"] <= 2
        stamp = " ".join(released["warnings"])
        self.assertEqual("not certified" in stamp, not honest)
        high = self.fit("--method", "gram", "--calibration", "paper", "--epsilon", 20)
        self.assertGreater(high["certified_epsilon"], 20)
        self.assertIn("Paper calibration, not certified", " ".join(high["warnings"]))
        self.assertIn(f"({high['certified_epsilon']:.6g}, 0.000001)", high["guarantee"])
        tight = self.fit("--method", "sparse-power", "--sparsity", 20, "--rounds", 4, "--calibration", "paper")
        self.assertLess(tight["certified_epsilon"], 0.7, "000 claims more than its noise costs")

    def test_private_row_bound(self):
        np.save(self.path("d.npy"), np.vstack([self.rows, 50 * self.rows[:50]]))
        self.run_program("pca", "d.npy", "--row-bound", "auto", "--components", 2, *BUDGET_FLAGS, expect=USAGE)
        means = ["first row bound", "column sums", "rough row bound", "refined column sums"]
        for center, asked in (([], means), (["--center", "none"], [])):
            released = self.run_json("pca", "d.npy", "--row-bound", "auto:1000", *center, "--components", 2, *BUDGET_FLAGS,
                                     *SEEDED, "--method", "gram")
            self.assertEqual([e["label"] for e in released["events"]], [*asked, "row bound", "covariance"])
            self.assertLess(self.sin2(), 0.1)
        model = self.run_json("pca", "d.npy", "--range", "-100:100", "--row-bound", "auto", "--center", "private",
                              "--components", 2, *BUDGET_FLAGS, "--method", "gram")
        self.assertEqual([e["label"] for e in model["events"]], ["column sums", "row bound", "covariance"])

    def test_bad_options(self):
        fit = ("pca", "d.npy", "--row-bound", 15)
        self.write("negative.txt", "3 -1")
        for args, word in ((("--components", 2, "--sparsity", 21), "--sparsity"),
                           (("--components", 2, "--method", "sparse-power"), "--sparsity"),
                           (("--components", 2, "--method", "power", "--rounds", 0), "--rounds"),
                           (("--components", 2, "--method", "power", "--rounds", "many"), "--rounds"),
                           (("--components", 2, "--method", "spiked", "--rank", 20), "--rank"),
                           (("--components", 2, "--method", "spiked", "--rank", 1), "--rank"),
                           (("--components", 2, "--method", "spiked", "--rank", "x"), "--rank"),
                           (("--components", 2, "--method", "spiked", "--noise-variance", -1), "--noise-variance"),
                           (("--components", 2, "--method", "best"), "--method"),
                           (("--components", 2, "--method", "auto", "--spectrum", "negative.txt"), "--spectrum"),
                           (("--components", 2, "--grid-ratio", 1), "--grid-ratio"),
                           (("--components", 2, "--range", "0:1", "--schema", "x.toml"), "--schema"),
                           (("--components", 2, "--method", "auto", "--calibration", "paper"), "--method"),
                           (("--components", 2, "--calibration", "paper"), "--method"),
                           (("--components", 2, "--method", "gram", "--calibration", "paper", "--center", "private"),
                            "--center"),
                           (("--components", 2, "--method", "pilot", "--filter", "off"), "--filter"),
                           (("--components", 2, "--method", "pilot", "--score-plot"), "gram"),
                           (("--components", 2, "--row-bound", "secret"), "--row-bound")):
            with self.subTest(args=args):
                used = fit[:2] if "--row-bound" in args else fit
                done = self.run_program(*used, *args, *BUDGET_FLAGS, expect=USAGE)
                self.assertIn(word, done.stderr)
        for epsilon, delta in ((0, 1e-6), (-1, 1e-6), ("nan", 1e-6), ("inf", 1e-6), (1, 0), (1, 1), (1, -1), (1, "nan")):
            done = self.run_program(*fit, "--components", 2, "--epsilon", epsilon, "--delta", delta, expect=USAGE)
            self.assertTrue("psilon" in done.stderr or "elta" in done.stderr)
        self.run_program(*fit, "--components", 21, *BUDGET_FLAGS, expect=BAD_INPUT)
        self.assertEqual(self.charged(), [])
        self.assertEqual(self.files(), ["d.npy", "negative.txt", "spectrum.txt"])


class Plan(AppTest):
    SIZE = ("--rows", 20000, "--columns", 40, "--epsilon", 1, "--delta", 1e-6)

    def test_pca(self):
        plan = self.run_json("plan", "pca", *self.SIZE, "--components", 2, "--gap", 5, "--plot", "plan.svg")
        methods = {m["method"].split(",")[0]: m for m in plan["methods"]}
        self.assertEqual(set(methods), {"gram", "adaptive-power", "power"})
        for method in methods.values():
            self.assertTrue(0 <= method["error"] <= 1)
            self.assertGreater(method["sum_bytes"], 0)
            self.assertTrue(all(n["deviation"] > 0 for n in method["noise"]))
            errors = [e for _, e in method["error_by_rows"]]
            self.assertGreater(errors[0], errors[-1], "more rows, less error")
        self.assertLess(methods["gram"]["rows_needed"], 20000)
        svg = (self.folder / "plan.svg").read_text()
        self.assertEqual(svg.count("<polyline"), 8, "three methods and the target, twice")

    def test_hopeless_plans_are_said_to_be(self):
        done = self.run_program("plan", "pca", "--rows", 300, "--columns", 200, "--components", 2, "--epsilon", 0.1,
                                "--delta", 1e-6)
        self.assertIn("drown", done.stdout)
        done = self.run_program("plan", "pca", *self.SIZE[:-1], 1e-3, "--components", 1)
        self.assertIn("above 1 / rows", done.stdout)

    def test_sparse_spectrum_and_covariance(self):
        self.write("spectrum.txt", "9 4 1")
        plan = self.run_json("plan", "pca", *self.SIZE, "--components", 1, "--spectrum", "spectrum.txt", "--sparsity", 5)
        self.assertEqual({m["method"].split(",")[0] for m in plan["methods"]}, {"gram", "sparse-power"})
        plan = self.run_json("plan", "covariance", *self.SIZE, "--gap", 10, "--rank", 1)
        self.assertEqual(plan["best"], "spiked")

    def test_a_schema_counts_its_own_features_and_the_plan_speaks_in_outcomes(self):
        schema = "".join(f'[[column]]\nname = "n{i}"\nkind = "numeric"\nlower = 0\nupper = 1\n' for i in range(7))
        schema += '[[column]]\nname = "sort"\nkind = "categorical"\nvalues = ["a", "b", "c"]\n'
        self.write("s.toml", schema)
        plan = self.run_json("plan", "--schema", "s.toml", "--rows", 20000)
        self.assertEqual((plan["task"], plan["columns"], plan["epsilon"]), ("pca", 10, 1))
        self.assertAlmostEqual(plan["delta"], 20000**-1.1, delta=1e-12)
        self.assertEqual(plan["outcome"]["components"], 5)
        self.assertIn("You will get all 5 components", plan["outcome"]["sentence"])
        told = self.run_program("plan", "pca", "--schema", "s.toml", "--rows", 3000, "--components", 6, "--epsilon", 0.3).stdout
        self.assertRegex(" ".join(told.split()), r"You will get (no|[1-5]) components?;.* need epsilon [0-9.]+ or [0-9,]+ rows")
        for task, columns, sentence in ((["covariance"], 10, "The covariance matrix will be off by about .*% of what is there"),
                                        (["fda", "--label", "sort"], 7, "discriminant directions will be off by about .* degrees"),
                                        (["sir", "--response", "n0"], 9, "The direction will be off by about .* degrees"),
                                        (["regress", "--target", "n0"], 9, "The coefficients will be off by")):
            with self.subTest(task):
                plan = self.run_json("plan", *task, "--schema", "s.toml", "--rows", 20000)
                self.assertEqual(plan["columns"], columns)
                self.assertRegex(plan["outcome"]["sentence"], sentence)
        for args, word in ((["pca", "--schema", "s.toml", "--columns", 3], "two ways"), (["pca"], "--schema"),
                           (["fda", "--schema", "s.toml", "--label", "who"], "no column 'who'"),
                           (["regress", "--schema", "s.toml"], "--target")):
            self.assertIn(word, " ".join(self.run_program("plan", *args, "--rows", 100, expect=USAGE).stderr.split()))
        self.assertIn("--rows", self.run_program("plan", "--schema", "s.toml", expect=USAGE).stderr)
        self.assertEqual(self.charged(), [])

    def test_a_plan_does_not_contradict_itself(self):
        """How many rows would do does not depend on how many there are."""
        needed = {}
        for rows in (2000, 4000, 8000, 16000, 20000):
            plan = self.run_json("plan", "--schema", SOURCE / "examples" / "patients.toml", "--rows", rows, "--delta", 1e-5)
            needed[rows] = plan["outcome"]["rows_needed"]
        self.assertLess(max(needed.values()), 1.4 * min(needed.values()), needed)

    def test_plans_of_people_speak_of_people_and_deltas_are_plain(self):
        args = ["plan", "--columns", 6, "--components", 2, "--delta", "1e-6"]
        told = " ".join(self.run_program(*args, "--people", 300, "--epsilon", 0.2).stdout.split())
        self.assertIn("Forecast for 300 people, 6 columns, epsilon 0.2, delta 0.000001,", told)
        self.assertRegex(told, r"or [0-9,]+ people\.")
        self.assertIn("people for 0.1", told)
        self.assertNotIn("rows for", told)
        self.assertEqual(self.run_json(*args, "--people", 300)["people"], 300)
        self.assertNotIn("people", " ".join(self.run_program(*args, "--rows", 300).stdout.split()))
        self.run_program(*args, "--people", 300, "--rows", 300, expect=USAGE)
        for task in (["regress", "--columns", 3], ["fda", "--columns", 3], ["clip", "--x-columns", 2, "--y-columns", 2, "--steps", 5]):
            told = self.run_program("plan", *task, "--people", 4000, "--delta", "1e-6").stdout
            self.assertIn("4,000 people", told)
            self.assertIn("delta 0.000001", told)
            self.assertIn("--people", self.run_program("plan", *task, expect=USAGE).stderr)

    def test_bad_questions(self):
        self.write("negative.txt", "1 -1")
        for args, word in ((("--components", 41), "--components"), (("--components", 1, "--gap", 0.5), "--gap"),
                           (("--components", 1, "--gap", 2, "--decay", 1), "--gap"),
                           (("--components", 1, "--spectrum", "negative.txt"), "negative"),
                           (("--components", 1, "--sparsity", 50), "--sparsity"),
                           (("--components", 1, "--signal-share", 0), "--signal-share"),
                           (("--components", 1, "--target-error", 2), "--target-error")):
            with self.subTest(args=args):
                self.assertIn(word, self.run_program("plan", "pca", *self.SIZE, *args, expect=USAGE).stderr)
        self.assertEqual(self.charged(), [])


if __name__ == "__main__":
    unittest.main()
