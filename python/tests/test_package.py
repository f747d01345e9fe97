# SPDX-License-Identifier: Apache-2.0
"""Errors, warnings, ledgers, pickles, threads, forks, interrupts: what a user of the package meets."""
import doctest
import importlib
import json
import multiprocessing
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from conftest import PROGRAM, SEEDED

import eigenveil as ev

MODULES = ["eigenveil", "eigenveil._forecast", "eigenveil._ledger", "eigenveil._model", "eigenveil._responses", "eigenveil._spectral",
           "eigenveil._views"]
PCA = {"n_components": 1, "row_bound": 3.0, "epsilon": 1.0, "delta": 1e-6}


def test_no_module_has_an_example_that_nobody_runs():
    package = pathlib.Path(ev.__file__).parent
    found = {path.stem for path in package.glob("*.py") if ">>>" in path.read_text()}
    assert found == {name.removeprefix("eigenveil.").replace("eigenveil", "__init__") for name in MODULES}


def test_the_stub_names_what_the_module_has():
    import ast

    core = ev._core
    stub = ast.parse((pathlib.Path(ev.__file__).parent / "_core.pyi").read_text()).body
    classes = {one.name: {part.name for part in one.body} for one in stub if isinstance(one, ast.ClassDef)}
    named = {one.name for one in stub if isinstance(one, ast.FunctionDef)} | {one.target.id for one in stub if isinstance(one, ast.AnnAssign)}
    assert named | set(classes) == {name for name in vars(core) if not name.startswith("_")}
    for name, members in classes.items():
        assert members == {one for one in vars(getattr(core, name)) if not one.startswith("_")}, name


@pytest.mark.parametrize("name", MODULES)
def test_every_example_runs(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ev.ReleaseWarning)
        found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
    assert found.attempted > 0


def test_where_warnings_are_errors_what_was_paid_for_is_kept(rows):
    pca = ev.PCA(**PCA, insecure_seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ev.ConcernWarning)
        warnings.simplefilter("error", ev.NotPrivateWarning)
        with pytest.raises(ev.NotPrivateWarning):
            pca.fit(rows)
    assert pca.components_.shape == (1, rows.shape[1])
    assert pca.transform(rows).shape == (len(rows), 1)


def test_everything_public_is_documented_and_shown():
    for name in ev.__all__:
        assert getattr(ev, name).__doc__, name


def test_types_of_the_package_hold():
    package = pathlib.Path(ev.__file__).parent
    done = subprocess.run([sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports=silent",
                           "--cache-dir=/dev/null", str(package)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_importing_takes_little():
    seconds = min(float(subprocess.run(
        [sys.executable, "-c", "import numpy, time; t = time.process_time(); import eigenveil; "
         "print(time.process_time() - t)"], capture_output=True, text=True, check=True).stdout) for _ in range(3))
    assert seconds < 0.15  # of this package; numpy's own import is not ours


def test_importing_brings_no_optional_package():
    done = subprocess.run([sys.executable, "-c", "import eigenveil, sys; print(*sys.modules)"], capture_output=True,
                          text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"pandas", "polars", "pyarrow", "duckdb", "sklearn", "matplotlib", "tqdm"}


class TestErrors:
    def test_sentences_are_the_librarys(self, rows):
        with pytest.raises(ev.UsageError, match="the rows need public bounds"):
            ev.PCA(1, epsilon=1, delta=1e-6, ledger=None).fit(rows)
        with pytest.raises(ev.UsageError, match="`n_components` must be a whole number from 1, but is -3"):
            ev.PCA(-3, epsilon=1, delta=1e-6, row_bound=1, ledger=None).fit(rows)
        with pytest.raises(ev.BadInput, match="row 2, column '1': the value is missing, NaN or infinite"):
            ev.PCA(**PCA, ledger=None).fit([[1.0, 2.0], [np.nan, 1.0]])
        with pytest.raises(ev.UsageError, match="`method` must be one of .*gram.*, but is 'lucky'"):
            ev.PCA(**PCA, method="lucky", ledger=None).fit(rows)
        with pytest.raises(ev.UsageError, match="must lie between"):
            ev.PCA(1, row_bound=1, epsilon=-1, delta=1e-6, ledger=None).fit(rows)

    def test_errors_are_values_as_others_have_them(self):
        assert issubclass(ev.BadInput, ValueError) and issubclass(ev.UsageError, ValueError)
        assert not issubclass(ev.BudgetRefused, ValueError)

    def test_wrong_types_are_refused_in_words(self, rows):
        with pytest.raises(ev.UsageError, match="`row_bound` must be a number, auto, auto:MAX or range, but is 'much'"):
            ev.PCA(1, row_bound="much", epsilon=1, delta=1e-6, ledger=None).fit(rows)
        with pytest.raises(ev.UsageError, match="`ledger` must be"):
            ev.PCA(**PCA, ledger=3).fit(rows)
        with pytest.raises(ev.BadInput, match="must have two dimensions"):
            ev.PCA(**PCA, ledger=None).fit(rows[0])
        with pytest.raises(ev.BadInput, match="holds text"):
            ev.PCA(**PCA, ledger=None).fit([["a", "b"]])

    def test_tables_of_unequal_length_are_refused(self, rows):
        with pytest.raises(ev.BadInput, match="different numbers of rows"):
            ev.LDA(classes=[0, 1], row_bound=3, epsilon=1, delta=1e-6, ledger=None).fit(rows[:, :5], rows[1:, 5])


class TestVerdicts:
    def test_every_direction_has_a_word_and_a_share_of_the_whole(self):
        X = np.random.default_rng(0).normal(size=(20_000, 6)) * [3, 2, 0.3, 0.3, 0.3, 0.3]
        pca = ev.PCA(3, row_bound=12, **SEEDED).fit(X)
        assert pca.verdict_[:2] == ["holds", "holds"] and len(pca.verdict_) == 3
        truth = X.var(axis=0)[:2] / X.var(axis=0).sum()
        np.testing.assert_allclose(pca.explained_variance_ratio_[:2], truth, atol=0.05)


class TestLedger:
    def test_a_budget_is_kept(self, rows, tmp_path):
        with ev.Ledger(tmp_path / "study.db") as ledger:
            ledger.create("patients", epsilon=1.2, delta=1e-6)
            ev.PCA(**PCA, ledger=ledger, dataset="patients").fit(rows)
            with pytest.raises(ev.BudgetRefused, match="patients"):
                ev.PCA(**PCA, ledger=ledger, dataset="patients").fit(rows)
            found = ledger.show("patients")
            assert [one["state"] for one in found["reservations"]] == ["answered"]
            assert found["person"] == "" and found["epsilon"] == 1.2
            assert 0.9 < found["spent_epsilon"] <= 1
            assert ledger.verify() > 0 and [one["name"] for one in ledger.list()] == ["patients"]

    def test_without_a_choice_the_programs_own_ledger_counts(self, rows, home):
        ev.PCA(**PCA).fit(rows)
        assert [one["name"] for one in ev.Ledger().list()] == ["rows in memory (replace-one)"]
        assert str(home) in ev.Ledger().path

    def test_an_empty_name_pays_for_nothing(self, rows, tmp_path):
        with pytest.raises(ev.UsageError, match="`dataset` is empty"):
            ev.PCA(**PCA, ledger=tmp_path / "study.db", dataset="").fit(rows)

    def test_nothing_is_written_over_a_ledger(self, rows, tmp_path):
        ledger = ev.Ledger(tmp_path / "study.db")
        ledger.create("patients", epsilon=1.2, delta=1e-6)
        pca = ev.PCA(**PCA, ledger=None).fit(rows)
        for write in (pca.save, pca.report):
            for name in ("study.db", "study.db.key", "study.db.anchor"):
                with pytest.raises(ev.UsageError, match="belongs to a ledger"):
                    write(tmp_path / name)
        assert ledger.verify() > 0

    def test_a_mistyped_path_is_no_new_ledger(self, rows, tmp_path):
        with pytest.raises(ev.BadInput, match="there is no ledger"):
            ev.Ledger(tmp_path / "stduy.db").list()
        for more in ({}, {"dataset": "patients"}):
            with pytest.raises(ev.BadInput, match="there is no ledger at .*Ledger.create"):
                ev.PCA(**PCA, ledger=tmp_path / "stduy.db", **more).fit(rows)
        assert list(tmp_path.iterdir()) == []

    def test_the_usual_ledger_is_made_for_a_record_alone(self, rows, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        with pytest.raises(ev.BadInput, match="there is no ledger at"):
            ev.PCA(**PCA, dataset="patients").fit(rows)
        assert list(tmp_path.iterdir()) == []
        with pytest.warns(ev.ReleaseWarning, match="outside any budget"):
            ev.PCA(**PCA).fit(rows)
        assert (tmp_path / "eigenveil" / "ledger.db").exists()

    def test_a_parquet_file_is_charged_to_its_data_set(self, rows, tmp_path, quiet):
        """Read by pyarrow, of which the library sees a stream, it is a file all the same: by path, in a folder, as a dataset, beside a
        response and as a view."""
        pyarrow = pytest.importorskip("pyarrow")
        import pyarrow.dataset
        import pyarrow.parquet

        folder = tmp_path / "parts"
        folder.mkdir()
        path = folder / "1.parquet"
        pyarrow.parquet.write_table(pyarrow.table({f"c{i}": rows[:, i] for i in range(5)}), path)
        ledger = ev.Ledger(tmp_path / "l.db")
        ledger.create("d", epsilon=30, delta=1e-6, data=[path])
        dataset = pyarrow.dataset.dataset(path)
        spending = {"epsilon": 1, "delta": 1e-6, "ledger": ledger}
        pca = ev.PCA(1, row_bound=3, **spending)
        for fit in (lambda: pca.fit(path), lambda: pca.fit(str(folder)), lambda: pca.fit(dataset),
                    lambda: pca.fit(pyarrow.dataset.dataset([dataset])),
                    lambda: ev.LinearRegression(ranges=(-4, 4), y_range=(-4, 4), **spending).fit(path, rows[:, 6]),
                    lambda: ev.ContrastiveHeads(2, **spending).fit((path, rows[:, :3]))):
            before = len(ledger.show("d")["reservations"])
            assert fit().manifest_["ledger"]["limited"]
            assert len(ledger.show("d")["reservations"]) == before + 1
        assert pca.fit(rows).manifest_["ledger"]["limited"] is False

    def test_a_dataset_whose_files_cannot_be_told_needs_a_name(self, rows, tmp_path, quiet):
        """A folder of this machine by another name is told; what hides its files is refused, and not taken for rows in memory."""
        pyarrow = pytest.importorskip("pyarrow")
        import pyarrow.dataset
        import pyarrow.fs
        import pyarrow.parquet

        folder = tmp_path / "parts"
        folder.mkdir()
        path = folder / "1.parquet"
        table = pyarrow.table({f"c{i}": rows[:, i] for i in range(5)})
        pyarrow.parquet.write_table(table, path)
        ledger = ev.Ledger(tmp_path / "l.db")
        ledger.create("d", epsilon=30, delta=1e-6, data=[path])
        spending = {"epsilon": 1, "delta": 1e-6, "ledger": ledger}
        make = pyarrow.dataset.dataset
        local = pyarrow.fs.LocalFileSystem()
        below = pyarrow.fs.SubTreeFileSystem(str(tmp_path), local)
        twice = pyarrow.fs.SubTreeFileSystem("parts", below)
        memory = make(table)
        told = [make("parts/1.parquet", filesystem=below), make("1.parquet", filesystem=twice), make("parts", filesystem=below),
                make([make("1.parquet", filesystem=twice), memory]), make(path).filter(pyarrow.dataset.field("c0") > -100)]
        for dataset in told:
            assert ev.PCA(1, row_bound=3, **spending).fit(dataset).manifest_["ledger"]["limited"]
        assert len(ledger.show("d")["reservations"]) == len(told)

        elsewhere = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(Elsewhere(local)))
        for dataset in (make(path).scanner(), make(str(path), filesystem=elsewhere), make([make(str(path), filesystem=elsewhere), memory])):
            with pytest.raises(ev.UsageError, match="read from files that cannot be told.*`dataset=NAME`.*`ledger=None`"):
                ev.PCA(1, row_bound=3, **spending).fit(dataset)
        assert len(ledger.show("d")["reservations"]) == len(told)
        assert ev.PCA(1, row_bound=3, dataset="d", **spending).fit(make(path).scanner()).manifest_["ledger"]["limited"]
        ev.PCA(1, row_bound=3, epsilon=1, delta=1e-6, ledger=None).fit(make(path).scanner())
        assert ev.PCA(1, row_bound=3, **spending).fit(memory).manifest_["ledger"]["limited"] is False

    @pytest.mark.skipif(not PROGRAM, reason="EIGENVEIL_PROGRAM is not set")
    def test_what_is_saved_is_the_file_of_its_entry(self, rows, tmp_path):
        """And a forged copy of it is not, whatever it says of itself."""
        ledger = ev.Ledger(tmp_path / "l.db")
        ledger.create("d", epsilon=9, delta=1e-6)

        def verified(name):
            done = subprocess.run([PROGRAM, "ledger", "verify", name, "--ledger", "l.db", "--json"], cwd=tmp_path, capture_output=True, text=True)
            return done.returncode, json.loads(done.stdout)["models"][0]["verified"]

        pca = ev.PCA(**PCA, ledger=ledger, dataset="d").fit(rows)
        restored = pickle.loads(pickle.dumps(pca.model_))
        restored.save(tmp_path / "restored.npz")
        assert verified("restored.npz") == (3, None)  # nobody told the ledger of it, and nobody said what it is
        pca.save(tmp_path / "true.npz")
        assert verified("true.npz") == verified("restored.npz") == (0, True)
        restore, (parts, manifest) = pca.model_.__reduce__()
        told = {**json.loads(manifest), "epsilon": 0.01, "events": []}
        restore(parts, json.dumps(told)).save(tmp_path / "forged.npz")
        assert verified("forged.npz") == (3, False)
        unsaved = ev.PCA(**PCA, ledger=ledger, dataset="d").fit(rows)
        restore, (parts, manifest) = unsaved.model_.__reduce__()
        restore(parts, json.dumps({**json.loads(manifest), "epsilon": 0.01})).save(tmp_path / "forged.npz")
        assert verified("forged.npz") == (3, False)

    def test_a_cost_is_what_is_charged_then(self, rows, tmp_path):
        ledger = ev.Ledger(tmp_path / "l.db")
        ledger.create("d", epsilon=5, delta=1e-6)
        pca = ev.PCA(**PCA, center="private", ledger=ledger, dataset="d")
        [cost] = pca.cost(rows=len(rows), columns=7)
        assert ledger.show("d")["reservations"] == []
        pca.fit(rows)
        assert ledger.show("d")["reservations"][0]["events"] == cost["answers"]
        assert cost["epsilon"] <= 1 and cost["delta"] == 1e-6


class Elsewhere:
    """As fsspec has file systems: these are the local files, and nobody can tell that."""

    protocol = "elsewhere"

    def __init__(self, local):
        self.local = local

    def info(self, path):
        found = self.local.get_file_info(path)
        return {"name": path, "size": found.size, "type": "directory" if found.size is None else "file"}

    def isfile(self, path):
        return os.path.isfile(path)

    def exists(self, path):
        return os.path.exists(path)

    def open(self, path, mode="rb"):
        return open(path, mode)


class TestSeeds:
    def test_a_seed_is_stamped(self, rows):
        with pytest.warns(ev.NotPrivateWarning, match="NOT PRIVATE"):
            pca = ev.PCA(1, row_bound=3, **SEEDED).fit(rows)
        assert not pca.model_.is_private and "NOT PRIVATE" in repr(pca) and "NOT PRIVATE" in repr(pca.model_)

    def test_without_a_seed_two_releases_differ(self, rows):
        one, two = (ev.PCA(**PCA, ledger=None).fit(rows) for _ in range(2))
        assert one.model_.is_private and "NOT PRIVATE" not in repr(one)
        assert (one.components_ != two.components_).any()


class TestPickles:
    @pytest.mark.usefixtures("quiet")
    def test_a_pickle_keeps_what_was_released(self, rows):
        import pandas

        frame = pandas.DataFrame(rows[:, :5], columns=list("abcde"))
        pca = ev.PCA(1, row_bound=3, progress=lambda step, share: None, **SEEDED).set_output(transform="pandas").fit(frame)
        again = pickle.loads(pickle.dumps(pca))
        assert again.components_.tobytes() == pca.components_.tobytes() and again.manifest_ == pca.manifest_
        assert list(again.feature_names_in_) == list("abcde") and again.n_features_in_ == 5
        assert again.transform(frame).equals(pca.transform(frame))
        lda = ev.LDA(classes=[0, 1], row_bound=3, **SEEDED).fit(rows[:, :5], rows[:, 5])
        assert (pickle.loads(pickle.dumps(lda)).predict(rows[:, :5]) == lda.predict(rows[:, :5])).all()
        assert pickle.loads(pickle.dumps(ev.PCA(**PCA))).get_params() == ev.PCA(**PCA).get_params()

    def test_a_damaged_pickle_is_refused(self, rows):
        restore, (parts, manifest) = ev.PCA(**PCA, ledger=None).fit(rows).model_.__reduce__()
        with pytest.raises(ev.BadInput):
            restore([(name, values[:1], is_vector) for name, values, is_vector in parts[:1]], manifest)
        with pytest.raises(ev.BadInput):
            restore(parts, "no manifest")
        for odd in ('"warnings": [3]', '"options": 3', '"zzz": ' + "[" * 1000000 + "]" * 1000000):
            with pytest.raises(ev.BadInput):
                restore(parts, manifest.rstrip()[:-1] + ", " + odd + "}")


class TestLeaks:
    """A number of the rows that nothing else could produce is found nowhere but in the operator's messages."""

    MARKER = 0.7390518264

    def rows(self):
        X = np.random.default_rng(1).uniform(-0.7, 0.7, size=(400, 3))
        X[17] = self.MARKER  # the largest too
        return X

    LEAKED = (b"0.73905", np.float64(MARKER).tobytes(), np.float32(MARKER).tobytes())
    FITS = {
        "PCA": lambda X: ev.PCA(1, ranges=(-1, 1), **SEEDED).fit(X),
        "SparsePCA": lambda X: ev.SparsePCA(1, sparsity=2, ranges=(-1, 1), **SEEDED).fit(X),
        "Covariance": lambda X: ev.Covariance(ranges=(-1, 1), **SEEDED).fit(X),
        "LinearRegression": lambda X: ev.LinearRegression(ranges=(-1, 1), y_range=(-1, 1), **SEEDED).fit(X[:, :2], X[:, 2]),
        "Ridge": lambda X: ev.Ridge(alpha=0.1, ranges=(-1, 1), y_range=(-1, 1), **SEEDED).fit(X[:, :2], X[:, 2]),
        "CCA": lambda X: ev.CCA(1, ranges=(-1, 1), **SEEDED).fit(X[:, :2], X),
        "LDA": lambda X: ev.LDA(1, classes=[0, 1], ranges=(-1, 1), **SEEDED).fit(X, np.arange(len(X)) % 2),
        "SIR": lambda X: ev.SIR(1, response_range=(-1, 1), slices=3, ranges=(-1, 1), **SEEDED).fit(X[:, :2], X[:, 2]),
        "ContrastiveHeads": lambda X: ev.ContrastiveHeads(1, **SEEDED).fit(X[:, :2], X),
        "GEP": lambda X: ev.GEP(1, sensitivity_a=1e-2, sensitivity_b=1e-2, rows=400, **SEEDED).fit(np.diag(X[17]), np.eye(3)),
        "people": lambda X: ev.PCA(1, ranges=(-1, 1), person="who", **SEEDED).fit(
            __import__("pandas").DataFrame({"who": [f"p{value:.6f}" for value in X[:, 0]], "a": X[:, 1], "b": X[:, 2]})),
    }

    @pytest.mark.parametrize("name", FITS)
    def test_nothing_of_the_rows_is_kept(self, tmp_path, name):
        X = self.rows()
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            one = self.FITS[name](X)
        one.report(tmp_path / "report.html")
        one.save(tmp_path / "model.npz")
        with np.load(tmp_path / "model.npz") as saved:
            written = [bytes(saved[array]) for array in saved.files]
        # Everything that an object holds, not only what its pickle keeps.
        shown = [repr(one), one._repr_html_(), (tmp_path / "report.html").read_text(), repr(one.manifest_), *(str(warning.message) for warning in heard)]
        kept = [pickle.dumps(one), *(pickle.dumps(value) for value in vars(one).values()), *written, *(text.encode() for text in shown)]
        assert not [piece for piece in kept if any(mark in piece for mark in self.LEAKED)]
        assert not any(isinstance(value, np.ndarray) and value.size >= len(X) for value in vars(one).values())
        # Nothing but parameters, arrays of the model, and what is made of the model and of names.
        made = {"model_", "manifest_", "verdict_", "n_features_in_", "explained_variance_", "explained_variance_ratio_", "intervals_", "intercept_",
                "classes_", "feature_names_in_"}
        arrays = {one._arrays.get(array, array) + "_" for array in one.model_.arrays}
        assert set(vars(one)) <= set(one.get_params()) | {"ridge"} | arrays | made
        held = {array.tobytes() for array in one.model_.arrays.values()}
        assert all(value.tobytes() in held for attribute, value in vars(one).items() if isinstance(value, np.ndarray) and attribute not in ("classes_", "feature_names_in_"))

    def test_what_is_hopeless_is_a_warning_before_the_charge(self, tmp_path):
        ledger = ev.Ledger(tmp_path / "l.db")
        ledger.create("d", epsilon=5, delta=1e-6)
        X = np.random.default_rng(2).uniform(-1, 1, size=(60, 40))
        pca = ev.PCA(1, ranges=(-1, 1), epsilon=0.1, delta=1e-6, ledger=ledger, dataset="d")
        with warnings.catch_warnings():
            warnings.simplefilter("error", ev.ConcernWarning)
            with pytest.raises(ev.ConcernWarning, match="the noise will hide everything"):
                pca.fit(X)
        assert ledger.show("d")["reservations"] == []
        with pytest.warns(ev.ConcernWarning, match="60 rows of 40 columns and epsilon 0.1") as said:
            pca.fit(X)
        assert len(ledger.show("d")["reservations"]) == 1
        assert [one.filename for one in said if "hide everything" in str(one.message)] == [__file__]

    def test_warnings_and_public_errors_say_nothing_of_rows(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ev.PCA(3, ranges=(-1, 1), epsilon=0.01, delta=1e-6, ledger=None).fit(self.rows())
        assert said and not any("0.739" in str(one.message) for one in said)
        with pytest.raises(ev.BadInput, match="`n_components` 4 is too many") as error:
            ev.PCA(4, ranges=(-1, 1), epsilon=1, delta=1e-6, ledger=None).fit(self.rows())
        assert "0.739" not in str(error.value)

    def test_what_a_mask_hides_is_missing(self):
        X = np.ma.masked_equal(self.rows(), self.MARKER)
        pca = ev.PCA(1, ranges=(-1, 1), epsilon=1, delta=1e-6, ledger=None)
        with pytest.raises(ev.BadInput, match="row 18, column '1': the value is missing"):
            pca.fit(X)
        with pytest.raises(ev.BadInput, match="row 18"):
            pca.fit(X.astype(object))
        with pytest.raises(ev.BadInput, match="row 18"):
            ev.LinearRegression(ranges=(-1, 1), y_range=(-1, 1), epsilon=1, delta=1e-6, ledger=None).fit(X.data[:, :2], X[:, 2])

    def test_an_error_keeps_no_other_that_quotes_a_cell(self):
        with pytest.raises(ev.BadInput, match="holds text") as error:
            ev.PCA(1, ranges=(-1, 1), epsilon=1, delta=1e-6, ledger=None).fit([["0.7", "secret"]])
        assert error.value.__context__ is None and error.value.__cause__ is None

    def test_a_failed_fit_leaves_the_old_release(self):
        pca = ev.PCA(1, ranges=(-1, 1), epsilon=1, delta=1e-6, ledger=None).fit(self.rows())
        before = pca.components_
        with pytest.raises(ev.BadInput):
            pca.fit([[np.nan] * 3])
        assert pca.components_ is before


class TestTogether:
    @pytest.mark.usefixtures("quiet")
    def test_fits_at_once_give_what_each_gives_alone(self, rows):
        fits = [lambda: ev.PCA(2, row_bound=3, **SEEDED).fit(rows).components_, lambda: ev.PCA(1, row_bound=2, **SEEDED).fit(rows[:, :4]).components_,
                lambda: ev.Covariance(row_bound=3, **{**SEEDED, "epsilon": 1}).fit(rows).covariance_,
                lambda: ev.LinearRegression(ranges=(-3, 3), y_range=(-3, 3), **{**SEEDED, "insecure_seed": 8}).fit(rows[:, :4], rows[:, 6]).coef_]
        expected = [fit().tobytes() for fit in fits]
        found = [[] for _ in fits]

        def work(place):
            for _ in range(5):
                found[place].append(fits[place]().tobytes())

        threads = [threading.Thread(target=work, args=(place,)) for place in range(len(fits))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [[one] * 5 for one in expected]

    @pytest.mark.usefixtures("quiet")
    def test_fits_at_once_keep_one_budget(self, rows, tmp_path):
        ledger = ev.Ledger(tmp_path / "l.db")
        ledger.create("d", epsilon=1.5, delta=1e-6)  # for two releases at 1, which count as less than 2 together
        outcomes = []

        def work():
            try:
                outcomes.append(ev.PCA(1, row_bound=3, epsilon=1, delta=1e-7, ledger=ledger, dataset="d").fit(rows).model_.is_private)
            except ev.BudgetRefused:
                outcomes.append("refused")

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        states = [one["state"] for one in ledger.show("d")["reservations"]]
        assert states == ["answered"] * outcomes.count(True) and len(outcomes) == 6
        assert 0 < outcomes.count(True) < 6 and ledger.show("d")["spent_epsilon"] <= 1.5

    def test_the_interpreter_is_free_meanwhile(self):
        X = np.random.default_rng(0).normal(size=(60_000, 120))
        done = threading.Event()
        ticks = 0

        def fit():
            ev.Covariance(row_bound=20, epsilon=1, delta=1e-6, ledger=None, threads=1).fit(X)
            done.set()

        thread = threading.Thread(target=fit)
        thread.start()
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)
        thread.join()
        assert ticks > 10  # with the lock held there would be one or two

    @pytest.mark.usefixtures("quiet")
    def test_a_fork_after_a_fit(self, rows):
        expected = ev.Covariance(row_bound=3, **SEEDED).fit(rows).covariance_
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            signal.alarm(60)  # a child that waits for threads which it does not have
            try:
                os.write(writer, ev.Covariance(row_bound=3, **SEEDED).fit(rows).covariance_.tobytes())
            finally:
                os._exit(0)
        os.close(writer)
        found = b""
        while piece := os.read(reader, 1 << 16):
            found += piece
        os.waitpid(child, 0)
        # One thread of OpenMP instead of several: the same noise, and solvers that round in another order.
        assert np.allclose(np.frombuffer(found).reshape(expected.shape), expected, rtol=1e-9, atol=1e-12)

    @pytest.mark.usefixtures("quiet")
    @pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
    def test_joblib(self, rows, backend):
        from joblib import Parallel, delayed

        expected = ev.PCA(1, row_bound=3, **SEEDED).fit(rows)
        found = Parallel(n_jobs=2, backend=backend)(delayed(fitted)(rows) for _ in range(3))
        assert all(np.allclose(one.components_, expected.components_, rtol=1e-9, atol=1e-12) for one in found)


def fitted(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ev.PCA(1, row_bound=3, **SEEDED).fit(rows)


class TestStopping:
    def test_progress_is_told(self, rows):
        heard = []
        ev.PCA(**PCA, ledger=None, progress=lambda step, share: heard.append((step, share))).fit(rows)
        steps = [step for step, _ in heard]
        assert steps[0] == "reading rows" and "reserving budget" in steps and any(s.startswith("asking: covariance") for s in steps)
        assert all(0 <= share <= 1 for _, share in heard)

    def test_a_bar_of_tqdm(self, rows, capsys):
        ev.PCA(**PCA, ledger=None, progress=True).fit(rows)
        assert "asking: covariance" in capsys.readouterr().err

    @pytest.mark.parametrize(("place", "words", "state"), [
        (None, "nothing was charged", []), (0, "before the first answer", ["unused"]), (1, "all of it stays", ["answered"])])
    def test_whoever_stops_a_fit_learns_what_was_charged(self, rows, tmp_path, place, words, state):
        ledger = ev.Ledger(tmp_path / "l.db")
        ledger.create("d", epsilon=3, delta=1e-6)
        pca = ev.PCA(**PCA, method="power", rounds=3, ledger=ledger, dataset="d")
        asked = []

        def stop(step, share):
            if step.startswith("asking: ") and share == 0:
                asked.append(step)
            if step == "reserving budget" and place is None or place is not None and len(asked) == place + 1:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt, match=words):
            pca.set_params(progress=stop).fit(rows)
        assert [one["state"] for one in ledger.show("d")["reservations"]] == state
        assert ledger.release_unused("d") == (state == ["unused"])

    def test_what_a_callback_raises_comes_through(self, rows):
        def stop(step, share):
            raise LookupError("enough")

        with pytest.raises(LookupError, match="enough") as error:
            ev.PCA(**PCA, ledger=None, progress=stop).fit(rows)
        assert "nothing was charged" in error.value.__notes__[0]

    def test_ctrl_c(self):
        code = ("import numpy as np, eigenveil as ev\n"
                "X = np.broadcast_to(np.zeros((1, 4)), (10**9, 4))\n"  # as long as it takes, in no memory
                "def say(step, share):\n"
                "    if share == 0: print('go', flush=True)\n"
                "try:\n"
                "    ev.PCA(1, row_bound=1, epsilon=1, delta=1e-6, ledger=None, progress=say).fit(X)\n"
                "except KeyboardInterrupt as stopped:\n"
                "    print(stopped)\n")
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "go\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=60)[0] == "stopped: nothing was charged\n"


class TestForecasts:
    def test_a_forecast_shows_itself(self):
        pca = ev.PCA(2, epsilon=1, delta=1e-6, row_bound=1.5)
        found = pca.forecast(rows=20_000, columns=12, gap=5, curves=True)
        assert found.best in repr(found) and "nothing was spent" in repr(found)
        assert "<table>" in found._repr_html_() and "<svg" in found._repr_html_()
        assert 0 < found.error < 1

    def test_curves_are_drawn_when_somebody_looks(self):
        found = ev.PCA(2, epsilon=1, delta=1e-6, row_bound=1.5).forecast(rows=5_000, columns=6)
        assert "error_by_rows" not in found.methods[0]
        assert "<svg" in found._repr_html_() and "<svg" in found.svg

    def test_a_schema_counts_features(self, tmp_path):
        source = pathlib.Path(os.environ.get("EIGENVEIL_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
        patients = source / "examples" / "patients.toml"
        budget = {"epsilon": 1, "delta": 1e-6, "schema": patients}
        assert ev.PCA(2, **budget).forecast(rows=5_000).data["columns"] == 7
        assert ev.LDA(1, label="sex", **budget).forecast(rows=5_000).data["columns"] == 4
        assert ev.SIR(1, response="systolic", **budget).forecast(rows=5_000).data["columns"] == 6
        assert ev.LinearRegression(target="systolic", **budget).forecast(rows=5_000).data["columns"] == 6
        assert ev.Ridge(target="systolic", alpha=0.5, **budget).forecast(rows=5_000).best == "ridge"

    def test_what_was_forecast_is_remembered_for_its_cost(self):
        pca = ev.PCA(n_components=10, epsilon=1.0, delta=1e-6, row_bound=1.5)
        pca.forecast(rows=50_000, columns=768)
        assert pca.cost(rows=50_000) == pca.cost(rows=50_000, columns=768)

    def test_a_delta_that_follows_the_rows(self, rows):
        pca = ev.PCA(1, epsilon=1, delta="auto", row_bound=3, ledger=None)
        assert np.isclose(pca.fit(rows).manifest_["delta"], len(rows) ** -1.1)
        assert np.isclose(pca.cost(rows=5_000, columns=7)[0]["delta"], 5_000 ** -1.1)
        assert np.isclose(pca.forecast(rows=5_000, columns=7).data["delta"], 5_000 ** -1.1)
        with pytest.raises(ev.UsageError, match="`delta` auto"):
            pca.cost(columns=7)
        with pytest.raises(ev.UsageError, match="`delta` auto"):
            ev.PCA(1, epsilon=1, delta="auto", row_bound=3, ledger=None, adjacency="add-remove-one").fit(rows)

    def test_every_task(self):
        for one, guess in ((ev.Covariance(epsilon=1, delta=1e-6), {"columns": 6}),
                           (ev.CCA(1, epsilon=1, delta=1e-6), {"x_columns": 3, "y_columns": 3}),
                           (ev.LDA(1, classes=[0, 1, 2], epsilon=1, delta=1e-6), {"columns": 5}),
                           (ev.SIR(1, epsilon=1, delta=1e-6), {"columns": 5})):
            assert one.forecast(rows=5_000, **guess).best
        with pytest.raises(ev.UsageError, match="there is no forecast of 'luck'"):
            ev.forecast("luck", rows=1, epsilon=1, delta=1e-6)
        with pytest.raises(ev.UsageError, match="`spectrum`, `gap` and `decay`"):
            ev.forecast("pca", rows=10, columns=3, gap=2, decay=1, epsilon=1, delta=1e-6)

    def test_accounts(self):
        noise = ev.calibrate(["gaussian:mu=1,count=3", "pure:epsilon=0.1"], epsilon=1, delta=1e-6)
        assert len(noise) == 2 and 0.99 < ev.account(noise, delta=1e-6) <= 1
        assert ev.account("gaussian:mu=0.5", epsilon=1) < 1e-2
        with pytest.raises(ev.UsageError, match="one of the two"):
            ev.account("gaussian:mu=1")


class TestModels:
    @pytest.mark.usefixtures("quiet")
    def test_scores_and_rows_rebuilt(self, rows):
        X = rows[:, :5]
        pca = ev.PCA(5, row_bound=10, epsilon=100, delta=1e-6, ledger=None, insecure_seed=1).fit(X)
        assert np.allclose(pca.inverse_transform(pca.transform(X)), X, atol=1e-6)
        assert np.isclose(pca.explained_variance_ratio_.sum(), 1, atol=0.05)

    @pytest.mark.usefixtures("quiet")
    def test_regression_from_a_covariance(self, rows):
        released = ev.Covariance(ranges=(-4, 4), center="private", **SEEDED).fit(rows[:, :5])
        found = released.regress("3")
        assert found.kind == "regress" and found.arrays["coefficients"].shape == (4,)
        with pytest.raises(ev.EigenveilError):
            ev.PCA(1, row_bound=3, **SEEDED).fit(rows[:, :5]).model_._core.regress("3", None)

    @pytest.mark.usefixtures("quiet")
    def test_people_of_pairs_and_of_matrices(self, tmp_path):
        X = np.random.default_rng(0).normal(size=(400, 4))
        (tmp_path / "who.txt").write_text("".join(f"p{i // 2}\n" for i in range(400)))
        heads = ev.ContrastiveHeads(2, person=tmp_path / "who.txt", **SEEDED).fit((X, X[:, :3]))
        assert heads.manifest_["people"] == 200 and heads.manifest_["person"]["column"] == "who"
        gep = ev.GEP(1, sensitivity_a=1e-3, sensitivity_b=1e-4, rows=100, person="who", **SEEDED).fit(np.diag([3.0, 2, 1]), np.eye(3))
        assert gep.manifest_["people"] == 100

    @pytest.mark.usefixtures("quiet")
    def test_rows_that_are_each_their_own_persons_are_logged_and_released(self, rows, caplog):
        for each, told in ((3, False), (1, True)):
            caplog.clear()
            X = np.column_stack([rows[:, :4], np.arange(len(rows)) // each])
            ev.PCA(1, row_bound=3, person="5", **SEEDED).fit(X)
            assert [r.name for r in caplog.records if "its own person" in r.getMessage()] == ["eigenveil"] * told

    def test_words_of_the_program_are_those_of_the_package(self):
        X = np.random.default_rng(0).normal(size=(50, 2))
        with pytest.raises(ev.BadInput, match="let `drop_unlisted` count such rows as zero"):
            ev.LDA(1, classes=[0, 1], row_bound=3, **SEEDED).fit(X, np.arange(50) % 3)
        with pytest.raises(ev.UsageError, match=re.escape("give `ranges=(LO, HI)` or `ranges={COLUMN: (LO, HI)}`, a `schema`")):
            ev.PCA(1, **SEEDED).fit(X)
        with pytest.raises(ev.UsageError, match=re.escape("add `ranges={'2': (LO, HI)}` with public bounds, or `ranges=(LO, HI)` for all")):
            ev.PCA(1, ranges={"1": (0, 1)}, **SEEDED).fit(X)
        with pytest.raises(ev.UsageError, match=re.escape("`ranges={'age': (0, 110)}`: the data has no column 'age'")):
            ev.PCA(1, ranges={"age": (0, 110), None: (0, 1)}, **SEEDED).fit(X)
        with pytest.raises(ev.BadInput, match='let `missing="value"` count it .* or `missing="zero-row"` its row'):
            ev.PCA(1, ranges=(0, 1), **SEEDED).fit(X * np.nan)

    @pytest.mark.usefixtures("quiet")
    def test_heads_retrieve_their_partners(self):
        rng = np.random.default_rng(0)
        Z = rng.normal(size=(20_000, 3))
        heads = ev.ContrastiveHeads(3, epsilon=50, delta=1e-6, ledger=None, insecure_seed=3)
        heads.fit((Z, Z[:, ::-1]))
        assert heads.score(Z[:50], Z[:50, ::-1]) > 0.9
        assert heads.retrieve(Z[:5], Z[:50, ::-1], k=3).shape == (5, 3)
        with pytest.raises(ev.UsageError):
            heads.retrieve(Z[:5], Z[:50, ::-1], k=51)

    def test_other_columns_are_refused(self, rows):
        import pandas

        frame = pandas.DataFrame(rows[:, :3], columns=list("abc"))
        pca = ev.PCA(**PCA, ledger=None).fit(frame)
        assert pca.transform(frame[["c", "a", "b"]]).tobytes() == pca.transform(frame).tobytes()
        with pytest.raises(ev.BadInput, match="c"):
            pca.transform(frame[["a", "b"]])


SOURCE = pathlib.Path(os.environ.get("EIGENVEIL_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PAGES = ["README.md", "docs/python.md"]


def blocks_of(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)


def test_no_page_has_a_python_block_that_nobody_runs():
    pages = [page for page in [*SOURCE.glob("*.md"), *SOURCE.glob("docs/**/*.md"), *SOURCE.glob("src/**/*.md")] if blocks_of(page)]
    others = [page for page in pages if str(page.relative_to(SOURCE)) not in PAGES]
    assert {str(page.relative_to(SOURCE)) for page in pages} >= set(PAGES)
    assert all(block.startswith("# Not run by the tests: ") for page in others for block in blocks_of(page))


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("page", PAGES)
def test_every_python_block_of_the_documents_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks_of(SOURCE / page):
        exec(compile(block, page, "exec"), names)
