# SPDX-License-Identifier: Apache-2.0
"""Federations of real processes: a coordinator, sites with ledgers of their own, certificates, a proxy between them."""
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import tempfile
import time

import numpy as np

from support import PROGRAM, AppTest

COLUMNS = "abcdef"
PCA = ["pca", "--components", "2"]
MASKED = ["pca", "--components", "1", "--method", "power", "--rounds", "4"]
POWER = ["pca", "--components", "1", "--method", "adaptive-power", "--rounds", "3", "--row-bound", "range"]


HELD = []


def free_port():
    """A port that no other test takes while this process lives, and no connection as its own end: those are above 32767."""
    while True:
        port = random.randrange(12000, 32000)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0eigenveil-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        HELD.append(claim)
        return port


class Process:
    """A program that runs beside the test; what it prints is in a file."""

    def __init__(self, args, folder, log, environment, prefix=()):
        self.log = pathlib.Path(log)
        with open(self.log, "ab") as out:
            self.popen = subprocess.Popen([*prefix, PROGRAM, *map(str, args)], cwd=folder, env=environment, stdout=out,
                                          stderr=subprocess.STDOUT, stdin=subprocess.PIPE)

    def text(self):
        return self.log.read_text()

    def wait_for(self, words, times=1, seconds=120):
        end = time.monotonic() + seconds
        while self.text().count(words) < times:
            if time.monotonic() > end or self.popen.poll() is not None and self.text().count(words) < times:
                raise AssertionError(f"no {times} x '{words}' in:\n{self.text()}")
            time.sleep(0.01)

    def wait(self, seconds=180):
        return self.popen.wait(seconds)

    def kill(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        self.popen.stdin.close()

    def signal(self, number):
        self.popen.send_signal(number)

    def answer(self, line):
        self.popen.stdin.write(line.encode() + b"\n")
        self.popen.stdin.flush()


def make_parties(folder, names, validity=(), coordinator_validity=()):
    """An authority, a coordinator and sites, each with a key beside its certificate; the keys' hashes by name."""
    def federation(*command):
        return subprocess.run([PROGRAM, "federation", *map(str, command)], check=True, capture_output=True, text=True).stdout
    federation("init", folder)
    pins = {}
    for name in ("coordinator", *names):
        role = "coordinator" if name == "coordinator" else "site"
        federation("request", name, "--role", role, "--out", folder / f"{name}.csr")
        federation("sign", folder, folder / f"{name}.csr", "--role", role,
                   *(coordinator_validity if role == "coordinator" else validity))
        pins[name] = re.search(r"\b[0-9a-f]{64}\b", federation("show", folder / f"{name}.crt"))[0]
    return pins


class FederationTest(AppTest):
    names = ("north", "south", "west")
    budget, epsilon = 200, 40

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.authority = pathlib.Path(folder.name) / "ca"
        cls.pins = make_parties(cls.authority, cls.names)

    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data")}
        self.port = free_port()
        self.write("schema.toml", "".join(
            f'[[column]]\nname = "{c}"\nkind = "numeric"\nlower = -8\nupper = 8\n' for c in COLUMNS) +
            '[[column]]\nname = "label"\nkind = "categorical"\nvalues = ["A", "B", "C"]\n')
        draw = np.random.default_rng(5)
        for number, name in enumerate(self.names):
            rows = draw.normal(size=(2000, len(COLUMNS))) * [3, 1, 1, 1, 1, 1]
            rows[:, 3] = 0.9 * rows[:, 0] / 3 + 0.3 * rows[:, 3]
            labels = np.array(["A", "B", "C"])[(rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0)]
            lines = [",".join([*(f"{x:.6f}" for x in row), label]) for row, label in zip(rows, labels)]
            self.rows = rows if number == 0 else np.vstack([self.rows, rows])
            self.write(f"{name}.csv", "\n".join([",".join([*COLUMNS, "label"]), *lines]) + "\n")
            self.run_program("ledger", "create", "rows", "--epsilon", self.budget, "--delta", 1e-6, "--ledger", f"{name}.db")

    def config(self, name, port=None, tls=None, coordinator="coordinator", host="127.0.0.1", **policy):
        tls = {"authority": self.authority / "ca.crt", "certificate": self.authority / f"{name}.crt",
               "key": self.authority / f"{name}.key", **(tls or {})}
        # Sites draw their noise themselves: what is checked by figures has hardly any, and sites let it through.
        policy = {"most_epsilon": 1000, "most_epsilon_alone": 1000, "least_noise": 0.001, **policy}
        lines = [f'coordinator = "{host}:{port or self.port}"', f'coordinator_name = "{coordinator}"',
                 f'coordinator_key = "{self.pins["coordinator"]}"',
                 f'data = "{name}.csv"', 'schema = "schema.toml"', 'missing = "error"', 'unlisted = "error"',
                 f"columns = {json.dumps(list(COLUMNS))}", f'ledger = "{name}.db"', 'dataset = "rows"',
                 f'state = "state-{name}"', "[classes]", 'label = ["A", "B", "C"]', "a = { slices = 24 }",
                 "[tls]", *(f'{k} = "{v}"' for k, v in tls.items()),
                 "[peers]", *(f'{n} = "{self.pins[n]}"' for n in self.names), "[policy]",
                 *(f"{k} = {json.dumps(v)}" for k, v in policy.items())]
        return self.write(f"{name}.toml", "\n".join(lines) + "\n")

    def start(self, args, log, prefix=()):
        process = Process(args, self.folder, self.folder / log, self.environment, prefix)
        self.addCleanup(process.kill)
        return process

    def site(self, name, *flags, approve="policy", prefix=(), log=None, **config):
        path = self.config(name, **config)
        return self.start(["site", "serve", "--config", path, "--approve", approve, "--once", "--threads", 1, *flags],
                          log or f"{name}.log", prefix)

    def coordinator(self, estimator=PCA, *flags, sites=None, epsilon=None, host="127.0.0.1", log="coordinator.log",
                    certificate="coordinator", prefix=()):
        tls = ["--authority", self.authority / "ca.crt", "--certificate", self.authority / f"{certificate}.crt", "--key",
               self.authority / f"{certificate}.key"]
        peers = self.write("peers.toml", "".join(f'{n} = "{self.pins[n]}"\n' for n in self.names))
        tls += ["--peers", peers]
        given = {"--schema", "--columns"} & set(flags)
        names = [] if given or "--x-columns" in estimator else ["--columns", ",".join(COLUMNS)]
        bounds = names + ([] if given else ["--range", "-8:8"])
        for flag, value in (("--patience", 60), ("--journal", "study")):
            flags = flags if flag in flags else (*flags, flag, value)
        return self.start(["coordinate", *estimator, "--yes", "--force", "--epsilon", epsilon or self.epsilon, "--delta", 1e-6, *bounds, "--sites",
                           ",".join(sites or self.names), "--listen", f"{host}:{self.port}", *tls, *flags], log, prefix)

    def reservations(self, name):
        shown = self.run_json("ledger", "show", "rows", "--ledger", f"{name}.db")
        return shown["reservations"]

    def answers(self, name):
        return [r for path in (self.folder / f"state-{name}").glob("*/answers.bin") for r in records(path)]

    def assert_charged_once(self, *names, state="answered"):
        for name in names:
            self.assertEqual([r["state"] for r in self.reservations(name)], [state], name)

    def assert_uncharged(self, *names):
        for name in names:
            self.assertEqual(self.reservations(name), [], name)

    def assert_close(self, cosine, sites=3):
        """The first component against that of the rows without noise."""
        truth = np.linalg.svd(self.rows[:2000 * sites], full_matrices=False)[2][0]
        self.assertGreater(abs(self.model()["components"][0] @ truth), cosine)

    def model(self):
        return np.load(self.path("model.npz"))

    def manifest(self):
        return json.loads(bytes(self.model()["manifest.json"]))

    def assert_finished(self, coordinator, *sites):
        self.assertEqual(coordinator.wait(), 0, coordinator.text())
        for site in sites:
            self.assertEqual(site.wait(), 0, site.text())


def records(path):
    """The complete records of a log of answers or totals: each with a length at its start, and 20 bytes around it."""
    data = path.read_bytes() if path.exists() else b""
    found = []
    while len(data) >= 16:
        size = 20 + int.from_bytes(data[:8], "little")
        if len(data) < size:
            break
        found.append(data[:size])
        data = data[size:]
    return found


def stop(process):
    process.signal(signal.SIGSTOP)


def go_on(process):
    process.signal(signal.SIGCONT)
