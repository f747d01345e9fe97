"""Studies of several sites, with real processes: what is released, charged and refused, and which faults they survive."""
import hashlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import time
import unittest

import numpy as np

from federation import PCA, POWER, FederationTest, go_on, stop
from fault_proxy import FaultProxy
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
        self.assertGreater(abs(self.model()["components"][0][0]), 0.98)

    def test_pca_gram_secure_with_a_private_mean(self):
        self.check([*PCA, "--center", "private"], "components", *SECURE)
        self.assertGreater(abs(self.model()["components"][0][0]), 0.98)

    def test_pca_adaptive_power_secure(self):
        self.check(POWER, "components", *SECURE)
        self.assertGreater(abs(self.model()["components"][0][0]), 0.97)

    def test_pca_sparse_power(self):
        self.check(["pca", "--components", 1, "--method", "sparse-power", "--sparsity", 2, "--rounds", 3], "components")

    def test_pca_power(self):
        self.check(["pca", "--components", 1, "--method", "power", "--rounds", 3], "components")

    def test_pca_spiked_with_a_private_bound(self):
        self.check(["pca", "--components", 1, "--method", "spiked", "--row-bound", "private"], "noise_variance")

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

    def test_add_remove_one_hides_each_sites_number_of_rows(self):
        self.study([*PCA, "--adjacency", "replace-one"])
        for name in ("north", "south"):
            self.run_program("ledger", "create", "rows2", "--epsilon", 3, "--delta", 1e-6, "--adjacency",
                             "add-remove-one", "--ledger", f"{name}.db")
        # The ledgers' data set counts replace-one neighbours: the study is refused at the sites.
        running = [self.site(name) for name in ("north", "south")]
        coordinator = self.coordinator([*PCA, "--adjacency", "add-remove-one"], "--journal", "other",
                                       sites=["north", "south"])
        self.assertEqual(coordinator.wait(), BAD_INPUT)
        for site in running:
            self.assertNotEqual(site.wait(), 0)
            self.assertIn("replace-one", site.text())


class People(FederationTest):
    def test_a_person_reads_the_plan_and_says_yes(self):
        site = self.site("north", approve="ask")
        coordinator = self.coordinator(sites=["north"])
        site.wait_for("Take part? [yes/no]")
        for words in ("pca --method gram --components 2", "times what one row can change", "epsilon 1 at delta 1e-06",
                      "charged to data set 'rows'", "covariance"):
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
        # The other had accepted: it was never asked, and can have its budget back.
        self.assertEqual(sites[1].wait(), 0, sites[1].text())
        self.assert_charged_once("south", state="unused")
        self.assertFalse((self.folder / "model.npz").exists())


class Policies(FederationTest):
    def refused(self, sentence, code=BAD_INPUT, estimator=PCA, flags=(), certificate="coordinator", **config):
        site = self.site("north", "--give-up", 3, **config)
        coordinator = self.coordinator(estimator, *flags, sites=["north"], certificate=certificate)
        self.assertEqual(site.wait(), code, site.text())
        lines = [line for line in site.text().splitlines() if sentence in line]
        self.assertTrue(lines, site.text())
        self.assertEqual(coordinator.wait(), code, coordinator.text())
        self.assertFalse((self.folder / "model.npz").exists())
        self.assert_uncharged("north")
        return coordinator

    def test_epsilon_above_the_cap(self):
        told = self.refused("above this site's limit of 0.5 a study", BUDGET, most_epsilon=0.5)
        self.assertIn("above this site's limit of 0.5 a study", told.text())

    def test_an_estimator_that_is_not_allowed(self):
        self.refused("does not allow the estimator 'pca'", estimators=["cca", "fda"])

    def test_noise_below_the_floor(self):
        self.refused("below this site's floor of 10", BUDGET, least_noise=10)

    def test_bounds_that_differ(self):
        self.refused("its bounds of column 'a' differ from this site's schema",
                     flags=["--columns", "a,b", "--range", "-9:9"])

    def test_a_column_that_is_not_in_the_schema(self):
        self.refused("uses the column 'x'", flags=["--columns", "x,a", "--range", "-8:8"])

    def test_bad_data_stays_at_the_site(self):
        lines = (self.folder / "north.csv").read_text().splitlines()
        lines[17] = lines[17].replace(lines[17].split(",")[2], "secret-7")
        self.write("north.csv", "\n".join(lines) + "\n")
        told = self.refused("secret-7")
        self.assertNotIn("secret", told.text())
        self.assertIn("its data could not be used", told.text())

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
        sites = [self.site("north"), self.site("south")]
        coordinator = self.coordinator(sites=["north"])
        self.assert_finished(coordinator, sites[0])
        self.assertEqual(sites[1].wait(), BAD_INPUT)
        self.assertIn("'south' is not one of the sites of this study", sites[1].text())
        self.assert_uncharged("south")


class Certificates(FederationTest):
    def unreachable(self, sentence, coordinator_certificate="coordinator", authority=None, **config):
        if authority:
            self.authority = authority
        coordinator = self.coordinator(sites=["north"], certificate=coordinator_certificate)
        coordinator.wait_for("waiting at port")
        site = self.site("north", "--give-up", 1, **config)
        self.assertEqual(site.wait(), BAD_INPUT, site.text())
        self.assertIn(sentence, site.text())
        self.assert_uncharged("north")
        self.assertIsNone(coordinator.popen.poll())
        coordinator.kill()
        self.assertFalse((self.folder / "model.npz").exists())

    def other_authority(self):
        self.run_program("federation", "init", "other")
        self.run_program("federation", "issue", "other", "north")
        return self.folder / "other"

    def test_a_coordinator_under_another_name_is_unknown(self):
        self.unreachable("carries the name", coordinator_certificate="south")

    def test_another_authority_for_the_site(self):
        other = self.other_authority()
        self.unreachable("another authority", tls={"authority": other / "ca.crt"})

    def test_a_sites_certificate_of_another_authority(self):
        other = self.other_authority()
        self.unreachable("refused our certificate", tls={"certificate": other / "north.crt", "key": other / "north.key"})

    def test_an_expired_certificate(self):
        self.run_program("federation", "init", "short")
        for name in ("coordinator", "north"):
            self.run_program("federation", "issue", "short", name, *(["--valid-seconds", 1] if name == "coordinator" else []))
        time.sleep(2.1)
        self.unreachable("expired", authority=self.folder / "short")

    def test_nobody_listens(self):
        site = self.site("north", "--give-up", 1)
        self.assertEqual(site.wait(), BAD_INPUT)
        self.assertIn("nobody listens", site.text())

    def test_a_plain_text_client_gets_nothing_and_harms_nothing(self):
        coordinator = self.coordinator(sites=["north"])
        coordinator.wait_for("waiting at port")
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(200))
            s.settimeout(5)
            try:
                self.assertNotIn(b"eigenveil", s.recv(4096))
            except ConnectionError:
                pass
        self.assert_finished(coordinator, self.site("north"))


class Faults(FederationTest):
    def restarted(self, name, times):
        """A site that is killed after each of its answers, and once before the first."""
        site = self.site(name)
        site.wait_for("accepted and charged")
        for answered in range(1, times + 1):
            site.kill()
            site = self.site(name)
            while len(list((self.folder / f"state-{name}").glob("*/answer-*"))) < answered:
                time.sleep(0.001)
        site.kill()
        self.site(name)

    def test_a_site_killed_and_restarted_in_every_state(self):
        for flags in ([], SECURE):
            with self.subTest(flags=flags):
                self.setUp()
                others = [self.site(name) for name in ("south", "west")]
                coordinator = self.coordinator(POWER, *flags)
                self.restarted("north", 6)
                self.assert_finished(coordinator, *others)
                self.assert_charged_once(*self.names)
                answers = sorted(p.name for p in (self.folder / "state-north").glob("*/answer-*"))
                self.assertEqual(len(answers), 6)
                self.assertGreater(abs(self.model()["components"][0][0]), 0.9)

    def test_the_coordinator_killed_and_restarted_after_every_total(self):
        sites = [self.site(name) for name in self.names]
        kept = {}
        for total in range(1, 7):
            coordinator = self.coordinator(POWER, *SECURE)
            path = self.folder / "study" / f"total-{total:06}.bin"
            while not path.exists() and coordinator.popen.poll() is None:
                time.sleep(0.002)
            coordinator.kill()
            for file in (self.folder / "study").glob("total-*"):
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                self.assertEqual(kept.setdefault(file.name, digest), digest)
            (self.folder / "model.npz").unlink(missing_ok=True)
        coordinator = self.coordinator(POWER, *SECURE)
        self.assertEqual(coordinator.wait(), 0, coordinator.text())
        self.assertGreater(abs(self.model()["components"][0][0]), 0.9)
        self.assert_charged_once(*self.names)
        for site in sites:  # each hears of the end from the last coordinator, or waits for one in vain
            site.kill()
        for file in (self.folder / "study").glob("total-*"):
            self.assertEqual(kept.setdefault(file.name, hashlib.sha256(file.read_bytes()).hexdigest()),
                             hashlib.sha256(file.read_bytes()).hexdigest())

    def test_latency_drops_and_cuts(self):
        with FaultProxy("127.0.0.1", self.port) as proxy:
            sites = [self.site("north", port=proxy.port), self.site("south")]
            coordinator = self.coordinator(POWER, *SECURE, sites=["north", "south"])
            sites[0].wait_for("accepted and charged")
            proxy.delay(0.3)
            for answered in range(1, 4):
                sites[0].wait_for("Answered", times=answered)
                proxy.drop_connections()
            proxy.delay(0)
            proxy.cut_after(1000)
            self.assert_finished(coordinator, *sites)
            self.assertGreater(proxy.connections, 3)
        self.assert_charged_once("north", "south")

    def test_a_partition_of_thirty_seconds(self):
        with FaultProxy("127.0.0.1", self.port) as proxy:
            sites = [self.site("north", port=proxy.port), self.site("south")]
            coordinator = self.coordinator(POWER, "--patience", 120, sites=["north", "south"])
            sites[0].wait_for("Answered", times=2)
            proxy.partition(True)
            time.sleep(30)
            self.assertIsNone(coordinator.popen.poll())
            proxy.partition(False)
            self.assert_finished(coordinator, *sites)
        self.assert_charged_once("north", "south")

    def test_a_slow_site_is_waited_for(self):
        sites = [self.site(name) for name in ("north", "south")]
        coordinator = self.coordinator(POWER, sites=["north", "south"])
        sites[0].wait_for("Answered")
        stop(sites[0])
        time.sleep(4)
        self.assertIsNone(coordinator.popen.poll())
        go_on(sites[0])
        self.assert_finished(coordinator, *sites)

    def with_a_far_site(self, *flags):
        """North is 0.2 s away, so that a test can do something between two rounds."""
        coordinator = self.coordinator(POWER, "--patience", 6, *flags)
        coordinator.wait_for("waiting at port")
        proxy = FaultProxy("127.0.0.1", self.port)
        self.addCleanup(proxy.stop)
        proxy.delay(0.2)
        sites = {name: self.site(name, port=proxy.port if name == "north" else None) for name in self.names}
        return coordinator, sites, proxy

    def test_a_site_that_stays_away_ends_the_study_unless_fewer_will_do(self):
        for enough in (False, True):
            with self.subTest(enough=enough):
                self.setUp()
                coordinator, sites, _ = self.with_a_far_site(*(["--min-sites", 2] if enough else []))
                sites["north"].wait_for("Answered", times=2)
                sites["north"].kill()
                if enough:
                    self.assert_finished(coordinator, sites["south"], sites["west"])
                    self.assertEqual(self.manifest()["rows"], 4000)
                    self.assertIn("Without 'north'", coordinator.text())
                else:
                    self.assertEqual(coordinator.wait(), BAD_INPUT, coordinator.text())
                    self.assertIn("north", coordinator.text())
                    self.assertFalse((self.folder / "model.npz").exists())
                self.assert_charged_once(*self.names)

    def test_a_site_lost_from_a_masked_round_costs_a_spare_round(self):
        for spares in (0, 1):
            with self.subTest(spares=spares):
                self.setUp()
                coordinator, sites, proxy = self.with_a_far_site(*SECURE, "--tolerate", 1,
                                                                 *(["--spare-rounds", 1] if spares else []))
                sites["north"].wait_for("Answered", times=3)
                proxy.partition(True)  # the fourth ask, a masked one, does not arrive, or its answer does not
                sites["north"].kill()
                if spares:
                    self.assert_finished(coordinator, sites["south"], sites["west"])
                    paid = {e["label"]: e for e in self.reservations("south")[0]["events"]}
                    self.assertIn("spare rounds", paid)
                    self.assertGreater(abs(self.model()["components"][0][0]), 0.9)
                else:
                    self.assertEqual(coordinator.wait(), BAD_INPUT, coordinator.text())
                    self.assertIn("too few sites are left", coordinator.text())
                    self.assertFalse((self.folder / "model.npz").exists())
                self.assert_charged_once(*self.names)

    def test_another_journal_or_other_options_do_not_continue_a_study(self):
        site = self.site("north")
        coordinator = self.coordinator(POWER, sites=["north"])
        site.wait_for("Answered")
        coordinator.kill()
        coordinator = self.coordinator(PCA, sites=["north"])
        self.assertEqual(coordinator.wait(), USAGE)
        self.assertIn("the journal belongs to another study", coordinator.text())
        coordinator = self.coordinator(POWER, sites=["north"])
        self.assert_finished(coordinator, site)
        self.assert_charged_once("north")


class Captures(FederationTest):
    def test_nothing_on_the_wire_is_a_row_or_an_answer(self):
        marker = "7.654321"
        lines = (self.folder / "north.csv").read_text().splitlines()
        lines[5] = ",".join([marker, *lines[5].split(",")[1:]])
        self.write("north.csv", "\n".join(lines) + "\n")
        with FaultProxy("127.0.0.1", self.port, record=True) as proxy:
            sites = [self.site("north", port=proxy.port), self.site("south")]
            self.assert_finished(self.coordinator(PCA, *SECURE, sites=["north", "south"]), *sites)
            self.assertGreater(len(proxy.captured.to_target), 1000)
            for secret in (marker.encode(), np.float64(marker).tobytes(), np.float64(float(marker) / 8).tobytes()):
                self.assertNotIn(secret, proxy.captured)
                for file in self.folder.glob("study/*"):
                    self.assertNotIn(secret, file.read_bytes())
            # What left is masked, and encrypted besides; the journal has totals alone.
            sent = next((self.folder / "state-north").glob("*/answer-000001.bin")).read_bytes()[-16 * 21:]
            self.assertNotIn(sent, proxy.captured)
            self.assertNotIn(sent, (self.folder / "study" / "total-000001.bin").read_bytes())
            values = [int.from_bytes(sent[i:i + 16], "little", signed=True) for i in range(0, len(sent), 16)]
            # An unmasked sum stays below rows x 2^40 x 2^shift; a mask is uniform over 2^128.
            self.assertGreater(np.median([abs(v) / 2**90 for v in values]), 1)


@unittest.skipUnless(os.geteuid() == 0, "network namespaces need root")
class Namespaces(FederationTest):
    def setUp(self):
        super().setUp()
        tag = f"ev{os.getpid() % 100000}"
        self.space, self.outer, self.inner = tag, tag + "o", tag + "i"
        steps = [f"ip netns add {self.space}", f"ip link add {self.outer} type veth peer name {self.inner}",
                 f"ip link set {self.inner} netns {self.space}", f"ip addr add 10.213.7.1/30 dev {self.outer}",
                 f"ip link set {self.outer} up", f"ip netns exec {self.space} ip addr add 10.213.7.2/30 dev {self.inner}",
                 f"ip netns exec {self.space} ip link set {self.inner} up"]
        self.addCleanup(lambda: subprocess.run(["ip", "netns", "del", self.space], capture_output=True))
        self.addCleanup(lambda: subprocess.run(["ip", "link", "del", self.outer], capture_output=True))
        for step in steps:
            done = subprocess.run(step.split(), capture_output=True, text=True)
            if done.returncode != 0:
                self.skipTest(f"no network namespaces here: {step}: {done.stderr.strip()}")

    def test_a_link_that_goes_down_and_comes_back(self):
        site = self.site("north", host="10.213.7.1", prefix=["ip", "netns", "exec", self.space])
        coordinator = self.coordinator(POWER, *SECURE, sites=["north", "south"], host="10.213.7.1")
        site.wait_for("accepted and charged")
        subprocess.run(["ip", "link", "set", self.outer, "down"], check=True)
        south = self.site("south", host="10.213.7.1")
        time.sleep(3)
        self.assertIsNone(coordinator.popen.poll())
        self.assertNotIn("Answered 6", site.text())
        subprocess.run(["ip", "link", "set", self.outer, "up"], check=True)
        subprocess.run(["ip", "addr", "replace", "10.213.7.1/30", "dev", self.outer], check=True)
        self.assert_finished(coordinator, site, south)
        self.assert_charged_once("north", "south")


class Tutorial(FederationTest):
    def test_the_commands_of_the_tutorial_work(self):
        page = (SOURCE / "docs" / "federation.md").read_text().replace("127.0.0.1:7443", f"127.0.0.1:{self.port}")
        shutil.copytree(SOURCE / "examples", self.folder / "examples")
        for name in ("north", "south"):
            (self.folder / f"{name}.db").unlink()
        toml = re.search(r"```toml\n(.*?)```", page, re.S).group(1)
        self.write("north.toml", toml)
        self.write("south.toml", toml.replace("north", "south"))
        commands = [shlex.split(line)[1:] for block in re.findall(r"```\n(.*?)```", page, re.S)
                    for line in block.splitlines() if line.startswith("./eigenveil ")]
        self.assertGreater(len(commands), 8)
        sites = []
        for command in commands:
            if command[0] == "demo":
                continue
            if command[0] == "site":
                sites.append(self.start(command, f"site{len(sites)}.log"))
            elif command[0] == "coordinate":
                coordinator = self.start(command, "coordinator.log")
            else:
                self.run_program(*command)
        for site in sites:
            site.wait_for("Take part? [yes/no]")
            site.answer("yes")
        self.assert_finished(coordinator, *sites)
        self.assertTrue((self.folder / "study.npz").exists())
        for line in ("  Answer     covariance: Gaussian noise of 4.22 times what one row can change",
                     "  Costs      epsilon 1 at delta 1e-06 (replace-one), charged to data set 'patients'",
                     "  Secrecy    every answer has the full noise before it leaves, whatever the other sites do"):
            self.assertIn(line, page)
            self.assertIn(line, sites[0].text())


if __name__ == "__main__":
    unittest.main()
