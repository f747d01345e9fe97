"""eigenveil clip train and torchscript: encoders: what is learned, charged, refused, and kept when a run is killed."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest
from typing import Dict, Tuple

import numpy as np

from support import BAD_INPUT, OK, PROGRAM, SOURCE, USAGE, AppTest, png

PLUGIN = pathlib.Path(PROGRAM).with_name("eigenveil-torch.so")
try:
    import torch
    from torch import Tensor, nn
    WITHOUT = None if PLUGIN.exists() else "this build has no libtorch"
except ImportError:
    WITHOUT = "python3-torch is not installed"

if WITHOUT is None:
    sys.path.insert(0, str(SOURCE / "bench" / "accuracy" / "clip"))
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

    class Counter(nn.Module):
        """Would climb faster with every call, if a buffer outlived it."""

        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(4))
            self.register_buffer("calls", torch.zeros(1))

        @torch.jit.export
        def loss(self, batch: Dict[str, Tensor]) -> Tensor:
            self.calls += 1
            return self.w.sum() * torch.where(self.calls > 1.5, 1.0, -1.0).sum()

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
        def __init__(self, normalise: bool = False, start: float = 1.0):
            super().__init__()
            self.a = nn.Linear(4, 3)
            self.b = nn.Linear(4, 3)
            self.norm = nn.BatchNorm1d(3) if normalise else nn.Identity()
            self.start = start

        def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
            return self.norm(self.a(images)) * self.start, self.b(tokens.float())

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


@unittest.skipIf(WITHOUT, WITHOUT)
class ClipTrain(AppTest):
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

    def test_a_step_is_the_clipped_gradient_with_its_noise(self):
        self.script(Slope())
        for optimizer, expected in ("sgd", -0.1 * 0.5 * 8), ("adam", -0.1 * 8):
            result = self.run_json(*self.command(epsilon=1e6, steps=8, rate=1, optimizer=optimizer))
            sigma = float(result["events"][0]["mechanism"].split("sigma=")[1])
            trained = torch.jit.load(self.path("trained.pt"))
            # 8 steps of 0.1 (0.5, 0.5, 0.5, 0.5), and noise of deviation 2 c sigma a step
            allowed = 0.1 * 2 * sigma * 8**0.5 * 7 if optimizer == "sgd" else 0.05
            np.testing.assert_allclose(trained.w.detach().numpy(), expected, atol=allowed)
            self.assertLess(allowed, 0.1)
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

    def test_infonce_has_the_gradient_that_python_computes(self):
        torch.manual_seed(2)
        module = Vectors()
        self.script(module)
        for loss in (None, Sharp()):
            args = [] if loss is None else ["--loss-module", self.script(loss, "loss.pt")]
            self.run_json(*self.command(*args, epsilon=1e7, steps=1, rate=1))
            module.zero_grad()
            f, g = module(torch.from_numpy(self.images), torch.from_numpy(self.tokens))
            (modules.infonce(f, g, 0.1) if loss is None else loss(f, g)).backward()
            gradient = torch.cat([p.grad.flatten() for p in module.parameters()])
            gradient = gradient / max(1.0, float(gradient.norm()))
            after = torch.jit.load(self.path("trained.pt"))
            step = torch.cat([(a - b).flatten() for a, b in zip(module.parameters(), after.parameters())]) / 0.1
            self.assertLess(float((step - gradient).norm()), 0.1)
            self.assertGreater(float(gradient.norm()), 0.5)

    def test_batches_leave_nothing_in_the_module(self):
        self.script(Counter())
        result = self.run_json(*self.command(epsilon=1e6, steps=8, rate=1))
        trained = torch.jit.load(self.path("trained.pt"))
        self.assertEqual(float(trained.calls), 0)
        np.testing.assert_allclose(trained.w.detach().numpy(), 0.4, atol=0.1)  # down the first call's slope, 8 times
        self.assertIn("buffers", result["warnings"][0])

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
        block = page.split("```\n")[2]
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
        self.refused(BAD_INPUT, "cannot be read", *self.command(module="none.pt"))
        self.script(Vectors(normalise=True))
        self.refused(BAD_INPUT, "on a batch of 1 made-up pairs", *self.command())
        self.script(Vectors(start=float("nan")))
        self.refused(BAD_INPUT, "the loss is not finite", *self.command())
        self.script(Slope())
        self.refused(USAGE, "leave --loss-module out", *self.command("--loss-module", "m.pt"))
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
        train = self.command("--checkpoint", "run", steps=60, rate=0.2)
        done = self.run_program(*train, expect=BAD_INPUT)
        self.assertRegex(done.stderr, r"step \d+ of 60: m.pt: the loss is not finite\. The run has stopped\. "
                                      r"The whole plan stays charged to 'file .*': epsilon 4\.9\d* at delta 1e-05")
        self.assertFalse((self.folder / "trained.pt").exists())
        kept = np.load(self.path("run/checkpoint.npz"))
        stop = int(done.stderr.split("step ")[1].split(" ")[0])
        self.assertEqual(int(kept["step"]), stop - 1)
        self.assertTrue(np.isfinite(kept["parameters"]).all())
        self.assertEqual(len(self.charged()), 1)
        again = self.run_program(*train, "--resume", expect=USAGE)
        self.assertIn("was stopped", again.stderr)

    def kill_at(self, command, ready):
        job = subprocess.Popen([PROGRAM, *map(str, command)], cwd=self.folder, env=self.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 60
        while not ready() and job.poll() is None and time.time() < deadline:
            time.sleep(0.002)
        self.assertIsNone(job.poll(), "ended before it was killed")
        job.send_signal(signal.SIGKILL)
        job.communicate()

    def environment(self):
        return {**os.environ, "HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data")}

    def test_killed_runs_go_on_are_charged_once_and_never_draw_the_same_noise(self):
        self.script(Slope(slope=0.0, waste=120))  # no gradient: a step is its noise
        for seed in ([], ["--insecure-seed", "5"]):
            run = "run" + "".join(seed)
            train = self.command("--checkpoint", run, "--checkpoint-every", 1, *seed, steps=14)
            states = {0: np.zeros(4)}

            def reached(step):
                file = self.folder / run / "checkpoint.npz"
                if file.exists():
                    kept = np.load(file)
                    states.setdefault(int(kept["step"]), kept["parameters"])
                return max(states) >= step

            self.kill_at(train, lambda: (self.folder / run / "run.json").exists())  # about when it is charged
            for step in 1, 5, 9:
                self.kill_at([*train, "--resume"], lambda: reached(step))
            done = max(states)
            self.assertLess(done, 14)
            self.run_program(*train, "--resume")
            self.assertEqual(int(np.load(self.path(f"{run}/checkpoint.npz"))["step"]), 14)
            steps = [states[t + 1] - states[t] for t in range(done) if t in states and t + 1 in states]
            self.assertGreaterEqual(len(steps), 4)
            firsts = [s[0] for s in steps]
            for i, s in enumerate(firsts):
                self.assertTrue(all(abs(s - other) > 1e-12 for other in firsts[:i]), f"noise drawn twice: {steps}")
        records = self.charged()
        self.assertEqual(len(records), 2, "each run was charged once")
        self.assertEqual({r["state"] for r in records}, {"answered"})

    def test_a_run_is_resumed_as_it_began_or_not_at_all(self):
        self.script(Slope())
        train = self.command("--checkpoint", "run")
        self.run_program(*train)
        first = np.load(self.path("run/checkpoint.npz"))["parameters"]
        self.assertIn("holds a run already", self.run_program(*train, expect=USAGE).stderr)
        done = self.run_program(*self.command("--checkpoint", "run", "--resume", steps=5), expect=USAGE)
        self.assertIn("steps is 5, but the run in run began with 4", done.stderr)
        shutil.copytree(self.folder / "run", self.folder / "copy")
        done = self.run_program(*self.command("--checkpoint", "copy", "--resume"), expect=USAGE)
        self.assertIn("is a copy", done.stderr)
        # A run that has ended is written out again, and no step is taken.
        (self.folder / "trained.pt").unlink()
        self.run_program(*train, "--resume")
        np.testing.assert_allclose(torch.jit.load(self.path("trained.pt")).w.detach().numpy(), first, rtol=1e-6)
        self.assertEqual(len(self.charged()), 1)
        with open(self.path("run/run.lock")) as lock:
            import fcntl
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("another process", self.run_program(*train, "--resume", expect=USAGE).stderr)


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
        self.run_json("clip", "fit", *self.pairs, *torchscript, "--epsilon", 20, "--delta", "auto")
        self.assertGreater(self.run_json("clip", "eval", "model.npz", *self.pairs)["accuracy"], 0.9)
        self.run_json("clip", "embed", "model.npz", "--images", "images.npy", "--out", "f.npy")
        model = np.load(self.path("model.npz"))
        features = Halves().encode_image(torch.from_numpy(self.images[:, None] / 255.0)).numpy()
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        expected = features @ model["image_weights"].T - model["image_offset"]
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(np.load(self.path("f.npy")), expected, atol=1e-4)
        self.write("texts.txt", "lying bar\nstanding bar\n")
        self.run_json("clip", "embed", "model.npz", "--texts", "texts.txt", "--out", "g.npy")
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
            self.run_json("clip", "embed", "model.npz", "--images", folder, "--out", "f.npy")
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


class WithoutTorch(AppTest):
    def test_the_program_alone_says_what_it_lacks(self):
        alone = self.folder / "bin"
        alone.mkdir()
        shutil.copy(PROGRAM, alone / "eigenveil")
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
