# SPDX-License-Identifier: Apache-2.0
"""Every command of the README and of the pages in docs/ runs.

What is run is what a reader would paste: the blocks that are marked `sh` and each `./eigenveil ...` between backticks, page by
page, in the order of the page and in one shell. A page begins in a folder with the launcher and the examples and nothing
else. A block that is not run says so, and why, in its first line; how many there are is stated here.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

from federation import free_port
from support import PROGRAM, SOURCE, AppTest

BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
NOT_RUN = re.compile(r"# Not run by the tests: \w.{10,}")
# Blocks that say "not run", by page. A number that is not here is 0.
STATED = {"README.md": 1, "docs/clip-train.md": 3, "docs/methods/clip.md": 1, "docs/python.md": 1}
PYTHON = {"README.md", "docs/python.md"}  # whose blocks python/tests/test_package.py runs
FASHION_MNIST = pathlib.Path("/usr/share/datasets/fashion-mnist")


def pages():
    results = SOURCE / "docs" / "results"  # tables; their commands are benchmarks of many minutes
    return [SOURCE / "README.md", *sorted(page for page in (SOURCE / "docs").rglob("*.md") if results not in page.parents)]


def name(page):
    return str(page.relative_to(SOURCE))


def blocks(page, kind):
    return [text for found, text in BLOCK.findall(page.read_text()) if found == kind]


def commands(page):
    """Blocks and spans to run, in the order of the page."""
    text, found = page.read_text(), []
    for block in BLOCK.finditer(text):
        if block[1] == "sh" and not NOT_RUN.match(block[2]):
            found.append((block.start(), block[2]))
    prose = BLOCK.sub(lambda block: " " * len(block[0]), text)
    for span in SPAN.finditer(prose):
        if span[1].startswith("./eigenveil ") and "..." not in span[1]:
            found.append((span.start(), span[1].replace("\\|", "|") + "\n"))  # as a table writes a bar
    return [text for _, text in sorted(found)]


class Pages(AppTest):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data"),
                            "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}  # a Python with numpy

    def tree(self, page):
        """Where a page begins. The launcher runs the program under test instead of building for minutes."""
        tree = self.folder / name(page).replace("/", "-")
        (tree / "scripts").mkdir(parents=True)
        for script in ("build", "install-packages"):
            (tree / "scripts" / script).write_text("#!/bin/sh\nexit 0\n")
            (tree / "scripts" / script).chmod(0o755)
        (tree / "build" / "release" / "bin").mkdir(parents=True)
        (tree / "build" / "release" / "bin" / "eigenveil").symlink_to(PROGRAM)
        shutil.copy(SOURCE / "eigenveil", tree)
        shutil.copytree(SOURCE / "examples", tree / "examples")
        return tree

    def run_page(self, page):
        script = "".join(commands(page)).replace("7443", str(free_port()))
        if not FASHION_MNIST.exists():
            print(f"SKIPPED: ./eigenveil demo, without {FASHION_MNIST}", file=sys.stderr)
            script = script.replace("./eigenveil demo\n", "")
        script = re.sub(r"^! (.*)$", r"if \1; then echo 'This should have failed.'; exit 1; fi", script, flags=re.M)
        tree = self.tree(page)
        # -x: the last line that begins with "+" is the command that failed.
        shell = subprocess.Popen(["bash", "-xeuo", "pipefail"], cwd=tree, env=self.environment, text=True, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            said, _ = shell.communicate(f"main() {{\n{script}\n}} </dev/null\nmain\n", timeout=600)
        finally:
            try:
                os.killpg(shell.pid, signal.SIGKILL)  # what a page left running in the background
            except ProcessLookupError:
                pass
        self.assertEqual(shell.returncode, 0, said[-4000:])
        return tree

    def test_every_command_runs(self):
        ran = 0
        for page in pages():
            if commands(page):
                with self.subTest(name(page)):
                    tree = self.run_page(page)
                    ran += 1
                    if page.name == "README.md":
                        for file in ("model.npz", "report.html", "study.db"):
                            self.assertTrue((tree / file).exists(), file)
        self.assertGreater(ran, 12)

    def test_blocks_say_what_they_are(self):
        for page in pages():
            with self.subTest(name(page)):
                found = BLOCK.findall(page.read_text())
                self.assertEqual(page.read_text().count("\n```"), 2 * len(found), "a block is not closed, or is indented")
                self.assertEqual([kind for kind, _ in found if kind not in ("sh", "python", "cpp", "toml", "text")], [])
                self.assertEqual(sum(bool(NOT_RUN.match(text)) for _, text in found), STATED.get(name(page), 0))
                python = [text for kind, text in found if kind == "python" and not NOT_RUN.match(text)]
                self.assertTrue(name(page) in PYTHON or not python, "nobody runs this Python block")

    def test_no_command_hides_in_the_text(self):
        """What could be pasted as it is begins with ./eigenveil, and is run; "..." marks what could not."""
        for page in pages():
            for span in SPAN.findall(BLOCK.sub("", page.read_text())):
                self.assertFalse(re.match(r"eigenveil .*--", span) and "..." not in span, f"{name(page)}: {span}")

    def test_the_readme_is_short(self):
        self.assertLessEqual(len((SOURCE / "README.md").read_text().splitlines()), 100)
        self.assertLess((SOURCE / "docs" / "report.png").stat().st_size, 200_000)

    def test_the_cpp_examples_compile(self):
        eigen = subprocess.run(["pkg-config", "--cflags", "eigen3"], capture_output=True, text=True).stdout.split()
        examples = [text for page in pages() for text in blocks(page, "cpp")]
        self.assertGreater(len(examples), 1)
        for example in examples:
            source = self.write("example.cpp", example)
            subprocess.run(["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{SOURCE / 'include'}",
                            *(flag.replace("-I", "-isystem") for flag in eigen), source], check=True)

    def test_links_lead_somewhere(self):
        for page in [*pages(), *(SOURCE / "docs" / "results").glob("*.md"), *SOURCE.glob("*.md"),
                     *(SOURCE / "src").rglob("*.md")]:
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
                self.assertTrue((page.parent / link).exists(), f"{name(page)}: {link}")

    def test_every_page_is_reached_from_the_readme(self):
        reached, waiting = set(), [SOURCE / "README.md"]
        while waiting:
            page = waiting.pop().resolve()
            if page not in reached:
                reached.add(page)
                waiting += [page.parent / link for link in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text())]
        self.assertEqual([name(page) for page in pages() if page.resolve() not in reached], [])


class AuditPage(unittest.TestCase):
    """src/privacy/AUDIT.md tells an auditor how much there is to read, and names all of it."""

    page = (SOURCE / "src" / "privacy" / "AUDIT.md").read_text()

    def sources(self, *rooms):
        return [file for room in rooms for tree in (SOURCE / "include" / "eigenveil" / room, SOURCE / "src" / room)
                for file in sorted(tree.glob("*.?pp"))]

    def test_the_number_of_lines_is_right(self):
        lines = [line.strip() for file in self.sources("rows", "privacy", "query", "ledger") for line in file.read_text().splitlines()]
        code = [line for line in lines if line and not line.startswith("//")]
        stated = re.search(r"([\d,]+) lines of C\+\+, of which ([\d,]+) are neither blank nor comments", self.page)
        for number, true in zip(stated.groups(), (len(lines), len(code))):
            self.assertAlmostEqual(int(number.replace(",", "")), true, delta=0.05 * true)

    def test_every_file_is_named(self):
        table = "\n".join(line for line in self.page.splitlines() if line.startswith("|"))
        unnamed = [file.name for file in self.sources("rows", "privacy", "query") if not re.search(rf"\b{file.stem}\b", table)]
        self.assertEqual(unnamed, [])


if __name__ == "__main__":
    unittest.main()
