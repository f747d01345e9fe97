# SPDX-License-Identifier: Apache-2.0
"""The library names options as C++ does, in backticks; the program alone knows flags, and says them."""
import os
import pathlib
import re
import unittest

from support import BUDGET_FLAGS, USAGE, AppTest

ROOT = pathlib.Path(os.environ["EIGENVEIL_SOURCE_DIR"])
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
FLAG = re.compile(r"(?<![-\w])--[a-z{]")
NAMED = re.compile(r"`([a-z_{}]+)`")
# A report is read by people who have nothing but the program: it shows whole commands. Its style sheet has variables.
REPORT = {"report_budget.cpp", "report_use.cpp", "report_style.hpp"}
KEYS_OF_A_SCHEMA = {"other"}


def literals(*folders):
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.?pp")):
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if not line.lstrip().startswith("//"):
                    for literal in LITERAL.findall(line):
                        yield file, f"{file.relative_to(ROOT)}:{number}", literal


class Words(AppTest):
    def test_the_library_knows_no_flags(self):
        said = [f"{place}: {text}" for file, place, text in literals("src", "include")
                if FLAG.search(text) and file.name not in REPORT]
        self.assertEqual(said, [])

    def test_what_the_library_names_is_an_option_of_the_program(self):
        flags = {flag.replace("-", "_") for _, _, text in literals("apps/eigenveil")
                 for flag in re.findall(r"--([a-z][a-z-]*)", text)} | {"ranges"} | KEYS_OF_A_SCHEMA
        # A fit that is described in words (job/described.hpp): {"name", "meaning", ...}
        flags |= {name for file in (ROOT / "src/front").glob("*.cpp") for name in re.findall(r'\{"([a-z_]+)", "[A-Z]', file.read_text())}
        unknown = [f"{place}: {name}" for _, place, text in literals("src", "include") for name in NAMED.findall(text)
                   if not any(re.fullmatch(name.replace("{}", "[a-z]+"), flag) for flag in flags)]
        self.assertEqual(unknown, [])

    def test_the_program_says_flags(self):
        self.write("d.csv", "a,b\n1,2\n2,1\n")
        self.run_program("ledger", "create", "people", *BUDGET_FLAGS, "--ledger", "l.db")
        fit = ("pca", "d.csv", "--header", "yes", *BUDGET_FLAGS, "--no-ledger", "--components")
        for command, words in (((*fit, 1), "give --range LO:HI (or COLUMN=LO:HI), a --schema, or a --row-bound."),
                               ((*fit, 1, "--range", "2:1"), "--range 2:1: the lower bound must be below the upper"),
                               (("ledger", "show", "nobody", "--ledger", "l.db"),
                                "with: eigenveil ledger create NAME --epsilon E --delta D\n")):
            with self.subTest(words):
                self.assertIn(words, self.run_program(*command, expect=USAGE).stderr)

    def test_what_is_no_option_stays_as_it_is(self):
        self.write("d.csv", "a,`b`\n1,2\n2,1\n")
        done = self.run_program("pca", "d.csv", "--header", "yes", *BUDGET_FLAGS, "--no-ledger", "--components", 1, "--range",
                                "a=0:1", expect=USAGE)
        self.assertIn("column '`b`' has no range", done.stderr)


if __name__ == "__main__":
    unittest.main()
