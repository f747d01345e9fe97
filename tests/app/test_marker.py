# SPDX-License-Identifier: Apache-2.0
"""A value, a label, a text and a file name that occur in one row, class, id or header: nothing that leaves holds them,
nor, under add-remove-one, the number of rows."""
import contextlib
import io
import json
import re
import shlex
import sqlite3
import struct
import unittest
import zipfile

import numpy as np

from federation import COLUMNS, FederationTest
from support import BAD_INPUT, BUDGET_FLAGS, OK, PROGRAM, USAGE, AppTest, numbers, png
from test_clip_train import WITHOUT as WITHOUT_TORCH
from test_mpi import MPIRUN
from test_mpi import WITHOUT as WITHOUT_MPI

ROWS = 7919
PEOPLE = ROWS - 2  # three rows are of one
VALUE = 3.1415926512345678
LABEL, TEXT, ID, UNUSED, FILE = "Qzlabelqz", "Qztextqz", "Qzidqz", "Qzheaderqz", "Qzfileqz"
WORDS = (LABEL, TEXT, ID, UNUSED, FILE, "3.14159265")
NOISY = re.compile(r'(?:"noisy_(?:rows|people)":\s*|about )([\d,]*\d)(?: (?:rows|people) \(noisy count\))?')
# Eight bytes: random ones, of which keys and checksums have many, are never these. Four would be, now and then.
BYTES = [struct.pack(code, VALUE) for code in ("<d", ">d")]
SHORT = (".db.key", ".db.anchor", ".db.lock")  # what a ledger has beside it: random, or empty


def packed(counts):
    return [struct.pack(code, n) for n in counts for code in ("<q", ">q", "<d", ">d")]


def records(data):
    """What a study keeps of its answers (federation/stored.cpp), apart: its messages, and noisy integers. Lengths, checksums and
    pieces of noisy integers are any number by chance."""
    messages, integers, at = [], set(), 0
    while at + 20 <= len(data):
        length, check = struct.unpack_from("<QQ", data, at)
        if check >> 32 != 1 or at + 20 + length > len(data):
            break
        body, begin = data[at + 16:at + 16 + length], 0
        for _ in range(2):
            size = 4 + struct.unpack_from("<I", body, begin)[0]
            messages.append(body[begin + 4:begin + size])
            begin += size
        for width in (8, 16):
            integers |= {int.from_bytes(body[k:k + width], "little", signed=True) for k in range(begin, len(body) - width + 1, width)}
        at += 20 + length
    return b"|".join((*messages, data[at:])), integers


class Searching(AppTest):
    counts = {ROWS, ROWS - 1}

    def setUp(self):
        super().setUp()
        self.noisy = []

    def make_ledger(self):
        """With a data set that these files have nothing to do with."""
        self.run_program("ledger", "create", "others", *BUDGET_FLAGS, "--ledger", "ledger.db")

    def search(self, where, data):
        """Any bytes: nothing that random ones could be."""
        for word in WORDS:
            self.assertNotIn(word.lower().encode(), data.lower(), f"{where} holds {word}")
        for pattern in BYTES:
            self.assertNotIn(pattern, data, f"{where} holds the value")

    def search_text(self, where, text, count=True):
        self.search(where, text.encode())
        if count:
            # The noisy count was paid for, may be right by chance, and is then so wherever else the text has it.
            noisy = {int(n.replace(",", "")) for n in NOISY.findall(text)}
            self.noisy += noisy
            self.assertFalse((numbers(NOISY.sub("", text)) & self.counts) - noisy, f"{where} holds the number of rows")

    def search_array(self, where, array, count=True):
        if array.dtype.kind not in "fiu":
            return
        self.assertFalse(np.any((array == VALUE) | (array == np.float32(VALUE))), f"{where} holds the value")
        if count:
            self.assertFalse(np.any(np.isin(array, list(self.counts))), f"{where} holds n")

    def search_model(self, path, count=True):
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                data, where = archive.read(member), f"{path.name}: {member}"
                self.search(where, data)
                if member.endswith(".npy"):
                    self.search_text(where, data.split(b"\n")[0].decode("latin1"), count)  # the header, with the shape
                    self.search_array(where, np.lib.format.read_array(io.BytesIO(data)), count)
                else:
                    self.search_text(where, data.decode(), count)

    def search_ledger(self, path, count=True):
        """Every cell of every table."""
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as ledger:
            for (table,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                for cell in (cell for row in ledger.execute(f"SELECT * FROM {table}") for cell in row):
                    where = f"{path.name}, {table}"
                    if isinstance(cell, str):
                        self.search_text(where, cell, count)
                    elif isinstance(cell, bytes):
                        for pattern in packed(self.counts) if count else ():
                            self.assertNotIn(pattern, cell, f"{where} holds n")
                    elif cell is not None:
                        self.search_array(where, np.array(cell), count)

    def search_all(self, done, inputs, count=True):
        """Standard output, standard error, and every byte of every file that is not an input."""
        self.search_text("stdout", done.stdout, count)
        self.search_text("stderr", done.stderr, count)
        files = [p for p in self.folder.rglob("*") if p.is_file() and p.name not in inputs]
        self.assertTrue(files)
        for path in files:
            relative = str(path.relative_to(self.folder))
            self.search_text(f"the name {relative}", relative, count)
            data = path.read_bytes()
            self.search(path.name, data)
            if path.suffix == ".npz":
                self.search_model(path, count)
            elif path.suffix == ".db":
                self.search_ledger(path, count)
            elif path.suffix in (".html", ".json", ".csv", ".svg", ".log"):
                self.search_text(path.name, data.decode(), count)
            elif path.suffix in (".bin", ".key", ".pt", ".sealed"):
                messages, integers = records(data)
                self.assertFalse(count and integers & self.counts, f"{path.name} holds n")
                for pattern in packed(self.counts) if count else ():
                    self.assertNotIn(pattern, messages, f"{path.name} holds n")
            else:
                self.assertTrue(path.name.endswith(SHORT), f"how to search {path.name}?")



class Marker(Searching):
    def table(self, n=ROWS):
        rows = np.random.default_rng(4).uniform(-4, 4, size=(n, 4)).round(3)
        lines = [",".join([f"p{i}", *map(str, row), "xy"[i % 2]]) for i, row in enumerate(rows)]
        lines[0] = f"{ID},1,2,{VALUE},4,{LABEL}"
        lines[n // 2] = f"{ID},1,{TEXT},{VALUE},4,x"
        lines[-1] = f"{ID},1,2,{VALUE},4,{LABEL},{TEXT}"
        self.write("d.csv", "\n".join([f"{UNUSED},a,b,c,d,kind", *lines]) + "\n")
        numeric = "".join(f'[[column]]\nname = "{name}"\nkind = "numeric"\nlower = -5\nupper = 5\n' for name in "abcd")
        self.write("s.toml", numeric + '[[column]]\nname = "kind"\nkind = "categorical"\nvalues = ["x", "y"]\nother = "y"\n')
        return {"d.csv", "s.toml"}

    def test_fits_of_a_table(self):
        inputs = self.table()
        self.run_program("ledger", "create", "people", "--epsilon", 60, "--delta", 1e-4, "--adjacency", "add-remove-one",
                         "--ledger", "ledger.db")
        numbers = ("--schema", "s.toml")
        for fit in (("pca", "--components", 2), ("pca", "--components", 1, "--method", "adaptive-power", "--rounds", 2),
                    ("pca", "--components", 1, "--method", "spiked", "--center", "private"), ("pca", "--components", 1, "--method", "sphere"),
                    ("pca", "--components", 1, "--method", "auto"), ("pca", "--components", 1, "--method", "power", "--rounds", 2),
                    ("pca", "--components", 1, "--method", "sparse-power", "--sparsity", 2, "--rounds", 2), ("covariance",),
                    ("cca", "--x-columns", "a,b", "--y-columns", "c,d", "--components", 1),
                    ("pca", "--components", 2, "--scale", "correlation"), ("covariance", "--scale", "correlation"),
                    ("fda", "--label", "kind", "--classes", "x|y", "--unlisted", "drop", "--components", 1),
                    ("sir", "--response", "a", "--cuts", "-1,0,1", "--components", 1), ("regress", "--target", "a")):
            for output in (("--report", "report.html"), ("--json",)):
                with self.subTest(fit=fit, output=output):
                    done = self.run_program(fit[0], "d.csv", *fit[1:], *numbers, *BUDGET_FLAGS, "--missing", "zero-row",
                                            "--adjacency", "add-remove-one", "--dataset", "people", "--ledger", "ledger.db",
                                            *output)
                    self.search_all(done, inputs)
        self.assertGreater(len(set(self.noisy)), 3, "the count is noisy")
        for command in (("ledger", "show", "people"), ("ledger", "list"), ("ledger", "show", "people", "--json")):
            self.search_all(self.run_program(*command, "--ledger", "ledger.db"), inputs)

    def ids(self):
        """The same rows; whose each is stands in a column that is named, with the mark in it."""
        inputs = self.table()
        lines = (self.folder / "d.csv").read_text().splitlines()
        self.write("d.csv", "\n".join([lines[0].replace(UNUSED, "who"), *lines[1:]]) + "\n")
        self.counts = {ROWS, ROWS - 1, PEOPLE, PEOPLE - 1}
        return inputs

    def test_fits_of_people(self):
        inputs = self.ids()
        self.run_program("ledger", "create", "people", "--epsilon", 40, "--delta", 1e-4, "--adjacency", "add-remove-one", "--person", "who",
                         "--ledger", "ledger.db")
        for fit in (("pca", "--components", 2), ("pca", "--components", 1, "--method", "adaptive-power", "--rounds", 2),
                    ("regress", "--target", "a")):
            for weight in ("equal", "rows:4"):
                for output in (("--report", "report.html"), ("--json",)):
                    with self.subTest(fit=fit, weight=weight, output=output):
                        done = self.run_program(fit[0], "d.csv", *fit[1:], "--schema", "s.toml", *BUDGET_FLAGS, "--missing", "zero-row",
                                                "--adjacency", "add-remove-one", "--person", "who", "--person-weight", weight,
                                                "--dataset", "people", "--ledger", "ledger.db", *output)
                        self.search_all(done, inputs)
        self.search_all(self.run_program("ledger", "show", "people", "--json", "--ledger", "ledger.db"), inputs)

    @unittest.skipIf(WITHOUT_MPI, "no MPI here")
    def test_a_fit_of_many_processes(self):
        inputs = self.ids()
        self.make_ledger()
        for options in ((), ("--person", "who")):
            for output in (("--report", "report.html"), ("--json",)):
                with self.subTest(options=options, output=output):
                    done = self.run_program(*MPIRUN[1:], "-n", 2, PROGRAM, "pca", "d.csv", "--components", 2, "--schema", "s.toml",
                                            *BUDGET_FLAGS, "--missing", "zero-row", "--adjacency", "add-remove-one", "--ledger", "ledger.db",
                                            "--engine", "mpi", *options, *output, program=MPIRUN[0])
                    self.search_all(done, inputs)

    def test_files_without_a_name_are_not_called_by_their_path(self):
        """Neither the ledger nor what is released holds what a file or its folder is called."""
        inputs = self.table()
        self.make_ledger()
        (self.folder / FILE).mkdir()
        (self.folder / "d.csv").rename(self.folder / FILE / f"{FILE}.csv")
        done = self.run_program("pca", f"{FILE}/{FILE}.csv", "--components", 1, "--schema", "s.toml", *BUDGET_FLAGS, "--missing", "zero-row",
                                "--adjacency", "add-remove-one", "--ledger", "ledger.db", "--report", "report.html")
        self.search_all(done, inputs | {f"{FILE}.csv"})
        self.search_all(self.run_program("ledger", "list", "--ledger", "ledger.db"), inputs | {f"{FILE}.csv"})

    def test_a_pair_of_matrices(self):
        self.make_ledger()
        A = np.diag([4.0, 2.0, 1.0])
        A[0, 1] = A[1, 0] = VALUE
        np.save(self.path("a.npy"), A)
        np.save(self.path("b.npy"), np.eye(3) * VALUE)
        for noise in ("once", "each-step"):
            for output in (("--report", "report.html"), ("--json",)):
                done = self.run_program("gep", "--matrix-a", "a.npy", "--matrix-b", "b.npy", "--sensitivity-a", 0.01, "--sensitivity-b", 0.01,
                                        "--rows", 500, "--components", 1, *BUDGET_FLAGS, "--noise", noise, "--ledger", "ledger.db", *output)
                self.search_all(done, {"a.npy", "b.npy"}, count=False)

    @unittest.skipIf(WITHOUT_TORCH, WITHOUT_TORCH)
    def test_a_module_that_is_trained(self):
        import torch
        from test_clip_train import Vectors
        self.make_ledger()
        n, person = 1009, 7318008271
        self.counts = {n, n - 1}
        random = np.random.default_rng(3)
        images = random.uniform(0, 0.9, size=(n, 4)).astype(np.float32)
        images[7] = np.float32(VALUE)
        who = np.arange(n)
        who[7] = person
        np.savez(self.path("pairs.npz"), images=images, tokens=random.integers(0, 5, size=(n, 4)), who=who, **{UNUSED: np.arange(n)})
        torch.jit.script(Vectors()).save(self.path("m.pt"))
        command = ("clip", "train", "--module", "m.pt", "--data", "pairs.npz", "--epsilon", 3, "--delta", 1e-5, "--sample-rate", 0.1, "--steps", 4,
                   "--clip", 1, "--lr", 0.1, "--person", "who", "--ledger", "ledger.db", "--out", "trained.pt")
        for output in ((), ("--json",), ("--checkpoint", "run")):
            done = self.run_program(*command, *output)
            self.search_all(done, {"pairs.npz", "m.pt"})
            for text in (done.stdout, done.stderr, (self.folder / "trained.pt").read_bytes().decode("latin1")):
                self.assertNotIn(str(person), text)
            for name, parameter in torch.jit.load(self.path("trained.pt")).state_dict().items():
                self.search_array(name, parameter.numpy())

    def test_a_record_never_becomes_names(self):
        """A first row with one word in it, a question mark or a refusal to answer is data, or an error: never a header."""
        for first in (f"1,{TEXT},3,4", f"{VALUE},?,3,4", f"{VALUE},Private,3,4", f"{TEXT},{LABEL},{ID},x"):
            with self.subTest(first):
                for old in ("model.npz", "r.html"):
                    (self.folder / old).unlink(missing_ok=True)
                self.write("d.csv", f"{first}\n" + "1,2,3,4\n" * 50)
                fit = ("pca", "d.csv", "--range", "0:5", "--components", 1, *BUDGET_FLAGS, "--no-ledger", "--report", "r.html")
                done = self.run_program(*fit, expect=USAGE)
                self.assertEqual(done.stdout, "")
                self.assertIn("--header yes", done.stderr)
                self.assertIn("--header no", done.stderr)
                self.assertEqual(self.files(), ["d.csv"])
                told = json.loads(self.run_program(*fit, "--json", expect=USAGE).stdout)
                self.assertEqual(told["kind"], "wrong usage")
                for value in first.split(","):
                    self.assertNotIn(value if len(value) > 1 else f'"{value}', told["error"])
                done = self.run_program(*fit, "--header", "no", "--fields", 4, "--missing", "zero-row")
                self.search_all(done, {"d.csv"}, count=False)

    def test_the_commands_that_settle_it_are_printed_and_work(self):
        self.write("my data.csv", "a;b\n1;2\n2;1\n3;3\n")
        fit = ["pca", "my data.csv", "--range", "0:5", "--components", 1, *BUDGET_FLAGS, "--no-ledger", "--delimiter", "semicolon"]
        done = self.run_program(*fit, expect=USAGE, yes=False)
        commands = re.findall(r"(?:names|data): +(.*)", done.stderr)
        self.assertEqual(len(commands), 2, done.stderr)
        for command, answer, code in ((commands[0], "yes", OK), (commands[1], "no", BAD_INPUT)):
            words = shlex.split(command)
            self.assertEqual([word for word in words[1:] if word != "--force"], [*map(str, fit), "--header", answer])
            self.run_program(*words[1:], expect=code)

    def test_embeddings_of_images_and_texts(self):
        rng = np.random.default_rng(6)
        (self.folder / "images").mkdir()
        n = 40
        for i in range(n):
            name = FILE if i == n // 2 else f"i{i:03}"
            (self.folder / "images" / f"{name}.png").write_bytes(png(rng.integers(0, 256, size=(8, 8))))
        lines = [TEXT if i == 3 else f"a word {i % 5}" for i in range(n)]
        self.write("captions.txt", "\n".join(lines) + "\n")
        inputs = {"captions.txt"} | {p.name for p in (self.folder / "images").iterdir()}
        self.make_ledger()
        for output in (("--report", "report.html"), ("--json",)):
            done = self.run_program("clip", "fit", "--images", "images", "--captions", "captions.txt", "--image-encoder",
                                    "pixels", "--method", "whitened", "--dim", 2, "--epsilon", 1, "--delta", 1e-6,
                                    "--adjacency", "add-remove-one", "--ledger", "ledger.db", *output)
            self.search_all(done, inputs, count=False)

    def test_schema_init_shows_names_and_nothing_of_the_rows(self):
        self.table(50)
        done = self.run_program("schema", "init", "d.csv", "--header", "yes")
        self.assertIn(UNUSED, done.stdout, "a header is public, by statement")
        for word in (LABEL, TEXT, ID, "3.14159265"):
            self.assertNotIn(word, done.stdout + done.stderr)
        done = self.run_program("schema", "init", "d.csv", expect=USAGE)
        self.assertEqual(done.stdout, "")
        done = self.run_program("schema", "init", "d.csv", "--header", "no")
        for word in WORDS:
            self.assertNotIn(word, done.stdout + done.stderr)
        self.assertIn("fields = 6", done.stdout)

    def test_the_marks_are_found_where_they_are(self):
        """The search itself works: what is said to the operator about a bad row holds them."""
        self.table(50)
        done = self.run_program("pca", "d.csv", "--schema", "s.toml", "--components", 1, *BUDGET_FLAGS, expect=BAD_INPUT)
        self.assertIn(TEXT, done.stderr)
        self.assertEqual(done.stdout, "")
        with self.assertRaises(AssertionError):
            self.search_text("stderr", done.stderr)
        for text in ("rows: 7,919.", '{"n":7918}', "[1,7919]", "7919.0 rows", "about 7 of 7919"):
            with self.assertRaises(AssertionError, msg=text):
                self.search_text("a count", text)
        self.search_text("none", '0.0047919, 17919, 1.7919e3, 67,919, "ab7919ef", about 7,919 rows (noisy count)')
        self.search_text("right by chance", '{"noisy_rows": 7919, "second_moments": {"rows": 7919.0}}')
        with self.assertRaises(AssertionError):
            self.search_text("right by chance, and an exact one", '{"noisy_rows": 7919, "n": 7918}')
        for array in (np.zeros((ROWS, 1)), np.array([1.0, ROWS]), np.array([VALUE]), np.array([VALUE], dtype=">f4")):
            np.savez(self.path("bad.npz"), x=array)
            with self.assertRaises(AssertionError, msg=str(array)):
                self.search_model(self.folder / "bad.npz")
        for cell in (ROWS, float(ROWS - 1), VALUE, f"{ROWS} rows", struct.pack("<q", ROWS)):
            with contextlib.closing(sqlite3.connect(self.path("bad.db"))) as ledger:
                ledger.execute("CREATE TABLE IF NOT EXISTS t(x)")
                ledger.execute("DELETE FROM t")
                ledger.execute("INSERT INTO t VALUES (?)", (cell,))
                ledger.commit()
            with self.assertRaises(AssertionError, msg=str(cell)):
                self.search_ledger(self.folder / "bad.db")


class SitesOfMarkedRows(Searching, FederationTest):
    """What leaves a site, and what the coordinator keeps and releases."""

    names = ("north", "south")
    budget, epsilon = 20, 2
    each = 1987
    counts = {each, each - 1, 2 * each, 2 * each - 1}

    def setUp(self):
        super().setUp()
        for name in self.names:
            lines = (self.folder / f"{name}.csv").read_text().splitlines()[:self.each + 1]
            lines = [f"{line},p{i}" for i, line in enumerate(lines)]
            lines[0] = ",".join([*COLUMNS, "label", "who"])
            lines[1] = f"1,2,{VALUE},4,1,1,{LABEL},{ID}"
            lines[9] = f"1,{TEXT},{VALUE},4,1,1,A,{ID}"
            lines[-1] = f"1,2,{VALUE},4,1,1,A,{ID},{TEXT}"
            self.write(f"{name}.csv", "\n".join(lines) + "\n")

    def config(self, name, **given):
        path = super().config(name, **given)
        text = (self.folder / f"{name}.toml").read_text()
        for mine, other in (('missing = "error"', 'missing = "zero-row"'), ('unlisted = "error"', 'unlisted = "drop"'),
                            ('dataset = "rows"', 'dataset = "hidden"')):
            self.assertIn(mine, text)
            text = text.replace(mine, other)
        return self.write(f"{name}.toml", text)

    def test_a_study(self):
        for name in self.names:
            self.run_program("ledger", "create", "hidden", "--epsilon", 20, "--delta", 1e-5, "--adjacency", "add-remove-one", "--ledger", f"{name}.db")
        inputs = {p.name for p in self.folder.iterdir() if p.suffix in (".csv", ".toml")}
        for aggregation in ("local", "secure"):
            with self.subTest(aggregation):
                sites = [self.site(name, log=f"{name}-{aggregation}.log") for name in self.names]
                coordinator = self.coordinator(["pca", "--components", 2, "--missing", "zero-row", "--adjacency", "add-remove-one"],
                                               "--aggregation", aggregation, "--journal", f"study-{aggregation}", "--report", "report.html",
                                               log=f"coordinator-{aggregation}.log")
                self.assert_finished(coordinator, *sites)
                done = self.run_program("ledger", "list", "--ledger", "north.db")
                self.search_all(done, inputs | {p.name for p in self.folder.glob("*.toml")})


if __name__ == "__main__":
    unittest.main()
