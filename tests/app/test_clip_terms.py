# SPDX-License-Identifier: Apache-2.0
"""What eigenveil clip train trains: losses of pairs and of batches, with clips, rates and shares of their own; which
parameters; by which optimizer; the loss on public pairs; the paper's noise."""
import sys
import unittest
import zipfile
from typing import Dict, Tuple

import numpy as np

from support import BAD_INPUT, BUDGET, SEEDED, SOURCE, USAGE
from test_clip_train import WITHOUT, TrainTest

if WITHOUT is None:
    import torch
    from torch import Tensor, nn

    from test_clip_train import Slope, Vectors
    sys.path.insert(0, str(SOURCE / "examples"))
    import lora

    class Pairs(nn.Module):
        """The gradient of a pair is its image; that of a batch is (0, 0, 0, 1) times its size."""

        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(4))

        @torch.jit.export
        def sample_loss(self, batch: Dict[str, Tensor]) -> Tensor:
            return (batch["images"] @ self.w).sum()

        @torch.jit.export
        def batch_loss(self, batch: Dict[str, Tensor]) -> Tensor:
            return self.w[3] * float(batch["images"].size(0))

    class Sizes(nn.Module):
        """Would tell of its company: the gradient is as many times 1 as pairs are seen, and what is behind them."""

        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(1))

        @torch.jit.export
        def sample_loss(self, batch: Dict[str, Tensor]) -> Tensor:
            return self.w.sum() * float(batch["images"].size(0)) * float(batch["images"].storage_offset() + 1)

    class Remembers(Sizes):
        """Pairs act on those after them, through a buffer."""

        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        @torch.jit.export
        def sample_loss(self, batch: Dict[str, Tensor]) -> Tensor:
            self.seen += batch["images"].sum()
            return self.w.sum() * self.seen.sum()

    class Random(Sizes):
        """A pair's gradient is a random number of its own."""

        @torch.jit.export
        def sample_loss(self, batch: Dict[str, Tensor]) -> Tensor:
            return (self.w * torch.rand(1)).sum()

    class Edges(Sizes):
        """Not finite where an image is as bright as 1."""

        @torch.jit.export
        def sample_loss(self, batch: Dict[str, Tensor]) -> Tensor:
            return self.w.sum() + torch.log(1 - batch["images"].max()).clamp_max(0) * 0

    class Wide(nn.Module):
        """No gradient at all: a step is its noise."""

        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(20000))

        @torch.jit.export
        def sample_loss(self, batch: Dict[str, Tensor]) -> Tensor:
            return 0 * self.w.sum() + 0 * batch["images"].sum()

    class Captioner(nn.Module):
        """Both kinds: a loss of its own for each pair, and embeddings that are compared over the batch."""

        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 3)
            self.b = nn.Linear(4, 3)
            self.drop = nn.Dropout(0.25)

        @torch.jit.export
        def sample_loss(self, batch: Dict[str, Tensor]) -> Tensor:
            return ((self.drop(self.a(batch["images"])) - self.b(batch["tokens"].float()))**2).mean()

        def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
            return self.drop(self.a(images)), self.b(tokens.float())


def sigma_of(event):
    return float(event["mechanism"].split("sigma=")[1])


class TermsTest(TrainTest):
    def train(self, *args, epsilon=1000, steps=1, rate=1, expect=None, optimizer="sgd", module="m.pt", lr=0.1):
        command = ["clip", "train", "--module", module, "--data", "pairs.npz", "--epsilon", epsilon, "--delta", 1e-5, "--sample-rate",
                   rate, "--steps", steps, "--optimizer", optimizer, "--lr", lr, *args]
        return self.run_json(*command) if expect is None else self.run_program(*command, expect=expect)

    def trained(self):
        return torch.jit.load(self.path("trained.pt"))


@unittest.skipIf(WITHOUT, WITHOUT)
class Terms(TermsTest):
    def test_each_pair_is_clipped_by_itself(self):
        self.script(Pairs())
        result = self.train("--sample-clip", 0.5)
        self.assertEqual([(e["label"], e["count"]) for e in result["events"]], [("noisy sum of gradients", 1)])
        self.assertEqual(result["method"], "sample")
        lengths = np.linalg.norm(self.images, axis=1, keepdims=True)
        expected = (self.images * np.minimum(1, 0.5 / lengths)).sum(0)
        moved = -self.trained().w.detach().numpy() / 0.1
        allowed = 7 * 0.5 * sigma_of(result["events"][0])
        self.assertLess(allowed, 3)
        np.testing.assert_allclose(moved, expected, atol=allowed)
        # As a batch clipped as a whole it would have a length of 0.5; and 200 clips would be another vector.
        self.assertGreater(np.linalg.norm(expected), 50)

    def test_the_noise_of_a_sum_is_that_of_one_clip(self):
        self.script(Wide())
        for clip, times in (["--sample-clip", 3], 3), (["--sample-clip", 3, "--sample-weight", 0.5], 1.5):
            result = self.train(*clip, epsilon=1, rate=0.1, lr=1)
            self.assertLessEqual(result["certified_epsilon"], 1)
            noise = self.trained().w.detach().numpy()
            self.assertAlmostEqual(noise.std() / (times * sigma_of(result["events"][0])), 1, delta=5.5 / 200)

    def test_a_pair_has_no_company(self):
        self.script(Sizes())
        result = self.train("--sample-clip", 1000)
        # 200 pairs with a gradient of 1: one that saw more of the batch would count more
        allowed = 7 * 1000 * sigma_of(result["events"][0])
        self.train("--sample-clip", 4, *SEEDED, "--no-ledger")
        self.assertAlmostEqual(float(self.trained().w) / -0.1, 200, delta=min(allowed, 7 * 4 * sigma_of(result["events"][0])))
        hidden = self.script(Remembers())
        done = self.train("--sample-clip", 1, module=hidden, expect=BAD_INPUT)
        self.assertIn("calling sample_loss changes the module itself", done.stderr)

    def test_a_person_gives_one_pair(self):
        """Of 50 people with 4 pairs each, all drawn, one pair each has a gradient of 1."""
        self.script(Sizes())
        self.data(who=np.arange(200) // 4)
        for weight, expected in ("equal", 50), ("rows:16", 12.5):
            result = self.train("--sample-clip", 2, "--person", "who", "--person-weight", weight, *SEEDED, "--no-ledger")
            self.assertAlmostEqual(float(self.trained().w) / -0.1, expected, delta=7 * (2 * sigma_of(result["events"][0]) + 3.1 * (expected < 50)))

    def test_random_numbers_are_a_pairs_own(self):
        """200 uniform numbers have a deviation of 0.29 sqrt(200) = 4.1 about 100; one number for all of 0.29 * 200 = 58."""
        self.script(Random())
        seen = []
        for seed in range(8):
            result = self.train("--sample-clip", 1, "--no-ledger", "--insecure-seed", seed)
            seen.append(float(self.trained().w) / -0.1)
        self.assertLess(7 * sigma_of(result["events"][0]), 3)
        self.assertLess(np.abs(np.array(seen) - 100).max(), 6 * 4.1 + 3)
        self.assertGreater(np.std(seen), 0.5)

    def test_a_pair_that_is_not_finite_counts_nothing_and_nobody_is_told(self):
        self.images[50, 1] = 1
        self.data()
        self.script(Edges())
        result = self.train("--sample-clip", 1, *SEEDED, "--no-ledger")
        self.assertAlmostEqual(float(self.trained().w) / -0.1, 199, delta=min(0.9, 7 * sigma_of(result["events"][0])))

    def test_both_terms_have_clips_rates_and_shares_of_their_own(self):
        self.script(Pairs())
        result = self.train("--sample-clip", 0.5, "--clip", 2, "--sample-weight", 0.01, *SEEDED, "--no-ledger", steps=3)
        self.assertEqual([(e["label"], e["count"]) for e in result["events"]],
                         [("noisy sum of gradients", 3), ("noisy gradient", 3)])
        first, second = map(sigma_of, result["events"])
        self.assertAlmostEqual(first / second, 1, places=6)
        lengths = np.linalg.norm(self.images, axis=1, keepdims=True)
        step = 0.01 * (self.images * np.minimum(1, 0.5 / lengths)).sum(0) + [0, 0, 0, 2]
        allowed = 7 * np.hypot(0.01 * 0.5 * first, 2 * 2 * second) * 3**0.5
        moved = -self.trained().w.detach().numpy() / 0.1
        np.testing.assert_allclose(moved, 3 * step, atol=allowed)
        self.assertLess(allowed, 4)
        unequal = self.train("--sample-clip", 0.5, "--clip", 2, "--sample-share", 0.9, "--batch-rate", 0.05, rate=0.5, steps=3, epsilon=2)
        self.assertIn("q=0.5", unequal["events"][0]["mechanism"])
        self.assertIn("q=0.05", unequal["events"][1]["mechanism"])
        first, second = map(sigma_of, unequal["events"])
        self.assertAlmostEqual(second / first, 3, places=6)
        self.assertLessEqual(unequal["certified_epsilon"], 2)
        again = self.run_json("account", "--event", *[f"{e['mechanism']},count={e['count']}" for e in unequal["events"]][:1], "--event",
                              f"{unequal['events'][1]['mechanism']},count=3", "--delta", 1e-5)
        self.assertAlmostEqual(again["epsilon"], unequal["certified_epsilon"], places=6)

    def test_a_run_with_both_terms_is_resumed(self):
        self.script(Pairs())
        both = ["--sample-clip", 0.5, "--clip", 1, "--checkpoint", "run", "--checkpoint-every", 2]
        self.run_program("ledger", "create", "pairs", "--epsilon", 9, "--delta", 1e-5, "--adjacency", "add-remove-one")
        self.train(*both, "--dataset", "pairs", epsilon=3, rate=0.1, steps=6)
        done = self.train(*both, "--dataset", "pairs", "--resume", "--weight-decay", 0.1, epsilon=3, rate=0.1, steps=6, optimizer="adamw",
                          expect=USAGE)
        self.assertIn("give the options it began with", done.stderr)
        done = self.train(*both[2:], "--dataset", "pairs", "--resume", epsilon=3, rate=0.1, steps=6, expect=USAGE)
        self.assertIn("sample_clip", done.stderr)
        self.assertEqual(len(self.charged()), 1)

    def test_microbatches_change_memory_and_nothing_else(self):
        torch.manual_seed(4)
        self.script(Vectors(), "v.pt")
        self.script(Captioner())
        for module, clips, exact in ("v.pt", ["--clip", 1], False), ("m.pt", ["--sample-clip", 1], True):
            found = []
            for more in [], ["--microbatch", 7], ["--microbatch", 64]:
                self.train(*clips, *more, *SEEDED, "--no-ledger", "--threads", 1 + len(more) // 2, module=module, steps=3, rate=0.5)
                found.append(torch.cat([p.detach().flatten() for p in self.trained().parameters()]).numpy())
            for other in found[1:]:
                np.testing.assert_allclose(other, found[0], atol=0 if exact else 2e-6)
        self.script(Pairs())
        self.assertIn("leave --microbatch out", self.train("--clip", 1, "--microbatch", 3, expect=BAD_INPUT).stderr)

    def test_parameters_by_name(self):
        before = Captioner()
        self.script(before)
        for pattern, moved in ("bias$", {"a.bias", "b.bias"}), ("^a", {"a.weight", "a.bias"}):
            result = self.train("--sample-clip", 1, "--train", pattern, epsilon=5, rate=0.1)
            self.assertEqual(result["parameters"], sum(dict(before.named_parameters())[m].numel() for m in moved))
            after = dict(self.trained().named_parameters())
            for name, parameter in before.named_parameters():
                self.assertEqual(torch.equal(parameter, after[name]), name not in moved, name)
        done = self.train("--sample-clip", 1, "--train", "lora_", expect=BAD_INPUT)
        self.assertIn("its names are a.weight, a.bias, b.weight, b.bias", done.stderr)
        self.assertIn("is no regular expression", self.train("--sample-clip", 1, "--train", "(", expect=USAGE).stderr)

    def test_lora(self):
        torch.manual_seed(5)
        plain, model = Captioner(), Captioner()
        model.load_state_dict(plain.state_dict())
        self.assertEqual(lora.add_lora(model, rank=2, names="a"), 2 * (4 + 3))
        plain.eval(), model.eval()
        images, tokens = torch.from_numpy(self.images), torch.from_numpy(self.tokens)
        torch.testing.assert_close(model(images, tokens), plain(images, tokens))
        for pattern in [], ["--train", "lora_.*"]:
            lora.export(model, self.path("m.pt"))
            result = self.train("--sample-clip", 1, *pattern, epsilon=5, rate=0.1)
            self.assertEqual(result["parameters"], 14)
            after = dict(self.trained().named_parameters())
            for name, parameter in model.named_parameters():
                self.assertEqual(torch.equal(parameter, after[name]), "lora_" not in name, name)
        with self.assertRaises(ValueError):
            lora.add_lora(Captioner(), names="encoder")

    def test_the_command_of_the_docs(self):
        block = (SOURCE / "docs" / "clip-train.md").read_text().split("```sh\n")[2].split("```")[0]
        command, = [line for line in block.splitlines() if line.startswith("./eigenveil ")]
        model = Captioner()
        lora.add_lora(model, rank=1)
        lora.export(model, self.path("blip.pt"))
        self.data("public.npz")
        steps = command.replace("--steps 1000", "--steps 60")  # as they are: a minute
        self.assertNotEqual(steps, command)
        self.run_program(*steps.split()[1:])
        self.assertIn("eigenveil.json", "".join(zipfile.ZipFile(self.path("trained.pt")).namelist()))

    def test_rates_and_decay(self):
        """Slope's gradient is (0.5, 0.5, 0.5, 0.5) once it is clipped to 1."""
        self.script(Slope())
        result = self.train("--clip", 1, "--warmup", 2, "--schedule", "cosine", *SEEDED, "--no-ledger", steps=8)
        rates = [0.5, 1, *((1 + np.cos(np.pi * np.arange(6) / 6)) / 2)]
        allowed = 0.1 * 2 * sigma_of(result["events"][0]) * np.linalg.norm(rates) * 7 / 2
        self.assertAlmostEqual(float(self.trained().w.mean()), -0.1 * 0.5 * sum(rates), delta=allowed)
        self.assertLess(allowed, 0.1 * 0.5 * (8 - sum(rates)), "another schedule is seen")
        self.assertEqual((result["options"]["warmup"], result["options"]["schedule"]), (2, "cosine"))
        module = Slope(slope=0.0)
        module.w = nn.Parameter(torch.full((4,), 1000.0))
        self.script(module)
        self.train("--clip", 1, "--weight-decay", 0.5, steps=8, optimizer="adamw")
        self.assertAlmostEqual(float(self.trained().w.mean()), 1000 * 0.95**8, delta=2)
        self.train("--clip", 1, "--weight-decay", 0.5, steps=8, optimizer="adam", expect=USAGE)
        for wrong in (["--beta1", 1], ["--beta2", -0.1], ["--adam-eps", 0], ["--warmup", 9], ["--weight-decay", "nan"]):
            self.train("--clip", 1, *wrong, steps=8, optimizer="adamw", expect=USAGE)

    def test_public_pairs(self):
        torch.manual_seed(6)
        module = Captioner()
        self.script(module)
        random = np.random.default_rng(8)
        np.savez(self.path("public.npz"), images=random.uniform(size=(300, 4)).astype(np.float32), tokens=random.integers(0, 5, size=(300, 4)))
        result = self.train("--sample-clip", 0.5, "--clip", 1, "--public", "public.npz", "--public-every", 2, steps=3, rate=0.1, epsilon=5)
        told = result["public_losses"]
        self.assertEqual([t["step"] for t in told], [2, 3])
        after = self.trained().eval()
        public = np.load(self.path("public.npz"))
        batch = {k: torch.from_numpy(public[k]) for k in ("images", "tokens")}
        self.assertAlmostEqual(told[-1]["sample_loss"], float(after.sample_loss(batch)), places=4)
        self.assertIn("batch_loss", told[-1])
        np.savez(self.path("public.npz"), images=np.zeros((3, 5), np.float32), tokens=np.zeros((3, 4), int))
        self.train("--clip", 1, "--sample-clip", 1, "--public", "public.npz", expect=BAD_INPUT)
        self.assertEqual(len(self.charged()), 1)

    def test_the_papers_noise_is_stamped_with_what_it_costs(self):
        self.script(Slope())
        ours = self.train("--clip", 1, epsilon=1, rate=0.05, steps=50)
        paper = self.train("--clip", 1, "--calibration", "paper", epsilon=1, rate=0.05, steps=50)
        self.assertAlmostEqual(sigma_of(paper["events"][0]) / sigma_of(ours["events"][0]), 0.5, places=6)
        self.assertGreater(paper["certified_epsilon"], 2)
        self.assertIn("not certified", " ".join(paper["warnings"]))
        self.assertIn(f"({paper['certified_epsilon']:.6g}, 0.00001)-differentially private", paper["guarantee"])
        self.script(Pairs())
        self.assertIn("leave --sample-clip out",
                      self.train("--clip", 1, "--sample-clip", 1, "--calibration", "paper", expect=USAGE).stderr)
        self.run_program("ledger", "create", "small", "--epsilon", 1.5, "--delta", 1e-5, "--adjacency", "add-remove-one")
        self.train("--clip", 1, "--calibration", "paper", "--dataset", "small", epsilon=1, rate=0.05, steps=50, expect=BUDGET)

    def test_what_does_not_go_together_costs_nothing(self):
        self.script(Pairs())
        for args, words in (([], "give --clip"), (["--sample-clip", 1, "--batch-rate", 0.1], "--batch-rate"),
                            (["--sample-clip", 1, "--loss-module", "m.pt"], "--loss-module"),
                            (["--sample-clip", 1, "--clip", 1, "--sample-share", 1], "--sample-share"),
                            (["--sample-clip", -1], "--sample-clip must be finite and positive"), (["--sample-clip", 1, "--sample-weight", 0], "--sample-weight"),
                            (["--clip", 1, "--batch-rate", 2], "--batch-rate")):
            self.assertIn(words, self.train(*args, expect=USAGE).stderr)
        self.script(Slope())
        self.assertIn("has no method sample_loss(batch: Dict[str, Tensor]) -> Tensor",
                      self.train("--sample-clip", 1, expect=BAD_INPUT).stderr)
        self.assertEqual(self.charged(), [])


if __name__ == "__main__":
    unittest.main()
