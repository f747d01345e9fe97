# SPDX-License-Identifier: Apache-2.0
"""Two small models of pictures and words for TorchScript: two towers (CLIP), and one with BLIP's three losses."""
from typing import Dict, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Eye(nn.Module):
    """`light` mixes the three colours, pixel by pixel: it begins as the identity."""

    def __init__(self, dim: int):
        super().__init__()
        self.light = nn.Conv2d(3, 3, 1)
        with torch.no_grad():
            self.light.weight.copy_(torch.eye(3)[:, :, None, None])
            self.light.bias.zero_()
        self.first = nn.Conv2d(3, 24, 3, stride=2, padding=1)
        self.second = nn.Conv2d(24, 48, 3, stride=2, padding=1)
        self.out = nn.Linear(48 * 16, dim)

    def forward(self, images: Tensor) -> Tensor:
        x = torch.relu(self.first(self.light(images)))
        return self.out(torch.relu(self.second(x)).flatten(1))


class Reader(nn.Module):
    def __init__(self, words: int, dim: int):
        super().__init__()
        self.words = nn.Embedding(words, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.gru(self.words(tokens))
        last = (tokens != 0).sum(1).clamp_min(1) - 1
        return states[torch.arange(tokens.size(0)), last]


class TwoTowers(nn.Module):
    def __init__(self, words: int, dim: int = 48):
        super().__init__()
        self.eye = Eye(dim)
        self.reader = Reader(words, dim)

    @torch.jit.export
    def encode_image(self, images: Tensor) -> Tensor:
        return self.eye(images)

    @torch.jit.export
    def encode_text(self, tokens: Tensor) -> Tensor:
        return self.reader(tokens)

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        return self.eye(images), self.reader(tokens)


def infonce(f: Tensor, g: Tensor, temperature: float) -> Tensor:
    scores = F.normalize(f, dim=1) @ F.normalize(g, dim=1).t() / temperature
    own = torch.arange(scores.size(0))
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.t(), own)) / 2


class Blip(nn.Module):
    """Contrast, match, and speak: captions, and answers to questions."""

    def __init__(self, words: int, dim: int = 48):
        super().__init__()
        self.eye = Eye(dim)
        self.reader = Reader(words, dim)
        self.match = nn.Sequential(nn.Linear(3 * dim, dim), nn.ReLU(), nn.Linear(dim, 2))
        self.words = nn.Embedding(words, dim)
        self.speaker = nn.GRU(2 * dim, 2 * dim, batch_first=True)
        self.say = nn.Linear(2 * dim, words)

    @torch.jit.export
    def encode_image(self, images: Tensor) -> Tensor:
        return self.eye(images)

    @torch.jit.export
    def encode_text(self, tokens: Tensor) -> Tensor:
        return self.reader(tokens)

    @torch.jit.export
    def next_word(self, images: Tensor, tokens: Tensor) -> Tensor:
        """Scores of the word after each one."""
        seen = self.eye(images).unsqueeze(1).expand(-1, tokens.size(1), -1)
        states, _ = self.speaker(torch.cat([seen, self.words(tokens)], 2))
        return self.say(states)

    @torch.jit.export
    def loss(self, batch: Dict[str, Tensor]) -> Tensor:
        images, tokens = batch["images"], batch["tokens"]
        f, g = self.eye(images), self.reader(tokens)
        contrast = infonce(f, g, 0.1)
        # Each picture with its own caption, and with its neighbour's.
        other = g.roll(1, 0)
        pairs = torch.cat([torch.cat([f, g, f * g], 1), torch.cat([f, other, f * other], 1)])
        rows = images.size(0)
        truth = torch.cat([torch.ones(rows, dtype=torch.long), torch.zeros(rows, dtype=torch.long)])
        match = F.cross_entropy(self.match(pairs), truth)
        scores = self.next_word(images, tokens[:, :-1])
        speak = F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0)
        question = batch["question"]
        last = (question != 0).sum(1) - 1
        reply = F.cross_entropy(self.next_word(images, question)[torch.arange(rows), last], batch["answer"])
        return contrast + match + speak + reply

    def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        return self.eye(images), self.reader(tokens)


class BlipTerms(Blip):
    """The same with its losses apart: what is a sum over pairs, and what compares them."""

    @torch.jit.export
    def sample_loss(self, batch: Dict[str, Tensor]) -> Tensor:
        images, tokens, question = batch["images"], batch["tokens"], batch["question"]
        scores = self.next_word(images, tokens[:, :-1])
        speak = F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0)
        last = (question != 0).sum(1) - 1
        reply = F.cross_entropy(self.next_word(images, question)[torch.arange(images.size(0)), last], batch["answer"])
        return speak + reply

    @torch.jit.export
    def batch_loss(self, batch: Dict[str, Tensor]) -> Tensor:
        return infonce(self.eye(batch["images"]), self.reader(batch["tokens"]), 0.1)


def adapt(model):
    """Only `light` and the biases of the eye stay trainable: few parameters, little noise."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("light" in name)
    return model
