# SPDX-License-Identifier: Apache-2.0
"""eigenveil pca: what is released, to whom it is charged, what it prints."""
import json
import unittest
import zipfile

import numpy as np

from support import BAD_INPUT, BUDGET, BUDGET_FLAGS, SEEDED, USAGE, AppTest, numbers


class Pca(AppTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        self.rows = random.normal(size=(20000, 6)) @ np.diag([5, 3, 1, 1, 1, 1])
        np.save(self.path("data.npy"), self.rows)
        self.args = ["pca", "data.npy", "--range", "-20:20", "--components", 2, *BUDGET_FLAGS]

    def test_rows_that_teach_nothing_are_released_and_no_rows_are_not(self):
        """What was charged is written: zero, one, and rows of no length at all, where noise may leave no eigenvalue above zero."""
        flags = ["--range", "-1:1", "--components", 1, *BUDGET_FLAGS, "--no-ledger", "--insecure-seed", 3, "--out", "m.npz"]
        for rows in (0, 1, 200):
            np.save(self.path("few.npy"), np.zeros((rows, 3)))
            for method in ("gram", "sphere"):
                for center in ("none", "mean", "private"):
                    for adjacency in ("replace-one", "add-remove-one"):
                        with self.subTest(rows=rows, method=method, center=center, adjacency=adjacency):
                            public = rows == 0 and adjacency == "replace-one"
                            done = self.run_program("pca", "few.npy", *flags, "--method", method, "--center", center, "--adjacency", adjacency,
                                                    expect=BAD_INPUT if public else 0)
                            if public:
                                self.assertIn("there are no rows", done.stderr)
                            else:
                                self.assertLess(abs(np.load(self.path("m.npz"))["eigenvalues"][0]), 1e12)

    def test_model_opens_with_numpy_and_tells_the_guarantee(self):
        result = self.run_json(*self.args, "--out", "m.npz")
        model = np.load(self.path("m.npz"))
        self.assertEqual(model["components"].shape, (2, 6))
        np.testing.assert_allclose(np.linalg.norm(model["components"], axis=1), 1, atol=1e-9)
        for row in model["components"]:
            self.assertGreater(row[np.argmax(np.abs(row))], 0)
        self.assertEqual(model["eigenvalues"].shape, (2,))
        for name in ("mean", "offset", "scale"):
            self.assertEqual(model[name].shape, (6,))
        np.testing.assert_allclose(model["scale"], 1 / 20)
        manifest = json.loads(bytes(model["manifest.json"]))
        for key in ("eigenveil", "method", "options", "adjacency", "epsilon", "delta", "events", "guarantee"):
            self.assertIn(key, manifest)
        self.assertEqual(manifest["rows"], 20000)
        self.assertTrue(manifest["private"])
        for key in ("model", "epsilon", "delta", "adjacency", "method", "components", "guarantee"):
            self.assertIn(key, result)
        self.assertEqual((result["model"], result["epsilon"], result["delta"], result["components"]),
                         ("m.npz", 1, 1e-6, 2))
        # the first direction is the widest one
        self.run_program(*self.args, *SEEDED, "--out", "seeded.npz")
        self.assertGreater(np.load(self.path("seeded.npz"))["components"][0, 0], 0.95)

    def test_manifest_events_reproduce_the_epsilon(self):
        result = self.run_json(*self.args, "--center", "private", "--adjacency", "add-remove-one")
        events = [f"--event={e['mechanism']},count={e['count']}" for e in result["events"]]
        account = self.run_json("account", "--delta", "1e-6", *events)
        self.assertLessEqual(account["epsilon"], 1)
        self.assertGreater(account["epsilon"], 0.998)
        self.assertEqual(len(events), 4)

    def test_nothing_in_a_release_depends_on_the_data_but_what_was_noised(self):
        # Two data sets of the same shape and the same seed: manifests agree up to what was computed from noisy answers.
        np.save(self.path("other.npy"), np.zeros((20000, 6)))
        manifests = []
        for data in ("data.npy", "other.npy"):
            self.run_program("pca", data, *self.args[2:], "--insecure-seed", 3, "--out", "m.npz", "--no-ledger", "--row-bound", "range")
            manifest = json.loads(zipfile.ZipFile(self.path("m.npz")).read("manifest.json"))
            for released in ("warnings", "noise_edge", "verdicts"):  # made of released eigenvalues
                manifest.pop(released)
            manifests.append(manifest)
        self.assertEqual(manifests[0], manifests[1])

    def test_row_count_is_nowhere_under_add_remove_one(self):
        self.run_program(*self.args, "--adjacency", "add-remove-one", "--out", "m.npz", "--report", "r.html")
        manifest = zipfile.ZipFile(self.path("m.npz")).read("manifest.json").decode()
        self.assertNotIn('"rows"', manifest)
        for text in (manifest, (self.folder / "r.html").read_text()):
            self.assertIn(1e-6, numbers(text), "delta is there, so numbers are found")
            self.assertNotIn(20000, numbers(text))

    def test_same_seed_same_bytes_and_stamped(self):
        for out in ("a.npz", "b.npz"):
            done = self.run_program(*self.args, "--insecure-seed", 5, "--out", out)
            self.assertIn("NOT PRIVATE", done.stdout)
        self.assertEqual((self.folder / "a.npz").read_bytes(), (self.folder / "b.npz").read_bytes())
        self.run_program(*self.args, "--out", "c.npz")
        self.assertNotEqual((self.folder / "a.npz").read_bytes(), (self.folder / "c.npz").read_bytes())

    def test_budget_is_kept(self):
        self.run_program("ledger", "create", "people", "--epsilon", 1.2, "--delta", 1e-6)
        self.run_program(*self.args, "--dataset", "people", "--out", "first.npz")
        done = self.run_program(*self.args, "--dataset", "people", "--out", "second.npz", expect=BUDGET)
        self.assertRegex(done.stderr, "remain")
        self.assertNotIn("second.npz", self.files())
        status = self.run_json("ledger", "show", "people")
        self.assertEqual(len(status["reservations"]), 1)
        self.assertEqual(status["reservations"][0]["state"], "answered")
        # Beside other releases a search counts as a Gaussian answer, which is a little more than it costs alone.
        self.assertAlmostEqual(status["spent_epsilon"], 1, delta=0.015)
        smaller = ["0.5" if a == "1" else a for a in self.args]
        self.run_program(*smaller, "--dataset", "people", "--out", "third.npz")

    def test_files_without_a_data_set_are_recorded(self):
        self.run_program(*self.args)
        self.run_program(*self.args)
        self.assertEqual(len(self.charged()), 2)
        self.run_program(*self.args, "--no-ledger")
        self.assertEqual(len(self.charged()), 2)

    def test_words_go_to_stdout_and_progress_to_stderr(self):
        done = self.run_program(*self.args)
        self.assertIn("differentially private", done.stdout)
        self.assertIn("reading rows", done.stderr)
        self.assertNotIn("\r", done.stderr, "a progress bar is for terminals")
        self.assertEqual(self.run_program(*self.args, "--quiet").stderr, "")

    def test_diagnostics_stay_on_the_terminal(self):
        done = self.run_program(*self.args, "--row-bound", "0.1", "--diagnostics", "--report", "r.html", "--out", "m.npz")
        self.assertRegex(done.stderr, "not private: do not share.*scaled down")
        self.assertNotIn("scaled down to the row bound", done.stdout)
        plain = self.run_program(*self.args, "--row-bound", "0.1")
        self.assertNotIn("diagnostics", plain.stderr)

    def test_zcdp_accounting_is_offered_and_looser(self):
        tight = self.run_json(*self.args)
        zcdp = self.run_json(*self.args, "--accounting", "zcdp")
        mu = [float(r["events"][-1]["mechanism"].split("mu=")[1]) for r in (tight, zcdp)]
        self.assertGreater(mu[0], mu[1])
        self.assertGreater(mu[1], 0.85 * mu[0])

    def test_wrong_options_are_refused(self):
        for extra, word in [(["--epsilon", "0"], "psilon"), (["--epsilon", "nan"], "psilon"),
                            (["--epsilon", "-1"], "psilon"), (["--delta", "0"], "elta"), (["--delta", "1"], "elta"),
                            (["--row-bound", "0"], "--row-bound must lie between"), (["--row-bound", "x"], "row-bound"),
                            (["--adjacency", "x"], "adjacency"), (["--memory", "x"], "memory"),
                            (["--memory", "1M"], "memory"), (["--threads", "0"], "threads"),
                            (["--components", "0"], "components"), (["--method", "magic"], "method"),
                            (["--image-shape", "4"], "image-shape"), (["--image-shape", "5x5"], "image-shape"),
                            (["--range", "5:1"], "range"), (["--range", "x"], "range"), (["--range", "no=0:1"], "no"),
                            (["--schema", "s.toml"], "schema"), (["--columns", "7"], "7"), (["--nonsense"], "nonsense"),
                            (["--no-ledger", "--dataset", "x"], "ledger"), (["--insecure-seed", "x"], "seed"),
                            (["--dataset", "unknown"], "there is no ledger"), (["--out", "no/where.npz"], "no/where.npz"),
                            (["--report", "no/where.html"], "no/where.html")]:
            with self.subTest(extra):
                # the last one of a repeated option counts
                args = self.args + extra
                if extra[0] in ("--epsilon", "--delta", "--components"):
                    index = args.index(extra[0])
                    args = args[:index] + args[index + 2:]
                done = self.run_program(*args, expect=3 if extra[0] in ("--columns", "--dataset") else USAGE)
                self.assertIn(word, done.stderr)
                self.assertNotIn("model.npz", self.files())
        self.assertEqual(self.charged(), [])

    def test_every_method_finds_the_widest_direction(self):
        for method in (["gram"], ["gram", "--sparsity", 3], ["power", "--rounds", 3], ["adaptive-power", "--rounds", 3],
                       ["adaptive-power", "--rounds", 3, "--filter", "drop"], ["sparse-power", "--sparsity", 3]):
            with self.subTest(method):
                result = self.run_json(*self.args, "--row-bound", 0.5, *SEEDED, "--method", *method, "--report", "r.html")
                self.assertEqual(result["method"], method[0])
                events = [f"--event={e['mechanism']},count={e['count']}" for e in result["events"]]
                account = self.run_json("account", "--delta", "1e-6", *events)
                self.assertLessEqual(account["epsilon"], 1.0001)
                self.assertGreater(account["epsilon"], 0.998)
                components = np.load(self.path("model.npz"))["components"]
                self.assertGreater(components[0, 0] ** 2, 0.7)
                if "--sparsity" in method:
                    self.assertEqual(np.count_nonzero(np.abs(components).sum(axis=0)), 3)
        self.run_program("transform", "model.npz", "data.npy", "--out", "scores.npy")
        for extra in (["--method", "sparse-power"], ["--method", "power", "--sparsity", 3], ["--sparsity", 7],
                      ["--sparsity", 1], ["--method", "power", "--rounds", 0], ["--filter", "x"], ["--grid-ratio", 1]):
            with self.subTest(extra):
                self.run_program(*self.args, *extra, expect=USAGE)

    def test_bounds_are_needed(self):
        done = self.run_program("pca", "data.npy", "--components", 1, *BUDGET_FLAGS, expect=USAGE)
        self.assertIn("--range", done.stderr)
        self.run_program("pca", "data.npy", "--components", 1, *BUDGET_FLAGS, "--row-bound", 20)

    def test_help_teaches(self):
        self.assertIn("Examples", self.run_program("help").stdout)
        self.assertIn("--epsilon", self.run_program("pca", "--help").stdout)
        self.run_program("nonsense", expect=USAGE)


if __name__ == "__main__":
    unittest.main()
