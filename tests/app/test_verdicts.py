# SPDX-License-Identifier: Apache-2.0
"""What the program says of its own answers. Seeds are fixed: each case was looked at once."""
import json
import os
import unittest

import numpy as np

from support import SOURCE, USAGE, AppTest

DATA = os.environ.get("EIGENVEIL_DATA", SOURCE / "../shared/data")


class Verdicts(AppTest):
    def fit(self, *args, seed=1):
        """The JSON that the program prints and the model that it writes."""
        self.fits = getattr(self, "fits", 0) + 1
        said = self.run_json(*args, "--insecure-seed", seed, "--no-ledger", "--out", f"m{self.fits}.npz")
        return said, np.load(self.path(f"m{self.fits}.npz"))

    def spiked(self, n=20000, d=12, spikes=(4, 2)):
        random = np.random.default_rng(5)
        deviations = np.ones(d)
        deviations[:len(spikes)] = spikes
        np.save(self.path("rows.npy"), np.clip(random.normal(size=(n, d)) * deviations, -12, 12))
        return ["pca", "rows.npy", "--range", "-12:12", "--center", "private", "--row-bound", "auto"]

    def test_what_holds_is_said_in_a_sentence_and_in_numbers(self):
        said, model = self.fit(*self.spiked(), "--components", 4, "--epsilon", 2, "--delta", 1e-6, seed=2)
        self.assertEqual(said["verdicts"]["standing"], ["holds", "holds", "noise", "noise"])
        self.assertEqual(said["verdicts"]["sentence"], "PC1-2 hold, the rest is noise.")
        for name in ("eigenvalues", "eigenvalues_estimate", "eigenvalues_low", "eigenvalues_high", "variance_share"):
            self.assertEqual(len(said[name]), 4, name)
            np.testing.assert_allclose(said[name], model[name])
        np.testing.assert_array_equal(model["verdict"], [3, 3, 0, 0])
        np.testing.assert_array_equal(model["verdict_first"], [1, 2, 0, 0])
        self.assertEqual(model["components_deviation"].shape, (4, 12))
        self.assertLess(model["angle"][0], 20)
        # Of noise no angle is claimed.
        np.testing.assert_array_equal(model["angle"][2:], [90, 90])
        self.assertEqual(said["angle"], [*model["angle"][:2], None, None])
        # (16 + 4 + 1 + 1) of 30
        explained = said["verdicts"]["explained"]
        self.assertLess(explained["lower"], 22 / 30)
        self.assertGreater(explained["upper"], 22 / 30)
        clear = np.cos(np.radians(model["angle"][:2, None])) * np.abs(model["components"][:2]) > 1.96 * model["components_deviation"][:2]
        self.assertTrue(clear[0, 0] and clear[1, 1])

    def test_a_filter_makes_no_component_of_even_directions(self):
        for seed in range(3):
            args = [*self.spiked(), "--components", 3, "--epsilon", 2, "--delta", 1e-6]
            for method in ("power", "adaptive-power"):
                said, model = self.fit(*args, "--method", method, seed=seed)
                self.assertEqual(said["verdicts"]["standing"][0], "holds", (method, seed))
                self.assertIn(said["verdicts"]["standing"][2], ("noise", "weak"), (method, seed))
            # What a filter and a found bound took from the rows is put back: a variance of 16, in units of the range.
            self.assertAlmostEqual(model["eigenvalues_estimate"][0] * 144 / 16, 1, delta=0.25, msg=seed)

    def test_the_terminal_shows_the_sentence_and_a_table(self):
        done = self.run_program(*self.spiked(), "--components", 3, "--epsilon", 2, "--delta", 1e-6, "--insecure-seed", 2,
                                "--no-ledger")
        self.assertIn("Verdict. PC1-2 hold, PC3 is noise.", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^   1 .* to .*d .*holds$")
        self.assertRegex(done.stdout, r"(?m)^   3 .* to \S+ +-  .*noise$")

    def test_of_noise_no_angle_is_claimed(self):
        """Of two columns the last direction is orthogonal to the first, whatever it is worth."""
        random = np.random.default_rng(4)
        np.save(self.path("two.npy"), np.clip(random.normal(size=(400, 2)) * [0.5, 0.001], -1, 1))
        args = ["pca", "two.npy", "--range=-1:1", "--components", 2, "--epsilon", 1, "--delta", 1e-6]
        said, model = self.fit(*args)
        self.assertEqual(said["verdicts"]["standing"][1], "noise")
        self.assertEqual((said["angle"][1], model["angle"][1]), (None, 90))
        shown = self.run_program(*args, "--no-ledger", "--insecure-seed", 1, "--report", "r.html").stdout
        self.assertRegex(shown, r"(?m)^   2 .* to \S+ +-  .*noise$")
        row = (self.folder / "r.html").read_text().split('<th scope="row">PC2</th>')[1].split("</tr>")[0]
        self.assertNotIn("&deg;", row)
        self.assertIn("&ndash;", row)

    def test_correlations_and_their_noise_stay_below_one(self):
        np.save(self.path("few.npy"), np.random.default_rng(6).uniform(-1, 1, size=(150, 6)))
        for seed in range(3):
            said, model = self.fit("cca", "few.npy", "--range=-1:1", "--x-columns", "1-3", "--y-columns", "4-6", "--components", 2,
                                   "--epsilon", 0.3, "--delta", 1e-6, seed=seed)
            self.assertLessEqual(max(model["correlations_high"]), 1)
            self.assertLessEqual(said["noise_edge"], 1)
            self.assertGreater(said["noise_edge"], 0.5)

    def test_a_method_without_a_verdict_says_so(self):
        args = [*self.spiked(n=3000), "--components", 2, "--epsilon", 2, "--delta", 1e-6, "--insecure-seed", 1, "--no-ledger"]
        words = "This method has no verdict: how far its directions are off is not known."
        for method, has in ((["--sparsity", 4], False), ([], True)):
            shown = self.run_program(*args, "--method", "gram", *method, "--report", "r.html").stdout
            page = (self.folder / "r.html").read_text()
            for text in (" ".join(shown.split()), page):
                (self.assertNotIn if has else self.assertIn)(words, text)
            # Shares of the sum of what happened to be released say nothing.
            self.assertNotIn("Of those released", page)

    def test_the_error_of_the_private_mean_is_not_found_in_uniform_noise(self):
        np.save(self.path("even.npy"), np.random.default_rng(2).uniform(size=(300, 10)))
        first = []
        for seed in range(12):
            said, _ = self.fit("pca", "even.npy", "--range", "0:1", "--center", "private", "--components", 3, "--epsilon", 1,
                               "--delta", 1e-6, seed=seed)
            first.append(said["verdicts"]["standing"][0])
        self.assertEqual(first, ["noise"] * 12)

    def test_a_covariance_judges_all_its_directions(self):
        rows = self.spiked()[1]
        said, model = self.fit("covariance", rows, "--range", "-12:12", "--epsilon", 2, "--delta", 1e-6)
        self.assertEqual(len(said["verdicts"]["standing"]), 12)
        self.assertEqual(model["components_deviation"].shape, (12, 12))
        self.assertFalse(any("no larger than noise" in warning for warning in said["warnings"]))

    def views(self, n, shared):
        """Two views of 5 columns each, of which the first ones share something; means far from the middle of the range."""
        random = np.random.default_rng(7)
        rows = random.normal(size=(n, 10)) / 4
        common = random.normal(size=n) / 4
        if shared:
            rows[:, 0] = 0.95 * common + 0.3 * rows[:, 0]
            rows[:, 5] = 0.95 * common + 0.3 * rows[:, 5]
        np.save(self.path("views.npy"), np.clip(rows + 2, 0, 4))
        return ["cca", "views.npy", "--range", "0:5", "--x-columns", "1-5", "--y-columns", "6-10", "--center", "private",
                "--row-bound", "auto", "--components", 2, "--epsilon", 2, "--delta", 1e-6]

    def test_independent_columns_have_no_canonical_correlation(self):
        for seed in range(4):
            said, _ = self.fit(*self.views(10000, False), seed=seed)
            self.assertEqual(said["verdicts"]["standing"], ["noise", "noise"])

    def test_a_canonical_correlation_that_is_there_holds(self):
        said, model = self.fit(*self.views(20000, True))
        self.assertEqual(said["verdicts"]["standing"], ["holds", "noise"])
        truth = 0.95 ** 2 / (0.95 ** 2 + 0.3 ** 2)
        self.assertLess(model["correlations_low"][0], truth)
        self.assertGreater(model["correlations_high"][0], truth)
        self.assertEqual(model["x_weights_deviation"].shape, (5, 2))
        self.assertEqual(model["y_weights_deviation"].shape, (5, 2))

    def test_independent_columns_with_default_options(self):
        """The issue's own case: the mean lies far from the middle of the range, and nobody says how to centre."""
        random = np.random.default_rng(8)
        np.save(self.path("apart.npy"), np.clip(random.normal(size=(5000, 8)) / 4 + 2, 0, 4))
        for seed in range(6):
            said, _ = self.fit("cca", "apart.npy", "--range", "0:5", "--x-columns", "1-4", "--y-columns", "5-8", "--components", 1,
                               "--epsilon", 1, "--delta", 1e-6, seed=seed)
            self.assertEqual(said["verdicts"]["standing"], ["noise"], seed)

    def classes(self, n, apart):
        random = np.random.default_rng(9)
        labels = random.integers(0, 3, size=n)
        rows = random.normal(size=(n, 6)) / 4
        rows[:, 1] += apart * (labels - 1)
        lines = [",".join(f"{x:.4f}" for x in row) + "," + "abc"[label] for row, label in zip(np.clip(rows, -2, 2), labels)]
        self.write("classes.csv", "u,v,w,x,y,z,kind\n" + "\n".join(lines) + "\n")
        schema = "".join(f'[[column]]\nname = "{name}"\nkind = "numeric"\nlower = -2\nupper = 2\n' for name in "uvwxyz")
        self.write("classes.toml", schema + '[[column]]\nname = "kind"\nkind = "categorical"\nvalues = ["a", "b", "c"]\n')
        return ["fda", "classes.csv", "--schema", "classes.toml", "--label", "kind", "--components", 2, "--epsilon", 2, "--delta",
                1e-6]

    def test_discriminant_directions_are_judged(self):
        said, model = self.fit(*self.classes(6000, 0.3))
        self.assertEqual(said["verdicts"]["standing"][0], "holds")
        self.assertEqual(said["verdicts"]["standing"][1], "noise")
        said, _ = self.fit(*self.classes(6000, 0), seed=2)
        self.assertEqual(said["verdicts"]["standing"], ["noise", "noise"])

    def test_a_category_without_people_is_no_finding(self):
        random = np.random.default_rng(11)
        n = 8000
        kinds = random.integers(0, 3, size=n)
        x = random.uniform(-1, 1, size=(n, 2))
        y = np.clip(x[:, 0] + 0.1 * random.normal(size=n), -1.5, 1.5)
        lines = [f"{a:.4f},{b:.4f},{'pqr'[k]},{r:.4f}" for (a, b), k, r in zip(x, kinds, y)]
        self.write("people.csv", "a,b,kind,y\n" + "\n".join(lines) + "\n")
        schema = "".join(f'[[column]]\nname = "{name}"\nkind = "numeric"\nlower = {low}\nupper = {high}\n'
                         for name, low, high in (("a", -1, 1), ("b", -1, 1), ("y", -1.5, 1.5)))
        schema += '[[column]]\nname = "kind"\nkind = "categorical"\nvalues = ["p", "q", "r", "nobody", "none"]\n'
        self.write("people.toml", schema)
        for seed in range(4):
            said, model = self.fit("sir", "people.csv", "--schema", "people.toml", "--response", "y", "--components", 1,
                                   "--epsilon", 2, "--delta", 1e-6, seed=seed)
            manifest = json.loads(bytes(model["manifest.json"]))
            cosine = np.cos(np.radians(model["angle"][0]))
            finding = cosine * np.abs(model["directions"][:, 0]) > 1.96 * model["directions_deviation"][:, 0]
            found = [name for name, is_one in zip(manifest["features"], finding) if is_one]
            self.assertIn("a", found)
            self.assertFalse([name for name in found if "nobody" in name or "none" in name], found)

    def test_the_sir_of_the_readme_finds_no_category_without_people(self):
        """Nobody of examples/patients.csv has `sex=other`: it must not be a finding, whatever the noise."""
        command = next(line for line in (SOURCE / "README.md").read_text().splitlines() if "`./eigenveil sir " in line)
        words = command.split("`./eigenveil ")[1].split("`")[0].split()
        words = [str(SOURCE / word) if word.startswith("examples/") else word for word in words]
        for seed in range(8):
            said, model = self.fit(*words[:words.index("--out")], seed=seed)
            features = json.loads(bytes(model["manifest.json"]))["features"]
            i = features.index("sex=other")
            strength = np.cos(np.radians(model["angle"])) * np.abs(model["directions"][i])
            self.assertFalse((strength > 1.96 * model["directions_deviation"][i]).any(), seed)

    @unittest.skipUnless(os.path.exists(os.path.join(DATA, "hapmap3/hm3.bed")), "SKIPPED: 1 case, hapmap3 is not in ../shared/data")
    def test_genotypes_are_called_noise(self):
        """957 people and 14,079 sites: what comes out at epsilon 1 is the noise, and is said to be."""
        with open(os.path.join(DATA, "hapmap3/hm3.fam")) as file:
            people = len(file.readlines())
        bed = np.fromfile(os.path.join(DATA, "hapmap3/hm3.bed"), dtype=np.uint8)[3:].reshape(-1, (people + 3) // 4)
        codes = np.stack([bed >> shift & 3 for shift in (0, 2, 4, 6)], axis=2).reshape(len(bed), -1)[:, :people].T
        np.save(self.path("sites.npy"), np.array([0, 1, 1, 2], dtype=np.float32)[codes])  # a missing one counts as the middle
        self.assertEqual(codes.shape, (957, 14079))
        for method in ("power", "adaptive-power"):  # a Gram matrix of so many columns takes 12 GB
            args = ["pca", "sites.npy", "--range", "0:2", "--components", 2, "--epsilon", 1, "--delta", 1e-6, "--method", method]
            asked = self.run_program(*args, "--no-ledger", expect=USAGE, yes=False).stderr
            self.assertIn("the noise will hide everything", " ".join(asked.split()))
            said, _ = self.fit(*args)
            self.assertRegex(" ".join(said["warnings"]), "2 of the 2 directions are no larger than noise alone would give")
            if method == "power":
                self.assertEqual(said["verdicts"]["standing"], ["noise", "noise"])

    @unittest.skipUnless(os.path.exists(os.path.join(DATA, "adult.data")), "SKIPPED: adult.data is not in ../shared/data")
    def test_what_holds_in_adult_at_a_small_budget_is_the_truth(self):
        columns = {0: (17, 90), 2: (0, 1e6), 4: (1, 16), 10: (0, 1e5), 11: (0, 5000), 12: (0, 99)}
        with open(os.path.join(DATA, "adult.data")) as file:
            lines = [line.split(", ") for line in file if line.count(",") == 14]
        rows = np.array([[(min(max(float(line[c]), low), high) - low) / (high - low) for c, (low, high) in columns.items()]
                         for line in lines])
        np.save(self.path("adult.npy"), rows)
        centred = rows - rows.mean(axis=0)
        truth = np.linalg.svd(centred, full_matrices=False)[2]
        for seed in range(6):
            said, model = self.fit("pca", "adult.npy", "--range", "0:1", "--center", "private", "--components", 5, "--epsilon",
                                   0.2, "--delta", 1e-6, seed=seed)
            for i, standing in enumerate(said["verdicts"]["standing"]):
                if standing == "holds":
                    self.assertGreater((truth[i] @ model["components"][i]) ** 2, 0.8, (seed, i))


if __name__ == "__main__":
    unittest.main()
