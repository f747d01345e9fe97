# SPDX-License-Identifier: Apache-2.0
"""A seeded release from here and from the program agree in every array, whatever holds the rows."""
import re
import subprocess

import numpy as np
import pytest
from conftest import PROGRAM, SEEDED, same

import eigenveil as ev

pytestmark = pytest.mark.usefixtures("quiet")
COLUMNS = ["a", "b", "c", "d", "e"]


def saved(tmp_path, name, values):
    np.save(tmp_path / name, values)
    return tmp_path / name


def frames(X, tmp_path):
    """The same rows in everything that can hold them."""
    import duckdb
    import pandas
    import polars
    import pyarrow
    import pyarrow.dataset
    import pyarrow.parquet

    frame = pandas.DataFrame(X, columns=COLUMNS)
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    parquet = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(table, parquet, row_group_size=100)
    connection = duckdb.connect()
    yield "C order", X
    yield "Fortran order", np.asfortranarray(X)
    yield "a view", np.repeat(X, 2, axis=0)[::2]
    yield "columns of a wider array", np.column_stack([X, X])[:, :5]
    yield "read-only", np.frombuffer(X.tobytes()).reshape(X.shape)
    yield "other byte order", X.astype(">f8")
    yield "a list", X.tolist()
    yield "pandas", frame
    yield "pandas with an index", frame.set_index(frame.index * 3 + 1)
    yield "polars", polars.DataFrame(X, schema=COLUMNS)
    yield "polars, lazy", polars.DataFrame(X, schema=COLUMNS).lazy()
    yield "pyarrow table", table
    yield "pyarrow batches", pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=37))
    yield "pyarrow dataset", pyarrow.dataset.dataset(parquet)
    yield "a Parquet file", parquet
    yield "duckdb", connection.sql(f"select * from '{parquet}'")
    yield "NPY", saved(tmp_path, "rows.npy", X)


TABLE = {"row_bound": 3, **SEEDED}
# Of one table with the columns a to e: the estimator, and what the program is told.
ESTIMATORS = {
    "PCA": (ev.PCA(2, **TABLE), ["pca", "--components", 2, "--row-bound", 3]),
    "SparsePCA": (ev.SparsePCA(1, sparsity=2, **TABLE), ["pca", "--components", 1, "--sparsity", 2, "--row-bound", 3]),
    "Covariance": (ev.Covariance(**TABLE), ["covariance", "--row-bound", 3]),
    "LinearRegression": (ev.LinearRegression(target="{e}", ranges=(-3, 3), **SEEDED), ["regress", "--target", "5", "--range", "-3:3"]),
    "Ridge": (ev.Ridge(alpha=0.1, target="{b}", ranges=(-3, 3), **SEEDED),
              ["regress", "--target", "2", "--ridge", 0.1, "--range", "-3:3"]),
    "CCA": (ev.CCA(1, x_columns=["{a}", "{b}"], y_columns=["{c}", "{d}", "{e}"], **TABLE),
            ["cca", "--components", 1, "--x-columns", "1-2", "--y-columns", "3-5", "--row-bound", 3]),
    "LDA": (ev.LDA(1, label="{e}", classes=[0, 1], **TABLE),
            ["fda", "--components", 1, "--label", 5, "--classes", "0|1", "--row-bound", 3]),
    "SIR": (ev.SIR(1, response="{e}", cuts=[-0.5, 0.5], **TABLE),
            ["sir", "--components", 1, "--response", 5, "--cuts=-0.5,0.5", "--row-bound", 3]),
}


def named(estimator, numbered):
    """The columns by name, or by number where nothing names them."""
    def filled(value):
        if isinstance(value, list) and value and isinstance(value[0], str):
            return [filled(one) for one in value]
        if isinstance(value, str) and value.startswith("{"):
            return str(COLUMNS.index(value[1]) + 1) if numbered else value[1]
        return value

    return type(estimator)(**{name: filled(value) for name, value in estimator.get_params().items()})


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_input(rows, program, tmp_path, name):
    X = rows[:, [0, 1, 2, 3, 5]] if name == "LDA" else rows[:, :5]
    estimator, command = ESTIMATORS[name]
    expected = program(command[0], saved(tmp_path, "x.npy", X), *command[1:])
    tried = []
    for what, held in frames(X, tmp_path):
        tried.append(what)
        numbered = isinstance(held, (np.ndarray, list)) or what == "NPY"
        try:
            same(named(estimator, numbered).fit(held), expected)
        except Exception as error:
            raise AssertionError(what) from error
    assert len(tried) == 17


@pytest.mark.parametrize("name", ["two tables", "heads", "matrices"])
def test_every_input_of_two(rows, program, tmp_path, name):
    X, Y = rows[:, :5], rows[:, [1, 0, 4, 3, 6]]
    if name == "matrices":
        X, Y = X.T @ X / len(X), np.eye(5) + Y.T @ Y / len(Y)
        X, Y = (X + X.T) / 2, (Y + Y.T) / 2
    files = saved(tmp_path, "first.npy", X), saved(tmp_path, "second.npy", Y)
    if name == "two tables":
        expected = program("cca", saved(tmp_path, "both.npy", np.column_stack([X, Y])), "--components", 1, "--x-columns", "1-5", "--y-columns",
                           "6-10", "--row-bound", 3)
        estimator = ev.CCA(1, **TABLE)
    elif name == "heads":
        expected = program("clip", "fit", "--x", files[0], "--y", files[1], "--dim", 2)
        estimator = ev.ContrastiveHeads(2, **SEEDED)
    else:
        given = {"sensitivity_a": 1e-3, "sensitivity_b": 1e-4, "rows": 700}
        expected = program("gep", "--matrix-a", files[0], "--matrix-b", files[1], "--components", 2, "--sensitivity-a", 1e-3,
                           "--sensitivity-b", 1e-4, "--rows", 700)
        estimator = ev.GEP(2, **given, **SEEDED)
    folders = [tmp_path / one for one in ("x", "y")]
    for folder in folders:
        folder.mkdir()
    for (what, first), (_, second) in zip(frames(X, folders[0]), frames(Y, folders[1])):
        if what == "NPY" and name == "two tables":
            continue  # two files do not stand side by side, which is said
        try:
            same(estimator.fit((first, second)), expected)
        except Exception as error:
            raise AssertionError(what) from error


@pytest.mark.parametrize("kind", ["f4", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_of_every_type(rows, program, tmp_path, kind, order):
    X = np.abs(rows[:, :5] * (20 if kind[0] in "iu" else 1)).astype(kind)
    expected = program("pca", saved(tmp_path, "x.npy", X.astype("f8")), "--components", 2, "--row-bound", 30)
    same(ev.PCA(2, row_bound=30, **SEEDED).fit(np.asarray(X, order=order)), expected)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_numbers_of_every_type_in_every_estimator(rows, program, tmp_path, name):
    """Halves, which floats of 16 and 32 bits hold too, and whole numbers."""
    import polars
    import pyarrow

    halves = np.round(2 * rows[:, [0, 1, 2, 3, 5]]) / 2
    estimator, command = ESTIMATORS[name]
    for X, kinds in ((halves, ("f2", "f4")), (np.trunc(rows[:, [0, 1, 2, 3, 5]]), ("i1", "i4", "i8"))):
        expected = program(command[0], saved(tmp_path, "x.npy", X), *command[1:])
        for kind in kinds:
            held = X.astype(kind)
            for order in "CF":
                same(named(estimator, True).fit(np.asarray(held, order=order)), expected)
            if kind != "f2":
                same(named(estimator, False).fit(polars.DataFrame(held, schema=COLUMNS)), expected)
            same(named(estimator, False).fit(pyarrow.table({column: held[:, j] for j, column in enumerate(COLUMNS)})), expected)


def test_categories_and_nulls_by_the_schema(program, tmp_path):
    import pandas
    import polars
    import pyarrow

    rng = np.random.default_rng(5)
    sex = rng.choice(["F", "M", "X"], size=400)
    age = np.round(rng.uniform(0, 120, size=400))
    (tmp_path / "d.csv").write_text("age,sex\n" + "".join(
        f"{'' if i % 7 == 0 else a:g},{s}\n" if i % 7 else f",{s}\n" for i, (a, s) in enumerate(zip(age, sex))))
    (tmp_path / "s.toml").write_text(
        '[[column]]\nname = "age"\nkind = "numeric"\nlower = 0\nupper = 120\n[[column]]\nname = "sex"\n'
        'kind = "categorical"\nvalues = ["F", "M", "unknown"]\nother = "unknown"\n')
    expected = program("pca", tmp_path / "d.csv", "--components", 2, "--schema", tmp_path / "s.toml", "--missing",
                       "zero-row")
    age[::7] = np.nan
    frame = pandas.DataFrame({"age": age, "sex": sex})
    schema = ev.Schema({"age": (0, 120), "sex": ["F", "M", "unknown"]}, other={"sex": "unknown"})
    table = pyarrow.Table.from_pandas(frame)
    for held in (frame, frame.astype({"sex": "category"}), table, polars.from_arrow(table),
                 table.set_column(1, "sex", table["sex"].dictionary_encode()),
                 table.set_column(1, "sex", table["sex"].cast(pyarrow.large_string())),
                 table.set_column(1, "sex", table["sex"].cast(pyarrow.string_view()))):
        for given in (schema, tmp_path / "s.toml"):
            same(ev.PCA(2, schema=given, missing="zero-row", **SEEDED).fit(held), expected)
    with pytest.raises(ev.BadInput, match="row 1, column 'age'"):
        ev.PCA(2, schema=schema, **SEEDED).fit(frame)


def test_methods_of_pca(rows, program, tmp_path):
    X = rows[:, :5]
    data = saved(tmp_path, "x.npy", X)
    same(ev.PCA(2, row_bound=3, center="private", **SEEDED).fit(X),
         program("pca", data, "--components", 2, "--row-bound", 3, "--center", "private"))
    same(ev.PCA(2, row_bound=3, method="adaptive-power", rounds=4, **SEEDED).fit(X),
         program("pca", data, "--components", 2, "--row-bound", 3, "--method", "adaptive-power", "--rounds", 4))
    same(ev.PCA(1, ranges={None: (-3, 3), "2": (-1, 1.5)}, method="auto", **SEEDED).fit(X),
         program("pca", data, "--components", 1, "--range", "-3:3", "--range", "2=-1:1.5", "--method", "auto"))
    same(ev.SparsePCA(1, sparsity=2, row_bound=3, **SEEDED).fit(X),
         program("pca", data, "--components", 1, "--row-bound", 3, "--sparsity", 2))


@pytest.mark.parametrize("bound", ["auto", "auto:5", "range", "2.5"])
def test_row_bounds_in_the_words_of_the_program(rows, program, tmp_path, bound):
    X = rows[:, :5]
    expected = program("pca", saved(tmp_path, "x.npy", X), "--components", 2, "--range", "-3:3", "--row-bound", bound)
    same(ev.PCA(2, ranges=(-3, 3), row_bound=bound, **SEEDED).fit(X), expected)


def test_rows_of_one_length(rows, program, tmp_path):
    X = rows[:, :5]
    expected = program("pca", saved(tmp_path, "x.npy", X), "--components", 2, "--range", "-3:3", "--method", "sphere")
    same(ev.PCA(2, ranges=(-3, 3), method="sphere", **SEEDED).fit(X), expected)


def test_every_option_of_the_program_is_one_here():
    """A flag that rows are fitted with is a parameter, or is listed: what only a program needs, or what has another name here."""
    if not PROGRAM:
        pytest.skip("EIGENVEIL_PROGRAM is not set")
    others = {"calibration", "diagnostics", "engine", "force", "help", "image_shape", "json", "no_ledger", "out", "quiet", "report", "yes",
              "components", "dim", "range", "unlisted", "from", "matrix_a", "matrix_b",
              # what is encoded is given as numbers
              "captions", "channels", "class_names", "image_encoder", "images", "keep_embeddings", "labels", "missing", "pixel_range", "prompts",
              "text_encoder", "x_fields", "y_fields"}
    kinds = {"pca": ev.PCA, "covariance": ev.Covariance, "regress": ev.LinearRegression, "cca": ev.CCA, "fda": ev.LDA, "sir": ev.SIR, "gep": ev.GEP,
             "clip fit": ev.ContrastiveHeads}
    for command, kind in kinds.items():
        shown = subprocess.run([PROGRAM, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
        flags = {name.replace("-", "_") for name in re.findall(r"^  (?:-\w,)?--([a-z][a-z-]+)", shown, re.M)}
        assert len(flags) > 20
        assert flags - others <= set(kind._names()), command


def test_covariance(rows, program, tmp_path):
    X = rows[:, :5]
    data = saved(tmp_path, "x.npy", X)
    same(ev.Covariance(row_bound=3, **SEEDED).fit(X), program("covariance", data, "--row-bound", 3))
    same(ev.Covariance(row_bound=3, method="spiked", dense=True, rank=2, **SEEDED).fit(X),
         program("covariance", data, "--row-bound", 3, "--method", "spiked", "--dense", "--rank", 2))


def test_regression(rows, program, tmp_path):
    X = rows[:, :5]
    data = saved(tmp_path, "x.npy", X)
    expected = program("regress", data, "--target", 5, "--range", "-3:3")
    same(ev.LinearRegression(target="5", ranges=(-3, 3), **SEEDED).fit(X), expected)
    same(ev.LinearRegression(ranges=(-3, 3), y_range=(-3, 3), **SEEDED).fit(X[:, :4], X[:, 4]), expected)
    same(ev.Ridge(alpha=0.1, target="2", ranges=(-3, 3), **SEEDED).fit(X),
         program("regress", data, "--target", 2, "--ridge", 0.1, "--range", "-3:3"))


def test_cca(rows, program, tmp_path):
    X = rows[:, :5]
    expected = program("cca", saved(tmp_path, "x.npy", X), "--components", 1, "--x-columns", "1-2", "--y-columns", "3-5",
                       "--row-bound", 3)
    same(ev.CCA(1, row_bound=3, **SEEDED).fit((X[:, :2], X[:, 2:])), expected)
    same(ev.CCA(1, x_columns=["1-2"], y_columns=["3-5"], row_bound=3, **SEEDED).fit(X), expected)


def test_lda(rows, program, tmp_path):
    X = rows[:, :6]
    expected = program("fda", saved(tmp_path, "x.npy", X), "--components", 1, "--label", 6, "--classes", "0|1",
                       "--row-bound", 3)
    same(ev.LDA(1, label="6", classes=[0, 1], row_bound=3, **SEEDED).fit(X), expected)
    same(ev.LDA(1, classes=[0, 1], row_bound=3, **SEEDED).fit(X[:, :5], X[:, 5]), expected)
    words = np.where(X[:, 5] > 0, "yes", "no")
    told = ev.LDA(1, classes=["no", "yes"], row_bound=3, **SEEDED).fit(X[:, :5], words)
    same(told, expected)
    assert set(told.predict(X[:, :5])) == {"no", "yes"}


def test_sir(rows, program, tmp_path):
    X = np.column_stack([rows[:, :5], rows[:, 6]])
    data = saved(tmp_path, "x.npy", X)
    begin = ("sir", data, "--components", 1, "--response", 6, "--row-bound", 3)
    same(ev.SIR(1, response="6", cuts=[-0.5, 0.5], row_bound=3, **SEEDED).fit(X), program(*begin, "--cuts=-0.5,0.5"))
    same(ev.SIR(1, response_range=(-3, 3), slices=4, private_slices=True, row_bound=3, **SEEDED).fit(X[:, :5], X[:, 5]),
         program(*begin, "--response-range=-3:3", "--slices", "private:4"))


def test_gep(rows, program, tmp_path):
    X = rows[:, :5]
    A = X.T @ X / len(X)
    B = np.eye(5) + 0.1 * A
    A, B = (A + A.T) / 2, (B + B.T) / 2
    same(ev.GEP(2, sensitivity_a=1e-3, sensitivity_b=1e-4, rows=len(X), **SEEDED).fit((A, B)),
         program("gep", "--matrix-a", saved(tmp_path, "a.npy", A), "--matrix-b", saved(tmp_path, "b.npy", B),
                 "--components", 2, "--sensitivity-a", 1e-3, "--sensitivity-b", 1e-4, "--rows", len(X)))


def test_contrastive_heads(rows, program, tmp_path):
    X, Y = rows[:, :3], rows[:, 2:5]
    files = ("--x", saved(tmp_path, "x.npy", X), "--y", saved(tmp_path, "y.npy", Y))
    same(ev.ContrastiveHeads(2, **SEEDED).fit((X, Y)), program("clip", "fit", *files, "--dim", 2))
    same(ev.ContrastiveHeads(2, method="batch", sample_rate=0.05, steps=20, adjacency="add-remove-one",
                             **SEEDED).fit(X, Y),
         program("clip", "fit", *files, "--dim", 2, "--method", "batch", "--sample-rate", 0.05, "--steps", 20))


def test_a_file_of_either_is_a_file_of_both(rows, program, tmp_path):
    X = rows[:, :5]
    program("pca", saved(tmp_path, "x.npy", X), "--components", 2, "--row-bound", 3)
    ours = ev.PCA(2, row_bound=3, **SEEDED).fit(X)
    ours.save(tmp_path / "ours.npz")
    theirs = ev.Model.load(tmp_path / "program.npz")
    assert theirs.transform(X).tobytes() == ours.transform(X).tobytes()
    with np.load(tmp_path / "ours.npz") as found:
        assert found["components"].tobytes() == ours.components_.tobytes()


@pytest.mark.parametrize("weight", ["equal", "rows:3"])
def test_people(rows, program, tmp_path, weight):
    import pandas
    import polars
    import pyarrow

    X = np.round(rows[:600, :3], 3)
    ids = [f"p{i * 7 % 200:03}" for i in range(600)]
    frame = pandas.DataFrame({"patient": ids, **{f"x{j}": X[:, j] for j in range(3)}})
    frame.to_csv(tmp_path / "visits.csv", index=False)
    expected = program("pca", tmp_path / "visits.csv", "--header", "yes", "--components", 2, "--row-bound", 3, "--person",
                       "patient", "--person-weight", weight)
    pca = ev.PCA(2, row_bound=3, person="patient", person_weight=weight, **SEEDED)
    for table in (frame, polars.DataFrame(frame), pyarrow.Table.from_pandas(frame)):
        same(pca.fit(table), expected)
    assert pca.transform(frame).shape == (600, 2)
    with pytest.raises(ev.UsageError, match="person"):
        ev.PCA(2, row_bound=3, max_rows_per_person=2, **SEEDED).fit(frame)


def test_arrays_whose_ids_would_be_rounded_or_read_as_numbers_are_refused(rows):
    X = np.column_stack([np.arange(600) % 200, rows[:600, :3]])
    pca = ev.PCA(2, row_bound=3, person=1, **SEEDED)
    for ids in (X.astype(np.float32), X.astype(np.float16)):
        with pytest.raises(ev.BadInput, match=r"rounded from 2\^(24|11) on"):
            pca.fit(ids)
    for ids in (X.astype(object), X.astype(str)):
        with pytest.raises(ev.BadInput, match="'1' and '01' would be one person"):
            pca.fit(ids)
    ev.PCA(2, row_bound=3, **SEEDED).fit(X.astype(np.float32))


def test_people_of_an_array_are_a_column_by_its_place(rows, program, tmp_path):
    X = np.column_stack([np.arange(600) % 200, rows[:600, :3]])
    expected = program("pca", saved(tmp_path, "x.npy", X), "--components", 2, "--row-bound", 3, "--person", "1")
    pca = ev.PCA(2, row_bound=3, person=1, **SEEDED).fit(X)
    same(pca, expected)
    assert pca.components_.shape == (2, 3) and pca.transform(X).shape == (600, 2)
