# SPDX-License-Identifier: Apache-2.0
"""Every command of the README runs, in a copy of the tree that shares nothing but the build."""
import os
import re
import shutil
import subprocess
import unittest

from support import PROGRAM, SOURCE, AppTest

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


class Readme(AppTest):
    def setUp(self):
        super().setUp()
        self.tree = self.folder / "tree"
        ignored = shutil.ignore_patterns("build", ".git", "eigenveil-demo")
        shutil.copytree(SOURCE, self.tree, ignore=ignored)
        # The launcher in the copy runs the program under test instead of building for minutes.
        for script in ("build", "install-packages"):
            (self.tree / "scripts" / script).write_text("#!/bin/sh\nexit 0\n")
            (self.tree / "scripts" / script).chmod(0o755)
        target = self.tree / "build" / "release" / "bin"
        target.mkdir(parents=True)
        shutil.copy(PROGRAM, target / "eigenveil")

    def test_every_command_runs(self):
        commands = [line for kind, block in BLOCK.findall((SOURCE / "README.md").read_text()) if kind == ""
                    for line in block.splitlines() if line]
        self.assertGreater(len(commands), 8)
        self.assertEqual(commands[-1], "./test", "the one command that is this test itself")
        environment = {**os.environ, "HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data")}
        for command in commands[:-1]:
            with self.subTest(command):
                self.assertTrue(command.startswith("./eigenveil "))
                if command == "./eigenveil demo" and not os.path.exists("/usr/share/datasets/fashion-mnist"):
                    self.skipTest("dataset-fashion-mnist is not installed")
                done = subprocess.run(command, shell=True, cwd=self.tree, env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("eigenveil-demo/model.npz", "eigenveil-demo/report.html", "model.npz", "report.html", "patients.npz",
                     "scores.csv", "study.db", "truth.npz"):
            self.assertTrue((self.tree / name).exists(), name)

    def test_the_cpp_example_compiles(self):
        example = next(block for kind, block in BLOCK.findall((SOURCE / "README.md").read_text()) if kind == "cpp")
        source = self.write("example.cpp", example)
        eigen = subprocess.run(["pkg-config", "--cflags", "eigen3"], capture_output=True, text=True).stdout.split()
        subprocess.run(["g++", "-std=c++20", "-fsyntax-only", f"-I{SOURCE / 'include'}", *eigen, source], check=True)

    def test_links_lead_somewhere(self):
        for page in [SOURCE / "README.md", *(SOURCE / "docs").glob("*.md")]:
            for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
                self.assertTrue((page.parent / link).exists(), f"{page.name}: {link}")


if __name__ == "__main__":
    unittest.main()
