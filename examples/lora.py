# SPDX-License-Identifier: Apache-2.0
"""Low-rank adapters (LoRA) for modules that `eigenveil clip train --train lora_` trains: few parameters, little noise.

    from lora import add_lora, export
    add_lora(model, rank=4)          # every nn.Linear; names="decoder" takes those with that in their names
    export(model, "public.pt")
"""
import math
import re

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class LoraLinear(nn.Module):
    """x W^T + b + scale x A^T B^T, with W and b as they were and B = 0: at first the layer that it replaces."""

    def __init__(self, layer: nn.Linear, rank: int, scale: float):
        super().__init__()
        self.weight = layer.weight
        self.bias = layer.bias
        self.scale = scale
        self.lora_a = nn.Parameter(torch.randn(rank, layer.in_features) / math.sqrt(layer.in_features))
        self.lora_b = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias) + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)


def add_lora(model: nn.Module, rank: int = 4, scale: float = 1.0, names: str = "") -> int:
    """Replaces the linear layers whose names `names` (a regular expression) is found in, freezes everything else, and
    returns the number of parameters that are trained. Layers that others read the weights of (the projections of
    nn.MultiheadAttention) are left alone: write attention with nn.Linear."""
    found = [(name, layer) for name, layer in model.named_modules() if type(layer) is nn.Linear and re.search(names, name)]
    if not found:
        raise ValueError(f"no linear layer has '{names}' in its name")
    for name, layer in found:
        owner = model.get_submodule(name.rpartition(".")[0])
        setattr(owner, name.rpartition(".")[2], LoraLinear(layer, rank, scale))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.rpartition(".")[2] in ("lora_a", "lora_b"))
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def export(model: nn.Module, path: str) -> None:
    """As TorchScript, which is what `clip train` reads."""
    torch.jit.script(model).save(path)
