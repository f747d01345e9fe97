# SPDX-License-Identifier: Apache-2.0
"""`eigenveil federation`, as the parties of a study run it."""
import os
import re
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

    def party(self, name, role="site", *flags):
        self.run_program("federation", "request", name, "--role", role, "--out", f"{name}.csr")
        return self.run_program("federation", "sign", "study", f"{name}.csr", "--role", role, *flags).stdout

    def test_a_study_from_its_authority_to_its_parties(self):
        said = self.run_program("federation", "init", "study", "--name", "heart study").stdout
        self.assertIn("study/ca.crt", said)
        said = self.run_program("federation", "request", "coordinator", "--role", "coordinator", "--host", "192.0.2.7",
                                "--host", "c.example.org", "--out", "coordinator.csr").stdout
        pin = re.search(r'coordinator = "([0-9a-f]{64})"', said)[1]
        self.assertIn("It stays on this machine", said)
        self.assertEqual((self.folder / "coordinator.key").stat().st_mode & 0o777, 0o600)
        said = self.run_program("federation", "sign", "study", "coordinator.csr", "--role", "coordinator", "--days", 30).stdout
        for words in ("name   coordinator", "role   coordinator", "host   192.0.2.7", "host   c.example.org", f"key    {pin}"):
            self.assertIn(words, said)
        self.assertEqual(sorted(os.listdir(self.folder / "study")), ["ca.crt", "ca.key", "coordinator.crt"])
        for check in (["-verify_hostname", "coordinator"], ["-verify_hostname", "c.example.org"], ["-verify_ip", "192.0.2.7"]):
            self.assertEqual(self.openssl("verify", "-CAfile", "study/ca.crt", *check, "study/coordinator.crt").returncode, 0)
        self.assertIn("role   site", self.party("hospital-a"))
        shown = self.run_program("federation", "show", "study/hospital-a.crt").stdout
        self.assertRegex(shown, r"name   hospital-a\nrole   site\nuntil  20.* UTC\nkey    [0-9a-f]{64}\n")

    def test_a_role_that_the_authority_did_not_name_is_not_signed(self):
        self.run_program("federation", "init", "study")
        self.run_program("federation", "request", "evil", "--role", "coordinator", "--host", "coordinator")
        done = self.run_program("federation", "sign", "study", "evil.csr", expect=USAGE)
        self.assertIn("the request is for the coordinator 'evil', not for a site", done.stderr)
        self.assertFalse((self.folder / "study/evil.crt").exists())
        done = self.run_program("federation", "request", "b", "--host", "coordinator", expect=USAGE)
        self.assertIn("a site has no host names", done.stderr)

    def test_refusals_leave_everything_as_it_was(self):
        self.run_program("federation", "request", "a")
        self.run_program("federation", "sign", "study", "a.csr", expect=BAD_INPUT)
        self.run_program("federation", "init", "study")
        self.run_program("federation", "sign", "study", "a.csr")
        before = {p.name: p.read_bytes() for p in (self.folder / "study").iterdir()}
        self.assertIn("never overwritten", self.run_program("federation", "init", "study", expect=USAGE).stderr)
        self.assertIn("never overwritten", self.run_program("federation", "sign", "study", "a.csr", expect=USAGE).stderr)
        self.assertIn("never overwritten", self.run_program("federation", "request", "a", expect=USAGE).stderr)
        for args in (["ca"], ["../b"], ["b", "--out", "b.txt"], ["b", "--role", "judge"], [],
                     ["b", "--role", "coordinator", "--host", "x y"]):
            self.run_program("federation", "request", *args, expect=USAGE)
        self.run_program("federation", "request", "b")
        for days in (0, -1):
            self.run_program("federation", "sign", "study", "b.csr", "--days", days, expect=USAGE)
        self.run_program("federation", "sign", "study", "a.key", expect=BAD_INPUT)
        self.run_program("federation", "show", "a.csr", expect=BAD_INPUT)
        self.run_program("federation", "show", "study/ca.crt", expect=BAD_INPUT)
        self.run_program("federation", expect=USAGE)
        self.assertEqual({p.name: p.read_bytes() for p in (self.folder / "study").iterdir()}, before)

    def test_valid_seconds_makes_a_certificate_that_tests_can_outlive(self):
        self.run_program("federation", "init", "study")
        self.party("brief", "site", "--valid-seconds", 1)
        time.sleep(2.1)
        self.assertIn("expired", self.openssl("verify", "-CAfile", "study/ca.crt", "study/brief.crt").stderr)

    def test_help_says_who_keeps_what(self):
        for words in ("keeps ca.key", "does not run the coordinator", "NAME.key stays there", "invent a site"):
            self.assertIn(words, self.run_program("federation", "--help").stdout)
        self.assertNotIn("valid-seconds", self.run_program("federation", "sign", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
