# SPDX-License-Identifier: Apache-2.0
"""A report explains its words: every method, encoder and answer that it names has a line at its end."""
import html
import re
import unittest

from support import SEEDED, SOURCE, AppTest

PATIENTS = [SOURCE / "examples" / "patients.csv", "--schema", SOURCE / "examples" / "patients.toml"]
BARS = SOURCE / "examples" / "bars"
IMAGES = ["clip", "fit", "--images", BARS / "images.idx.gz", "--labels", BARS / "labels.idx", "--class-names", BARS / "names.txt"]
FITS = {
    "gram": ["pca", *PATIENTS, "--components", 2],
    "adaptive-power": ["pca", *PATIENTS, "--components", 2, "--method", "adaptive-power", "--rounds", 2],
    "searched": ["pca", *PATIENTS, "--components", 2, "--row-bound", "auto"],
    "picture": ["pca", *PATIENTS, "--components", 2, "--scale", "correlation", "--score-plot"],
    "spiked": ["covariance", *PATIENTS, "--method", "spiked", "--rank", 2],
    "cca": ["cca", *PATIENTS, "--x-columns", "age,weight", "--y-columns", "systolic,diastolic", "--components", 1],
    "each-step": ["fda", *PATIENTS, "--label", "sex", "--components", 1, "--noise", "each-step", "--rounds", 2],
    "sir": ["sir", *PATIENTS, "--response", "systolic", "--slices", 4, "--components", 1],
    "regress": ["regress", *PATIENTS, "--target", "systolic"],
    "prompt": [*IMAGES, "--image-encoder", "pixels"],
    "cross": [*IMAGES, "--image-encoder", "pixels", "--method", "cross"],
    "batch": [*IMAGES, "--image-encoder", "pixels", "--method", "batch", "--steps", 5],
}
# How a page says what was done, which encoders there were and what was asked.
NAMED = re.compile(r'(?:method|noise|coefficients) <bdi>([^<]+)</bdi>|Encoder of \w+</th><td><bdi>([^<]+)</bdi>')
ANSWERS = re.compile(r'<th scope="row"><bdi>([^<]+)</bdi></th>')
PLAIN = {"pixels"}  # means what it says


class Glossary(AppTest):
    def test_every_word_has_a_line(self):
        for name, command in FITS.items():
            with self.subTest(name):
                self.run_program(*command, "--epsilon", 4, "--delta", "1e-6", *SEEDED, "--no-ledger", "--quiet", "--out",
                                 f"{name}.npz", "--report", f"{name}.html")
                page = (self.folder / f"{name}.html").read_text()
                body, _, words = page.partition("<h2>Words on this page</h2>")
                explained = html.unescape(" ".join(re.findall(r"<dt>(.*?)</dt>", words))).lower()
                made = body[body.index("<h2>How it was made"):body.index("<h2>How to use it")]
                used = {word for match in NAMED.findall(body) for word in match if word} | set(ANSWERS.findall(made))
                used = {re.sub(r"s?(?: \d+)?$", "", word) for word in used - PLAIN}  # "products 3" are a product
                self.assertGreater(len(used), 1)
                missing = [word for word in used if not re.search(rf"\b({word}|{word.split()[-1]})s?\b", explained)]
                self.assertEqual(missing, [], explained)


if __name__ == "__main__":
    unittest.main()
