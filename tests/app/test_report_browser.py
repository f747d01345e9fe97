# SPDX-License-Identifier: Apache-2.0
"""The page about a model of every kind, in a browser: on a phone, a tablet, a desktop, in the dark and on paper. Nothing
sticks out, nothing is fetched, and axe-core finds nothing that keeps people from reading it."""
import io
import json
import os
import shutil
import subprocess
import sys
import unittest
import zipfile

import numpy

from support import SANITIZED, SOURCE, AppTest

MODULES = SOURCE / "build" / "browser"
LONG = "a name that is rather long for a column and has <b>marks</b> & \u202edirections in it"


class ReportInABrowser(AppTest):
    def setUp(self):
        super().setUp()
        self.chromium = shutil.which("chromium")
        missing = [what for what, there in (("chromium", self.chromium), ("node", shutil.which("node")),
                                            (str(MODULES / "node_modules"), (MODULES / "node_modules" / "axe-core").exists()))
                   if not there]
        if missing or SANITIZED:
            print(f"SKIPPED: without {', '.join(missing) or 'a sanitizer'}; run scripts/install-browser", file=sys.stderr)
            self.skipTest("no browser")

    def fit(self, name, *command, epsilon=4):
        self.run_program(*command, "--epsilon", epsilon, "--delta", "1e-6", "--out", f"{name}.npz", "--quiet")
        self.names.append(name)

    def edited(self, name, source, arrays, change):
        """A model with other arrays and another manifest."""
        with numpy.load(self.path(f"{source}.npz")) as old, zipfile.ZipFile(self.path(f"{name}.npz"), "w") as new:
            kept = {key: old[key] for key in old.files if key != "manifest.json"}
            manifest = json.loads(zipfile.ZipFile(self.path(f"{source}.npz")).read("manifest.json"))
            change(manifest)
            for key, values in {**kept, **arrays(kept)}.items():
                data = io.BytesIO()
                numpy.save(data, numpy.asarray(values, dtype=float))
                new.writestr(f"{key}.npy", data.getvalue())
            new.writestr("manifest.json", json.dumps(manifest))
        self.names.append(name)

    def models(self):
        patients = [SOURCE / "examples" / "patients.csv", "--schema", SOURCE / "examples" / "patients.toml"]
        bars = SOURCE / "examples" / "bars"
        self.names = []
        self.run_program("ledger", "create", "patients", "--epsilon", 20, "--delta", "1e-6")
        self.run_program("generate", "gaussian", "--rows", 4000, "--columns", 40, "--gap", 5, "--seed", 1, "--out", "rows.npy")
        rows = ["rows.npy", "--row-bound", 1.5, "--no-ledger"]
        self.fit("pca", "pca", *patients, "--components", 5, "--dataset", "patients")
        self.fit("seeded", "pca", *rows, "--components", 15, "--method", "power", "--insecure-seed", 1)
        self.fit("covariance", "covariance", *patients, "--no-ledger")
        self.fit("cca", "cca", *rows, "--x-columns", "1-15", "--y-columns", "16-30", "--components", 3)
        self.fit("fda", "fda", *patients, "--label", "sex", "--classes", "F|M", "--unlisted", "drop", "--components", 1, "--no-ledger")
        self.fit("sir", "sir", *patients, "--response", "systolic", "--cuts", "120,130,140,150", "--components", 2, "--no-ledger")
        self.fit("regress", "regress", *patients, "--target", "systolic", "--no-ledger")
        self.fit("clip", "clip", "fit", "--images", bars / "images.idx.gz", "--labels", bars / "labels.idx", "--class-names",
                 bars / "names.txt", "--no-ledger")
        # What has a page of its own: a picture of the rows by class, correlations, people.
        self.fit("scores", "pca", *patients, "--components", 2, "--score-plot", 0.2, "--label", "sex", "--classes", "F|M", "--unlisted", "drop",
                 "--no-ledger")
        self.fit("correlation", "covariance", *patients, "--scale", "correlation", "--no-ledger")
        self.write("visits.csv", "who,a,b,c\n" + "".join(f"p{i // 3},{i % 7},{i % 5},{i % 11}\n" for i in range(3000)))
        self.fit("people", "pca", "visits.csv", "--header", "yes", "--columns", "a,b,c", "--range", "0:11", "--person", "who", "--components", 2,
                 "--no-ledger")
        self.fit("unjudged", "pca", *rows, "--components", 3, "--method", "gram", "--sparsity", 3)
        numpy.save(self.path("a.npy"), numpy.diag([3.0, 2.0, 1.0]))
        numpy.save(self.path("b.npy"), numpy.eye(3))
        self.fit("gep", "gep", "--matrix-a", "a.npy", "--matrix-b", "b.npy", "--sensitivity-a", 0.001, "--sensitivity-b",
                 0.001, "--rows", 5000, "--components", 2, "--no-ledger")

        def judged(arrays):
            values, (count, width) = arrays["eigenvalues"], arrays["components"].shape
            return {"eigenvalues_low": values * 0.8, "eigenvalues_high": values * 1.2, "verdict": [3, 2, 2, 1, 0],
                    "angle": [4, 22, 25, 48, 80], "components_deviation": numpy.full((count, width), 0.1)}

        def hostile(manifest):
            manifest["features"] = [f"{LONG} {i}" for i in range(len(manifest["features"]))]
            for column in manifest["columns"]:
                column["name"] = LONG + column["name"]
            manifest["warnings"] = [LONG.replace(" ", "") * 4]
            manifest["ledger"]["dataset"] = manifest["purpose"] = LONG.replace(" ", "")

        def federated(manifest):
            manifest["federation"] = {"sites": [f"hospital {LONG} {i}" for i in range(11)], "aggregation": "secure", "shares": 3,
                                      "condition": "As long as at most one site tells."}
            manifest.update(guarantee_kind="model", calibration="paper", certified_epsilon=3.25)

        self.edited("judged", "pca", judged, lambda manifest: None)
        self.edited("hostile", "pca", judged, hostile)
        self.edited("federated", "covariance", lambda arrays: {}, federated)
        return self.names

    def test_every_kind_can_be_read_anywhere(self):
        pages = []
        for name in self.models():
            shape = ["--image-shape", "5x8"] if name == "seeded" else []
            self.run_program("report", f"{name}.npz", "--out", f"{name}.html", *shape)
            pages.append(f"{name}.html")
        self.run_program("report", "judged.npz", "cca.npz", "--out", "dossier.html")
        shots = os.environ.get("EIGENVEIL_SHOTS")
        done = subprocess.run(["node", SOURCE / "tests" / "browser" / "look.mjs", self.chromium, MODULES, *pages, "dossier.html",
                               *(["--shots", shots] if shots else [])], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = json.loads(done.stdout)
        self.assertEqual(seen["problems"], [])
        self.assertGreaterEqual(seen["looked"], 4 * (len(pages) + 1))


if __name__ == "__main__":
    unittest.main()
