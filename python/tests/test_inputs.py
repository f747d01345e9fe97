# SPDX-License-Identifier: Apache-2.0
"""What users give: labels and responses of every make, gaps in them, words for what cannot be taken."""
import numpy as np
import pytest
from conftest import SEEDED

import eigenveil as ev

pytestmark = pytest.mark.usefixtures("quiet")
RANGES = {"ranges": (-4, 4), **SEEDED}


@pytest.fixture
def labels(rows):
    return ["yes" if one else "no" for one in rows[:, 5]]


def makes(values):
    """The same labels or numbers in everything that holds one column."""
    import pandas
    import polars
    import pyarrow

    yield "a list", list(values)
    yield "objects", np.asarray(values, dtype=object)
    yield "pandas", pandas.Series(values)
    yield "a frame of one column", pandas.DataFrame({"label": values})
    yield "polars", polars.Series(values)
    yield "pyarrow", pyarrow.array(values)
    yield "pyarrow in pieces", pyarrow.chunked_array([values[:100], values[100:]])
    yield "a dictionary of pyarrow's", pyarrow.array(values).dictionary_encode()
    if isinstance(values[0], str):
        yield "categories", pandas.Series(values).astype("category")


def test_labels_of_every_make_are_the_same_labels(rows, labels):
    lda = ev.LDA(1, classes=["no", "yes"], **RANGES)
    expected = lda.fit(rows[:, :5], np.asarray(labels)).scalings_.tobytes()
    for what, y in makes(labels):
        assert lda.fit(rows[:, :5], y).scalings_.tobytes() == expected, what


def test_responses_of_every_make_are_the_same_numbers(rows):
    fit = ev.LinearRegression(y_range=(-4, 4), **RANGES)
    expected = fit.fit(rows[:, :5], rows[:, 6]).coef_.tobytes()
    for what, y in makes(rows[:, 6].tolist()):
        assert fit.fit(rows[:, :5], y).coef_.tobytes() == expected, what


def test_a_gap_among_labels_is_missing_whatever_stands_for_it(rows, labels):
    import pandas
    import polars
    import pyarrow

    X = rows[:, :5].copy()
    lda = ev.LDA(1, classes=["no", "yes", "None", "nan", "<NA>"], missing="zero-row", **RANGES)
    X[7] = 0
    none = [None if place == 7 else one for place, one in enumerate(labels)]
    nan = [float("nan") if place == 7 else one for place, one in enumerate(labels)]
    kept = lda.fit(X, ["" if one is None else one for one in none]).priors_.tobytes()
    for y in (none, np.asarray(nan, dtype=object), np.asarray(none, dtype=object), pandas.Series(none), pandas.Series(none, dtype="string"),
              polars.Series(none), pyarrow.array(none), pyarrow.array(none).dictionary_encode()):
        assert lda.fit(X, y).priors_.tobytes() == kept
    with pytest.raises(ev.BadInput, match="row 8, column 'y': the class is missing"):
        ev.LDA(1, classes=["no", "yes", "None"], **RANGES).fit(X, none)
    gaps = ev.LinearRegression(y_range=(-4, 4), missing="value", **RANGES)
    expected = gaps.fit(X, [np.nan if one is None else 1.0 for one in none]).coef_.tobytes()
    for y in ([one and 1 for one in none], pandas.Series([one and 1 for one in none], dtype="Int64"), polars.Series([one and 1.0 for one in none])):
        assert gaps.fit(X, y).coef_.tobytes() == expected


def test_true_and_false_may_be_classes(rows):
    y = rows[:, 5] > 0
    expected = ev.LDA(1, classes=[0, 1], **RANGES).fit(rows[:, :5], y)
    for given in (y, y.tolist(), y.astype(object)):
        lda = ev.LDA(1, classes=[False, True], **RANGES).fit(rows[:, :5], given)
        assert lda.scalings_.tobytes() == expected.scalings_.tobytes()
        assert lda.predict(rows[:, :5]).dtype == bool and lda.score(rows[:, :5], y) > 0.8


def test_classes_may_be_an_array(rows, labels, tmp_path):
    ledger = ev.Ledger(tmp_path / "l.db")
    ledger.create("d", epsilon=3, delta=1e-6)
    lda = ev.LDA(1, classes=np.unique(labels), ranges=(-4, 4), epsilon=2, delta=1e-6, ledger=ledger, dataset="d")
    assert lda.forecast(rows=5_000, columns=5).best
    assert list(lda.fit(rows[:, :5], labels).classes_) == ["no", "yes"]  # what is charged is given


def test_a_schema_may_be_its_columns(rows):
    import pandas

    frame = pandas.DataFrame(rows[:, :2], columns=["a", "b"])
    columns = {"a": (-4, 4), "b": (-3, 3)}
    pca = ev.PCA(1, schema=columns, **SEEDED)
    assert pca.fit(frame).components_.tobytes() == ev.PCA(1, schema=ev.Schema(columns), **SEEDED).fit(frame).components_.tobytes()
    assert pca.forecast(rows=5_000).data["columns"] == 2


def test_what_cannot_be_taken_is_refused_in_words(rows, tmp_path):
    import pandas
    import polars
    import pyarrow

    pca = ev.PCA(1, **RANGES)
    for X in (pandas.Series(rows[:, 0]), polars.Series(rows[:, 0]), pyarrow.array(rows[:, 0]), pyarrow.chunked_array([rows[:, 0]])):
        with pytest.raises(ev.BadInput, match="X is one column, and rows have two dimensions"):
            pca.fit(X)
    for name in ("nothing.csv", "nothing.parquet"):
        with pytest.raises(ev.BadInput, match="nothing.*: there is no such file"):
            pca.fit(tmp_path / name)
    for ranges in ((1,), [(0, 1), (0, 1), (0, 1)], 3, {"a": 1}):
        with pytest.raises(ev.UsageError, match=r"`ranges` must be \(LO, HI\) for all columns, or \{COLUMN"):
            ev.PCA(1, ranges=ranges, **SEEDED).fit(rows)
    for X in ({"a": [1.0, 2.0]}, (row for row in rows), None):
        with pytest.raises(TypeError, match=f"X is a {type(X).__name__} and no rows: give an array, a table"):
            pca.fit(X)
    ev.Ledger(tmp_path / "l.db").create("others", epsilon=1, delta=1e-6)
    with pytest.raises(ev.UsageError, match="Create it with: `Ledger.create`"):
        ev.PCA(1, ranges=(-4, 4), epsilon=1, delta=1e-6, ledger=tmp_path / "l.db", dataset="patients").fit(rows)


def test_a_label_is_read_by_itself_whatever_the_others_are(rows):
    """NumPy and pandas find one type for all values: True, False and a single 1.0 are numbers to them, and one None makes objects."""
    import pandas

    def counts(y, classes):
        lda = ev.LDA(1, classes=classes, drop_unlisted=True, missing="zero-row", ranges=(-4, 4), **{**SEEDED, "epsilon": 100}).fit(rows[:, :5], y)
        return lda.class_means_.round(1).tolist()

    truths = [bool(one) for one in rows[:-1, 5]]
    digits = [float(one) for one in truths]
    for kept, classes, others in ((truths, [False, True], (1.0, 2, None, "tall", pandas.NA)), (digits, [0, 1], (True, None, "tall", np.int64(1))),
                                  (digits, ["0", "1"], (True, None, "tall", 10**30)), (truths, [0, 1], (None, "tall", 0.0))):
        expected = counts([*kept, kept[0]], classes)
        assert np.abs(expected).max() > 0.1
        for other in others:
            for y in ([*kept, other], pandas.Series([*kept, other], dtype=object), np.array([*kept, other], dtype=object)):
                assert counts(y, classes) == expected, (classes, other)
    assert counts(np.array([*truths, True]), [False, True]) == counts([*truths, True], [False, True])


def test_scikit_learns_own_configuration_counts(rows):
    import pandas
    from sklearn import config_context

    pca = ev.PCA(1, **RANGES).fit(rows)
    with config_context(transform_output="pandas"):
        assert isinstance(pca.transform(rows), pandas.DataFrame)
        assert isinstance(pca.set_output(transform="default").transform(rows), np.ndarray)
