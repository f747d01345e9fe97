# SPDX-License-Identifier: Apache-2.0
"""Faults that studies of several sites survive, with real processes: kills, bad networks, wrong certificates, captures."""
import os
import signal
import socket
import subprocess
import time
import unittest

import numpy as np

from fault_proxy import FaultProxy
from federation import MASKED, PCA, POWER, FederationTest, go_on, make_parties, records, stop
from support import BAD_INPUT, USAGE

SECURE = ["--aggregation", "secure"]


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
        make_parties(self.folder / "other", ["north"])
        return self.folder / "other"

    def test_a_site_cannot_pose_as_the_coordinator(self):
        coordinator = self.coordinator(sites=["north"], certificate="south")
        self.assertEqual(coordinator.wait(), BAD_INPUT, coordinator.text())
        self.assertIn("is the certificate of a site, not of a coordinator", coordinator.text())

    def test_another_authority_for_the_site(self):
        other = self.other_authority()
        self.unreachable("another authority", tls={"authority": other / "ca.crt"})

    def test_a_sites_certificate_of_another_authority(self):
        other = self.other_authority()
        self.unreachable("this site itself is missing or has another key", tls={"certificate": other / "north.crt", "key": other / "north.key"})

    def test_an_expired_certificate(self):
        self.pins = make_parties(self.folder / "short", self.names, coordinator_validity=["--valid-seconds", 1])
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
            while len(self.answers(name)) < answered:
                time.sleep(0.001)
        site.kill()
        self.site(name)

    def test_a_site_killed_and_restarted_in_every_state(self):
        for flags in ([], SECURE):
            with self.subTest(flags=flags):
                self.setUp()
                others = [self.site(name) for name in ("south", "west")]
                coordinator = self.coordinator(POWER, *flags)
                self.restarted("north", 8)
                self.assert_finished(coordinator, *others)
                self.assert_charged_once(*self.names)
                self.assertEqual(len(self.answers("north")), 8)
                self.assert_close(0.9)

    def test_the_coordinator_killed_and_restarted_after_every_total(self):
        sites = [self.site(name) for name in self.names]
        kept = []
        path = self.folder / "study" / "totals.bin"
        for total in range(1, 9):
            coordinator = self.coordinator(POWER, *SECURE)
            while len(records(path)) < total and coordinator.popen.poll() is None:
                time.sleep(0.002)
            coordinator.kill()
            self.assertEqual(records(path)[:len(kept)], kept)
            kept = records(path)
            (self.folder / "model.npz").unlink(missing_ok=True)
        coordinator = self.coordinator(POWER, *SECURE)
        self.assertEqual(coordinator.wait(), 0, coordinator.text())
        self.assert_close(0.9)
        self.assert_charged_once(*self.names)
        for site in sites:  # each hears of the end from the last coordinator, or waits for one in vain
            site.kill()
        self.assertEqual(records(path)[:len(kept)], kept)
        self.assertEqual(len(records(path)), 8)

    def test_a_coordinator_that_is_told_to_stop_goes_on_later(self):
        sites = [self.site(name) for name in self.names]
        coordinator = self.coordinator(["pca", "--components", 1, "--method", "power", "--rounds", 40])
        coordinator.wait_for("asking: product 2")
        coordinator.signal(signal.SIGINT)
        self.assertEqual(coordinator.wait(), 128 + signal.SIGINT, coordinator.text())
        self.assertIn("The same command, with the same --journal, goes on", coordinator.text())
        again = self.coordinator(["pca", "--components", 1, "--method", "power", "--rounds", 40], log="again.log")
        self.assert_finished(again, *sites)
        self.assert_charged_once(*self.names)

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
        """North is 0.4 s away, so that a test can do something between two rounds."""
        coordinator = self.coordinator(MASKED, "--patience", 6, *flags)
        coordinator.wait_for("waiting at port")
        proxy = FaultProxy("127.0.0.1", self.port)
        self.addCleanup(proxy.stop)
        proxy.delay(0.4)
        sites = {name: self.site(name, port=proxy.port if name == "north" else None) for name in self.names}
        return coordinator, sites

    def test_a_site_that_stays_away_ends_the_study_unless_fewer_will_do(self):
        for enough in (False, True):
            with self.subTest(enough=enough):
                self.setUp()
                coordinator, sites = self.with_a_far_site(*(["--min-sites", 2] if enough else []))
                sites["north"].wait_for("Answered", times=2)
                sites["north"].kill()
                if enough:
                    self.assert_finished(coordinator, sites["south"], sites["west"])
                    self.assertEqual(self.manifest()["federation"]["missing"], ["north"])
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
                coordinator, sites = self.with_a_far_site(*SECURE, "--lost", 1,
                                                                 *(["--spare-rounds", 1] if spares else []))
                sites["north"].wait_for("Answered", times=2)
                sites["north"].kill()
                if spares:
                    self.assert_finished(coordinator, sites["south"], sites["west"])
                    paid = {e["label"]: e for e in self.reservations("south")[0]["events"]}
                    self.assertIn("spare rounds", paid)
                    # What the manifest says reproduces what was certified.
                    manifest = self.manifest()
                    self.assertIn("spare rounds", [e["label"] for e in manifest["events"]])
                    events = [flag for e in manifest["events"]
                              for flag in ("--event", f"{e['mechanism']},count={e['count']}")]
                    cost = self.run_json("account", *events, "--delta", manifest["delta"])
                    self.assertAlmostEqual(cost["epsilon"], manifest["certified_epsilon"], places=6)
                    self.assertIn("alone", manifest["guarantee"])
                    self.assert_close(0.9)
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
            sent = self.answers("north")[0][-8 * 21 - 4:-4]
            self.assertNotIn(sent, proxy.captured)
            self.assertNotIn(sent, (self.folder / "study" / "totals.bin").read_bytes())
            values = [int.from_bytes(sent[i:i + 8], "little", signed=True) for i in range(0, len(sent), 8)]
            # An unmasked sum stays below rows x 2^40 x 2^shift; a mask is uniform over 2^64.
            self.assertGreater(np.median([abs(v) / 2**59 for v in values]), 1)


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


if __name__ == "__main__":
    unittest.main()
