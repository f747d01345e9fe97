# SPDX-License-Identifier: Apache-2.0
"""src/privacy/ATTACKS.md: every attack has a number, and tests of these names are there."""
import re
import unittest

from support import SOURCE


class Attacks(unittest.TestCase):
    def test_every_attack_has_tests_that_are_there(self):
        rows = re.findall(r"^\| (\w+) \| .* \| (.*) \|$", (SOURCE / "src/privacy/ATTACKS.md").read_text(), re.M)
        self.assertEqual([number for number, _ in rows if number != "#"], [*map(str, range(1, 40)), *map(str, range(45, 50)), "library"])
        there = {f"compile_fail/{path.name}" for path in (SOURCE / "tests/compile_fail").glob("*.cpp")}
        for path in (SOURCE / "tests").glob("*/**/*_test.cpp"):
            there |= {f"{suite}.{name}" for suite, name in re.findall(r"^TEST(?:_\w)?\((\w+),\s*(\w+)\)", path.read_text(), re.M)}
        for path in [*(SOURCE / "tests/app").glob("test_*.py"), *(SOURCE / "python/tests").glob("test_*.py")]:
            there |= {f"{path.stem}.{name}" for name in re.findall(r"def (test_\w+)", path.read_text())}
        named = {name for number, tests in rows if number != "#" for name in tests.split(", ")}
        self.assertEqual(named - there, set())


if __name__ == "__main__":
    unittest.main()
