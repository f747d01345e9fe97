# SPDX-License-Identifier: Apache-2.0
"""What it buys to clip pair by pair what is a sum over pairs: the whole eye of the BLIP-like module, 48,000 parameters,
is fine-tuned on private pictures by the gradient of whole batches, and by that of captions and answers pair by pair beside
the contrast of batches. Usage: terms_table.py PROGRAM [--epsilons 1 3 10] [--seeds 1 2 3] [--steps 300] [--public-steps 1500]"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import torch

import modules
import shapes
import train_table

PRIVATE, TEST = 20000, 1000
# By the size of the noise, before any run: clips below most gradients, a step of the noise about a thousandth of the eye.
WHOLE = ["--sample-rate", 16 / PRIVATE, "--clip", 1]
PAIRS = ["--sample-rate", 128 / PRIVATE, "--sample-clip", 1, "--sample-weight", 1 / 128]
BOTH = [*PAIRS, "--batch-rate", 16 / PRIVATE, "--clip", 0.1, "--sample-share", 0.8]


def train(program, folder, name, options, epsilon, steps):
    done = subprocess.run(
        [program, "clip", "train", "--module", str(folder / name), "--train", "^eye", "--data", str(folder / "private.npz"), "--epsilon",
         str(epsilon), "--delta", "1e-5", "--steps", str(steps), "--optimizer", "adam", "--lr", "0.0003", "--schedule", "cosine", "--out",
         str(folder / "out.pt"), "--force", "--no-ledger", "--json", "--quiet", *map(str, options)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return torch.jit.load(str(folder / "out.pt")), json.loads(done.stdout)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--epsilons", type=float, nargs="+", default=[1, 3, 10])
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options.add_argument("--steps", type=int, default=300)
    options.add_argument("--public-steps", type=int, default=1500)
    options = options.parse_args()
    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(1)
    public, _ = shapes.world(20000, False, 1)
    private, _ = shapes.world(PRIVATE, True, 2)
    test, facts = shapes.world(TEST, True, 3)
    model = train_table.fit(modules.Blip(len(shapes.WORDS)), public, options.public_steps, 128, 2e-3, 1)
    apart = modules.BlipTerms(len(shapes.WORDS))
    apart.load_state_dict(model.state_dict())
    wanted = ("zero-shot", "BLEU-4", "CIDEr", "VQA")
    print("| | epsilon | " + " | ".join(wanted) + " |\n" + "|---" * (len(wanted) + 2) + "|")

    def say(label, epsilon, runs):
        cells = []
        for key in wanted:
            values = [run[key] for run in runs]
            cells.append(f"{np.mean(values):.1f}" + (f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""))
        print(f"| {label} | {epsilon} | " + " | ".join(cells) + " |", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.savez(folder / "private.npz", **private)
        torch.jit.script(model).save(str(folder / "whole.pt"))
        torch.jit.script(apart).save(str(folder / "apart.pt"))
        say("before", "", [train_table.measure(model, test, facts)])
        for epsilon in options.epsilons:
            for label, file, terms in (("batches clipped", "whole.pt", WHOLE), ("pairs clipped", "apart.pt", PAIRS),
                                       ("pairs and contrast", "apart.pt", BOTH)):
                say(label, f"{epsilon:g}", [train_table.measure(train(options.program, folder, file, terms, epsilon, options.steps)[0], test, facts)
                                            for _ in options.seeds])
        for parameter_name, parameter in model.named_parameters():
            parameter.requires_grad_(parameter_name.startswith("eye"))
        say("not private", "", [train_table.measure(train_table.fit(model, private, options.steps, 128, 1e-3, 2), test, facts)])


if __name__ == "__main__":
    main()
