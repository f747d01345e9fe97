"""`eigenveil federation`, as the person runs it who makes the certificates of a study."""
import os
import subprocess
import time
import unittest

from support import BAD_INPUT, USAGE, AppTest


class Certificates(AppTest):
    def setUp(self):
        super().setUp()
        done = self.run_program("federation", "--help")
        if "not in this build" in done.stdout:
            self.skipTest("this build has no federation")

    def openssl(self, *args):
        return subprocess.run(["openssl", *args], cwd=self.folder, capture_output=True, text=True)

    def test_a_study_from_its_authority_to_its_sites(self):
        said = self.run_program("federation", "init", "study", "--name", "heart study").stdout
        self.assertIn("study/ca.crt", said)
        self.assertIn("pose as anyone", said)
        said = self.run_program("federation", "issue", "study", "coordinator", "--host", "192.0.2.7", "--host",
                                "c.example.org", "--days", 30).stdout
        self.assertIn("Send study/ca.crt, study/coordinator.crt and study/coordinator.key to 'coordinator'", said)
        self.assertEqual(sorted(os.listdir(self.folder / "study")), ["ca.crt", "ca.key", "coordinator.crt", "coordinator.key"])
        self.assertEqual((self.folder / "study/coordinator.key").stat().st_mode & 0o777, 0o600)
        for check in (["-verify_hostname", "coordinator"], ["-verify_hostname", "c.example.org"], ["-verify_ip", "192.0.2.7"]):
            self.assertEqual(self.openssl("verify", "-CAfile", "study/ca.crt", *check, "study/coordinator.crt").returncode, 0)

    def test_refusals_leave_everything_as_it_was(self):
        self.run_program("federation", "issue", "study", "a", expect=BAD_INPUT)
        self.run_program("federation", "init", "study")
        self.run_program("federation", "issue", "study", "a")
        before = {p.name: p.read_bytes() for p in (self.folder / "study").iterdir()}
        self.assertIn("never overwritten", self.run_program("federation", "init", "study", expect=USAGE).stderr)
        self.assertIn("never overwritten", self.run_program("federation", "issue", "study", "a", expect=USAGE).stderr)
        for args in (["ca"], ["../b"], ["b", "--host", "x y"], ["b", "--days", 0], ["b", "--days", -1], []):
            self.run_program("federation", "issue", "study", *args, expect=USAGE)
        self.run_program("federation", expect=USAGE)
        self.assertEqual({p.name: p.read_bytes() for p in (self.folder / "study").iterdir()}, before)

    def test_valid_seconds_makes_a_certificate_that_tests_can_outlive(self):
        self.run_program("federation", "init", "study")
        self.run_program("federation", "issue", "study", "brief", "--valid-seconds", 1)
        time.sleep(2.1)
        self.assertIn("expired", self.openssl("verify", "-CAfile", "study/ca.crt", "study/brief.crt").stderr)

    def test_help_says_who_keeps_what(self):
        for words in ("keeps ca.key", "does not run the coordinator", "NAME.key goes to NAME only"):
            self.assertIn(words, self.run_program("federation", "--help").stdout)
        self.assertNotIn("valid-seconds", self.run_program("federation", "issue", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
