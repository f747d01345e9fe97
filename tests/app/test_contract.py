# SPDX-License-Identifier: Apache-2.0
"""What one more estimator costs the rest of the house: the files outside its own that know `regress` by name."""
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ["EIGENVEIL_SOURCE_DIR"])
OWN = re.compile(r"(^|/)regress(/|\.|$)")
# The list of commands, the table of model kinds, the policies of sites; the call from C++ that a covariance offers.
REGISTERED = {"apps/eigenveil/fits.cpp", "src/release/kinds.cpp", "src/federation/site_config.cpp",
              "include/eigenveil/eigenveil.hpp"}


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


class Contract(unittest.TestCase):
    def test_few_files_know_an_estimator_by_name(self):
        found = set()
        for folder in ("apps", "include", "src"):
            for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
                name = str(path.relative_to(ROOT))
                if not OWN.search(name) and re.search(r'"regress"|regress_command|"[^"]*/regress\.hpp"',
                                                      without_comments(path.read_text())):
                    found.add(name)
        self.assertEqual(found, REGISTERED)


if __name__ == "__main__":
    unittest.main()
