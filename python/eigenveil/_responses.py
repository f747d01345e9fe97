# SPDX-License-Identifier: Apache-2.0
"""Estimators of a table and a response: regressions, classes, slices."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, Sequence

import numpy as np

from ._base import Generalized, RowEstimator, Transformer, _bound
from ._errors import UsageError
from ._forecast import Forecast
from ._model import Model
from ._released import ClassesRelease, RegressionRelease, SlicesRelease
from ._rows import Table, beside, column, table


_Y = "y"  # what a response is called that came beside the rows


@dataclass(eq=False, repr=False, kw_only=True)
class _Responding(RowEstimator):
    """The response is a column of the table, or comes beside it."""

    _response: ClassVar[tuple[str, str]]  # the parameter that names the column, and what is in it

    def _beside(self) -> bool:
        return getattr(self, self._response[0]) is None

    def _options(self) -> dict[str, Any]:
        options = super()._options()
        if self._beside():
            options[self._response[0]] = _Y
        return options

    def _cost_names(self, names: list[str]) -> list[str]:
        return [*names, _Y] if self._beside() else names

    def _column(self, y: Any) -> Table:
        return column(y, _Y)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Reads the rows once, charges the ledger, releases."""
        rows = table(X, what="X")
        names, count = rows.names, rows.columns
        if self._beside():
            option, what = self._response
            if y is None:
                raise UsageError(f"the {what}: requires y to be passed, but the target y is None; or name a `{option}`")
            rows, _, second = beside(rows, self._column(y), ("", ""))
            if second != [_Y]:
                raise UsageError(f"a column is called {_Y!r}, as the {what} beside the rows: name a `{option}` instead")
        self._keep(self._release([rows], self._options()), names, count if self._beside() else None)
        return self._told()


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(RegressionRelease, _Responding):
    """A private linear regression, with intervals that count the noise in.

    The response is a column of the table (`target`), or comes beside it as `y`, between `y_range`.

    >>> import numpy as np, eigenveil as ev
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2))
    >>> y = X @ [1.0, -0.5]
    >>> fit = ev.LinearRegression(ranges=(-1, 1), y_range=(-2, 2), epsilon=2, delta=1e-6, ledger=None).fit(X, y)
    >>> fit.coef_.shape, fit.predict(X).shape
    ((2,), (5000,))
    """

    target: str | None = None
    ridge: float | None = None
    y_range: tuple[float, float] | None = None

    _kind: ClassVar[str] = "regress"
    _task: ClassVar[str] = "regress"
    _response: ClassVar[tuple[str, str]] = ("target", "response")
    _arrays: ClassVar[dict[str, str]] = {"coefficients": "coef"}

    def _options(self) -> dict[str, Any]:
        options = super()._options()
        if self._beside() and self.y_range is not None:
            lower, upper = self.y_range
            if self.schema is not None:
                schema = self._schema()
                assert schema is not None
                options.pop("schema", None)
                options["bounds"] = [*schema._columns, (_Y, float(lower), float(upper))]
            else:
                options["ranges"] = [*(options["ranges"] or []), (float(lower), float(upper), _Y)]
        return options

    def _keep(self, model: Model, features: list[str] | None, count: int | None) -> None:
        super()._keep(model, features, count)
        self.intercept_ = float(model.arrays["intercept"][0])
        self.intervals_ = self.manifest_.get("coefficients", [])

    def forecast(self, rows: int, columns: int | None = None, **guess: Any) -> Forecast:
        """How far the coefficients will be off on such rows, before anything is spent. `columns`: but for the response.

        Further guesses: `explained` (share of the response, 0.5), `spread` (of a column over half its range, 0.3).
        """
        known = {"row_bound": _bound(self.row_bound)[0], "ridge": self._options()["ridge"],
                 "columns": self._feature_count(columns, self.target)}
        return self._forecast(rows, {**known, **guess})

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for single rows: they are not private."""
        return self._scores(X)[:, 0]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        # Noise, and ranges that the checks do not know: no R^2 is promised.
        tags.regressor_tags = RegressorTags(poor_score=True)
        tags.target_tags.required = self._beside()
        return tags

    def score(self, X: Any, y: Any) -> float:
        """The share of the variance of `y` that is explained. Not private."""
        truth = np.asarray(y, dtype=np.float64)
        return float(1 - ((truth - self.predict(X)) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


@dataclass(eq=False, repr=False, kw_only=True)
class Ridge(LinearRegression):
    """The same with a ridge of the user's own: `alpha`, on the mean squares of the scaled columns.

    >>> import eigenveil as ev
    >>> ev.Ridge(alpha=0.1, target="income", ranges=(0, 1), epsilon=1, delta=1e-6).get_params()["alpha"]
    0.1
    """

    alpha: float = 1.0
    ridge: None = field(init=False, default=None)

    _words: ClassVar[dict[str, str]] = {"alpha": "ridge"}


@dataclass(eq=False, repr=False, kw_only=True)
class LDA(ClassesRelease, Transformer, _Responding, Generalized):
    """Private discriminant directions, and the classifier that they make.

    The classes are a column of the table (`label`), or come beside it as `y`. They are public: `classes` lists them.

    >>> import numpy as np, eigenveil as ev
    >>> y = np.arange(3000) % 2
    >>> X = np.random.default_rng(0).normal(size=(3000, 2)) + 2 * y[:, None]
    >>> lda = ev.LDA(1, classes=[0, 1], epsilon=2, delta=1e-6, row_bound=6, ledger=None).fit(X, y)
    >>> float((lda.predict(X) == y).mean()) > 0.9
    True
    """

    n_components: int = field(kw_only=False, default=1)
    label: str | None = None
    classes: Sequence[Any] | None = None
    drop_unlisted: bool = False

    _kind: ClassVar[str] = "fda"
    _response: ClassVar[tuple[str, str]] = ("label", "classes")
    _task: ClassVar[str] = "fda"

    def _listed(self) -> list[Any]:
        return [] if self.classes is None else list(self.classes)

    def _column(self, y: Any) -> Table:
        return column(y, _Y, labels=True, truths=all(isinstance(one, (bool, np.bool_)) for one in self._listed() or [0]))

    def _keep(self, model: Model, features: list[str] | None, count: int | None) -> None:
        super()._keep(model, features, count)
        listed = self.manifest_["classes"]
        own = {str(one): one for one in self._listed()}
        self.classes_ = np.asarray([own.get(one, one) for one in listed])

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row. Not private."""
        model = self._fitted()
        places = {name: place for place, name in enumerate(self.manifest_["classes"])}
        found = model._core.predict_classes(model._table(self._checked(table(X, what="X"))))
        return self.classes_[[places[name] for name in found]]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(poor_score=True)
        tags.target_tags.required = self._beside()
        return tags

    def score(self, X: Any, y: Any) -> float:
        """The share of rows whose class is found. Not private."""
        return float((self.predict(X) == np.asarray(y)).mean())

    def forecast(self, rows: int, columns: int | None = None, **guess: Any) -> Forecast:
        """How well it would do on such rows, before anything is spent."""
        known = {"components": self.n_components, "row_bound": _bound(self.row_bound)[0], "sparsity": self.sparsity,
                 "columns": self._feature_count(columns, self.label), "classes": len(self._listed() or [0, 1])}
        return self._forecast(rows, {**known, **guess})


@dataclass(eq=False, repr=False, kw_only=True)
class SIR(SlicesRelease, Transformer, _Responding, Generalized):
    """Private sliced inverse regression: directions that explain a response.

    The response is a column of the table (`response`), or comes beside it as `y`, between `response_range`.

    >>> import numpy as np, eigenveil as ev
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> sir = ev.SIR(1, response_range=(-3, 3), epsilon=2, delta=1e-6, row_bound=4, ledger=None).fit(X, X[:, 0])
    >>> sir.directions_.shape
    (3, 1)
    """

    n_components: int = field(kw_only=False)
    response: str | None = None
    response_range: tuple[float, float] | None = None
    slices: int | None = None
    private_slices: bool = False
    cuts: Sequence[float] | None = None

    _kind: ClassVar[str] = "sir"
    _response: ClassVar[tuple[str, str]] = ("response", "response")
    _task: ClassVar[str] = "sir"

    def _options(self) -> dict[str, Any]:
        options = super()._options()
        if self.cuts is not None:
            options["cuts"] = [float(cut) for cut in self.cuts]
        return options

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._beside()
        return tags

    def forecast(self, rows: int, columns: int | None = None, **guess: Any) -> Forecast:
        """How well it would do on such rows, before anything is spent."""
        known = {"components": self.n_components, "row_bound": _bound(self.row_bound)[0], "sparsity": self.sparsity,
                 "columns": self._feature_count(columns, self.response), "slices": self.slices}
        return self._forecast(rows, {**known, **guess})
