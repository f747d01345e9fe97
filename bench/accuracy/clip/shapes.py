# SPDX-License-Identifier: Apache-2.0
"""A made-up world of coloured shapes with captions, questions and answers. Its public pictures are taken in white light
on black; its private ones in coloured light, with less contrast, on grey, and blurred by noise."""
import itertools

import numpy as np

COLOURS = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "yellow": (1, 1, 0), "purple": (1, 0, 1),
           "white": (1, 1, 1)}
SHAPES = ["circle", "square", "triangle", "cross"]
SIZES = ["small", "large"]
PLACES = {"left": (0.5, 0.3), "right": (0.5, 0.7), "top": (0.3, 0.5), "bottom": (0.7, 0.5)}  # row, column
QUESTIONS = ["which colour", "which shape", "which size", "which place"]

WORDS = ["<pad>", "<caption>", "<end>", "a", "on", "the", "at", "and", "which", "colour", "shape", "size", "place", "?",
         *COLOURS, *SHAPES, *SIZES, *PLACES]
NUMBER = {word: i for i, word in enumerate(WORDS)}
CAPTION_LENGTH, QUESTION_LENGTH, SIDE = 11, 5, 16
CLASSES = [(c, s) for c in COLOURS for s in SHAPES]


def captions_of(colour, shape, size, place):
    """Two ways to say it: the references of a caption."""
    where = f"{'on' if place in ('left', 'right') else 'at'} the {place}"
    return [f"a {size} {colour} {shape} {where}".split(), f"a {colour} {shape} {where} and {size}".split()]


def tokens(words, length):
    ids = [NUMBER[w] for w in words]
    return ids + [0] * (length - len(ids))


def draw(shape, size, place, random):
    row, column = (np.array(PLACES[place]) + random.uniform(-0.08, 0.08, 2)) * SIDE
    radius = (2.0 if size == "small" else 4.0) * random.uniform(0.9, 1.1)
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5
    u, v = (x - column) / radius, (y - row) / radius
    if shape == "circle":
        return u**2 + v**2 <= 1
    if shape == "square":
        return np.maximum(abs(u), abs(v)) <= 0.9
    if shape == "triangle":
        return (v <= 0.8) & (abs(u) <= (v + 1) / 1.8)
    return (np.minimum(abs(u), abs(v)) <= 0.3) & (np.maximum(abs(u), abs(v)) <= 1)


# What the light of the private pictures does to red, green and blue: mixes them, dims them, and adds some of its own.
LIGHT = np.array([[0.60, 0.25, 0.05], [0.05, 0.55, 0.25], [0.25, 0.05, 0.55]])
GREY = np.array([0.20, 0.10, 0.15])


def world(count, private, seed):
    """Arrays for `clip train` and what the pictures show."""
    random = np.random.default_rng(seed)
    images = np.zeros((count, 3, SIDE, SIDE), np.float32)
    caption = np.zeros((count, CAPTION_LENGTH), np.int64)
    question = np.zeros((count, QUESTION_LENGTH), np.int64)
    answer = np.zeros(count, np.int64)
    facts = []
    for i in range(count):
        fact = (random.choice(list(COLOURS)), random.choice(SHAPES), random.choice(SIZES), random.choice(list(PLACES)))
        facts.append(fact)
        mask = draw(*fact[1:], random)
        picture = np.array(COLOURS[fact[0]], float)[:, None, None] * mask
        if private:
            picture = np.einsum("ij,jhw->ihw", LIGHT, picture) + GREY[:, None, None]
        images[i] = picture + random.normal(0, 0.06 if private else 0.03, picture.shape)
        caption[i] = tokens(["<caption>", *captions_of(*fact)[random.integers(2)], "<end>"], CAPTION_LENGTH)
        kind = random.integers(4)
        question[i] = tokens([*QUESTIONS[kind].split(), "?"], QUESTION_LENGTH)
        answer[i] = NUMBER[fact[kind]]
    return {"images": images, "tokens": caption, "question": question, "answer": answer}, facts


def class_prompts():
    """For each class, all that can be said of it: its embedding is their mean."""
    return [[tokens(["<caption>", *captions_of(c, s, size, place)[k], "<end>"], CAPTION_LENGTH)
             for size, place, k in itertools.product(SIZES, PLACES, range(2))] for c, s in CLASSES]
