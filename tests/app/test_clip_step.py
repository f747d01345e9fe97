# SPDX-License-Identifier: Apache-2.0
"""The graph that clip train executes, with equal computations merged, is still the module. What a step costs: bench/torch_step."""
import pathlib
import unittest
from typing import Dict

import numpy as np

from support import PROGRAM, AppTest

try:
    import torch
    from torch import Tensor, nn
    WITHOUT = None if pathlib.Path(PROGRAM).with_name("eigenveil-module").exists() else "this build has no libtorch"
except ImportError:
    WITHOUT = "python3-torch is not installed"

if WITHOUT is None:

    class Draws(nn.Module):
        """Its gradient is 0 if two draws of dropout are taken for one, or a product for another that is written to."""

        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(400))
            self.v = nn.Parameter(torch.ones(4))

        @torch.jit.export
        def loss(self, batch: Dict[str, Tensor]) -> Tensor:
            one, two = torch.dropout(self.w, 0.5, True), torch.dropout(self.w, 0.5, True)
            overwritten = self.v * 8
            overwritten.zero_()
            return ((one - two)**2).sum() / 5 + (self.v * 8 - overwritten).sum()


@unittest.skipIf(WITHOUT, WITHOUT)
class ClipStep(AppTest):
    def setUp(self):
        super().setUp()
        np.savez(self.path("pairs.npz"), images=np.random.default_rng(3).uniform(size=(20, 4)).astype(np.float32))

    def train(self, module, steps, *args):
        torch.jit.script(module).save(self.path("m.pt"))
        self.run_program("clip", "train", "--module", "m.pt", "--data", "pairs.npz", "--delta", 1e-5, "--sample-rate", 1,
                         "--steps", steps, "--clip", 1, "--optimizer", "sgd", "--lr", 0.1, "--no-ledger", *args)

    def test_what_is_random_or_written_to_is_not_computed_once(self):
        self.train(Draws(), 8, "--epsilon", 1000)
        trained = torch.jit.load(self.path("trained.pt"))
        # The gradient is 8 for v, and 1.6 for w where one draw alone keeps an entry; its length is 28. After 8 steps of 0.1
        # the means are lower by 0.23 and 0.023, with deviations of 0.018 and 0.0018: both sides are 6 of them away.
        self.assertLess(float(trained.v.mean()), 0.885)
        self.assertLess(float(trained.w.mean()), 0.9885)


if __name__ == "__main__":
    unittest.main()
