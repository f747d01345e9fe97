"""Federations of real processes: a coordinator, sites with ledgers of their own, certificates, a proxy between them."""
import json
import os
import pathlib
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
POWER = ["pca", "--components", "1", "--method", "adaptive-power", "--rounds", "3"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """A program that runs beside the test; what it prints is in a file."""

    def __init__(self, args, folder, log, environment, prefix=()):
        self.log = pathlib.Path(log)
        with open(self.log, "ab") as out:
            self.popen = subprocess.Popen([*prefix, PROGRAM, *map(str, args)], cwd=folder, env=environment, stdout=out,
                                          stderr=subprocess.STDOUT, stdin=subprocess.PIPE)

    def text(self):
        return self.log.read_text()

    def wait_for(self, words, times=1, seconds=30):
        end = time.monotonic() + seconds
        while self.text().count(words) < times:
            if time.monotonic() > end or self.popen.poll() is not None and self.text().count(words) < times:
                raise AssertionError(f"no {times} x '{words}' in:\n{self.text()}")
            time.sleep(0.01)

    def wait(self, seconds=60):
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


class FederationTest(AppTest):
    names = ("north", "south", "west")
    # Sites draw their noise themselves, without a seed: what is checked by figures has hardly any.
    budget, epsilon = 200, 40

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.authority = pathlib.Path(folder.name) / "ca"
        for command in (["init", cls.authority], *(["issue", cls.authority, n] for n in ("coordinator", *cls.names))):
            subprocess.run([PROGRAM, "federation", *map(str, command)], check=True, stdout=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data")}
        self.port = free_port()
        self.write("schema.toml", "".join(
            f'[[column]]\nname = "{c}"\nkind = "numeric"\nlower = -8\nupper = 8\n' for c in COLUMNS) +
            '[[column]]\nname = "label"\nkind = "categorical"\nvalues = ["A", "B", "C"]\n')
        random = np.random.default_rng(5)
        for number, name in enumerate(self.names):
            rows = random.normal(size=(2000, len(COLUMNS))) * [3, 1, 1, 1, 1, 1]
            rows[:, 3] = 0.9 * rows[:, 0] / 3 + 0.3 * rows[:, 3]
            labels = np.array(["A", "B", "C"])[(rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0)]
            lines = [",".join([*(f"{x:.6f}" for x in row), label]) for row, label in zip(rows, labels)]
            self.rows = rows if number == 0 else np.vstack([self.rows, rows])
            self.write(f"{name}.csv", "\n".join([",".join([*COLUMNS, "label"]), *lines]) + "\n")
            self.run_program("ledger", "create", "rows", "--epsilon", self.budget, "--delta", 1e-6, "--ledger", f"{name}.db")

    def config(self, name, port=None, tls=None, coordinator="coordinator", host="127.0.0.1", **policy):
        tls = {"authority": self.authority / "ca.crt", "certificate": self.authority / f"{name}.crt",
               "key": self.authority / f"{name}.key", **(tls or {})}
        lines = [f'coordinator = "{host}:{port or self.port}"', f'coordinator_name = "{coordinator}"',
                 f'data = "{name}.csv"', 'schema = "schema.toml"', f'ledger = "{name}.db"', 'dataset = "rows"',
                 f'state = "state-{name}"', "[tls]", *(f'{k} = "{v}"' for k, v in tls.items()), "[policy]",
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
        given = {"--schema", "--columns"} & set(flags)
        names = [] if given or "--x-columns" in estimator else ["--columns", ",".join(COLUMNS)]
        bounds = names + ([] if given else ["--range", "-8:8"])
        for flag, value in (("--patience", 20), ("--journal", "study")):
            flags = flags if flag in flags else (*flags, flag, value)
        return self.start(["coordinate", *estimator, "--epsilon", epsilon or self.epsilon, "--delta", 1e-6, *bounds, "--sites",
                           ",".join(sites or self.names), "--listen", f"{host}:{self.port}", *tls, *flags], log, prefix)

    def reservations(self, name):
        shown = self.run_json("ledger", "show", "rows", "--ledger", f"{name}.db")
        return shown["reservations"]

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


def stop(process):
    process.signal(signal.SIGSTOP)


def go_on(process):
    process.signal(signal.SIGCONT)
