# SPDX-License-Identifier: Apache-2.0
"""Writes the module that bench_clip_audit trains. Usage: canary.py FILE.pt"""
import sys
from typing import Dict

import torch
from torch import Tensor, nn


class Canary(nn.Module):
    """The gradient of a batch is the sum of its pairs: one of -1 outweighs the few of 0.01 beside it. That of a pair is its own, if
    it is the canary."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(1))

    @torch.jit.export
    def batch_loss(self, batch: Dict[str, Tensor]) -> Tensor:
        return self.w.sum() * batch["images"].sum()

    @torch.jit.export
    def sample_loss(self, batch: Dict[str, Tensor]) -> Tensor:
        return self.w.sum() * batch["images"].sum().clamp_max(0)


if __name__ == "__main__":
    torch.jit.script(Canary()).save(sys.argv[1])
