# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's own checks, and what a private estimator cannot do, with the reason."""
import os
import pathlib
import re

import numpy as np
import pytest

import eigenveil as ev

pytestmark = pytest.mark.usefixtures("quiet")
BUDGET = {"epsilon": 10, "delta": 1e-6, "ledger": None, "insecure_seed": 1}
INFINITE = "a value that is infinite is clamped to its public range, as any other beyond it"
COLUMN = "a response of one column is taken as it is, without a warning"
ONE_PAIR = "one pair is refused in the library's own words"
LISTED = "classes are public and listed: a label that is not among them counts as zero or is refused, whatever it is"
REGRESSION = {"check_estimators_nan_inf": INFINITE, "check_supervised_y_2d": COLUMN, "check_supervised_y_no_nan": INFINITE}
LABELS = {"check_classifiers_one_label": LISTED, "check_classifiers_classes": LISTED, "check_classifiers_regression_target": LISTED,
          "check_supervised_y_no_nan": LISTED, "check_supervised_y_2d": COLUMN}
PAIRS = {"check_fit2d_1sample": ONE_PAIR}
RANGES = {"ranges": (-1000, 1000), "y_range": (-1000, 1000)}
CASES = {
    "PCA": (ev.PCA(1, row_bound=50, **BUDGET), {}),
    "SparsePCA": (ev.SparsePCA(1, sparsity=1, row_bound=50, **BUDGET), {}),
    "Covariance": (ev.Covariance(row_bound=50, **BUDGET), {}),
    "LinearRegression": (ev.LinearRegression(**RANGES, **BUDGET), REGRESSION),
    "Ridge": (ev.Ridge(alpha=0.1, **RANGES, **BUDGET), REGRESSION),
    "CCA": (ev.CCA(1, row_bound=50, **BUDGET), {}),
    "LDA": (ev.LDA(1, classes=[0, 1, 2], drop_unlisted=True, row_bound=50, **BUDGET), LABELS),
    "SIR": (ev.SIR(1, response_range=(-10, 10), slices=3, row_bound=50, **BUDGET), {}),
    "ContrastiveHeads": (ev.ContrastiveHeads(1, **BUDGET), PAIRS),
}


@pytest.mark.parametrize("name", CASES)
def test_scikit_learns_checks(name):
    from sklearn.utils.estimator_checks import check_estimator

    estimator, expected = CASES[name]
    found = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in found if one["status"] == "failed"}
    assert not failed, "\n".join(f"{name}: {error!r:.200}" for name, error in failed.items())
    assert sum(one["status"] == "passed" for one in found) > 25
    # A reason that is no longer needed is taken off the list.
    assert set(expected) <= {one["check_name"] for one in found if one["status"] == "xfail"}


def test_two_matrices_are_no_rows():
    """GEP takes two square matrices: what gives it rows is refused in words, and whatever needs no fit passes."""
    from sklearn.utils.estimator_checks import check_estimator

    gep = ev.GEP(1, sensitivity_a=1e-3, sensitivity_b=1e-4, rows=100, **BUDGET)
    found = check_estimator(gep, on_fail=None, on_skip=None)
    assert sum(one["status"] == "passed" for one in found) > 15
    assert not [one for one in found if one["status"] == "failed" and not isinstance(one["exception"], (ValueError, AssertionError))]


def test_every_reason_is_in_the_documents():
    """docs/python.md has one table: a check, who cannot pass it, and why."""
    source = pathlib.Path(os.environ.get("EIGENVEIL_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
    rows = re.findall(r"^\| `(check_\w+)` \| (.*?) \| (.*?) \|$", (source / "docs" / "python.md").read_text(), re.M)
    listed = {(check, who.strip("`"), reason) for check, some, reason in rows for who in some.split(", ")}
    assert listed == {(check, name, reason) for name, (_, reasons) in CASES.items() for check, reason in reasons.items()}


def test_scikit_learn_knows_what_they_are():
    from sklearn.base import is_classifier, is_regressor

    for name, (one, _) in CASES.items():
        assert is_regressor(one) == (name in ("LinearRegression", "Ridge")), name
        assert is_classifier(one) == (name == "LDA"), name


def test_a_pipeline_of_both(rows):
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    pipeline = make_pipeline(FunctionTransformer(), ev.PCA(2, row_bound=3, **BUDGET), LogisticRegression())
    pipeline.fit(rows[:, :5], rows[:, 5])
    assert pipeline.score(rows[:, :5], rows[:, 5]) > 0.7
    again = clone(pipeline.named_steps["pca"])
    assert again.get_params() == pipeline.named_steps["pca"].get_params() and not hasattr(again, "components_")
    pipeline.set_params(pca__n_components=1).fit(rows[:, :5], rows[:, 5])
    assert pipeline.named_steps["pca"].components_.shape == (1, 5)
    search = GridSearchCV(ev.LDA(1, classes=[0, 1], row_bound=3, **BUDGET), {"row_bound": [2, 3]}, cv=2)
    assert search.fit(rows[:, :5], rows[:, 5]).best_score_ > 0.7


def test_names_in_and_out(rows):
    import pandas
    import polars

    frame = pandas.DataFrame(rows[:, :3], columns=list("abc"), index=np.arange(len(rows)) * 2)
    pca = ev.PCA(2, row_bound=3, **BUDGET).fit(frame)
    assert list(pca.feature_names_in_) == ["a", "b", "c"] and pca.n_features_in_ == 3
    assert list(pca.get_feature_names_out()) == ["pc1", "pc2"]
    scores = pca.set_output(transform="pandas").transform(frame)
    assert list(scores.columns) == ["pc1", "pc2"] and list(scores.index) == list(frame.index)
    assert isinstance(pca.set_output(transform="polars").transform(frame), polars.DataFrame)
    assert isinstance(pca.set_output(transform="default").transform(frame), np.ndarray)
    with pytest.raises(ValueError):
        pca.set_output(transform="parchment")
    assert not hasattr(ev.PCA(1, row_bound=3, **BUDGET).fit(rows), "feature_names_in_")


def test_two_views_find_columns_by_name_or_refuse_others(rows):
    import pandas
    import polars

    X, Y = pandas.DataFrame(rows[:, :3], columns=list("abc")), pandas.DataFrame(rows[:, 3:5], columns=list("ad"))
    cca = ev.CCA(1, row_bound=3, **BUDGET).fit(X, Y)
    heads = ev.ContrastiveHeads(2, **BUDGET).fit(X, Y)
    expected = cca.transform(X, Y)
    for held in ((X[["c", "a", "b"]], Y[["d", "a"]]), (polars.from_pandas(X), polars.from_pandas(Y)), (X.to_numpy(), Y.to_numpy())):
        assert all(one.tobytes() == other.tobytes() for one, other in zip(cca.transform(held), expected))
    assert cca.transform(X).tobytes() == cca.transform(X[["c", "b", "a"]]).tobytes() == expected[0].tobytes()
    for one in (cca, heads):
        with pytest.raises(ev.BadInput, match="X has 2 features, but .* expecting 3"):
            one.transform(Y.to_numpy(), Y.to_numpy())
        with pytest.raises(ev.BadInput, match="features"):
            one.transform(X.to_numpy(), X.to_numpy())
    for refused in (lambda: heads.transform(X[["c", "a", "b"]]), lambda: heads.embed_y(Y[["d", "a"]]), lambda: heads.retrieve(X, Y[["d", "a"]]),
                    lambda: heads.score(X[["b", "a", "c"]], Y), lambda: cca.transform(X.rename(columns={"a": "z"}), Y)):
        with pytest.raises(ev.BadInput, match="'(x.)?a'"):
            refused()


def test_two_views_name_their_scores(rows):
    import pandas
    import polars

    X, Y = pandas.DataFrame(rows[:, :3], columns=list("abc"), index=np.arange(len(rows)) * 2), rows[:, 3:5]
    for one in (ev.CCA(2, row_bound=3, **BUDGET).fit(X, Y), ev.ContrastiveHeads(2, **BUDGET).fit(X, Y)):
        assert list(one.get_feature_names_out()) == ["x1", "x2"] and list(one.feature_names_in_) == ["a", "b", "c"]
        first, second = one.set_output(transform="pandas").transform(X, Y)
        assert list(first.columns) == ["x1", "x2"] and list(second.columns) == ["y1", "y2"] and list(first.index) == list(X.index)
        assert all(isinstance(scores, polars.DataFrame) for scores in one.set_output(transform="polars").transform(X, Y))


def test_a_view_of_one_column_may_be_a_list(rows):
    import pandas
    import polars

    heads, y = ev.ContrastiveHeads(1, **BUDGET), rows[:, 4]
    expected = heads.fit(rows[:, :3], y.reshape(-1, 1)).y_weights_.tobytes()
    for held in (y, y.tolist(), pandas.Series(y), polars.Series(y)):
        assert heads.fit(rows[:, :3], held).y_weights_.tobytes() == expected
        assert 0 <= heads.score(rows[:, :3], held) <= 1
