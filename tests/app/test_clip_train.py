# SPDX-License-Identifier: Apache-2.0
"""eigenveil clip train and torchscript: encoders: what is learned, charged, refused, and kept when a run is killed."""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest
import zipfile
from typing import Dict, Tuple

import numpy as np

from support import BAD_INPUT, BUDGET, PROGRAM, SEEDED, SOURCE, USAGE, AppTest, png

RUNNER = pathlib.Path(PROGRAM).with_name("eigenveil-module")
try:
    import torch
    from torch import Tensor, nn
    WITHOUT = None if RUNNER.exists() else "this build has no libtorch"
except ImportError:
    WITHOUT = "python3-torch is not installed"

if WITHOUT is None:
    sys.path.insert(0, str(SOURCE / "bench" / "accuracy" / "clip"))
    import hostile_modules
    import modules
    import shapes

    class Slope(nn.Module):
        """Its gradient is (3, 3, 3, 3) on any batch; `waste` makes a step slow."""

        def __init__(self, slope: float = 3.0, waste: int = 0):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(4))
            self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
            self.slope = slope
            self.waste = waste

        @torch.jit.export
        def loss(self, batch: Dict[str, Tensor]) -> Tensor:
            x = torch.ones(300, 300)
            for _ in range(self.waste):
                x = x @ x / 300
            return self.slope * self.w.sum() + 0 * x.sum() + 0 * batch["images"].sum()

    class Counting(nn.Module):
        """Its gradient is how many pairs there are, in each of four entries."""

        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(4))

        @torch.jit.export
        def loss(self, batch: Dict[str, Tensor]) -> Tensor:
            return self.w.sum() * float(batch["images"].size(0)) + 0 * batch["images"].sum()

    class Edge(nn.Module):
        """Not finite where an image is as bright as 1."""

        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(4))

        @torch.jit.export
        def loss(self, batch: Dict[str, Tensor]) -> Tensor:
            return self.w.sum() + torch.log(1 - batch["images"].max())

    class OneView(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(4))

        def forward(self, images: Tensor) -> Tensor:
            return images @ self.w

    class Vectors(nn.Module):
        def __init__(self, start: float = 1.0):
            super().__init__()
            self.a = nn.Linear(4, 3)
            self.b = nn.Linear(4, 3)
            self.start = start

        def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
            return self.a(images) * self.start, self.b(tokens.float())

    class Sharp(nn.Module):
        def forward(self, images: Tensor, texts: Tensor) -> Tensor:
            return ((images - texts)**2).sum()

    class Halves(nn.Module):
        """Features of an image: the brightness of its rows and columns. Of a text: its letters."""

        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        @torch.jit.export
        def encode_image(self, images: Tensor) -> Tensor:
            return torch.cat([images.amax(3).flatten(1), images.amax(2).flatten(1)], 1)

        def forward(self, tokens: Tensor) -> Tensor:
            return torch.zeros(tokens.size(0), 256).scatter_(1, tokens, 1.0)

    class GreyHalves(Halves):
        """Takes one channel."""

        @torch.jit.export
        def encode_image(self, images: Tensor) -> Tensor:
            assert images.size(1) == 1
            return torch.cat([images.amax(3).flatten(1), images.amax(2).flatten(1)], 1)

    class Nosy(Halves):
        def forward(self, tokens: Tensor) -> Tensor:
            self.seen += tokens.sum()
            return self.seen.unsqueeze(0)


def children(pid):
    tasks = pathlib.Path(f"/proc/{pid}/task")
    below = [int(c) for task in tasks.iterdir() for c in (task / "children").read_text().split()]
    return below + [g for c in below for g in children(c)]


def alive(pid):
    return pathlib.Path(f"/proc/{pid}").exists()


class TrainTest(AppTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        self.images = random.uniform(0, 0.9, size=(200, 4)).astype(np.float32)
        self.tokens = random.integers(0, 5, size=(200, 4))
        self.data()

    def data(self, name="pairs.npz", **parts):
        np.savez(self.path(name), **{"images": self.images, "tokens": self.tokens, **parts})

    def script(self, module, name="m.pt"):
        torch.jit.script(module).save(self.path(name))
        return name

    def command(self, *args, module="m.pt", epsilon=5, steps=4, rate=0.1, optimizer="sgd"):
        return ["clip", "train", "--module", module, "--data", "pairs.npz", "--epsilon", epsilon, "--delta", 1e-5,
                "--sample-rate", rate, "--steps", steps, "--clip", 1, "--optimizer", optimizer, "--lr", 0.1, *args]

    def refused(self, code, words, *args):
        done = self.run_program(*args, expect=code)
        self.assertIn(words, done.stderr)
        self.assertEqual(self.charged(), [], "nothing was charged")
        self.assertFalse((self.folder / "trained.pt").exists())

    def environment(self):
        return {**os.environ, "HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data")}


@unittest.skipIf(WITHOUT, WITHOUT)
class ClipTrain(TrainTest):
    def test_a_step_is_the_clipped_gradient_with_its_noise(self):
        self.script(Slope())
        for optimizer, expected in ("sgd", -0.1 * 0.5 * 8), ("adam", -0.1 * 8):
            result = self.run_json(*self.command(epsilon=1000, steps=8, rate=1, optimizer=optimizer))
            sigma = float(result["events"][0]["mechanism"].split("sigma=")[1])
            trained = torch.jit.load(self.path("trained.pt"))
            # 8 steps of 0.1 (0.5, 0.5, 0.5, 0.5), and noise of deviation 2 c sigma a step: 7 deviations of the mean of four
            allowed = 0.1 * 2 * sigma * 8**0.5 * 7 / 2 if optimizer == "sgd" else 0.2
            self.assertAlmostEqual(float(trained.w.mean()), expected, delta=allowed)
            self.assertLess(allowed, 0.25)
            np.testing.assert_array_equal(trained.frozen.detach().numpy(), 1)

    def test_the_noise_is_that_of_twice_the_clip(self):
        torch.manual_seed(1)
        module = Slope(slope=0.0)
        module.w = nn.Parameter(torch.zeros(20000))
        self.script(module)
        result = self.run_json(*self.command(epsilon=1, steps=1))
        self.assertEqual(result["adjacency"], "add-remove-one")
        self.assertLessEqual(result["certified_epsilon"], 1)
        self.assertNotIn("rows", result)
        self.assertNotIn("noisy_rows", result)
        self.assertEqual([(e["label"], e["count"]) for e in result["events"]], [("noisy gradient", 1)])
        sigma = float(result["events"][0]["mechanism"].split("sigma=")[1])
        noise = torch.jit.load(self.path("trained.pt")).w.detach().numpy()
        self.assertAlmostEqual(noise.std() / (0.1 * 2 * sigma), 1, delta=5.5 / 200)  # 5.5 deviations of 1 / sqrt(2 n)
        extra = {"eigenveil.json": ""}
        torch.jit.load(self.path("trained.pt"), _extra_files=extra)
        self.assertEqual(json.loads(extra["eigenveil.json"])["events"], result["events"])
        self.assertEqual([r["state"] for r in self.charged()], ["answered"])

    def test_a_module_that_was_trained_before_promises_on_top_of_that(self):
        """Its numbers are in the file that is written. Its manifest was replaced by one that knew nothing of it."""
        self.script(Slope())
        self.run_json(*self.command(*SEEDED, "--out", "seeded.pt"))
        self.run_json(*self.command("--out", "first.pt", epsilon=7))
        before = len(self.charged())
        for command in (self.command(module="seeded.pt"), self.command("--loss-module", "seeded.pt")):
            self.assertIn("NOT PRIVATE", self.run_program(*command, expect=BAD_INPUT).stderr)
        self.data(who=np.arange(200) // 4)
        self.assertIn("one person", self.run_program(*self.command("--person", "who", module="first.pt"), expect=BAD_INPUT).stderr)
        self.assertEqual(len(self.charged()), before)
        again = self.run_json(*self.command("--out", "second.pt", module="first.pt", epsilon=1))
        words = "This module began with the numbers of another release (epsilon 7, delta 0.00001)"
        self.assertEqual(len(again["start"]), 1)
        self.assertEqual([again["start"][0][key] for key in ("epsilon", "delta", "adjacency", "unit")], [7, 1e-5, "add-remove-one", "row"])
        self.assertIn(words, again["guarantee"])
        self.assertTrue(any(warning.startswith(words) for warning in again["warnings"]))
        third = self.run_json(*self.command("--out", "third.pt", module="second.pt", epsilon=2))
        self.assertEqual([one["epsilon"] for one in third["start"]], [1, 7], "the newest first")

    def test_people(self):
        """The gradient tells how many pairs a batch has: of 50 people with 4 pairs each, all drawn, one pair each."""
        self.script(Counting())
        everybody = {"who": np.arange(200) // 4, "each": np.arange(200) + 7}
        self.data(**everybody)
        run = self.command(*SEEDED, "--no-ledger", epsilon=1000, steps=1, rate=1)
        run[run.index("--clip") + 1] = 200

        def trained(*options):
            result = self.run_json(*run, *options)
            return result, -float(torch.jit.load(self.path("trained.pt")).w.mean()) / .1
        # Four entries with noise of 2 c sigma each; 200 pairs have a gradient of length 400, clipped to 200.
        plain, of_pairs = trained()
        allowed = 7 * 2 * 200 * float(plain["events"][0]["mechanism"].split("sigma=")[1]) / 2
        self.assertLess(allowed, 40)
        self.assertAlmostEqual(of_pairs, 100, delta=allowed)
        people, of_people = trained("--person", "who")
        self.assertAlmostEqual(of_people, 50, delta=allowed)
        self.assertEqual(people["events"], plain["events"], "no more noise")
        self.assertIn("one person, with all their rows", people["guarantee"].replace("NOT PRIVATE", "one person, with all their rows"))
        self.assertEqual((people["person"]["column"], people["person"]["weight"]), ("who", "equal"))
        self.assertFalse({"people", "noisy_people", "rows"} & people.keys())
        weighed, of_rows = trained("--person", "who", "--person-weight", "rows:16")
        self.assertAlmostEqual(of_rows, 12.5, delta=allowed)
        self.assertEqual(weighed["person"]["weight"], "rows:16")
        self.assertEqual(trained("--person", "each")[1], of_pairs, "with one pair each it is the same run")
        self.assertEqual([("its own person" in self.run_program(*run, "--person", name).stderr) for name in ("who", "each")], [False, True])

    def test_people_that_cannot_be(self):
        self.script(Slope())
        self.data(who=np.arange(200) // 4, part=np.arange(200) / 7, pair=np.ones((200, 2), int), huge=np.full(200, 1 << 53))
        for options, code, words in ((["--person", "none"], BAD_INPUT, "no array 'none'"), (["--person", "part"], BAD_INPUT, "one integer"),
                                     (["--person", "pair"], BAD_INPUT, "one integer"), (["--person", "huge"], BAD_INPUT, "2^53"),
                                     (["--person-weight", "rows:2"], USAGE, "--person"),
                                     (["--person", "who", "--person-weight", "rows:0"], USAGE, "rows:M")):
            self.refused(code, words, *self.command(*options))
        self.run_program("ledger", "create", "pairs", "--epsilon", 9, "--delta", 1e-5, "--adjacency", "add-remove-one")
        done = self.run_program(*self.command("--person", "who", "--dataset", "pairs"), expect=BUDGET)
        self.assertIn("one person, with all their rows", done.stderr)
        self.run_program("ledger", "create", "people", "--epsilon", 9, "--delta", 1e-5, "--adjacency", "add-remove-one", "--person", "who")
        again = self.command("--person", "who", "--dataset", "people", "--checkpoint", "run")
        self.run_program(*again)
        done = self.run_program(*again, "--resume", "--person-weight", "rows:2", expect=USAGE)
        self.assertIn("person_weight", done.stderr)

    def test_infonce_has_the_gradient_that_python_computes(self):
        torch.manual_seed(2)
        module = Vectors()
        self.script(module)
        for loss in (None, Sharp()):
            args = [] if loss is None else ["--loss-module", self.script(loss, "loss.pt")]
            self.run_json(*self.command(*args, epsilon=1000, steps=1, rate=1))
            module.zero_grad()
            f, g = module(torch.from_numpy(self.images), torch.from_numpy(self.tokens))
            (modules.infonce(f, g, 0.1) if loss is None else loss(f, g)).backward()
            gradient = torch.cat([p.grad.flatten() for p in module.parameters()])
            gradient = gradient / max(1.0, float(gradient.norm()))
            after = torch.jit.load(self.path("trained.pt"))
            step = torch.cat([(a - b).flatten() for a, b in zip(module.parameters(), after.parameters())]) / 0.1
            # noise of deviation 0.05 in each of 30 numbers, to 1e-7; another gradient of this length is 1.4 away
            self.assertLess(float((step - gradient).norm()), 0.5)
            self.assertGreater(float(gradient.norm()), 0.9)

    def test_a_small_world(self):
        data, _ = shapes.world(300, True, 1)
        np.savez(self.path("pairs.npz"), **data)
        for kind in (modules.TwoTowers, modules.Blip):
            before = modules.adapt(kind(len(shapes.WORDS), 16))
            self.script(before)
            result = self.run_json(*self.command(steps=3))
            self.assertEqual(result["parameters"], 12)
            after = dict(torch.jit.load(self.path("trained.pt")).named_parameters())
            for name, parameter in before.named_parameters():
                self.assertEqual(torch.equal(parameter, after[name]), "light" not in name, name)

    def test_the_commands_of_the_docs(self):
        page = (SOURCE / "docs" / "clip-train.md").read_text()
        block = page.split("```sh\n")[1].split("```")[0]
        commands = [line for line in block.splitlines() if line.startswith("./eigenveil ")]
        self.assertEqual(len(commands), 2)
        self.script(Vectors(), "public.pt")
        for command in commands:
            self.run_program(*command.split()[1:])
        self.assertTrue((self.folder / "trained.pt").exists())
        self.assertEqual(len(self.charged()), 1)

    def test_what_can_be_seen_before_training_costs_nothing(self):
        self.script(OneView())
        self.refused(BAD_INPUT, "expected forward(images: Tensor, tokens: Tensor)", *self.command())
        self.write("no.pt", "no module")
        self.refused(BAD_INPUT, "no TorchScript module", *self.command(module="no.pt"))
        self.refused(BAD_INPUT, "there is no such file", *self.command(module="none.pt"))
        self.script(Vectors(start=float("nan")))
        self.refused(BAD_INPUT, "the loss is not finite", *self.command())
        self.script(Slope())
        self.refused(BAD_INPUT, "leave --loss-module out", *self.command("--loss-module", "m.pt"))
        self.script(Vectors())
        self.data(tokens=self.tokens[:-1])
        self.refused(BAD_INPUT, "'images' has 200 rows but 'tokens' has 199: every pair needs both", *self.command())
        self.images[17, 2] = np.nan
        self.data()
        self.refused(BAD_INPUT, "row 18 has a value that is missing, not finite", *self.command())
        np.savez(self.path("pairs.npz"), images=self.tokens, texts=self.tokens)
        self.refused(BAD_INPUT, "has no array 'tokens'", *self.command())
        whole = (self.folder / "pairs.npz").read_bytes()
        self.write("pairs.npz", whole[:-30])
        self.refused(BAD_INPUT, "pairs.npz", *self.command())

    def test_wrong_usage_costs_nothing(self):
        self.refused(USAGE, "add-remove-one alone", *self.command("--adjacency", "replace-one"))
        self.refused(USAGE, "--sample-rate", *self.command(rate=1.5))
        self.refused(USAGE, "--steps", *self.command(steps=0))
        self.refused(USAGE, "--resume needs --checkpoint", *self.command("--resume"))
        self.script(Slope())
        self.refused(USAGE, "there is no run in", *self.command("--checkpoint", "run", "--resume"))
        self.run_program("ledger", "create", "small", "--epsilon", 1, "--delta", 1e-5, "--adjacency", "add-remove-one")
        self.run_program(*self.command("--dataset", "small", "--checkpoint", "run"), expect=4)
        self.assertEqual(self.charged(), [])
        self.assertFalse((self.folder / "run").exists(), "a run that was not paid for leaves nothing")

    def test_a_loss_that_is_not_finite_stops_the_run(self):
        self.images[50, 1] = 1
        self.data()
        self.script(Edge())
        train = self.command("--checkpoint", "run", steps=80, rate=0.2)  # 80 batches without that row: 2e-8
        done = self.run_program(*train, expect=BAD_INPUT)
        self.assertRegex(done.stderr, r"step \d+ of 80: m.pt: the loss is not finite\. The run has stopped\. "
                                      r"The whole plan stays charged to 'file .*': epsilon 4\.9\d* at delta 0\.00001")
        self.assertFalse((self.folder / "trained.pt").exists())
        kept = np.load(self.path("run/state.npz"))
        stop = int(done.stderr.split("step ")[1].split(" ")[0])
        self.assertEqual(int(kept["step"]), stop - 1)
        self.assertTrue(np.isfinite(kept["parameters"]).all())
        self.assertEqual(len(self.charged()), 1)
        again = self.run_program(*train, "--resume", expect=BUDGET)
        self.assertIn("broken off", again.stderr)

    def test_a_run_that_the_ledger_cannot_end_keeps_no_state(self):
        """Of two states, that which it stopped in and what it comes to when resumed, one would not have been paid for."""
        self.script(Slope(waste=30))  # its sum overflows after some 60 steps
        train = self.command("--checkpoint", "run", epsilon=1000, steps=200)
        train[train.index("--lr") + 1] = 1e36
        ledger = self.home / "data" / "eigenveil" / "ledger.db"
        job = subprocess.Popen([PROGRAM, *map(str, train)], cwd=self.folder, env=self.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

        def answering():
            try:
                with contextlib.closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as read:
                    return read.execute("SELECT count(*) FROM work WHERE state = 'answering'").fetchone()[0] > 0
            except sqlite3.Error:
                return False

        deadline = time.time() + 60
        while not answering() and job.poll() is None and time.time() < deadline:
            time.sleep(0.01)
        os.link(ledger, self.path("another-name.db"))  # nothing is written to a ledger of two names
        error = job.communicate()[1]
        self.assertIn("step ", error)
        self.assertIn("hard links", error)
        self.assertFalse((self.folder / "run" / "state.npz").exists(), error)
        os.unlink(self.path("another-name.db"))
        self.run_program(*train, "--resume", expect=BAD_INPUT)
        self.assertTrue((self.folder / "run" / "state.npz").exists())
        self.assertEqual(len(self.charged()), 1)

    def kill_at(self, command, ready):
        job = subprocess.Popen([PROGRAM, *map(str, command)], cwd=self.folder, env=self.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 60
        while not ready() and job.poll() is None and time.time() < deadline:
            time.sleep(0.002)
        self.assertIsNone(job.poll(), "ended before it was killed")
        job.send_signal(signal.SIGKILL)
        job.communicate()

    def sealed(self, run):
        """The sealed states of a run, by their contents."""
        return {p.read_bytes() for p in (self.folder / run).glob("checkpoint-*.sealed")}

    def test_killed_runs_go_on_and_are_charged_once(self):
        self.script(Slope(slope=0.0, waste=120))  # no gradient: a step is its noise
        train = self.command("--checkpoint", "run", "--checkpoint-every", 1, steps=14)
        seen = set()

        def reached(count):
            seen.update(self.sealed("run"))
            return len(seen) >= count

        self.kill_at(train, lambda: (self.folder / "run" / "run.json").exists())  # about when it is charged
        if not self.charged():
            shutil.rmtree(self.folder / "run")
            self.kill_at(train, lambda: reached(1))
        for count in 2, 5, 8:
            self.kill_at([*train, "--resume"], lambda: reached(count))
        self.run_program(*train, "--resume")
        records = self.charged()
        self.assertEqual(len(records), 1, "charged once")
        manifest = {"eigenveil.json": ""}
        trained = torch.jit.load(self.path("trained.pt"), _extra_files=manifest).w.detach().numpy()
        sigma = float(json.loads(manifest["eigenveil.json"])["events"][0]["mechanism"].split("sigma=")[1])
        # 14 steps of their own noise, neither fewer nor the same twice: chi-squared with 4 degrees, 1e-7 each side
        scaled = (trained**2).sum() / (0.1 * 2 * sigma)**2 / 14
        self.assertTrue(1e-3 < scaled < 42, scaled)
        self.assertIn("come to its end", self.run_program(*train, "--resume", expect=BUDGET).stderr)

    def begin(self, *args, steps=200, stop=3):
        """A run that was killed after a few checkpoints."""
        self.script(Slope(waste=60))
        train = self.command("--checkpoint", "run", "--checkpoint-every", 1, *args, steps=steps)
        seen = set()
        self.kill_at(train, lambda: seen.update(self.sealed("run")) or len(seen) >= stop)
        return train

    def test_ctrl_c_leaves_a_run_that_goes_on(self):
        """The signal goes to the program and whatever it started, as a terminal sends it."""
        self.script(Slope(waste=60))
        train = self.command("--checkpoint", "run", "--checkpoint-every", 1, steps=30)
        for more in [], ["--resume"]:
            job = subprocess.Popen([PROGRAM, *map(str, train), *more], cwd=self.folder, env=self.environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
            for line in job.stderr:
                if "training" in line:
                    break
            seen = self.sealed("run")
            while job.poll() is None and self.sealed("run") == seen:
                time.sleep(0.002)
            os.killpg(job.pid, signal.SIGINT)
            said = job.communicate()[1]
            self.assertEqual(job.returncode, 128 + signal.SIGINT, said)
            self.assertRegex(said, "charged once.*the same command with --resume goes on from its last checkpoint in run")
        self.run_program(*train, "--resume")
        self.assertEqual(len(self.charged()), 1)
        self.assertIn("is the file that was written for entry 1", self.run_program("ledger", "verify", "trained.pt").stdout)

    def test_an_older_copy_of_a_run_is_not_resumed(self):
        train = self.begin()
        for name in "copy", "linked":
            shutil.copytree(self.folder / "run", self.folder / name, copy_function=os.link if name == "linked" else shutil.copy2)
        later = set(self.sealed("run"))
        self.kill_at([*train, "--resume"], lambda: not self.sealed("run") & later)  # both states are newer now
        for name in "copy", "linked":
            done = self.run_program(*[name if a == "run" else a for a in train], "--resume", expect=USAGE)
            self.assertIn("it is a copy, or was put back from one", done.stderr)
        # Restored into its own place, inode numbers and all.
        shutil.move(self.folder / "run", self.folder / "newer")
        shutil.copytree(self.folder / "copy", self.folder / "run")
        done = self.run_program(*train, "--resume", expect=USAGE)
        self.assertIn("would release more than was charged", done.stderr)
        self.assertEqual(len(self.charged()), 1)
        self.assertFalse((self.folder / "trained.pt").exists())

    def test_a_run_is_resumed_by_one_process_at_a_time(self):
        train = self.begin()
        shutil.copytree(self.folder / "run", self.folder / "copy")
        job = subprocess.Popen([PROGRAM, *map(str, train), "--resume"], cwd=self.folder, env=self.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in job.stderr:
            if "training" in line:
                break
        done = self.run_program(*["copy" if a == "run" else a for a in train], "--resume", expect=None)
        job.kill()
        job.communicate()
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse((self.folder / "trained.pt").exists())

    def test_a_run_is_resumed_as_it_began_or_not_at_all(self):
        train = self.begin()
        self.assertIn("holds a run already", self.run_program(*train, expect=USAGE).stderr)
        done = self.run_program(*self.command("--checkpoint", "run", "--resume", steps=5), expect=USAGE)
        self.assertIn("steps is 5, but the run in run began with 200", done.stderr)
        self.images[0, 0] += 0.01
        self.data()
        self.assertIn("data file is not the one", self.run_program(*train, "--resume", expect=USAGE).stderr)
        self.images[0, 0] -= 0.01
        self.data(images=self.tokens.astype(np.float32), tokens=self.images)  # the same arrays under each other's names
        self.assertIn("data file is not the one", self.run_program(*train, "--resume", expect=USAGE).stderr)
        self.data()
        self.script(Slope(slope=2.0, waste=60))
        self.assertIn("module file is not the one", self.run_program(*train, "--resume", expect=USAGE).stderr)
        self.assertEqual(len(self.charged()), 1)

    def test_a_run_whose_notes_were_rewritten_is_lost(self):
        """What a run began with is in the ledger too, where nobody rewrites it."""
        train = self.begin()
        before = (self.folder / "run" / "run.json").read_text()
        self.images[0, 0] += 0.01
        self.data()
        other = ["other" if a == "run" else a for a in train]
        self.kill_at(other, lambda: self.sealed("other"))
        notes = json.loads(before)
        notes["options"] = json.loads((self.folder / "other" / "run.json").read_text())["options"]
        self.write("run/run.json", json.dumps(notes))
        done = self.run_program(*train, "--resume", expect=BUDGET)
        self.assertIn("with another options than it has now", done.stderr)
        self.write("run/run.json", before)
        self.images[0, 0] -= 0.01
        self.data()
        self.assertIn("is lost", self.run_program(*train, "--resume", expect=BUDGET).stderr)
        self.assertEqual(len(self.charged()), 2)
        self.assertFalse((self.folder / "trained.pt").exists())

    def test_checkpoints_need_a_ledger(self):
        self.script(Slope())
        self.refused(USAGE, "--checkpoint needs a ledger", *self.command("--checkpoint", "run", "--no-ledger"))


@unittest.skipIf(WITHOUT, WITHOUT)
class HostileModules(TrainTest):
    """Each module that could carry a row past the noise is refused by name, or finds nothing to carry it with."""

    def train(self, *args, **kwargs):
        return self.command("--module-seconds", 20, *args, **kwargs)

    def test_what_writes_prints_saves_or_maps_is_refused_with_its_operator(self):
        for module, words in hostile_modules.REFUSED:
            with self.subTest(module.__name__):
                hostile_modules.script(module(), self.path("m.pt"))
                self.refused(BAD_INPUT, words, *self.train())
        self.assertEqual(self.files(), ["m.pt", "pairs.npz"])

    def test_a_traced_constant_is_no_place_to_keep_rows(self):
        for module in hostile_modules.Queue, hostile_modules.View:
            hostile_modules.trace(module(), self.path("m.pt"))
            self.refused(BAD_INPUT, "changes the module itself, by the operator aten::", *self.train())

    def test_normalisation_without_running_means_is_trained(self):
        hostile_modules.script(hostile_modules.Normalised(track=False), self.path("m.pt"))
        self.run_json(*self.train())

    def test_what_is_written_is_the_file_with_released_numbers(self):
        self.script(Slope())
        self.run_json(*self.train())
        with zipfile.ZipFile(self.path("m.pt")) as before, zipfile.ZipFile(self.path("trained.pt")) as after:
            self.assertEqual(set(after.namelist()) - set(before.namelist()), {after.namelist()[0].split("/")[0] + "/extra/eigenveil.json"})
            changed = [name for name in before.namelist() if before.read(name) != after.read(name)]
        self.assertEqual(len(changed), 1, changed)
        self.assertRegex(changed[0], "/data/[0-9]+$")

    def test_a_row_in_an_error_stays_where_it_is(self):
        self.images[50, 1] = 7.125
        self.data()
        hostile_modules.script(hostile_modules.Telltale(), self.path("m.pt"))
        done = self.run_program(*self.train("--checkpoint", "run", steps=80, rate=0.2), expect=BAD_INPUT)
        self.assertIn("failed on private rows; what it says is not shown", done.stderr)
        for place in done.stdout, done.stderr, *(p.read_bytes().decode("latin1") for p in (self.folder / "run").iterdir()):
            self.assertNotIn("7.125", place)
            self.assertNotIn("secret", place)
            self.assertNotIn("\x1b[2J", place)

    def test_time_and_memory_end(self):
        hostile_modules.script(hostile_modules.Endless(), self.path("m.pt"))
        self.refused(BAD_INPUT, "took longer than 4 seconds", *self.command("--module-seconds", 4))
        hostile_modules.script(hostile_modules.Glutton(), self.path("m.pt"))
        self.refused(BAD_INPUT, "m.pt: ", *self.train("--memory", "1G"))

    def test_nothing_is_left_running(self):
        hostile_modules.script(hostile_modules.Endless(), self.path("m.pt"))
        job = subprocess.Popen([PROGRAM, *map(str, self.train())], cwd=self.folder, env=self.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in job.stderr:
            if "made-up" in line:
                break
        runners = children(job.pid)
        self.assertTrue(runners)
        job.kill()
        job.communicate()
        deadline = time.time() + 20
        while any(alive(pid) for pid in runners) and time.time() < deadline:
            time.sleep(0.05)
        self.assertFalse([pid for pid in runners if alive(pid)])

    def test_the_process_of_a_module_has_no_way_out(self):
        """As the kernel tells it: a filter, no privileges to gain, no descriptors but its own."""
        hostile_modules.script(hostile_modules.Endless(), self.path("m.pt"))
        job = subprocess.Popen([PROGRAM, *map(str, self.train())], cwd=self.folder, env=self.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in job.stderr:
            if "made-up" in line:
                break
        facts = pathlib.Path(f"/proc/{children(job.pid)[0]}/status").read_text()
        job.kill()
        job.communicate()
        self.assertRegex(facts, r"Seccomp:\s+2")
        self.assertRegex(facts, r"NoNewPrivs:\s+1")


@unittest.skipIf(WITHOUT, WITHOUT)
class TorchScriptEncoders(AppTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        self.labels = random.integers(0, 2, size=600)
        images = random.integers(0, 60, size=(600, 6, 6))
        for i, label in enumerate(self.labels):  # bars: lying, standing
            at = random.integers(6)
            images[i][(at, slice(None)) if label == 0 else (slice(None), at)] = 250
        np.save(self.path("images.npy"), images.reshape(600, 36).astype(np.uint8))
        np.save(self.path("labels.npy"), self.labels)
        self.write("names.txt", "lying bar\nstanding bar\n")
        torch.jit.script(Halves()).save(self.path("halves.pt"))
        self.pairs = ["--images", "images.npy", "--labels", "labels.npy", "--class-names", "names.txt"]
        self.images = images

    def test_both_sides_fit_evaluate_and_embed(self):
        torchscript = ["--image-encoder", "torchscript:halves.pt", "--text-encoder", "torchscript:halves.pt"]
        self.run_json("clip", "fit", *self.pairs, *torchscript, "--epsilon", 20, "--delta", "auto", *SEEDED)
        self.assertGreater(self.run_json("clip", "eval", "model.npz", *self.pairs, *torchscript)["accuracy"], 0.9)
        self.run_json("clip", "embed", "model.npz", "--images", "images.npy", *torchscript[:2], "--out", "f.npy")
        model = np.load(self.path("model.npz"))
        features = Halves().encode_image(torch.from_numpy(self.images[:, None] / 255.0)).numpy()
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        expected = features @ model["image_weights"].T - model["image_offset"]
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(np.load(self.path("f.npy")), expected, atol=1e-4)
        self.write("texts.txt", "lying bar\nstanding bar\n")
        self.run_json("clip", "embed", "model.npz", "--texts", "texts.txt", *torchscript[2:], "--out", "g.npy")
        letters = np.zeros((2, 256))
        for row, text in zip(letters, ("lying bar", "standing bar")):
            row[[0, *text.encode()]] = 1  # 0: what fills up
        letters /= np.linalg.norm(letters, axis=1, keepdims=True)
        expected = letters @ model["text_weights"].T - model["text_offset"]
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(np.load(self.path("g.npy")), expected, atol=1e-4)

    # Grey folders too: what the images are like must not decide how they are encoded.
    def test_folders_of_images_have_the_channels_that_the_module_takes(self):
        torch.jit.script(GreyHalves()).save(self.path("grey.pt"))
        colours = np.random.default_rng(2).integers(0, 256, size=(600, 6, 7, 3))
        for name in "grey", "colours":
            (self.folder / name).mkdir()
            for i, image in enumerate(colours if name == "colours" else colours[..., 0]):
                self.write(f"{name}/{i:03}.png", png(image))
        luma = (colours @ [19595, 38470, 7471] + 32768) >> 16
        for folder, module, images in [("colours", "halves", colours.transpose(0, 3, 1, 2)), ("grey", "halves", colours[:, None, ..., 0].repeat(3, 1)),
                                       ("colours", "grey", luma[:, None])]:
            self.run_json("clip", "fit", "--images", folder, *self.pairs[2:], "--image-encoder", f"torchscript:{module}.pt",
                          "--epsilon", 20, "--delta", "auto")
            self.run_json("clip", "embed", "model.npz", "--images", folder, "--image-encoder", f"torchscript:{module}.pt", "--out", "f.npy")
            model = np.load(self.path("model.npz"))
            self.assertEqual(json.loads(bytes(model["manifest.json"]))["encoders"]["channels"], images.shape[1])
            features = np.concatenate([images.max(3).reshape(600, -1), images.max(2).reshape(600, -1)], 1) / 255
            features /= np.linalg.norm(features, axis=1, keepdims=True)
            expected = features @ model["image_weights"].T - model["image_offset"]
            expected /= np.linalg.norm(expected, axis=1, keepdims=True)
            np.testing.assert_allclose(np.load(self.path("f.npy")), expected, atol=1e-4)

    def test_a_module_that_remembers_rows_is_refused(self):
        torch.jit.script(Nosy()).save(self.path("nosy.pt"))
        done = self.run_program("clip", "fit", *self.pairs, "--text-encoder", "torchscript:nosy.pt", "--epsilon", 1,
                                "--delta", "auto", expect=BAD_INPUT)
        self.assertIn("changes the module itself", done.stderr)
        self.assertEqual(self.charged(), [])

    def fit(self, module, words):
        """Refused before anything is charged."""
        done = self.run_program("clip", "fit", *self.pairs, "--image-encoder", f"torchscript:{module}", "--epsilon", 1, "--delta",
                                "auto", expect=BAD_INPUT)
        self.assertIn(words, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.charged(), [])

    def define(self, name, body):
        """A module from the text of its forward."""
        module = type(name.split(".")[0], (torch.jit.ScriptModule,), {})()
        module.define("def forward(self, images: Tensor) -> Tensor:\n" + body)
        module.save(self.path(name))

    def test_an_encoder_with_a_memory_is_refused(self):
        memory = torch.zeros(1, 1, 6, 6)

        class First(nn.Module):
            """The first image it sees changes all later ones."""

            def forward(self, images):
                return (images + memory.add_(images)).flatten(1)

        torch.jit.trace(First(), torch.rand(1, 1, 6, 6), check_trace=False).save(self.path("first.pt"))
        self.fit("first.pt", "changes the module itself, by the operator aten::add_")
        for name, expression, words in [
            ("print", "print(images)", "prim::Print"),
            ("save", "torch.save(images, 'stolen.pt')", "aten::save"),
            ("map", "images = images + torch.from_file('stolen.bin', shared=True, size=6)", "aten::from_file"),
            ("old", "images = images + torch.empty(6)", "aten::empty"),
        ]:
            self.define(f"{name}.pt", f"    {expression}\n    return images.flatten(1)\n")
            self.fit(f"{name}.pt", words)
        hostile_modules.script(hostile_modules.FirstOfAll(), self.path("drawer.pt"))
        self.fit("drawer.pt", "changes the module itself, by the operator aten::append")
        self.define("huge.pt", "    return torch.zeros(1, 2000000)\n")
        self.fit("huge.pt", "more than 1000000 numbers")
        self.assertFalse([f for f in self.files() if f.startswith("stolen")])

    def test_an_encoder_may_change_what_it_makes(self):
        hostile_modules.script(hostile_modules.Workshop(), self.path("m.pt"))
        self.run_json("clip", "fit", *self.pairs, "--image-encoder", "torchscript:m.pt", "--epsilon", 20, "--delta", "auto")

    def test_an_alias_that_no_schema_tells_is_no_place_to_keep_rows(self):
        for alias in hostile_modules.SILENT_ALIASES:
            with self.subTest(alias):
                hostile_modules.with_buffer([f"kept = {alias}", "if bool(x[0, 0] > 0.9):", "    kept.add_(1)", "out = out + kept.sum()"],
                                            self.path("m.pt"))
                self.fit("m.pt", "changes the module itself, by the operator aten::add_")

    def test_an_encoder_that_could_read_or_write_any_memory_is_refused(self):
        for operator, expression in hostile_modules.TRUSTING.items():
            with self.subTest(operator):
                hostile_modules.with_buffer([f"out = out + {expression}.sum()"], self.path("m.pt"))
                self.fit("m.pt", f"uses the operator {operator}, ")
        hostile_modules.script(hostile_modules.Address(), self.path("m.pt"))
        self.fit("m.pt", "uses the operator aten::format on an object")

    def test_nothing_runs_while_a_module_is_loaded(self):
        hostile_modules.script(hostile_modules.Wakes(), self.path("m.pt"))
        self.fit("m.pt", "has code that runs while it is loaded (__setstate__)")

    def test_a_mode_that_a_row_sets_is_gone_with_it(self):
        hostile_modules.with_buffer(["out = out + float(torch.is_grad_enabled())", "torch.ops.aten.set_grad_enabled(True)"], self.path("m.pt"))
        module = ["--image-encoder", "torchscript:m.pt"]
        self.run_json("clip", "fit", *self.pairs, *module, "--epsilon", 20, "--delta", "auto")
        self.run_json("clip", "embed", "model.npz", "--images", "images.npy", *module, "--out", "f.npy")
        np.save(self.path("images.npy"), np.load(self.path("images.npy"))[::-1])
        self.run_json("clip", "embed", "model.npz", "--images", "images.npy", *module, "--out", "g.npy")
        np.testing.assert_array_equal(np.load(self.path("f.npy")), np.load(self.path("g.npy"))[::-1])

    def test_a_model_tells_name_and_hash_of_an_encoder_and_never_a_path(self):
        (self.folder / "private place").mkdir()
        shutil.move(self.path("halves.pt"), self.path("private place/halves.pt"))
        where = "torchscript:private place/halves.pt"
        self.run_json("clip", "fit", *self.pairs, "--image-encoder", where, "--epsilon", 20, "--delta", "auto", "--report", "r.html")
        encoders = json.loads(bytes(np.load(self.path("model.npz"))["manifest.json"]))["encoders"]
        digest = hashlib.sha256((self.folder / "private place/halves.pt").read_bytes()).hexdigest()
        self.assertEqual((encoders["image"], encoders["image_file"], encoders["image_sha256"]), ("torchscript", "halves.pt", digest))
        for file in "model.npz", "r.html":
            self.assertNotIn(b"private place", (self.folder / file).read_bytes())
        embed = ["clip", "embed", "model.npz", "--images", "images.npy", "--out", "f.npy"]
        done = self.run_program(*embed, expect=USAGE)
        self.assertIn(f"fitted with torchscript:halves.pt (SHA-256 {digest}): name that file", done.stderr)
        torch.jit.script(GreyHalves()).save(self.path("halves.pt"))
        done = self.run_program(*embed, "--image-encoder", "torchscript:halves.pt", expect=BAD_INPUT)
        self.assertIn("is not the encoder that the model was fitted with", done.stderr)
        self.run_program(*embed, "--image-encoder", where)

    def test_a_crafted_model_runs_nothing(self):
        self.define("evil.pt", "    torch.save(images, 'stolen.pt')\n    return images.flatten(1)\n")
        self.run_json("clip", "fit", *self.pairs, "--image-encoder", "pixels", "--epsilon", 20, "--delta", "auto")
        model = dict(np.load(self.path("model.npz")))
        manifest = json.loads(bytes(model["manifest.json"]))
        for crafted in ({"image": "torchscript:evil.pt"}, {"text": "torchscript:evil.pt"}, {"text": "vectors:/etc/passwd"},
                        {"image": "torchscript", "image_file": "evil.pt", "image_sha256": "evil.pt"},
                        {"image": "torchscript", "image_file": "evil.pt",
                         "image_sha256": hashlib.sha256((self.folder / "evil.pt").read_bytes()).hexdigest()}):
            with zipfile.ZipFile(self.path("model.npz")) as old, zipfile.ZipFile(self.path("crafted.npz"), "w") as new:
                for name in old.namelist():
                    new.writestr(name, json.dumps({**manifest, "encoders": {**manifest["encoders"], **crafted}})
                                 if name == "manifest.json" else old.read(name))
            for command in (["embed", "crafted.npz", "--images", "images.npy", "--out", "f.npy"], ["eval", "crafted.npz", *self.pairs]):
                done = self.run_program("clip", *command, expect=None)
                self.assertIn(done.returncode, (USAGE, BAD_INPUT))
                self.assertFalse((self.folder / "stolen.pt").exists())
                self.assertFalse((self.folder / "f.npy").exists())


class WithoutTorch(AppTest):
    def test_the_program_alone_says_what_it_lacks(self):
        alone = self.folder / "bin"
        alone.mkdir()
        shutil.copy(PROGRAM, alone / "eigenveil")
        with zipfile.ZipFile(self.folder / "m.pt", "w") as module:
            module.writestr("m/data.pkl", "some file")
        for args in (["clip", "train", "--module", "m.pt", "--data", "d.npz", "--sample-rate", 0.1, "--steps", 1, "--clip",
                      1], ["clip", "fit", "--images", "i.npy", "--captions", "c.txt", "--text-encoder",
                           "torchscript:m.pt"]):
            done = self.run_program(*args, "--epsilon", 1, "--delta", 1e-5, expect=USAGE, program=alone / "eigenveil")
            self.assertIn("scripts/install-packages torch", done.stderr)
            self.assertEqual(self.charged(), [])

    def test_the_program_does_not_link_libtorch(self):
        linked = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True).stdout
        self.assertNotIn("torch", linked)


if __name__ == "__main__":
    unittest.main()
