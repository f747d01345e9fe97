# SPDX-License-Identifier: Apache-2.0
"""Budgets that hold by default, outputs that overwrite nothing, and ledgers that came back as older copies."""
import hashlib
import io
import json
import os
import shutil
import signal
import sqlite3
import time
import unittest
import zipfile

import numpy as np

from support import BAD_INPUT, BUDGET, BUDGET_FLAGS, OK, SEEDED, USAGE, AppTest, Running, png

OUTSIDE = "no budget limits releases of this data"


class LedgerTest(AppTest):
    def setUp(self):
        super().setUp()
        self.rows(1, "d.npy")

    def rows(self, seed, name):
        np.save(self.folder / name, np.random.default_rng(seed).uniform(0, 1, (200, 3)))

    def release(self, data="d.npy", *more, expect=OK):
        return self.run_program("pca", data, "--range", "0:1", "--components", 1, *BUDGET_FLAGS, *more, expect=expect)

    def create(self, name, *more, epsilon=1.1):
        self.run_program("ledger", "create", name, "--epsilon", epsilon, "--delta", 1e-6, *more)

    def manifest(self, *more):
        return self.run_json("pca", "d.npy", "--range", "0:1", "--components", 1, *BUDGET_FLAGS, *more)

    # Which budget pays.

    def test_a_file_of_a_data_set_is_charged_to_it_without_being_told(self):
        self.create("people", "--data", "d.npy")
        done = self.release("d.npy", "--report", "r.html")
        self.assertIn("Charged to the data set 'people'", done.stdout)
        self.assertIn("charged to the data set", (self.folder / "r.html").read_text())
        self.assertEqual(len(self.run_json("ledger", "show", "people")["reservations"]), 1)
        shutil.copy(self.path("d.npy"), self.path("copy.npy"))
        os.symlink(self.path("d.npy"), self.path("link.npy"))
        os.link(self.path("d.npy"), self.path("hard.npy"))
        for name in ("d.npy", "copy.npy", "link.npy", "hard.npy", "./home/../d.npy"):
            self.assertIn("'people'", self.release(name, expect=BUDGET).stderr)
        self.rows(2, "d.npy")  # other rows under the same path
        self.assertIn("'people'", self.release(expect=BUDGET).stderr)
        self.assertEqual(len(self.charged()), 1)
        self.rows(3, "other.npy")
        self.assertIn(OUTSIDE, self.release("other.npy").stdout)

    def test_a_first_release_with_a_data_set_makes_the_file_belong_to_it(self):
        self.create("people")
        self.release("d.npy", "--dataset", "people")
        self.assertIn("'people'", self.release(expect=BUDGET).stderr)

    def test_a_file_of_several_data_sets_needs_a_name(self):
        self.create("a", "--data", "d.npy")
        self.create("b", "--data", "d.npy")
        self.assertRegex(self.release(expect=BUDGET).stderr, "several data sets.*a, b.*--dataset")
        self.release("d.npy", "--dataset", "a")
        self.assertEqual(len(self.charged()), 1)

    def test_a_record_without_a_limit_cannot_stand_in_for_a_budget(self):
        self.release()
        record = self.run_json("ledger", "list")["datasets"][0]["name"]
        self.create("people", "--data", "d.npy")
        self.assertIn("people", self.release("d.npy", "--dataset", record, expect=BUDGET).stderr)

    def test_a_folder_of_part_files_belongs_as_a_whole(self):
        (self.folder / "parts").mkdir()
        for i in range(2):
            self.rows(i, f"parts/{i}.npy")
        self.create("people", "--data", "parts")
        shutil.copytree(self.folder / "parts", self.folder / "moved")
        self.assertIn("'people'", self.release("moved").stdout)

    def test_a_folder_belongs_where_any_of_its_files_does(self):
        self.create("people", "--data", "d.npy")
        self.release()
        for name in ("linked", "copied"):
            (self.folder / name).mkdir()
        os.symlink(self.path("d.npy"), self.folder / "linked" / "1.npy")
        shutil.copy(self.path("d.npy"), self.folder / "copied" / "1.npy")
        self.rows(2, "copied/2.npy")
        for name in ("linked", "copied"):
            self.assertIn("'people'", self.release(name, expect=BUDGET).stderr)
        self.assertEqual(len(self.charged()), 1)

    def test_a_file_belongs_where_its_folder_does(self):
        (self.folder / "parts").mkdir()
        for i in range(2):
            self.rows(i, f"parts/{i}.npy")
        self.write("parts/_SUCCESS", "")
        self.create("people", "--data", "parts")
        self.release("parts")
        shutil.copytree(self.folder / "parts", self.folder / "moved")
        self.write("moved/.left-by-a-tool", "")
        shutil.copy(self.path("parts/0.npy"), self.path("alone.npy"))
        self.rows(7, "parts/2.npy")  # came later
        for name in ("parts/0.npy", "parts/2.npy", "moved", "alone.npy"):
            self.assertIn("'people'", self.release(name, expect=BUDGET).stderr)
        (self.folder / "other").mkdir()
        self.rows(8, "other/0.npy")
        self.write("other/_SUCCESS", "")
        self.assertIn(OUTSIDE, self.release("other").stdout)

    def images(self, folder, count=40, seed=5):
        (self.folder / folder).mkdir()
        pictures = np.random.default_rng(seed).integers(0, 256, (count, 4, 4))
        for i in range(count):
            self.write(f"{folder}/{i:03}.png", png(pictures[i]))

    def embed(self, folder, *more, expect=OK):
        return self.run_program("pca", folder, "--range", "0:255", "--components", 1, *BUDGET_FLAGS, "--image-shape", "4x4", *more, expect=expect)

    def test_a_folder_of_images_belongs_where_any_of_them_does(self):
        """All but one of them, as copies, links and hard links; and a folder of which some images have a budget each."""
        self.images("images")
        self.create("people", "--data", "images")
        self.embed("images")
        names = sorted(os.listdir(self.folder / "images"))[1:]
        for way in (shutil.copy, os.symlink, os.link):
            folder = self.folder / way.__name__
            folder.mkdir()
            for name in names:
                way(self.path(f"images/{name}"), folder / name)
            self.assertIn("'people'", self.embed(way.__name__, expect=BUDGET).stderr)
        self.assertEqual(len(self.charged()), 1)
        self.images("other", seed=6)
        self.assertIn(OUTSIDE, self.embed("other").stdout)
        self.images("single", seed=7)
        self.create("two", "--data", "single/000.png", "--data", "single/001.png", epsilon=0.5)
        self.assertIn("'two'", self.embed("single", expect=BUDGET).stderr)

    def test_an_image_that_cannot_be_read_is_one_row_to_the_ledger_too(self):
        """A link to itself, one to nowhere and a broken file end the same way, and under zero-row they cost their own row."""
        released = set()
        for number, spoil in enumerate((lambda path: path.symlink_to(path.name), lambda path: path.symlink_to("nowhere"), lambda path: path.write_bytes(b"x"))):
            folder = f"images{number}"
            self.images(folder)
            path = self.folder / folder / "003.png"
            path.unlink()
            spoil(path)
            ledger = ["--ledger", f"{number}.db"]
            self.create("people", "--data", folder, *ledger, epsilon=3)
            self.embed(folder, *ledger, expect=BAD_INPUT)
            self.embed(folder, *ledger, "--missing", "zero-row", "--fields", 16, *SEEDED, "--out", "m.npz")
            released.add((self.folder / "m.npz").read_bytes())
        self.assertEqual(len(released), 1)

    def test_naming_another_data_set_does_not_leave_the_own_one(self):
        self.create("people", "--data", "d.npy")
        self.create("more")
        self.release()
        self.assertIn("people", self.release("d.npy", "--dataset", "more", expect=BUDGET).stderr)
        self.assertIn("'people'", self.release(expect=BUDGET).stderr)
        self.assertEqual(self.run_json("ledger", "show", "more")["reservations"], [])

    def test_a_release_outside_any_budget_says_so(self):
        for more in ([], ["--no-ledger"]):
            done = self.release("d.npy", "--report", "r.html", *more)
            self.assertIn(OUTSIDE, done.stdout)
            self.assertIn(OUTSIDE, (self.folder / "r.html").read_text())
            manifest = self.manifest(*more)
            self.assertTrue(any(OUTSIDE in w for w in manifest["warnings"]), manifest["warnings"])
        self.create("people", "--data", "d.npy", epsilon=3)
        self.assertNotIn(OUTSIDE, self.release().stdout)

    # What may be written.

    def test_no_output_is_an_input_the_ledger_or_another_output(self):
        self.create("people", "--ledger", "l.db")
        self.release("d.npy", "--ledger", "l.db", "--dataset", "people", "--out", "m.npz")
        os.link(self.path("d.npy"), self.path("hard.npy"))
        os.symlink(self.path("l.db"), self.path("soft.db"))
        self.write("s.toml", "")
        (self.folder / "sub").mkdir()
        before = {p.name: p.read_bytes() for p in self.folder.iterdir() if p.is_file()}
        for out in ("l.db", "l.db.key", "l.db.anchor", "l.db.lock", "l.db-journal", "soft.db", "d.npy", "hard.npy",
                    "sub/../d.npy", self.path("d.npy")):
            for option in ("--out", "--report"):
                with self.subTest(out=out, option=option):
                    done = self.release("d.npy", "--ledger", "l.db", option, out, expect=USAGE)
                    self.assertIn("Nothing was read or charged", done.stderr)
        for args in (["pca", "d.npy", "--range", "0:1", "--components", 1, *BUDGET_FLAGS, "--ledger", "l.db",
                      "--out", "x", "--report", "sub/../x"],
                     ["pca", "d.npy", "--schema", "s.toml", "--components", 1, *BUDGET_FLAGS, "--out", "s.toml"],
                     ["transform", "m.npz", "d.npy", "--out", "m.npz"], ["transform", "m.npz", "d.npy", "--out", "d.npy"],
                     ["generate", "gaussian", "--rows", 9, "--columns", 2, "--out", "g", "--truth", "g"],
                     ["schema", "init", "d.npy", "--out", "d.npy"],
                     ["plan", "pca", "--rows", 9, "--columns", 2, "--components", 1, *BUDGET_FLAGS, "--spectrum",
                      "s.toml", "--plot", "s.toml"],
                     ["gep", "--matrix-a", "d.npy", "--matrix-b", "hard.npy", "--sensitivity-a", 1, "--sensitivity-b", 1,
                      "--rows", 9, "--components", 1, *BUDGET_FLAGS, "--out", "d.npy"],
                     ["clip", "fit", "--x", "d.npy", "--y", "hard.npy", *BUDGET_FLAGS, "--out", "d.npy"]):
            with self.subTest(args):
                self.assertIn("choose another name", self.run_program(*args, expect=USAGE).stderr)
        after = {p.name: p.read_bytes() for p in self.folder.iterdir() if p.is_file()}
        self.assertEqual(before, after)
        self.assertEqual(len(self.run_json("ledger", "show", "people", "--ledger", "l.db")["reservations"]), 1)

    def test_an_output_in_a_folder_that_is_read_is_refused(self):
        (self.folder / "parts").mkdir()
        self.rows(1, "parts/1.npy")
        self.assertIn("lies in", self.release("parts", "--out", "parts/m.npz", expect=USAGE).stderr)

    # Damage and older copies.

    def test_a_restored_ledger_is_frozen_until_it_is_accepted(self):
        self.create("people", "--data", "d.npy", "--ledger", "l.db", epsilon=3)
        shutil.copy(self.path("l.db"), self.path("backup.db"))
        self.release("d.npy", "--ledger", "l.db")
        self.assertIn("rows match", self.run_program("ledger", "verify", "--ledger", "l.db").stdout)
        shutil.copy(self.path("backup.db"), self.path("l.db"))
        self.assertIn("accept-restore", self.release("d.npy", "--ledger", "l.db", expect=BUDGET).stderr)
        self.assertIn("FROZEN", self.run_program("ledger", "show", "people", "--ledger", "l.db").stdout)
        self.run_program("ledger", "accept-restore", "people", "--ledger", "l.db", expect=USAGE)
        self.run_program("ledger", "accept-restore", "people", "--spent", 1, "--ledger", "l.db")
        self.assertAlmostEqual(self.run_json("ledger", "show", "people", "--ledger", "l.db")["spent_epsilon"], 1, places=2)
        self.release("d.npy", "--ledger", "l.db")
        self.run_program("ledger", "accept-restore", "people", "--spent", 0, "--ledger", "l.db", expect=USAGE)

    def test_a_backup_is_whole_whoever_charges_meanwhile_and_comes_back_frozen(self):
        self.create("people", "--data", "d.npy", "--ledger", "l.db", epsilon=3)
        self.release("d.npy", "--ledger", "l.db")
        told = self.run_json("ledger", "backup", "copy.db", "--ledger", "l.db")
        self.assertEqual((told["backup"], told["key"]), ("copy.db", "copy.db.key"))
        for name in ("copy.db", "copy.db.key"):
            self.assertEqual((self.folder / name).stat().st_mode & 0o777, 0o600)
        self.assertIn("is there already", self.run_program("ledger", "backup", "copy.db", "--ledger", "l.db", expect=USAGE).stderr)
        for own in ("l.db", "l.db.key", "l.db.anchor"):
            done = self.run_program("ledger", "backup", own, "--ledger", "l.db", "--force", expect=USAGE)
            self.assertIn("would overwrite", done.stderr)
        self.release("d.npy", "--ledger", "l.db")
        for ending in ("", ".key"):
            shutil.copy(self.path("copy.db" + ending), self.path("l.db" + ending))
        shown = self.run_json("ledger", "show", "people", "--ledger", "l.db")
        self.assertTrue(shown["frozen"])
        self.assertEqual(len(shown["reservations"]), 1)
        self.run_program("ledger", "backup", "copy.db", "--ledger", "l.db", "--force")
        self.assertIn("rows match", self.run_program("ledger", "verify", "--ledger", "l.db").stdout)

    def test_many_charges_while_backups_are_taken(self):
        self.create("people", "--data", "d.npy", "--ledger", "l.db", epsilon=100)
        runs = [Running(self, "pca", "d.npy", "--range", "0:1", "--components", 1, "--epsilon", 0.1, "--delta", 1e-6, "--yes",
                        "--ledger", "l.db", "--out", f"m{i}.npz", "--quiet") for i in range(6)]
        for i in range(4):
            self.run_program("ledger", "backup", f"copy{i}.db", "--ledger", "l.db")
        self.assertEqual([run.finish()[0] for run in runs], [OK] * 6)
        for i in range(4):
            self.assertIn("rows match", self.run_program("ledger", "verify", "--ledger", f"copy{i}.db").stdout)

    def test_an_export_holds_every_data_set_and_entry(self):
        self.create("people", "--data", "d.npy", epsilon=3)
        self.release()
        told = self.run_json("ledger", "export")
        self.assertEqual([d["name"] for d in told["datasets"]], ["people"])
        self.assertEqual([e["id"] for e in told["datasets"][0]["reservations"]], [1])
        self.run_program("ledger", "export", "--out", "all.json")
        self.assertEqual(json.loads((self.folder / "all.json").read_text()), told)
        self.assertIn("--force", self.run_program("ledger", "export", "--out", "all.json", expect=USAGE).stderr)
        self.run_program("ledger", "export", "--out", "all.json", "--force")

    def verified(self, *models, ledger="l.db", expect=OK, verdict=...):
        """What is said of models. Only a model that is the file itself ends with 0."""
        verdict = (expect == OK) if verdict is ... else verdict
        done = self.run_program("ledger", "verify", *models, "--ledger", ledger, "--json", expect=expect)
        told = json.loads(done.stdout)["models"]
        self.assertEqual([one["verified"] for one in told], [verdict] * len(models))
        return [one["words"] for one in told]

    def forge(self, model, name, manifest, **arrays):
        """A copy of a model that says something else of itself, or holds other numbers."""
        with zipfile.ZipFile(self.path(model)) as old, zipfile.ZipFile(self.path(name), "w") as new:
            for member in old.namelist():
                data = old.read(member)
                if member == "manifest.json":
                    told = {**json.loads(data), **manifest}
                    data = json.dumps(told).encode()
                elif member.removesuffix(".npy") in arrays:
                    file = io.BytesIO()
                    np.save(file, arrays[member.removesuffix(".npy")])
                    data = file.getvalue()
                new.writestr(member, data)

    def test_a_model_names_its_entry_and_the_ledger_its_file(self):
        self.create("people", "--data", "d.npy", "--ledger", "l.db", epsilon=9)
        self.release("d.npy", "--ledger", "l.db", "--out", "a.npz")
        entry = self.run_json("ledger", "show", "people", "--ledger", "l.db")["reservations"][0]
        named = json.loads(bytes(np.load(self.path("a.npz"))["manifest.json"]))["ledger"]
        self.assertEqual((named["entry"], named["mark"]), (entry["id"], entry["mark"]))
        digest = hashlib.sha256((self.folder / "a.npz").read_bytes()).hexdigest()
        self.assertEqual(entry["model_sha256"], digest)
        self.assertIn(digest, self.run_program("ledger", "show", "people", "--ledger", "l.db").stdout)
        self.assertEqual(self.verified("a.npz"), ["is the file that was written for entry 1 of 'people'"])
        # Another file with the same manifest, and files that no entry was charged for.
        with zipfile.ZipFile(self.path("a.npz")) as old, zipfile.ZipFile(self.path("b.npz"), "w") as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
        self.release("d.npy", "--no-ledger", "--out", "c.npz")
        self.release("d.npy", "--ledger", "l.db", "--insecure-seed", 1, "--out", "s.npz")
        for name, words in (("b.npz", "is NOT the file that was written for entry 1"), ("c.npz", "names no entry"),
                            ("s.npz", "names no entry")):
            self.assertRegex(self.verified(name, expect=BAD_INPUT)[0], words)
        # Another ledger, with and without an entry of that number.
        self.create("others", "--ledger", "other.db", epsilon=9)
        self.rows(5, "e.npy")
        for _ in range(2):
            self.release("e.npy", "--ledger", "other.db", "--dataset", "others")
        self.assertIn("another ledger was charged", self.verified("a.npz", ledger="other.db", expect=BAD_INPUT)[0])
        self.create("none", "--ledger", "empty.db")
        self.assertRegex(self.verified("a.npz", ledger="empty.db", expect=BAD_INPUT)[0], "OLDER copy .* or another ledger")

    def test_a_forged_model_is_not_verified_whatever_it_says_of_itself(self):
        """Its entry has a hash, and that decides: no mark, no entry's mark, another promise, other numbers."""
        self.create("people", "--data", "d.npy", "--ledger", "l.db", epsilon=9)
        self.release("d.npy", "--ledger", "l.db", "--out", "a.npz")
        named = json.loads(bytes(np.load(self.path("a.npz"))["manifest.json"]))["ledger"]
        without = {key: value for key, value in named.items() if key != "mark"}
        other = {"components": np.eye(1, 3)}
        for ledger in (without, {**without, "mark": ""}, named):
            for promise in ({}, {"epsilon": 0.01, "guarantee": "This release is (0.01, 0.000001)-differentially private.", "events": []}):
                self.forge("a.npz", "forged.npz", {"ledger": ledger, **promise}, **other)
                self.assertEqual(self.verified("forged.npz", expect=BAD_INPUT),
                                 ["is NOT the file that was written for entry 1 of 'people': it was changed, or made from that"])
        done = self.run_program("ledger", "verify", "a.npz", "forged.npz", "--ledger", "l.db", "--json", expect=BAD_INPUT)
        self.assertEqual([one["verified"] for one in json.loads(done.stdout)["models"]], [True, False])

    def test_an_older_copy_is_recognised_by_a_later_model(self):
        self.create("people", "--data", "d.npy", "--ledger", "l.db", epsilon=9)
        self.release("d.npy", "--ledger", "l.db", "--out", "first.npz")
        self.run_program("ledger", "backup", "copy.db", "--ledger", "l.db")
        self.release("d.npy", "--ledger", "l.db", "--out", "a.npz")
        # On a new machine: no anchor remembers what was there.
        os.makedirs(self.path("new"))
        for ending in ("", ".key"):
            shutil.copy(self.path("copy.db" + ending), self.path("new/l.db" + ending))
        older = "its entry 2 is not in this ledger: this is an OLDER copy of the one that was charged, and"
        self.assertIn(older, self.verified("a.npz", ledger="new/l.db", expect=BAD_INPUT)[0])
        self.assertEqual(self.verified("first.npz", ledger="new/l.db"), ["is the file that was written for entry 1 of 'people'"])
        # It goes on, and has an entry of the same number in the end.
        self.run_program("ledger", "accept-restore", "people", "--spent", 0, "--ledger", "new/l.db")
        self.rows(6, "d.npy")
        time.sleep(1.1)  # an entry is told from another one of its number by its second and its plan
        for _ in range(3):
            self.release("d.npy", "--ledger", "new/l.db", "--out", "later.npz")
        self.assertIn(older, self.verified("a.npz", ledger="new/l.db", expect=BAD_INPUT)[0])
        self.assertEqual(self.verified("later.npz", ledger="new/l.db"), ["is the file that was written for entry 4 of 'people'"])

    def test_a_run_that_ends_before_its_file_is_recorded_harms_nothing(self):
        self.create("people", "--data", "d.npy", "--ledger", "l.db", epsilon=9)
        np.save(self.folder / "some.npy", np.random.default_rng(1).uniform(0, 1, (100_000, 30)).astype("f4"))
        run = Running(self, "pca", "some.npy", "--range", "0:1", "--components", 1, *BUDGET_FLAGS, "--yes", "--method", "power",
                      "--rounds", 60, "--dataset", "people", "--ledger", "l.db")
        run.wait_for(r"asking: product 2 \(")
        holder = sqlite3.connect(self.path("l.db"), isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        run.wait_for("writing model")
        deadline = time.time() + 60
        while not (self.folder / "model.npz").exists() and time.time() < deadline:
            time.sleep(0.01)
        run.signal(signal.SIGKILL)
        run.finish()
        holder.close()
        words = "names entry 1 of 'people', and it cannot be told whether it is its file: the ledger took note of none"
        self.assertIn(words, self.verified("model.npz", expect=BAD_INPUT, verdict=None)[0])
        # What it promises is compared with what was paid.
        for key, value in (("epsilon", 0.01), ("delta", 1e-9), ("delta", None), ("events", []), ("adjacency", "add-remove-one"),
                           ("person", {"column": "who"})):
            with self.subTest(key=key):
                self.forge("model.npz", "forged.npz", {key: value})
                self.assertEqual(self.verified("forged.npz", expect=BAD_INPUT), ["promises something else than was charged for entry 1 of 'people'"])

    def test_it_says_why_more_remains_than_is_left(self):
        self.create("people", "--data", "d.npy", epsilon=2)
        self.assertNotIn("leaves", self.run_program("ledger", "show", "people").stdout)
        self.release()
        self.assertRegex(self.run_program("ledger", "show", "people").stdout,
                         r"2 - 1\.0\d+ leaves 1\.6\d+ and not 0\.99\d+, because the noise of several releases is accounted for together")

    def test_delta_auto_of_a_data_set(self):
        told = self.run_json("ledger", "create", "a", "--epsilon", 1, "--delta", "auto", "--rows", 2000)
        self.assertAlmostEqual(told["delta"], 2000**-1.1, delta=1e-12)
        self.assertIn("--rows", self.run_program("ledger", "create", "b", "--epsilon", 1, "--delta", "auto", expect=USAGE).stderr)

    def test_a_damaged_ledger_is_refused_by_verify(self):
        self.run_program("ledger", "create", "people", "--epsilon", 3, "--delta", 1e-6, "--ledger", "l.db")
        self.release("d.npy", "--ledger", "l.db")
        data = (self.folder / "l.db").read_bytes()
        place = data.index(b"gaussian:mu=") + len(b"gaussian:mu=") + 2
        self.write("l.db", data[:place] + bytes([data[place] ^ 1]) + data[place + 1:])
        self.assertIn("damaged", self.run_program("ledger", "verify", "--ledger", "l.db", expect=BAD_INPUT).stderr)


if __name__ == "__main__":
    unittest.main()
