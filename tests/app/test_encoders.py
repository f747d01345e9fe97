# SPDX-License-Identifier: Apache-2.0
"""Public encoders: the catalogue, what is run under its names, what is kept, colours, encoders side by side; and scripts/cifar10."""
import base64
import hashlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import stat
import sys
import tarfile
import unittest

import numpy as np

from support import BAD_INPUT, PROGRAM, SEEDED, SOURCE, USAGE, AppTest, png

RUNNER = pathlib.Path(PROGRAM).with_name("eigenveil-module")
try:
    import torch
    from torch import Tensor, nn
    WITHOUT = None if RUNNER.exists() else "SKIPPED: this build has no libtorch"
except ImportError:
    WITHOUT = "SKIPPED: python3-torch is not installed"

if WITHOUT is None:
    class Inner(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2 - 1

    class Deep(nn.Module):
        """Calls that are three deep, as real networks have them."""

        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Sequential(Inner()), nn.Flatten())

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)


class Encoders(AppTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        self.labels = random.integers(0, 3, size=600)
        # A square of one of three colours at any place
        self.images = random.integers(0, 40, size=(600, 3, 8, 8))
        for image, label in zip(self.images, self.labels):
            at = random.integers(0, 5, size=2)
            image[label, at[0]:at[0] + 4, at[1]:at[1] + 4] = 250
        np.save(self.path("images.npy"), self.images.reshape(600, -1).astype(float))
        np.save(self.path("labels.npy"), self.labels.astype(float))
        self.write("names.txt", "red square\ngreen square\nblue square\n")
        self.pairs = ["--images", "images.npy", "--labels", "labels.npy", "--class-names", "names.txt"]
        self.fit = ["clip", "fit", *self.pairs, "--epsilon", 20, "--delta", "auto", *SEEDED]

    def manifest(self):
        return json.loads(bytes(np.load(self.path("model.npz"))["manifest.json"]))

    def test_the_list_tells_what_they_are_before_any_is_fetched(self):
        listed = self.run_json("clip", "encoders")
        self.assertTrue(listed["folder"].startswith(str(self.home)))
        self.assertEqual([e["name"] for e in listed["encoders"]], ["efficientnet-lite0", "minilm"])
        for encoder in listed["encoders"]:
            self.assertRegex(encoder["sha256"], "^[0-9a-f]{64}$")
            self.assertEqual(encoder["state"], "not fetched")
            self.assertTrue(encoder["licence"] and encoder["trained_on"] and encoder["package"])
        said = self.run_program("clip", "encoders").stdout
        self.assertIn("ImageNet", said)
        self.assertIn("Apache-2.0", said)
        self.run_program("clip", "encoders", "--fetch", "nobody", expect=USAGE)

    def test_a_name_that_is_not_fetched_says_what_to_do_and_charges_nothing(self):
        done = self.run_program(*self.fit, "--image-encoder", "efficientnet-lite0", expect=USAGE)
        self.assertIn("clip encoders --fetch efficientnet-lite0", done.stderr)
        done = self.run_program(*self.fit, "--text-encoder", "minilm", expect=USAGE)
        self.assertIn("clip encoders --fetch minilm", done.stderr)
        self.assertEqual(self.charged(), [])
        self.assertIn("efficientnet-lite0", self.run_program(*self.fit, "--image-encoder", "resnet", expect=USAGE).stderr)

    def test_another_file_under_the_name_is_not_run(self):
        folder = self.home / "data" / "eigenveil" / "encoders"
        folder.mkdir(parents=True)
        for name, flag in (("efficientnet-lite0", "--image-encoder"), ("minilm", "--text-encoder")):
            (folder / f"{name}.pt").write_bytes(b"something else")
            done = self.run_program(*self.fit, flag, name, expect=BAD_INPUT)
            self.assertIn(hashlib.sha256(b"something else").hexdigest(), done.stderr)
        self.assertEqual({e["state"] for e in self.run_json("clip", "encoders")["encoders"]},
                         {"another file, which is not run"})
        self.assertEqual(self.charged(), [])

    def test_scatter_sees_colours(self):
        self.run_json(*self.fit)
        self.assertEqual(self.manifest()["encoders"]["channels"], 3)
        self.assertGreater(self.run_json("clip", "eval", "model.npz", *self.pairs)["accuracy"], 0.9)
        weights = np.load(self.path("model.npz"))["image_weights"]
        self.assertEqual(weights.shape[1], 3 * 81 * 9)
        # PNG files are grey unless it is said
        folder = self.folder / "files"
        folder.mkdir()
        for i, image in enumerate(self.images):
            (folder / f"{i:04}.png").write_bytes(png(image.transpose(1, 2, 0)))
        files = ["--images", "files", *self.pairs[2:]]
        fit = ["clip", "fit", *files, "--epsilon", 20, "--delta", "auto", *SEEDED]
        self.run_json(*fit, "--channels", 3)
        np.testing.assert_array_equal(np.load(self.path("model.npz"))["image_weights"], weights)
        self.assertGreater(self.run_json("clip", "eval", "model.npz", *files)["accuracy"], 0.9)
        self.run_json(*fit)
        self.assertEqual(np.load(self.path("model.npz"))["image_weights"].shape[1], 81 * 9)
        self.run_program("clip", "fit", *files, "--epsilon", 1, "--delta", "auto", "--channels", 2, expect=USAGE)

    @unittest.skipIf(WITHOUT, WITHOUT)
    def test_a_network_of_networks_is_run_and_stands_beside_scatter(self):
        torch.jit.script(Deep().eval()).save(self.path("deep+er.pt"))
        joined = ["--image-encoder", "scatter+torchscript:deep+er.pt"]
        self.run_json(*self.fit, *joined)
        encoders = self.manifest()["encoders"]
        self.assertEqual((encoders["image"], encoders["image_file"]), ("scatter+torchscript", "deep+er.pt"))
        self.assertEqual(np.load(self.path("model.npz"))["image_weights"].shape[1], 3 * 81 * 9 + 192)
        self.assertGreater(self.run_json("clip", "eval", "model.npz", *self.pairs, *joined)["accuracy"], 0.9)
        self.assertIn("deep+er.pt", self.run_program("clip", "eval", "model.npz", *self.pairs, expect=USAGE).stderr)
        for wrong in ("torchscript:deep+er.pt", "pixels+torchscript:deep+er.pt"):
            self.run_program("clip", "eval", "model.npz", *self.pairs, "--image-encoder", wrong, expect=USAGE)
        self.run_program(*self.fit, "--image-encoder", "pixels+scatter", expect=USAGE)

    @unittest.skipIf(WITHOUT, WITHOUT)
    def test_what_is_kept_is_found_again_and_is_the_owners_alone(self):
        torch.jit.script(Deep().eval()).save(self.path("deep.pt"))
        module = ["--image-encoder", "torchscript:deep.pt"]
        self.run_json(*self.fit, *module)
        embed = ["clip", "embed", "model.npz", "--images", "images.npy", *module, "--out", "f.npy"]
        self.run_json(*embed)
        plain = np.load(self.path("f.npy"))
        done = self.run_program(*embed, "--keep-embeddings", "kept")
        self.assertIn("as private as the rows", done.stderr)
        self.assertEqual(stat.S_IMODE((self.folder / "kept").stat().st_mode), 0o700)
        file, = (self.folder / "kept").iterdir()
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        size = file.stat().st_size
        self.run_json(*embed, "--keep-embeddings", "kept")
        np.testing.assert_array_equal(np.load(self.path("f.npy")), plain)
        self.assertEqual(file.stat().st_size, size, "nothing was encoded again")
        # It is read: another number in it, with a right checksum, shows. With a wrong one it is as if it were not there.
        head, record = len(b"eigenveil embeddings 1\n"), 64 + 192 * 8 + 64
        data = bytearray(file.read_bytes())
        key = hashlib.sha256((self.images[0].reshape(-1) / 255).astype(np.float32).tobytes()).hexdigest().encode()
        at = head + [bytes(data[i:i + 64]) for i in range(head, len(data), record)].index(key) * record
        data[at + 64:at + 64 + 192 * 8] = np.eye(192)[0].tobytes()
        file.write_bytes(data)
        self.run_json(*embed, "--keep-embeddings", "kept")
        np.testing.assert_array_equal(np.load(self.path("f.npy")), plain)
        data[at + 64 + 192 * 8:at + record] = hashlib.sha256(bytes(data[at:at + 64 + 192 * 8])).hexdigest().encode()
        file.write_bytes(data[:at + record] + b"half a record")
        self.run_json(*embed, "--keep-embeddings", "kept")
        changed = np.load(self.path("f.npy"))
        self.assertFalse(np.array_equal(changed[0], plain[0]))
        np.testing.assert_array_equal(changed[1:], plain[1:])
        # Somebody else's hands
        file.chmod(0o660)
        self.assertIn("mode 600", self.run_program(*embed, "--keep-embeddings", "kept", expect=BAD_INPUT).stderr)

    @unittest.skipIf(WITHOUT, WITHOUT)
    @unittest.skipUnless(os.environ.get("EIGENVEIL_NIGHTLY"), "SKIPPED: scripts/nightly encoders fetches 100 MB of weights and runs them")
    def test_the_catalogue_is_fetched_and_does_what_it_says(self):
        done = self.run_program("clip", "encoders", "--fetch", "efficientnet-lite0", "minilm", expect=None)
        if done.returncode != 0 and "is there a network" in done.stderr:
            self.skipTest("SKIPPED: pip cannot fetch the weights of the encoders")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({e["state"] for e in self.run_json("clip", "encoders")["encoders"]}, {"fetched"})
        named = ["--image-encoder", "efficientnet-lite0", "--text-encoder", "minilm"]
        small = 60
        for name in ("images", "labels"):
            np.save(self.path(f"{name}.npy"), np.load(self.path(f"{name}.npy"))[:small])
        self.run_json(*self.fit, *named)
        encoders = self.manifest()["encoders"]
        self.assertEqual((encoders["image"], encoders["text"]), ("efficientnet-lite0", "minilm"))
        # The model says which; nobody has to name them.
        self.assertGreater(self.run_json("clip", "eval", "model.npz", *self.pairs)["accuracy"], 0.5)
        self.assertEqual(np.load(self.path("model.npz"))["text_weights"].shape[1], 384)
        # Published similarities of the model (sbert.net, "A man is eating pasta." with three others)
        file = self.home / "data" / "eigenveil" / "encoders" / "minilm.pt"
        module = torch.jit.load(str(file))

        def embedded(text):
            data = list(text.encode())
            return nn.functional.normalize(module(torch.tensor([data + [0] * (256 - len(data))])))

        query = embedded("A man is eating pasta.")
        for text, expected in (("A man is eating food.", 0.7035), ("A man is eating a piece of bread.", 0.5272),
                               ("A man is riding a horse.", 0.1889)):
            self.assertAlmostEqual(float((query * embedded(text)).sum()), expected, places=3)


class Cifar10(AppTest):
    def script(self):
        loader = importlib.machinery.SourceFileLoader("cifar10", str(SOURCE / "scripts" / "cifar10"))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("cifar10", loader))
        loader.exec_module(module)
        return module

    def test_every_filter_of_png_is_undone(self):
        cifar10 = self.script()
        random = np.random.default_rng(1)
        pixels = random.integers(0, 256, size=(2, 30)).astype(np.uint8)
        above, row = pixels
        left = np.concatenate([np.zeros(3, np.uint8), row[:-3]]).astype(int)
        corner = np.concatenate([np.zeros(3, np.uint8), above[:-3]]).astype(int)
        near = left + above - corner
        far = np.abs(np.stack([near - left, near - above, near - corner]))
        paeth = np.choose(far.argmin(0), [left, above, corner])
        for kind, guess in enumerate((0 * left, left, above, (left + above) // 2, paeth)):
            filtered = ((row.astype(int) - guess) % 256).astype(np.uint8)
            np.testing.assert_array_equal(cifar10.unfiltered(kind, filtered, above), row, f"filter {kind}")

    def test_a_sheet_becomes_planes_that_the_program_reads(self):
        cifar10 = self.script()
        random = np.random.default_rng(2)
        images = random.integers(0, 256, size=(7, 3, 32, 32)).astype(np.uint8)
        sheet = png(images.transpose(0, 2, 3, 1).reshape(7, 1024, 3))
        np.testing.assert_array_equal(cifar10.images_of(sheet), images)
        package = io.BytesIO()
        with tarfile.open(fileobj=package, mode="w:gz") as archive:
            for name, data in [*((f"data_batch_{i}.png", sheet) for i in range(1, 6)), ("test_batch.png", sheet),
                               ("train_lables.json", json.dumps([i % 3 for i in range(35)]).encode()),
                               ("test_lables.json", b"[0,1,2,0,1,2,0]")]:
                member = tarfile.TarInfo("package/" + name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        self.write("p.tgz", package.getvalue())
        done = self.run_program("out", "--package", "p.tgz", program=SOURCE / "scripts" / "cifar10", expect=1)
        self.assertIn("SHA-512", done.stderr)
        cifar10.SHA512 = base64.b64encode(hashlib.sha512(package.getvalue()).digest()).decode()
        sys.argv = ["cifar10", self.path("out"), "--package", self.path("p.tgz")]
        cifar10.main()
        self.run_json("clip", "fit", "--images", "out/train-images.idx", "--labels", "out/train-labels.idx", "--class-names",
                      "out/names.txt", "--image-encoder", "pixels", "--epsilon", 5, "--delta", "auto", *SEEDED)
        encoders = json.loads(bytes(np.load(self.path("model.npz"))["manifest.json"]))["encoders"]
        self.assertEqual((encoders["height"], encoders["width"], encoders["channels"]), (32, 32, 3))


if __name__ == "__main__":
    unittest.main()
