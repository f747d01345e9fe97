# SPDX-License-Identifier: Apache-2.0
"""Studies of several sites, with real processes: what is released, charged and refused."""
import re
import shlex
import shutil
import unittest

from federation import PCA, POWER, FederationTest
from support import BAD_INPUT, BUDGET, SOURCE, USAGE

SECURE = ["--aggregation", "secure"]


class Studies(FederationTest):
    def study(self, estimator, *flags, sites=("north", "south")):
        running = [self.site(name) for name in sites]
        coordinator = self.coordinator(estimator, *flags, sites=sites)
        self.assert_finished(coordinator, *running)
        self.assert_charged_once(*sites)

    def check(self, estimator, array, *flags):
        self.study(estimator, *flags)
        self.assertIn(array, self.model())
        manifest = self.manifest()
        self.assertEqual(manifest["rows"], 4000)
        self.assertEqual(manifest["federation"]["sites"], ["north", "south"])
        events = [(e["label"], e.get("count", 1)) for e in manifest["events"]]
        for name in ("north", "south"):
            paid = [(e["label"], e.get("count", 1)) for e in self.reservations(name)[0]["events"]]
            self.assertEqual(paid, events)

    def test_pca_gram(self):
        self.check(PCA, "components")
        self.assert_close(0.98, sites=2)

    def test_pca_gram_secure_with_a_private_mean(self):
        self.check([*PCA, "--center", "private"], "components", *SECURE)
        self.assert_close(0.98, sites=2)

    def test_pca_adaptive_power_secure(self):
        self.check(POWER, "components", *SECURE)
        self.assert_close(0.97, sites=2)

    def test_pca_sparse_power(self):
        self.check(["pca", "--components", 1, "--method", "sparse-power", "--sparsity", 2, "--rounds", 3], "components")

    def test_pca_power(self):
        self.check(["pca", "--components", 1, "--method", "power", "--rounds", 3], "components")

    def test_pca_spiked_with_a_private_bound(self):
        self.check(["pca", "--components", 1, "--method", "spiked", "--row-bound", "auto"], "noise_variance")

    def test_covariance(self):
        self.check(["covariance"], "components", *SECURE)

    def test_cca_once(self):
        self.check(["cca", "--x-columns", "a,b,c", "--y-columns", "d,e,f", "--components", 1], "correlations")
        self.assertAlmostEqual(self.model()["correlations"][0], 0.9, delta=0.35)

    def test_cca_each_step(self):
        self.check(["cca", "--x-columns", "a,b,c", "--y-columns", "d,e,f", "--components", 1, "--noise", "each-step",
                    "--rounds", 3], "correlations", *SECURE)

    def test_fda(self):
        self.check(["fda", "--label", "label", "--components", 1], "scalings", "--schema", "schema.toml")

    def test_sir_with_private_slices(self):
        self.check(["sir", "--response", "a", "--slices", "private:3", "--response-range=-8:8", "--components", 1],
                   "directions")

    def test_a_model_based_guarantee_is_refused_before_anyone_is_asked(self):
        coordinator = self.coordinator(["pca", "--components", 1, "--method", "spiked", "--guarantee", "model"],
                                       sites=["north"])
        self.assertEqual(coordinator.wait(), USAGE, coordinator.text())
        self.assertIn("--guarantee strict", coordinator.text())
        self.assert_uncharged("north")

    def test_a_pilot_is_refused_before_anyone_is_asked(self):
        coordinator = self.coordinator(["pca", "--components", 1, "--method", "pilot"], sites=["north"])
        self.assertEqual(coordinator.wait(), USAGE, coordinator.text())
        self.assertIn("--method pilot is no way that sites of a federation know", coordinator.text())
        self.assert_uncharged("north")

    def test_add_remove_one_hides_each_sites_number_of_rows(self):
        self.study([*PCA, "--adjacency", "replace-one"])
        for name in ("north", "south"):
            self.run_program("ledger", "create", "rows2", "--epsilon", 3, "--delta", 1e-6, "--adjacency",
                             "add-remove-one", "--ledger", f"{name}.db")
        # The ledgers' data set counts replace-one neighbours: the study is refused at the sites.
        running = [self.site(name) for name in ("north", "south")]
        coordinator = self.coordinator([*PCA, "--adjacency", "add-remove-one"], "--journal", "other",
                                       sites=["north", "south"])
        self.assertEqual(coordinator.wait(), BUDGET)
        for site in running:
            self.assertNotEqual(site.wait(), 0)
            self.assertIn("replace-one", site.text())


class People(FederationTest):
    budget, epsilon = 3, 1

    def test_a_person_reads_the_plan_and_says_yes(self):
        site = self.site("north", approve="ask")
        coordinator = self.coordinator(sites=["north"])
        site.wait_for("Take part? [yes/no]")
        for words in ("pca, method gram, components 2", "times what one row can change", "epsilon 1 at delta 0.000001",
                      "data set 'rows'", "covariance"):
            self.assertIn(words, site.text())
        self.assert_uncharged("north")
        site.answer("perhaps")
        site.wait_for("yes or no")
        site.answer("yes")
        self.assert_finished(coordinator, site)
        self.assert_charged_once("north")

    def test_a_person_who_says_no_is_charged_nothing(self):
        sites = [self.site("north", approve="ask"), self.site("south")]
        coordinator = self.coordinator(sites=["north", "south"])
        sites[0].wait_for("Take part? [yes/no]")
        sites[0].answer("no")
        self.assertEqual(coordinator.wait(), BUDGET, coordinator.text())
        self.assertIn("north", coordinator.text())
        self.assertEqual(sites[0].wait(), BUDGET)
        self.assert_uncharged("north")
        # The other had accepted. A bad row would have made it refuse, so that said something: its charge stays.
        self.assertEqual(sites[1].wait(), 0, sites[1].text())
        self.assert_charged_once("south")
        self.assertFalse((self.folder / "model.npz").exists())


class Policies(FederationTest):
    budget, epsilon = 3, 1

    def refused(self, sentence, code=BAD_INPUT, estimator=PCA, flags=(), certificate="coordinator", **config):
        coordinator = self.coordinator(estimator, *flags, sites=["north"], certificate=certificate)
        coordinator.wait_for("waiting at port")
        site = self.site("north", "--give-up", 20, **config)
        self.assertEqual(site.wait(), code, site.text())
        lines = [line for line in site.text().splitlines() if sentence in line]
        self.assertTrue(lines, site.text())
        self.assertEqual(coordinator.wait(), code, coordinator.text())
        self.assertFalse((self.folder / "model.npz").exists())
        self.assert_uncharged("north")
        return coordinator

    def test_epsilon_above_the_cap(self):
        told = self.refused("above this site's limit of 0.5", BUDGET, most_epsilon=0.5)
        self.assertIn("above this site's limit of 0.5", told.text())

    def test_a_question_that_is_not_allowed(self):
        self.refused("does not allow the question 'class_sums'", flags=("--row-bound", "range"), queries=["class_counts"])

    def test_noise_below_the_floor(self):
        self.refused("below this site's floor of 10", BUDGET, least_noise=10)

    def test_bounds_that_differ(self):
        self.refused("its bounds or values of column 'a' differ from this site's schema",
                     flags=["--columns", "a,b", "--range", "-9:9"])

    def test_a_column_that_is_not_in_the_schema(self):
        self.refused("uses the column 'x'", flags=["--columns", "x,a", "--range", "-8:8"])

    def test_bad_data_stays_at_the_site(self):
        lines = (self.folder / "north.csv").read_text().splitlines()
        lines[17] = lines[17].replace(lines[17].split(",")[2], "secret-7")
        self.write("north.csv", "\n".join(lines) + "\n")
        site = self.site("north")
        told = self.coordinator(sites=["north"])
        self.assertEqual(site.wait(), BAD_INPUT, site.text())
        self.assertIn("secret-7", site.text())
        self.assertEqual(told.wait(), BUDGET)
        self.assert_charged_once("north")  # that they cannot be used is something about the rows
        self.assertNotIn("secret", told.text())
        self.assertIn("does not take part in the study", told.text())

    def test_a_second_study_beyond_the_budget(self):
        running = self.site("north")
        self.assert_finished(self.coordinator(PCA, sites=["north"], epsilon=2.5), running)
        running = self.site("north", log="again.log")
        coordinator = self.coordinator(PCA, "--journal", "second", sites=["north"], epsilon=2.5, log="second.log")
        self.assertEqual(running.wait(), BUDGET, running.text())
        self.assertIn("does not allow this release", running.text())
        self.assertEqual(coordinator.wait(), BUDGET)
        self.assertNotIn("has been spent", coordinator.text())  # the ledger's figures are the site's own
        self.assert_charged_once("north")

    def test_a_site_that_is_not_in_the_study(self):
        coordinator = self.coordinator(sites=["north"])
        coordinator.wait_for("waiting at port")
        stranger = self.site("south", "--give-up", 2)
        self.assertEqual(stranger.wait(), BAD_INPUT)
        self.assert_finished(coordinator, self.site("north"))
        self.assert_uncharged("south")


class Tutorial(FederationTest):
    """test_readme runs the page; here a person is asked, and reads what the page shows."""

    def test_a_person_is_asked_in_the_words_of_the_page(self):
        page = (SOURCE / "docs" / "federation.md").read_text().replace("127.0.0.1:7443", f"127.0.0.1:{self.port}")
        shutil.copytree(SOURCE / "examples", self.folder / "examples")
        for name in ("north", "south"):
            for file in self.folder.glob(f"{name}.db*"):
                file.unlink()
        site_toml = re.search(r"<<END_OF_SITE\n(.*?)END_OF_SITE", page, re.S)[1]
        lines = [line.removesuffix(" &") for line in page.splitlines() if line.startswith("./eigenveil ")]
        commands = [shlex.split(line.replace(" --approve policy", ""))[1:] for line in lines]
        sites = []
        for command in commands:
            if command[0] in ("demo", "coordinate", "site"):
                continue
            self.run_program(*command)
        said = [self.run_program("federation", "show", f"ca/{name}.crt").stdout for name in ("north", "south", "coordinator")]
        keys = {re.search(r"name   (.*)", one)[1]: re.search(r"key    (.*)", one)[1] for one in said}
        for command in (one for one in commands if one[0] == "site"):
            name = command[command.index("--config") + 1].removesuffix(".toml")
            text = site_toml.replace('"north.', f'"{name}.').replace("state-north", f"state-{name}")
            text = re.sub(r"\$\(key (\w+)\)", lambda found: keys[found[1]], text)
            self.write(f"{name}.toml", text.replace("ca/north.crt", f"ca/{name}.crt"))
            sites.append(self.start(command, f"site{len(sites)}.log"))
        self.assertEqual(len(sites), 2)
        self.write("peers.toml", "".join(f'{name} = "{keys[name]}"\n' for name in ("north", "south")))
        coordinator = self.start(next(one for one in commands if one[0] == "coordinate"), "coordinator.log")
        for site in sites:
            site.wait_for("Take part? [yes/no]")
            site.answer("yes")
        self.assert_finished(coordinator, *sites)
        self.assertTrue((self.folder / "study.npz").exists())
        shown = re.search(r"```text\n(.*?)```", page, re.S).group(1).splitlines()
        for line in shown:
            if "..." not in line and "first digits" not in line:
                self.assertIn(line, sites[0].text())


class PeopleAtSites(FederationTest):
    """Sites whose rows belong to people: each names its own column."""

    missing = "error"

    def setUp(self):
        super().setUp()
        for name in ("north", "south"):
            lines = (self.folder / f"{name}.csv").read_text().splitlines()
            lines = [lines[0] + f",who_{name}", *(f"{line},{i // 4}" for i, line in enumerate(lines[1:]))]
            self.write(f"{name}.csv", "\n".join(lines) + "\n")

    def config(self, name, **given):
        path = super().config(name, **given)
        text = (self.folder / f"{name}.toml").read_text().replace('dataset = "rows"', f'dataset = "{self.dataset}"')
        return self.write(f"{name}.toml", f'person = "who_{name}"\nmissing_person = "{self.missing}"\n' + text)

    def test_a_study_protects_people(self):
        self.dataset = "people"
        for name in ("north", "south"):
            self.run_program("ledger", "create", "people", "--epsilon", self.budget, "--delta", 1e-6, "--person", f"who_{name}", "--ledger", f"{name}.db")
        for aggregation in ("local", "secure"):
            running = [self.site(name) for name in ("north", "south")]
            coordinator = self.coordinator([*PCA, "--people", "--aggregation", aggregation], "--journal", f"study-{aggregation}",
                                           sites=("north", "south"))
            self.assert_finished(coordinator, *running)
            self.assert_close(0.97, sites=2)
            manifest = self.manifest()
            self.assertEqual(manifest["people"], 1000)
            self.assertIn("one person's rows at one site", manifest["guarantee"])
            self.assertIn("whoever has rows at several has the guarantee of as many persons who act together", manifest["guarantee"])
            self.assertNotIn("one site only", manifest["guarantee"])

    def rows_count_up_to_so_many(self, adjacency):
        """500 people at each site with 4 rows each, which count as a half of a person with rows:8."""
        self.dataset = "people"
        for name in ("north", "south"):
            self.run_program("ledger", "create", "people", "--epsilon", self.budget, "--delta", 1e-6, "--person", f"who_{name}", "--adjacency", adjacency,
                             "--ledger", f"{name}.db")
        running = [self.site(name) for name in ("north", "south")]
        coordinator = self.coordinator([*PCA, "--people", "--person-weight", "rows:8", "--adjacency", adjacency], sites=("north", "south"))
        self.assert_finished(coordinator, *running)
        self.assert_close(0.97, sites=2)
        manifest = self.manifest()
        self.assertEqual(manifest["person"]["weight"], "rows:8")
        self.assertNotIn("people", manifest)
        self.assertAlmostEqual(manifest["noisy_people"], 500, delta=40)

    def test_rows_count_up_to_so_many(self):
        self.rows_count_up_to_so_many("replace-one")

    def test_rows_count_up_to_so_many_of_a_hidden_number(self):
        self.rows_count_up_to_so_many("add-remove-one")

    def test_a_site_reads_what_rows_count(self):
        self.dataset = "people"
        self.run_program("ledger", "create", "people", "--epsilon", self.budget, "--delta", 1e-6, "--person", "who_north", "--ledger", "north.db")
        site = self.site("north", approve="ask")
        coordinator = self.coordinator([*PCA, "--people", "--person-weight", "rows:8", "--max-rows-per-person", 3], sites=["north"])
        site.wait_for("Take part? [yes/no]")
        for words in ("one person's rows at one site", "'who_north'", "Ids are not compared", "1/max(8, m), of 3 kept by chance"):
            self.assertIn(words, " ".join(site.text().split()))
        site.answer("yes")
        self.assert_finished(coordinator, site)
        self.assertAlmostEqual(self.manifest()["noisy_people"], 500 * 3 / 8, delta=30)

    def test_rows_without_an_id(self):
        """What becomes of them is for the site to say; that they are there costs the charge."""
        self.dataset = "people"
        lines = (self.folder / "north.csv").read_text().splitlines()
        self.write("north.csv", "\n".join(line.rsplit(",", 1)[0] + "," if i in (5, 6) else line for i, line in enumerate(lines)) + "\n")
        self.run_program("ledger", "create", "people", "--epsilon", self.budget, "--delta", 1e-6, "--person", "who_north", "--ledger", "north.db")
        for mine, theirs, finished in (("error", "own", False), ("own", "error", False), ("own", "own", True), ("error", "error", False)):
            self.missing = mine
            site = self.site("north", "--give-up", 20, log=f"{mine}-{theirs}.log")
            coordinator = self.coordinator([*PCA, "--people", "--missing-person", theirs], "--journal", f"{mine}-{theirs}", "--patience", 20, sites=["north"],
                                           log=f"c-{mine}-{theirs}.log")
            self.assertEqual(coordinator.wait() == 0, finished, coordinator.text())
            if mine != theirs:
                self.assertIn("rows without an id", coordinator.text())
                self.assertEqual(self.charges("north"), [])
            elif finished:
                self.assertEqual(self.manifest()["people"], 500 + 2)
                self.assertEqual(self.charges("north"), ["answered"])
            site.kill()
        self.assertEqual(len(self.charges("north")), 2, "a row without an id is something about the rows: what was charged stays")
        self.assertNotIn("id is missing", coordinator.text())

    def charges(self, name):
        shown = self.run_json("ledger", "show", "people", "--ledger", f"{name}.db")
        return [r["state"] for r in shown["reservations"]]

    def test_an_id_is_no_feature(self):
        self.dataset = "rows"
        path = self.config("north")
        text = (self.folder / "north.toml").read_text().replace('person = "who_north"', 'person = "a"')
        self.write("north.toml", text)
        done = self.run_program("site", "serve", "--config", path, "--once", expect=BAD_INPUT)
        self.assertIn("says whose a row is", done.stderr)

    def test_a_budget_of_rows_does_not_pay_for_people(self):
        self.dataset = "rows"
        running = [self.site(name) for name in ("north", "south")]
        coordinator = self.coordinator([*PCA, "--people"], "--patience", 5, sites=("north", "south"))
        self.assertNotEqual(coordinator.wait(), 0)
        self.assert_uncharged("north", "south")
        for site in running:
            site.kill()


if __name__ == "__main__":
    unittest.main()
