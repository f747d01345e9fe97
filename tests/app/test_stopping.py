# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM: what stops says what was charged, and what can be done; nothing that was answered is given back."""
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

import numpy as np

from support import BUDGET_FLAGS, OK, PROGRAM, AppTest, Running

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM


class Stopping(AppTest):
    def setUp(self):
        super().setUp()
        np.save(self.path("d.npy"), np.random.default_rng(1).uniform(0, 1, (300, 3)))
        self.run_program("ledger", "create", "people", "--epsilon", 5, "--delta", 1e-6, "--ledger", "l.db")

    def fit(self, *more, data="d.npy"):
        return ["pca", data, "--range", "0:1", "--components", 1, *BUDGET_FLAGS, "--yes", "--dataset", "people", "--ledger",
                "l.db", *more]

    def blocked(self, *more):
        """A fit whose rows never end: enough of them to begin with, and then some."""
        os.mkfifo(self.path("pipe.csv"))
        pipe = os.open(self.path("pipe.csv"), os.O_RDWR | os.O_NONBLOCK)  # open at both ends: nobody waits, nothing ends it
        over = threading.Event()

        def feed():
            while not over.wait(0.01):
                try:
                    os.write(pipe, b"0.5,0.5\n" * 500)
                except BlockingIOError:
                    pass

        feeder = threading.Thread(target=feed)
        feeder.start()
        for last in (lambda: os.close(pipe), feeder.join, over.set):  # in this order from the end
            self.addCleanup(last)
        return self.fit("--header", "no", *more, data="pipe.csv")

    def long(self, *more):
        """A fit that asks for longer than a test waits."""
        np.save(self.path("long.npy"), np.random.default_rng(1).uniform(0, 1, (100_000, 30)).astype("f4"))
        return self.fit("--method", "power", "--rounds", 3000, *more, data="long.npy")

    def entries(self):
        return [one["state"] for one in self.run_json("ledger", "show", "people", "--ledger", "l.db")["reservations"]]

    def hold_ledger(self):
        holder = sqlite3.connect(self.path("l.db"), isolation_level=None)
        self.addCleanup(holder.close)
        holder.execute("BEGIN IMMEDIATE")
        return holder

    def test_before_the_charge_nothing_was_charged(self):
        args = self.blocked()
        for number, code in ((signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)):
            run = Running(self, *args)
            run.wait_for("reading rows")
            run.signal(number)
            found, out, err = run.finish()
            self.assertEqual(found, code, err)
            self.assertIn("stopped: nothing was charged.", err)
            self.assertEqual(out, "")
        self.assertEqual(self.entries(), [])
        self.assertNotIn("model.npz", self.files())

    def test_for_machines(self):
        run = Running(self, *self.blocked("--json"))
        run.wait_for("reading rows")
        run.signal()
        code, out, err = run.finish()
        told = json.loads(out)
        self.assertEqual((told["kind"], told["exit_code"], code), ("stopped", INTERRUPTED, INTERRUPTED))
        self.assertIn("nothing was charged", told["error"])

    def test_a_charge_that_nothing_was_asked_for_can_be_given_back(self):
        holder = self.hold_ledger()
        run = Running(self, *self.fit())
        run.wait_for("reserving budget")
        run.signal()
        time.sleep(1)  # it waits for the ledger, however long that takes
        self.assertIsNone(run.popen.poll(), run.said)
        holder.execute("ROLLBACK")
        code, _, err = run.finish()
        self.assertEqual(code, INTERRUPTED, err)
        self.assertIn("stopped after entry 1 of 'people' was charged and before anything was asked", err)
        self.assertEqual(self.entries(), ["unused"])
        command = re.search(r"eigenveil (ledger release-unused \S+ --ledger \S+)", err)[1].split()
        self.assertIn("Gave back 1 reservation", self.run_program(*command).stdout)
        self.assertEqual(self.entries(), ["returned"])
        self.assertNotIn("model.npz", self.files())

    def test_a_second_signal_ends_it_at_once(self):
        self.hold_ledger()
        run = Running(self, *self.fit())
        run.wait_for("reserving budget")
        run.signal()
        time.sleep(0.5)
        run.signal()
        code, _, err = run.finish(20)  # sooner than the ledger is waited for
        self.assertEqual(code, INTERRUPTED)
        self.assertIn("stopped while the budget was being reserved", err)

    def test_what_was_answered_stays_spent(self):
        args = self.long()
        run = Running(self, *args)
        run.wait_for(r"asking: product 2 \(")
        run.signal()
        code, _, err = run.finish()
        self.assertEqual(code, INTERRUPTED, err)
        self.assertIn("stopped after entry 1 of 'people' was charged: an answer may have been computed, so all of it stays "
                      "spent", err)
        self.assertEqual(self.entries(), ["answered"])
        self.run_program("ledger", "release-unused", "people", "--ledger", "l.db")
        self.assertEqual(self.entries(), ["answered"])
        self.assertNotIn("model.npz", self.files())
        self.assertEqual([name for name in self.files() if name.endswith(".tmp")], [])

    def test_without_a_ledger_nothing_counts_it(self):
        args = [a for a in self.long("--no-ledger") if a not in ("--dataset", "people", "--ledger", "l.db")]
        run = Running(self, *args)
        run.wait_for(r"asking: product 2 \(")
        run.signal(signal.SIGTERM)
        code, _, err = run.finish()
        self.assertEqual(code, TERMINATED, err)
        self.assertIn("stopped: nothing was released, and no ledger counts what was asked.", err)

    def test_what_is_answered_in_full_is_written(self):
        """The ledger, which takes note of the file at the end, keeps it waiting there."""
        np.save(self.path("some.npy"), np.random.default_rng(1).uniform(0, 1, (100_000, 30)).astype("f4"))
        run = Running(self, *self.fit("--method", "power", "--rounds", 60, data="some.npy"))
        run.wait_for(r"asking: product 1 \(")
        run.wait_for(r"asking: product 2 \(")
        holder = self.hold_ledger()
        run.wait_for("writing model")
        run.signal()
        run.wait_for("they are being written")
        holder.execute("ROLLBACK")
        code, out, err = run.finish()
        self.assertEqual(code, OK, err)
        self.assertIn("Model:  model.npz", out)
        self.assertIn("is the file that was written for entry 1",
                      self.run_program("ledger", "verify", "model.npz", "--ledger", "l.db").stdout)

    def test_ctrl_c_at_a_terminal(self):
        code, shown = self.in_terminal(self.blocked(), "reading rows", b"\x03")
        self.assertEqual(code, INTERRUPTED, shown)
        self.assertIn("stopped: nothing was charged.", shown)
        self.assertEqual(self.entries(), [])

    def test_ctrl_c_at_a_question(self):
        args = [a for a in self.fit() if a != "--yes"]
        args[args.index("--epsilon") + 1] = 50
        code, shown = self.in_terminal(args, r"\[yes/no\]", b"\x03")
        self.assertEqual(code, INTERRUPTED, shown)
        self.assertIn("stopped: nothing was charged.", shown)
        self.assertEqual(self.entries(), [])

    def test_a_terminal_that_goes_away(self):
        holder = self.hold_ledger()
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execv(PROGRAM, [PROGRAM, *map(str, self.fit())])
        shown = ""
        while "reserving budget" not in shown:
            shown += os.read(terminal, 4096).decode(errors="replace")
        os.close(terminal)  # SIGHUP, and nobody hears what is said
        time.sleep(0.5)
        holder.execute("ROLLBACK")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 128 + signal.SIGHUP)
        self.assertEqual(self.entries(), ["unused"])

    def test_a_terminal_shows_how_much_is_left(self):
        code, shown = self.in_terminal(self.long(), r"asking: product \d+ \(\d+ of \d+\) \[#*\.*\] +\d+%, \d+ (s|min) left",
                                       b"\x03")
        self.assertEqual(code, INTERRUPTED, shown[-500:])
        self.assertRegex(shown, r"\d+ (s|min) left")

    def test_a_job_that_ignores_interrupts_goes_on(self):
        """As of a script with &: the shell has SIGINT ignored."""
        command = " ".join(map(str, self.blocked()))
        run = subprocess.Popen(["sh", "-c", f"trap '' INT; exec {PROGRAM} {command}"], cwd=self.folder, text=True,
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for line in run.stderr:
            if "reading rows" in line:
                break
        run.send_signal(signal.SIGINT)
        time.sleep(1)
        self.assertIsNone(run.poll())
        run.terminate()
        self.assertIn("nothing was charged", run.communicate()[1])
        self.assertEqual(run.returncode, TERMINATED)


if __name__ == "__main__":
    unittest.main()
