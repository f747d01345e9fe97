# SPDX-License-Identifier: Apache-2.0
"""What one more estimator costs: its own files, and those outside them that know `regress` by name."""
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ["EIGENVEIL_SOURCE_DIR"])
OWN = re.compile(r"(^|/)regress(/|\.|$)")
# The list of commands, the table of model kinds, the policies of sites, forecasts by name; the call from C++ that a covariance offers.
REGISTERED = {"apps/eigenveil/fits.cpp", "src/release/kinds.cpp", "src/federation/site_config.cpp", "src/front/forecast.cpp",
              "include/eigenveil/eigenveil.hpp"}
# What the contract asks of any estimator: the estimator; its study, forecast, command and call from C++.
CONTRACT = {"include/eigenveil/estimators/regress/regress.hpp", "src/estimators/regress/regress.cpp",
            "include/eigenveil/front/regress.hpp", "src/front/regress.cpp"}
# What is this one's own: the statistics of a noisy Gram matrix.
STATISTICS = {"include/eigenveil/estimators/regress/estimated.hpp", "src/estimators/regress/intervals.cpp",
              "src/estimators/regress/quality.cpp", "src/estimators/regress/shrinkage.cpp",
              "src/estimators/regress/statistics.hpp"}


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


class Contract(unittest.TestCase):
    def test_an_estimator_has_few_files_of_its_own(self):
        own = {str(path.relative_to(ROOT)) for folder in ("apps", "include", "src")
               for path in (ROOT / folder).rglob("*.[ch]pp") if OWN.search(str(path.relative_to(ROOT)))}
        self.assertEqual(own, CONTRACT | STATISTICS)

    def test_few_files_know_an_estimator_by_name(self):
        found = set()
        for folder in ("apps", "include", "src"):
            for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
                name = str(path.relative_to(ROOT))
                if not OWN.search(name) and re.search(r'"regress"|regress_fit|"[^"]*/regress\.hpp"',
                                                      without_comments(path.read_text())):
                    found.add(name)
        self.assertEqual(found, REGISTERED)


if __name__ == "__main__":
    unittest.main()
