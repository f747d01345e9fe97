# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's own checks, and what a private estimator cannot do, with the reason."""
import numpy as np
import pytest

import eigenveil as ev

pytestmark = pytest.mark.usefixtures("quiet")
BUDGET = {"epsilon": 10, "delta": 1e-6, "ledger": None, "insecure_seed": 1}
EMPTY = "no rows are as good as any number: how many there are may be private"
NAN = "a value that is infinite is clamped to its public range, as any other beyond it"
REGRESSION = {
    "check_dtype_object": "a response is a number; text is refused in the library's own words",
    "check_estimators_empty_data_messages": EMPTY,
    "check_estimators_nan_inf": NAN,
}
SPECTRAL = {"check_estimators_empty_data_messages": EMPTY, "check_estimators_nan_inf": NAN}


def checked(estimator, expected):
    from sklearn.utils.estimator_checks import check_estimator

    found = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in found if one["status"] == "failed"}
    assert not failed, "\n".join(f"{name}: {error!r:.200}" for name, error in failed.items())
    assert sum(one["status"] == "passed" for one in found) > 25
    # A reason that is no longer needed is taken off the list.
    assert set(expected) <= {one["check_name"] for one in found if one["status"] == "xfail"}


def test_pca():
    checked(ev.PCA(1, row_bound=50, **BUDGET), SPECTRAL)


def test_covariance():
    checked(ev.Covariance(row_bound=50, **BUDGET), SPECTRAL)


def test_regression():
    checked(ev.LinearRegression(ranges=(-1000, 1000), y_range=(-1000, 1000), **BUDGET), REGRESSION)


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
