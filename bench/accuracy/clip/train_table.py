# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes two small models on private pictures with `eigenveil clip train` and prints a table of what they can do
before and after. Usage: train_table.py PROGRAM [--out FILE.md]; about five minutes."""
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
import text_metrics

PUBLIC, PRIVATE, TEST = 20000, 20000, 2000
STEPS, EXPECTED_BATCH, CLIP, LR, DELTA = 1500, 16, 1.0, 0.05, 1e-5
EPSILONS = [1, 3, 10]


def batches(data, size, steps, seed):
    random = np.random.default_rng(seed)
    for _ in range(steps):
        rows = random.integers(len(data["images"]), size=size)
        yield {name: torch.from_numpy(part[rows]) for name, part in data.items()}


def loss_of(model, batch):
    if hasattr(model, "loss"):
        return model.loss(batch)
    return modules.infonce(*model(batch["images"], batch["tokens"]), 0.1)


def fit(model, data, steps, size, lr, seed):
    """Without privacy."""
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for batch in batches(data, size, steps, seed):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
        schedule.step()
    return model


@torch.no_grad()
def accuracy(model, data, facts):
    texts = torch.stack([torch.nn.functional.normalize(model.encode_text(torch.tensor(p)), dim=1).mean(0)
                         for p in shapes.class_prompts()])
    seen = torch.nn.functional.normalize(model.encode_image(torch.from_numpy(data["images"])), dim=1)
    best = (seen @ texts.t()).argmax(1)
    return float(np.mean([shapes.CLASSES[b] == f[:2] for b, f in zip(best.tolist(), facts)]))


@torch.no_grad()
def speak(model, images):
    words = torch.full((len(images), 1), shapes.NUMBER["<caption>"])
    for _ in range(shapes.CAPTION_LENGTH - 1):
        words = torch.cat([words, model.next_word(images, words)[:, -1:].argmax(2)], 1)
    captions = []
    for row in words[:, 1:].tolist():
        spoken = [shapes.WORDS[w] for w in row]
        captions.append(spoken[:spoken.index("<end>")] if "<end>" in spoken else spoken)
    return captions


@torch.no_grad()
def answers(model, data):
    question = torch.from_numpy(data["question"])
    scores = model.next_word(torch.from_numpy(data["images"]), question)
    return scores[torch.arange(len(question)), (question != 0).sum(1) - 1].argmax(1).tolist()


def measure(model, data, facts):
    figures = {"zero-shot": 100 * accuracy(model, data, facts)}
    if hasattr(model, "next_word"):
        captions = speak(model, torch.from_numpy(data["images"]))
        references = [shapes.captions_of(*fact) for fact in facts]
        figures.update({f"BLEU-{n + 1}": 100 * b for n, b in enumerate(text_metrics.bleu(captions, references))})
        figures["ROUGE-L"] = 100 * text_metrics.rouge_l(captions, references)
        figures["CIDEr"] = text_metrics.cider(captions, references)
        figures["VQA"] = 100 * text_metrics.exact_match(answers(model, data), data["answer"].tolist())
    return figures


def train(program, folder, name, epsilon, rows):
    """Private fine-tuning by the program; returns the module and its manifest."""
    out = str(folder / f"{name}-{epsilon}.pt")
    done = subprocess.run(
        [program, "clip", "train", "--module", str(folder / f"{name}.pt"), "--data", str(folder / "private.npz"),
         "--epsilon", str(epsilon), "--delta", str(DELTA), "--sample-rate", str(EXPECTED_BATCH / rows), "--steps",
         str(STEPS), "--clip", str(CLIP), "--optimizer", "sgd", "--lr", str(LR / EXPECTED_BATCH), "--out", out,
         "--no-ledger", "--json", "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return torch.jit.load(out), json.loads(done.stdout)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--out")
    options = options.parse_args()
    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(1)
    public, _ = shapes.world(PUBLIC, False, 1)
    private, _ = shapes.world(PRIVATE, True, 2)
    test, facts = shapes.world(TEST, True, 3)
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.savez(folder / "private.npz", **private)
        for name, kind in (("two towers", modules.TwoTowers), ("BLIP-like", modules.Blip)):
            model = modules.adapt(fit(kind(len(shapes.WORDS)), public, 1500, 128, 2e-3, 1))
            torch.jit.script(model).save(str(folder / f"{name}.pt"))
            rows = [("before (public pictures only)", measure(model, test, facts))]
            trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
            for epsilon in EPSILONS:
                module, manifest = train(options.program, folder, name, epsilon, PRIVATE)
                rows.append((f"private, epsilon {epsilon}", measure(module, test, facts)))
            fit(model, private, 1500, 64, 0.01, 2)
            rows.append(("not private", measure(model, test, facts)))
            lines += [f"**{name}**, {trained} of {sum(p.numel() for p in model.parameters()):,} parameters trained", ""]
            head = list(rows[0][1])
            lines += ["| | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
            lines += [f"| {label} | " + " | ".join(f"{figures[h]:.2f}" for h in head) + " |" for label, figures in rows]
            lines.append("")
            print("\n".join(lines[-len(rows) - 5:]), flush=True)
    if options.out:
        page = pathlib.Path(options.out)
        text = page.read_text() if page.exists() else ""
        mark = "<!-- table -->\n"
        before, _, rest = text.partition(mark)
        _, _, after = rest.partition(mark)
        page.write_text(before + mark + "\n".join(lines) + mark + after)


if __name__ == "__main__":
    main()
