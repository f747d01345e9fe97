# SPDX-License-Identifier: Apache-2.0
"""version and --version: what the program was built from."""
import pathlib
import re
import subprocess
import unittest

from support import PROGRAM, SOURCE, USAGE, AppTest

PROJECT = re.search(r"project\(eigenveil VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]


def is_commit(name):
    done = subprocess.run(["git", "-C", SOURCE, "rev-parse", "--verify", "--quiet", name + "^{commit}"], capture_output=True)
    return done.returncode == 0


class Version(AppTest):
    def test_tells_version_commit_compiler_and_engines(self):
        told = self.run_json("version")
        self.assertEqual(told["version"], PROJECT)
        if (SOURCE / ".git").exists():
            self.assertTrue(is_commit(told["commit"]), told)
        else:
            self.assertEqual(told["commit"], "unknown")
        self.assertRegex(told["compiler"], r"^\w+ \d+\.\d+")
        linked = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True).stdout
        self.assertEqual(told["mpi"], "libmpi" in linked)
        self.assertEqual(told["federation"], "libgrpc" in linked)
        self.assertEqual(told["modules"], pathlib.Path(PROGRAM).with_name("eigenveil-module").exists())

    def test_the_flag_says_the_same_as_the_command(self):
        text = self.run_program("version").stdout
        self.assertEqual(self.run_program("--version").stdout.strip(), text.strip())
        lines = text.splitlines()
        self.assertEqual(lines[0], f"eigenveil {PROJECT}")
        told = self.run_json("version")
        self.assertEqual(lines[1].split(), ["commit", told["commit"]])
        built_in = [name for name in ("mpi", "federation", "modules") if told[name]]
        self.assertEqual(lines[3].split(maxsplit=1)[1], ", ".join(built_in) or "nothing")
        self.run_program("version", "--nonsense", expect=USAGE)

    def build_info(self):
        out = self.path("build_info.cpp")
        subprocess.run(["cmake", f"-DSOURCE={self.folder}", f"-DIN={SOURCE}/cmake/build_info.cpp.in", f"-DOUT={out}",
                        "-DCOMPILER=GNU 12", "-DENGINES=true", "-DMODULES=false", "-P",
                        SOURCE / "cmake/write_build_info.cmake"], check=True, env={"PATH": "/usr/bin:/bin"})
        return pathlib.Path(out).read_text()

    def test_outside_git_the_commit_is_unknown(self):
        text = self.build_info()
        self.assertIn('.commit = "unknown"', text)
        self.assertIn(".modules = false", text)

    def test_a_machine_without_git_knows_the_commit_too(self):
        logs = pathlib.Path(self.path(".git")) / "logs"  # no repository to git, as every one is to a machine without it
        logs.mkdir(parents=True)
        (logs / "HEAD").write_text(f"{'0' * 40} {'a' * 40} Some Body <a@b> 1 +0000\tclone: from; there\n"
                                   f"{'a' * 40} {'b1' * 20} Some Body <a@b> 2 +0000\tcommit: one; more\n")
        self.assertIn('.commit = "b1b1b1b"', self.build_info())


if __name__ == "__main__":
    unittest.main()
