# SPDX-License-Identifier: Apache-2.0
"""eigenveil clip: what is released, what it costs, what is refused before anything is charged."""
import base64
import gzip
import json
import unittest

import numpy as np

from support import BAD_INPUT, BUDGET, SEEDED, USAGE, AppTest, numbers, png


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return head + array.astype(np.uint8).tobytes()


# 8x8, grey, pixel i about 4 i
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQH/wAALCAAI"
    "AAgBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAk"
    "M2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLD"
    "xMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AM/4bf8ABtx/x7/8UF/d/wCYb9P+mVf/2Q==")


class Clip(AppTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        n, side = 2000, 8
        labels = random.integers(0, 3, size=n)
        images = random.integers(0, 60, size=(n, side, side))
        for i, label in enumerate(labels):  # bars: lying, standing, oblique
            at = random.integers(1, side - 1)
            if label == 0:
                images[i, at, :] = 250
            elif label == 1:
                images[i, :, at] = 250
            else:
                images[i, range(side), range(side)] = 250
        self.write("images.idx", idx(images))
        self.write("labels.idx", idx(labels))
        self.write("names.txt", "lying bar\nstanding bar\noblique bar\n")
        self.images, self.labels = images, labels
        self.pairs = ["--images", "images.idx", "--labels", "labels.idx", "--class-names", "names.txt"]
        self.fit = ["clip", "fit", *self.pairs, "--epsilon", 2, "--delta", "auto", *SEEDED]
        x = random.normal(size=(n, 6))
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), x[:, :4] + 0.3 * random.normal(size=(n, 4)))

    def manifest(self, name="model.npz"):
        return json.loads(bytes(np.load(self.path(name))["manifest.json"]))

    def refused(self, code, words, *args):
        done = self.run_program(*args, expect=code)
        self.assertIn(words, done.stderr)
        self.assertEqual(self.charged(), [], "nothing was charged")
        self.assertFalse((self.folder / "model.npz").exists())

    def test_prompt_learns_the_classes_and_charges_its_plan(self):
        result = self.run_json(*self.fit, "--report", "r.html")
        self.assertEqual(result["method"], "prompt")
        self.assertAlmostEqual(result["delta"], 2000 ** -1.1, places=12)
        self.assertEqual([(e["label"], e["count"]) for e in result["events"]],
                         [("column sums", 1), ("second moments", 1), ("softmax gradient", 60)])
        self.assertLessEqual(result["certified_epsilon"], 2)
        self.assertIn("NOT PRIVATE", result["guarantee"], "its noise was seeded")
        self.assertEqual([r["purpose"] for r in self.charged()], ["clip, method prompt, dim 2"])
        self.assertIn("softmax gradient", (self.folder / "r.html").read_text())
        metrics = self.run_json("clip", "eval", "model.npz", *self.pairs, "--retrieval")
        self.assertGreater(metrics["accuracy"], 0.9)
        self.assertIs(metrics["private"], False)
        self.assertEqual(metrics["image_to_text"]["recall@1"], metrics["accuracy"])
        self.assertIn("NOT private", self.run_program("clip", "eval", "model.npz", *self.pairs).stdout)

    def test_embeddings_of_images_and_texts_match(self):
        self.run_json(*self.fit, "--image-encoder", "pixels")
        self.write("texts.txt", "a photo of a lying bar\na photo of a standing bar\na photo of a oblique bar\n")
        self.run_json("clip", "embed", "model.npz", "--images", "images.idx", "--out", "f.npy")
        self.run_json("clip", "embed", "model.npz", "--texts", "texts.txt", "--out", "g.npy")
        f, g = np.load(self.path("f.npy")), np.load(self.path("g.npy"))
        self.assertEqual((f.shape, g.shape), ((2000, 2), (3, 2)))
        np.testing.assert_allclose(np.linalg.norm(f, axis=1), 1)
        self.assertGreater(np.mean(np.argmax(f @ g.T, axis=1) == self.labels), 0.8)
        self.run_program("clip", "embed", "model.npz", "--x", "x.npy", "--out", "e.npy", expect=USAGE)

    def write_folder(self, name="pictures"):
        (self.folder / name).mkdir()
        for i, image in enumerate(self.images):
            self.write(f"{name}/{i:04}.png", png(image))

    def test_a_folder_of_images_is_what_the_same_pixels_are_as_idx(self):
        self.write_folder()
        self.write("pictures/.DS_Store", b"x")
        for files in ["--images", "pictures", *self.pairs[2:]], ["--images", "images.idx", *self.pairs[2:]]:
            name = files[1]
            self.run_json("clip", "fit", *files, "--epsilon", 2, "--delta", "auto", *SEEDED, "--no-ledger",
                          "--out", f"{name}.npz")
            metrics = self.run_json("clip", "eval", f"{name}.npz", *files)
            self.assertEqual(metrics["pairs"], 2000)
            self.assertGreater(metrics["accuracy"], 0.9)
            self.run_json("clip", "embed", f"{name}.npz", "--images", name, "--out", f"{name}.npy")
        for ending in "npz", "npy":
            self.assertEqual((self.folder / f"pictures.{ending}").read_bytes(), (self.folder / f"images.idx.{ending}").read_bytes())

    def test_bad_image_files_are_refused_and_nothing_is_charged(self):
        self.images = self.images[:40]
        self.write_folder()
        self.write("labels.idx", idx(self.labels[:40]))
        whole = png(self.images[7])
        fit = ["clip", "fit", "--images", "pictures", *self.pairs[2:], "--image-encoder", "pixels", "--epsilon", 1, "--delta", "auto"]
        for name, contents, words in [
            ("0007.png", whole[:-20], "0007.png: is damaged or truncated"),
            ("0007.png", whole[:50] + bytes([whole[50] ^ 1]) + whole[51:], "0007.png: is damaged or truncated"),
            ("0007.png", b"", "0007.png: is empty"),
            ("0007.png", JPEG, "0007.png: is named like PNG but is a JPEG file"),
            ("0007.png", b"GIF89a", "0007.png: is named like PNG but does not begin like it"),
            ("0007.png", png(np.zeros((8, 9))), "0007.png: is 8x9 (height x width), but pictures/0000.png is 8x8"),
            ("0007.png", png(self.images[7], (30000, 30000)), "0007.png: is 30000x30000"),
            ("0007.jpg", JPEG[:-10], "0007.jpg: is damaged or truncated"),
            ("0007.jpg", JPEG[:-60], "0007.jpg: is no image that can be read"),
            ("0007.txt", b"x", "pictures/0007.txt: is not named .png, .jpg or .jpeg"),
            (".0007.png", whole, "pictures has 39 rows but labels.idx has 40"),
        ]:
            (self.folder / "pictures/0007.png").unlink()
            self.write(f"pictures/{name}", contents)
            self.refused(BAD_INPUT, words, *fit)
            (self.folder / "pictures" / name).unlink()
            self.write("pictures/0007.png", whole)
        self.refused(BAD_INPUT, "8x8 (height x width), but --image-shape or the model says 4x16", *fit, "--image-shape", "4x16")
        self.refused(BAD_INPUT, "is a single image", *fit[:3], "pictures/0007.png", *fit[4:])
        (self.folder / "pictures/0007.png").unlink()
        self.write("pictures/0007.JPG", JPEG)
        self.run_json(*fit, "--image-shape", "8x8", "--method", "cross")
        self.assertEqual(len(self.charged()), 1)

    def test_other_methods_and_vectors(self):
        for method in "cross", "whitened":
            self.run_json(*self.fit, "--method", method, "--image-encoder", "pixels")
            self.assertGreater(self.run_json("clip", "eval", "model.npz", *self.pairs)["accuracy"], 0.6)
            vectors = ["--x", "x.npy", "--y", "y.npy"]
            result = self.run_json("clip", "fit", *vectors, "--method", method, "--dim", 3, "--epsilon", 5, "--delta", 1e-5, *SEEDED)
            self.assertEqual(result["options"]["objective"], "linear")
            recall = self.run_json("clip", "eval", "model.npz", *vectors)["image_to_text"]["recall@10"]
            self.assertGreater(recall, 0.03)  # by chance 0.0025

    def test_batches_and_pairs_are_sampled_charged_and_stamped(self):
        vectors = ["--x", "x.npy", "--y", "y.npy"]
        training = ["--sample-rate", 0.03, "--steps", 200, "--lr", 0.02, "--temperature", 2, "--epsilon", 20, "--delta", 1e-5, *SEEDED]
        for method, clip, sensitivity in ("batch", 0.5, 1.0), ("pair", 0.4, 0.8 * (1 + np.e)):
            result = self.run_json("clip", "fit", *vectors, "--method", method, "--dim", 3, "--clip", clip, *training)
            options = result["options"]
            self.assertAlmostEqual(options.pop("sensitivity"), sensitivity, places=12)
            self.assertEqual(options, {"clip": clip, "dim": 3, "lr": 0.02, "missing": "error", "objective": "infonce", "optimizer": "adam",
                                       "sample_rate": 0.03, "steps": 200, "temperature": 2})
            (event,) = result["events"]
            self.assertEqual(event["count"], 200)
            self.assertTrue(event["mechanism"].startswith("poisson-gaussian:q=0.03,sigma="), event)
            self.assertEqual(result["adjacency"], "add-remove-one")
            self.assertFalse({"rows", "noisy_rows"} & result.keys(), "the number of pairs is private")
            self.assertNotIn(2000, numbers(json.dumps(self.manifest())))
            self.assertLessEqual(result["certified_epsilon"], 20)
            told = self.run_json("account", "--delta", 1e-5, "--event", event["mechanism"] + ",count=200")
            self.assertAlmostEqual(told["epsilon"], result["certified_epsilon"], places=6)
            recall = self.run_json("clip", "eval", "model.npz", *vectors)["image_to_text"]["recall@10"]
            self.assertGreater(recall, 0.02)  # by chance 0.005
        self.assertEqual([r["purpose"] for r in self.charged()], ["clip, method batch, dim 3", "clip, method pair, dim 3"])

    def test_a_private_start_is_part_of_the_one_plan_and_helps(self):
        vectors = ["--x", "x.npy", "--y", "y.npy"]
        pixels = ["--image-encoder", "pixels"]
        training = ["--dim", 2, "--steps", 5, "--sample-rate", 0.02, "--epsilon", 4, "--delta", 1e-5, *SEEDED]
        for method, start, pairs, labels in [
                ("batch", "cross", vectors, ["row count", "column sums", "second moments", "batch gradient"]),
                ("pair", "whitened", vectors, ["row count", "column sums", "second moments", "pair gradient"]),
                ("batch", "cross", self.pairs, ["row count", "column sums", "class sums", "batch gradient"]),
                ("pair", "whitened", self.pairs, ["row count", "column sums", "class counts", "class sums", "second moments",
                                               "pair gradient"])]:
            result = self.run_json("clip", "fit", *pairs, *(pixels if pairs == self.pairs else []), *training, "--method", method, "--start", start)
            self.assertEqual([e["label"] for e in result["events"]], labels)
            self.assertEqual(result["options"]["start"], start)
            self.assertAlmostEqual(result["noisy_rows"], 2000, delta=300)
            self.assertLessEqual(result["certified_epsilon"], 4)
            self.assertGreater(result["certified_epsilon"], 3.9)
            told = self.run_json("account", "--delta", 1e-5, *[flag for e in result["events"] for flag in
                                                               ("--event", f"{e['mechanism']},count={e['count']}")])
            self.assertAlmostEqual(told["epsilon"], result["certified_epsilon"], places=6)
            self.assertIn(f"clip, method {method}, start {start}, dim 2", [r["purpose"] for r in self.charged()])
            metrics = self.run_json("clip", "eval", "model.npz", *pairs)
            if pairs == vectors:  # five steps from a random start: 0.017
                self.assertGreater(metrics["image_to_text"]["recall@10"], 0.03)
            else:  # five steps from a random start: 0.2
                self.assertGreater(metrics["accuracy"], 0.6)

    def test_the_papers_noise_is_half_and_charged_for_what_it_is(self):
        fit = ["clip", "fit", "--x", "x.npy", "--y", "y.npy", "--method", "batch", "--dim", 2, "--steps", 50, "--sample-rate", 0.02,
               "--epsilon", 1, "--delta", 1e-5]
        sigma = lambda result: float(result["events"][0]["mechanism"].split("sigma=")[1])
        tight, paper = self.run_json(*fit), self.run_json(*fit, "--calibration", "paper")
        self.assertAlmostEqual(sigma(paper), sigma(tight) / 2, places=6)
        self.assertGreater(paper["certified_epsilon"], 1.5)
        self.assertIn("Paper calibration, not certified", " ".join(paper["warnings"]))
        self.assertIn(f"({paper['certified_epsilon']:.6g}, 0.00001)-differentially private", paper["guarantee"])
        self.assertEqual(self.manifest()["calibration"], "paper")

    def test_the_temperature_of_the_loss_has_its_effect(self):
        fit = ["clip", "fit", "--x", "x.npy", "--y", "y.npy", "--dim", 2, "--epsilon", 50, "--delta", 1e-5, "--steps", 20,
               "--optimizer", "sgd", *SEEDED]
        for method in "batch", "pair":
            weights = []
            for temperature in 1, 3:
                self.run_json(*fit, "--method", method, "--temperature", temperature)
                weights.append(np.load(self.path("model.npz"))["image_weights"])
                self.assertIs(self.manifest()["private"], False, "seeds are stamped")
            self.assertGreater(np.abs(weights[0] - weights[1]).max(), 1e-6)

    def test_batches_learn_named_classes(self):
        result = self.run_json("clip", "fit", *self.pairs, "--image-encoder", "pixels", "--method", "batch", "--epsilon", 30,
                               "--delta", 1e-4, "--sample-rate", 0.01, "--steps", 300, *SEEDED)
        self.assertEqual(result["classes"], ["lying bar", "standing bar", "oblique bar"])
        self.assertGreater(self.run_json("clip", "eval", "model.npz", *self.pairs)["accuracy"], 0.6)

    def test_plan_forecasts_the_methods_and_spends_nothing(self):
        plan = self.run_json("plan", "clip", "--rows", 20000, "--x-columns", 6, "--y-columns", 4, "--epsilon", 1, "--delta", 1e-5,
                             "--steps", 100, "--batch", 32)
        self.assertEqual([m["method"] for m in plan["methods"]], ["cross", "whitened", "batch", "pair"])
        errors = {m["method"]: m["error"] for m in plan["methods"]}
        self.assertLess(errors["cross"], 0.1)
        self.assertLess(errors[plan["best"]], errors["batch"])
        self.assertTrue(all(n["deviation"] > 0 for m in plan["methods"] for n in m["noise"]))
        self.assertEqual(plan["sample_rate"], 32 / 20000)
        self.assertIn("far larger than", plan["warnings"][0])
        self.assertEqual(self.charged(), [])
        started = self.run_json("plan", "clip", "--rows", 20000, "--x-columns", 6, "--y-columns", 4, "--epsilon", 1, "--delta",
                                1e-5, "--steps", 100, "--batch", 32, "--start", "cross")
        self.assertEqual(started["start"], "cross")
        self.assertLess(max(m["error"] for m in started["methods"] if m["method"] in ("batch", "pair")), errors["batch"])
        for wrong in ["--correlation", 1.5], ["--dim", 5], ["--batch", 1], ["--clip", 0]:
            self.run_program("plan", "clip", "--rows", 2000, "--x-columns", 6, "--y-columns", 4, "--epsilon", 1, "--delta",
                             1e-5, *wrong, expect=USAGE)

    def test_small_batches_of_pairs_are_warned_about(self):
        fit = ["clip", "fit", "--x", "x.npy", "--y", "y.npy", "--method", "pair", "--epsilon", 5, "--delta", 1e-5, "--steps", 3,
               "--dim", 2, "--sample-rate", 0.5]
        # How large batches are is private: said to whoever asks for diagnostics, and to nobody else.
        shown = self.run_program(*fit, "--temperature", 0.2, "--diagnostics")
        self.assertIn("about 1e+03 are expected", shown.stderr)
        self.assertNotIn("are expected", shown.stdout)
        self.assertNotIn("are expected", self.run_program(*fit, "--temperature", 0.2).stderr)
        self.assertIn("far larger", " ".join(self.manifest()["warnings"]))
        self.assertNotIn("expected", json.dumps(self.manifest()), "the number of pairs is private")
        self.assertNotIn("expected", self.run_program(*fit, "--temperature", 2).stderr)
        self.assertNotIn("far larger", " ".join(self.manifest()["warnings"]))

    def test_captions_are_pairs_of_their_own(self):
        self.write("captions.txt", "".join(f"a {['lying', 'standing', 'oblique'][k]} bar\n" for k in self.labels))
        result = self.run_json("clip", "fit", "--images", "images.idx", "--captions", "captions.txt", "--image-encoder",
                               "pixels", "--dim", 2, "--epsilon", 20, "--delta", "auto", *SEEDED)
        self.assertEqual(result["method"], "whitened")
        self.write("prompts.txt", "a {}\n")
        metrics = self.run_json("clip", "eval", "model.npz", *self.pairs, "--prompts", "prompts.txt")
        self.assertGreater(metrics["accuracy"], 0.5)

    def test_bad_pairs_are_refused_and_nothing_is_charged(self):
        pixels = ["--image-encoder", "pixels", "--epsilon", 1, "--delta", "auto"]
        with_labels = lambda name: ["clip", "fit", "--images", "images.idx", "--labels", name, "--class-names",
                                    "names.txt", *pixels]
        self.write("few.idx", idx(self.labels[:-1]))
        self.refused(BAD_INPUT, "every pair needs both", *with_labels("few.idx"))
        wrong = self.labels.copy()
        wrong[1234] = 7
        self.write("wrong.idx", idx(wrong))
        self.refused(BAD_INPUT, "label 1235 is 7", *with_labels("wrong.idx"))
        whole = (self.folder / "images.idx").read_bytes()
        self.write("cut.idx", whole[:-100])
        self.refused(BAD_INPUT, "cut.idx", "clip", "fit", "--images", "cut.idx", *self.pairs[2:], *pixels)
        self.write("cut.idx.gz", gzip.compress(whole)[:-1000])
        self.refused(BAD_INPUT, "cut.idx.gz", "clip", "fit", "--images", "cut.idx.gz", *self.pairs[2:],
                     *pixels)
        self.write("gap.txt", "a bar\n" * 99 + "\n" + "a bar\n" * 1900)
        self.write("end.txt", "a bar\n" * 1999 + "\n")
        self.refused(BAD_INPUT, "line 2000: '' is no text", "clip", "fit", "--images", "images.idx", "--captions",
                     "end.txt", *pixels)
        self.refused(BAD_INPUT, "line 100: '' is no text", "clip", "fit", "--images", "images.idx", "--captions",
                     "gap.txt", *pixels)
        self.write("odd.txt", "a bar\n" * 50 + "...\n" + "a bar\n" * 1949)
        self.refused(BAD_INPUT, "line 51", "clip", "fit", "--images", "images.idx", "--captions", "odd.txt",
                     *pixels)
        self.write("twins.txt", "bar\nbar\nstick\n")
        self.refused(BAD_INPUT, "say the same", "clip", "fit", *self.pairs[:4], "--class-names", "twins.txt",
                     *pixels)
        np.save(self.path("short.npy"), np.zeros((10, 4)))
        self.refused(BAD_INPUT, "x.npy has 2000 rows but short.npy has 10", "clip", "fit", "--x", "x.npy", "--y",
                     "short.npy", "--epsilon", 1, "--delta", "auto")

    def test_wrong_usage_is_refused(self):
        budget = ["--epsilon", 1, "--delta", "auto"]
        self.refused(USAGE, "--class-names", "clip", "fit", *self.pairs[:4], *budget)
        self.refused(USAGE, "give both", "clip", "fit", "--x", "x.npy", *budget)
        self.refused(USAGE, "--dim must be from 1 to 2", *self.fit, "--image-encoder", "pixels", "--dim", 5)
        self.refused(USAGE, "objective", *self.fit, "--image-encoder", "pixels", "--objective", "linear")
        self.refused(USAGE, "--delta", "clip", "fit", *self.pairs, "--epsilon", 1, "--delta", "small")
        self.refused(USAGE, "hides", *self.fit, "--adjacency", "add-remove-one")
        vectors = ["clip", "fit", "--x", "x.npy", "--y", "y.npy", "--epsilon", 1, "--delta", 1e-5]
        for method in "batch", "pair":
            self.refused(USAGE, "add-remove-one", *vectors, "--method", method, "--adjacency", "replace-one")
            self.refused(USAGE, "--sample-rate", *vectors, "--method", method, "--sample-rate", 1.5)
            self.refused(USAGE, "--clip", *vectors, "--method", method, "--clip", 0)
            self.refused(USAGE, "--temperature", *vectors, "--method", method, "--temperature", 0.001)
            self.refused(USAGE, "hides", *vectors[:-1], "auto", "--method", method)
            self.refused(USAGE, "--calibration paper", *vectors, "--method", method, "--calibration", "paper", "--start", "cross")
        self.refused(USAGE, "pair has the objective infonce", *vectors, "--method", "pair", "--objective", "linear")
        self.refused(USAGE, "--calibration paper", *vectors, "--method", "pair", "--calibration", "paper")
        self.refused(USAGE, "--calibration paper", *vectors, "--calibration", "paper")
        self.refused(USAGE, "for --method batch and pair", *vectors, "--method", "cross", "--steps", 5)
        self.refused(USAGE, "--start is for --method batch and pair", *vectors, "--method", "whitened", "--start", "cross")
        self.refused(USAGE, "prompt", "clip", "fit", "--x", "x.npy", "--y", "y.npy", "--method", "prompt", *budget)

    def test_the_budget_of_a_data_set_holds(self):
        self.run_program("ledger", "create", "bars", "--epsilon", 1, "--delta", 1e-3)
        done = self.run_program(*self.fit, "--dataset", "bars", "--image-encoder", "pixels", expect=BUDGET)
        self.assertIn("bars", done.stderr)


if __name__ == "__main__":
    unittest.main()
