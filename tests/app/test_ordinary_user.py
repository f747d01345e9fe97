# SPDX-License-Identifier: Apache-2.0
"""Modules in their sandbox as an ordinary user runs them, who may make no namespaces and has no privileges to give up."""
import errno
import os
import pathlib
import platform
import subprocess
import unittest

import numpy as np

import injected
from support import BAD_INPUT, PROGRAM, AppTest

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


def why_not():
    if os.geteuid() != 0:
        return "to become another user needs root"
    if not pathlib.Path(PROGRAM).with_name("eigenveil-module").exists():
        return "this build has no libtorch"
    try:
        subprocess.run([PROGRAM, "--version"], capture_output=True, check=True, **NOBODY)
    except (OSError, subprocess.CalledProcessError):
        return "the program lies where other users cannot run it"
    try:
        import torch  # noqa: F401
    except ImportError:
        return "python3-torch is not installed"
    return None


WITHOUT = why_not()
if WITHOUT is None:
    from typing import Tuple

    import hostile_modules
    import torch
    from torch import Tensor, nn

    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))

        def forward(self, images: Tensor, tokens: Tensor) -> Tuple[Tensor, Tensor]:
            return images * self.w, tokens * self.w

        @torch.jit.export
        def encode_image(self, images: Tensor) -> Tensor:
            return images.flatten(1)


@unittest.skipIf(WITHOUT, WITHOUT)
class OrdinaryUser(AppTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        np.savez(self.path("pairs.npz"), images=random.uniform(0, 0.9, size=(100, 4)).astype(np.float32),
                 tokens=random.integers(0, 5, size=(100, 4)))
        np.save(self.path("images.npy"), random.integers(0, 255, size=(60, 4)).astype(np.uint8))
        self.write("captions.txt", "a lying bar\na standing bar\na spot\n" * 20)
        torch.jit.script(Views()).save(self.path("m.pt"))
        self.train = ["clip", "train", "--module", "m.pt", "--data", "pairs.npz", "--epsilon", 5, "--delta", 1e-5,
                      "--sample-rate", 0.1, "--steps", 2, "--clip", 1, "--lr", 0.1]

    def as_nobody(self, *args, **kwargs):
        self.hand_over()
        return self.run_program(*args, **NOBODY, **kwargs)

    def hand_over(self):
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, NOBODY["user"], NOBODY["group"])

    def test_modules_train_and_embed(self):
        self.as_nobody(*self.train)
        self.assertEqual((self.folder / "trained.pt").stat().st_uid, NOBODY["user"])
        encoder = ["--image-encoder", "torchscript:m.pt"]
        self.as_nobody("clip", "fit", "--images", "images.npy", "--captions", "captions.txt", *encoder, "--dim", 2,
                       "--epsilon", 5, "--delta", "auto")
        self.as_nobody("clip", "embed", "model.npz", "--images", "images.npy", *encoder, "--out", "f.npy")
        self.assertEqual(np.load(self.path("f.npy")).shape, (60, 2))

    def test_modules_that_name_files_are_refused(self):
        for module in (hostile_modules.Saver, hostile_modules.Mapper, hostile_modules.Reader):
            hostile_modules.script(module(), self.path("m.pt"))
            self.assertIn("uses the operator", self.as_nobody(*self.train, expect=BAD_INPUT).stderr)
        self.assertEqual([name for name in self.files() if "stolen" in name], [])

    @unittest.skipIf(platform.machine() != "x86_64", "calls are injected on x86-64 alone")
    def test_code_that_runs_in_the_process_of_a_module_opens_neither_files_nor_sockets(self):
        """Whatever a module gets to run: its calls are made for it here, in its process, while it computes."""
        hostile_modules.script(hostile_modules.Endless(), self.path("m.pt"))
        self.hand_over()
        environment = {**os.environ, "HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data")}
        job = subprocess.Popen([PROGRAM, *map(str, self.train)], cwd=self.folder, env=environment, text=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **NOBODY)
        try:
            for line in job.stderr:
                if "made-up" in line:
                    break
            runner = int(pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()[0])
            self.assertRegex(pathlib.Path(f"/proc/{runner}/status").read_text(), rf"Uid:\s+{NOBODY['user']}")
            hostile = {"open": (2, b"/etc/passwd", 0), "openat": (257, -100, b"/etc/passwd", 0),
                       "creat": (85, self.path("stolen").encode(), 0o600), "socket": (41, 2, 1, 0),
                       "unix socket": (41, 1, 1, 0), "connect": (42, 3, b"", 16), "execve": (59, b"/bin/sh", 0, 0),
                       "kill": (62, job.pid, 9), "unlink": (87, self.path("pairs.npz").encode()),
                       "memfd": (319, b"x", 0), "ptrace": (101, 16, job.pid, 0)}
            own, *answers = injected.calls(runner, [(39,), *hostile.values()])
            self.assertEqual(own, runner, "getpid is allowed: calls are made")
            self.assertEqual(dict(zip(hostile, answers)), dict.fromkeys(hostile, -errno.EPERM))
        finally:
            job.kill()
            job.communicate()


if __name__ == "__main__":
    unittest.main()
