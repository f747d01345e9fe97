# SPDX-License-Identifier: Apache-2.0
"""What a private training step costs through `eigenveil clip train` and in Python's torch: the same module, batch rate,
clipping, noise on every gradient and Adam, turn by turn in one run. Our noise is exact (discrete Gaussian from a secure stream),
Python's is not; what ours costs is measured with a module that does nothing else. `wall`: what that module takes alone, for a run
of one step and for each of the later ones: the process, the hand-over of batches, the forks. Usage: torch_step.py PROGRAM [ROUNDS] [wall]"""
import itertools
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Dict

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "accuracy" / "clip"))
import modules  # noqa: E402
import shapes  # noqa: E402

ROWS, BATCH, STEPS, CLIP, LR, THREADS = 4000, 128, 600, 1.0, 1e-3, 2


class Nothing(torch.nn.Module):
    def __init__(self, count: int):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(count))

    @torch.jit.export
    def loss(self, batch: Dict[str, torch.Tensor]) -> torch.Tensor:
        return 0 * self.w.sum()


def ours(program, folder, kind, steps=STEPS):
    """Seconds between the first step and the last, and of the whole run."""
    command = [program, "clip", "train", "--module", f"{folder}/{kind}.pt", "--data", f"{folder}/pairs.npz", "--epsilon",
               "8", "--delta", "1e-5", "--sample-rate", str(BATCH / ROWS), "--steps", str(steps), "--clip", str(CLIP),
               "--lr", str(LR), "--threads", str(THREADS), "--no-ledger", "--force", "--out", f"{folder}/out.pt"]
    start = time.perf_counter()
    job = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    times = {line.split(": ", 1)[1].strip(): time.perf_counter() for line in job.stderr}
    if job.wait() != 0:
        raise SystemExit(f"clip train failed: {times}")
    return times["writing module"] - times["training"], time.perf_counter() - start


def theirs(folder, kind, data, sigma):
    module = torch.jit.load(f"{folder}/{kind}.pt").train()
    parameters = [p for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=LR)
    start = time.perf_counter()
    for _ in range(STEPS):
        rows = (torch.rand(ROWS) < BATCH / ROWS).nonzero().squeeze(1)
        batch = {name: part[rows] for name, part in data.items()}
        optimizer.zero_grad()
        if kind == "Blip":
            loss = module.loss(batch)
        else:
            loss = modules.infonce(*module(batch["images"], batch["tokens"]), 0.1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        for p in parameters:
            p.grad += torch.normal(0.0, 2 * CLIP * sigma, p.grad.shape)
        optimizer.step()
    return time.perf_counter() - start


def wall(program, folder, rounds):
    torch.jit.script(Nothing(1)).save(f"{folder}/nothing.pt")
    turns = [(ours(program, folder, "nothing", 1), ours(program, folder, "nothing", 1 + STEPS)) for _ in range(rounds)]
    run = min(first[1] for first, _ in turns)
    step = min(many[0] - first[0] for first, many in turns) / STEPS * 1e3
    print(f"a module that does nothing, {rounds} turns, the best: a run of one step {run:.2f} s, each later step {step:.2f} ms")


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    torch.set_num_threads(THREADS)
    data, _ = shapes.world(ROWS, False, 1)
    tensors = {name: torch.from_numpy(part) for name, part in data.items()}
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/pairs.npz", **data)
        if "wall" in sys.argv[3:]:
            return wall(program, folder, rounds)
        for kind, part in itertools.product((modules.TwoTowers, modules.Blip), ("adapter", "all")):
            model = kind(len(shapes.WORDS))
            if part == "adapter":
                modules.adapt(model)
            torch.jit.script(model).save(f"{folder}/{kind.__name__}.pt")
            trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
            torch.jit.script(Nothing(trained)).save(f"{folder}/noise.pt")
            turns = [(ours(program, folder, kind.__name__)[0], theirs(folder, kind.__name__, tensors, 1.0),
                      ours(program, folder, "noise")[0]) for _ in range(rounds)]
            mine, python, noise = (statistics.median(x) / STEPS * 1e3 for x in zip(*turns))
            ratio = statistics.median(a / b for a, b, _ in turns)
            without = statistics.median((a - n) / b for a, b, n in turns)
            print(f"{kind.__name__}, {trained:,} parameters trained, batch {BATCH}: "
                  f"eigenveil {mine:.2f} ms a step, python3-torch {python:.2f} ms, ratio {ratio:.2f}; "
                  f"exact noise {noise:.2f} ms, ratio without it {without:.2f}", flush=True)


if __name__ == "__main__":
    main()
