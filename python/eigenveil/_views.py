# SPDX-License-Identifier: Apache-2.0
"""Estimators of two tables: two views of the same rows, or two matrices."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, Sequence

import numpy as np

from . import _core
from ._base import Estimator, Generalized, Transformer, _bound
from ._errors import BadInput, UsageError
from ._forecast import Forecast
from ._released import CorrelationsRelease, HeadsRelease, MatricesRelease
from ._rows import Table, _is_of, beside, table


def _pair(X: Any, Y: Any, what: str) -> tuple[Any, Any]:
    if Y is not None:
        return X, Y
    if isinstance(X, (tuple, list)) and len(X) == 2:
        return X[0], X[1]
    raise UsageError(f"`fit` of {what} takes two tables, fit((X, Y)) or fit(X, Y): requires y to be passed, but the "
                     "target y is None")


def _view(Y: Any) -> Any:
    """A view of one column may come as a list of numbers."""
    flat = getattr(Y, "ndim", None) == 1 or _is_of(Y, "polars", "Series")
    if isinstance(Y, (list, tuple)) or hasattr(Y, "__array__") and not hasattr(Y, "__arrow_c_stream__"):
        flat = np.asarray(Y).ndim == 1
    if not flat:
        return Y
    return (Y.to_numpy() if hasattr(Y, "to_numpy") else np.asanyarray(Y)).reshape(-1, 1)


def _same_names(found: Table, wanted: Any, what: str) -> Table:
    """Refuses columns of other names, or in another order, than those of the fit."""
    if found.names is not None and wanted is not None and found.names != list(wanted):
        raise BadInput(f"The feature names of {what} should match those that were passed during fit, in their order: {list(wanted)}")
    return found


class _TwoViews(Transformer):
    """Two tables in, two sets of scores out."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """x1, x2, ...: scores of the first view. Those of the second are y1, y2, ..."""
        self._fitted()  # type: ignore[attr-defined]
        return np.asarray([f"x{i + 1}" for i in range(self._width())], dtype=object)

    def _width(self) -> int:
        raise NotImplementedError

    def _keep_second(self, right: Table | None) -> None:
        if right is not None and right.names is not None:
            self.y_feature_names_in_ = np.asarray(right.names, dtype=object)

    def _second(self, scores: np.ndarray, Y: Any) -> Any:
        return self._framed(scores, Y, [f"y{i + 1}" for i in range(scores.shape[1])])


@dataclass(eq=False, repr=False, kw_only=True)
class CCA(CorrelationsRelease, _TwoViews, Generalized):
    """Private canonical correlations of two tables, or of two groups of columns of one.

    >>> import numpy as np, eigenveil as ev
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> cca = ev.CCA(1, epsilon=2, delta=1e-6, row_bound=4, ledger=None).fit((X, X + 0.1))
    >>> cca.x_weights_.shape, cca.correlations_.shape
    ((2, 1), (1,))
    """

    n_components: int = field(kw_only=False)
    x_columns: Sequence[str] | None = None
    y_columns: Sequence[str] | None = None

    _kind: ClassVar[str] = "cca"
    _task: ClassVar[str] = "cca"

    def _tables(self, X: Any, Y: Any) -> tuple[Table, dict[str, Any], Table, Table | None]:
        options = self._options()
        if self.x_columns is not None and Y is None:
            rows = table(X, what="X")
            return rows, options, rows, None
        first, second = _pair(X, Y, "two tables")
        left = table(first, what="X")
        right = table(_view(second), what="Y")
        joined, options["x_columns"], options["y_columns"] = beside(left, right, ("x", "y"))
        return joined, options, left, right

    def fit(self, X: Any, y: Any = None) -> Self:
        """fit((X, Y)), fit(X, Y), or fit(table) with `x_columns` and `y_columns`."""
        rows, options, left, right = self._tables(X, y)
        self._keep(self._release([rows], options), left.names, left.columns)
        self._keep_second(right)
        return self._told()

    def transform(self, X: Any, Y: Any = None) -> Any:
        """Scores of both views; of an array or a frame X alone, its own. They describe single rows and are not private."""
        model = self._fitted()
        if self.x_columns is not None and Y is None:
            first = second = X
            scores = model.transform(X)
        elif Y is None and not isinstance(X, (tuple, list)):
            held = X if hasattr(X, "__arrow_c_stream__") and hasattr(X, "__len__") else np.asarray(X)
            return self.transform(held, np.zeros((len(held), len(model._core.columns) - self.n_features_in_)))[0]  # Y decides nothing
        else:
            first, second = _pair(X, Y, "two tables")
            scores = model._core.transform(self._named_as_fitted(table(first, what="X"), table(_view(second), what="Y")))
        half = scores.shape[1] // 2
        return self._framed(scores[:, :half], first), self._second(scores[:, half:], second)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """`fit`, then `transform` of the same rows, whose scores are not private."""
        return self.fit(X, y, **fit_params).transform(X, y)

    def _named_as_fitted(self, left: Table, right: Table) -> Any:
        """Both side by side. Columns with names are found by them, if the fit knew names; all others by their places."""
        names: list[str] = []
        columns, count = self._fitted()._core.columns, self.n_features_in_
        for found, part, known, prefix in ((left, columns[:count], getattr(self, "feature_names_in_", None), "x."),
                                           (right, columns[count:], getattr(self, "y_feature_names_in_", None), "y.")):
            if found.columns != len(part):
                raise BadInput(f"{prefix[0].upper()} has {found.columns} features, but CCA is expecting {len(part)} features as input")
            prefixed = known is not None and list(known) != part
            names += part if found.names is None or known is None else [prefix * prefixed + name for name in found.names]
        return _core.join([left.source, right.source], names)

    def _width(self) -> int:
        return self.x_weights_.shape[1]

    def cost(self, rows: int | None = None, columns: Any = None) -> list[dict[str, Any]]:
        """What the ledger would be charged. `columns`: of the table that has both groups, or of two tables: (4, 7)."""
        if self.x_columns is not None:
            return super().cost(rows, columns)
        if not isinstance(columns, tuple) or len(columns) != 2:
            raise UsageError("say how many `columns` the two tables have: (4, 7)")
        empty = tuple(np.empty((0, width)) for width in columns)
        both, options, _, _ = self._tables(*empty)
        return self._cost_of([both], options, rows)

    def forecast(self, rows: int, x_columns: int, y_columns: int, **guess: Any) -> Forecast:
        """How well it would do on such rows, before anything is spent."""
        known = {"components": self.n_components, "row_bound": _bound(self.row_bound)[0], "sparsity": self.sparsity}
        return self._forecast(rows, {**known, "x_columns": x_columns, "y_columns": y_columns, **guess})


@dataclass(eq=False, repr=False, kw_only=True)
class GEP(MatricesRelease, Estimator):
    """Private solutions of A v = lambda B v for two matrices of the user's own. The guarantee is as good as the two
    sensitivities, which are the user's word.

    >>> import numpy as np, eigenveil as ev
    >>> A, B = np.diag([3.0, 2.0, 1.0]), np.eye(3)
    >>> gep = ev.GEP(1, sensitivity_a=1e-3, sensitivity_b=1e-4, rows=1000, epsilon=1, delta=1e-6, ledger=None)
    >>> gep.fit((A, B)).vectors_.shape
    (3, 1)
    """

    n_components: int = field(kw_only=False)
    sensitivity_a: float
    sensitivity_b: float
    rows: int
    person: str | None = None  # the sensitivities and `rows` are then those of people
    noise: str | None = None
    sparsity: int | None = None
    init: str = "auto"
    step: float | None = None
    rounds: int | None = None
    ridge: float | None = None

    _kind: ClassVar[str] = "gep"

    def fit(self, X: Any, y: Any = None) -> Self:
        """fit((A, B)) or fit(A, B): d x d, symmetric."""
        A, B = _pair(X, y, "two matrices")
        matrices = [table(A, what="A"), table(B, what="B")]
        self._keep(self._release(matrices, self._options()), None, matrices[0].columns)
        return self._told()

    def cost(self, rows: int | None = None, columns: int | Sequence[str] | None = None) -> list[dict[str, Any]]:
        """There is none to forecast: a matrix of the user's own is charged as it is."""
        raise UsageError("what two matrices of your own cost is known when they are released")


@dataclass(eq=False, repr=False, kw_only=True)
class ContrastiveHeads(HeadsRelease, _TwoViews, Estimator):
    """Private linear heads of a joint embedding of two views: row i of X and row i of Y belong together.

    >>> import numpy as np, eigenveil as ev
    >>> X = np.random.default_rng(0).normal(size=(3000, 4))
    >>> heads = ev.ContrastiveHeads(2, epsilon=4, delta=1e-6, ledger=None).fit((X, X[:, :3]))
    >>> heads.retrieve(X[:5], X[:, :3], k=2).shape
    (5, 2)
    """

    n_components: int | None = field(kw_only=False, default=None)
    method: str | None = None
    objective: str | None = None
    temperature: float = 1
    clip: float | None = None
    sample_rate: float | None = None
    steps: int | None = None
    optimizer: str | None = None
    lr: float | None = None
    start: str | None = None
    person: str | os.PathLike[str] | None = None  # a text file that says on each line whose pair it is
    person_weight: str = "equal"
    max_rows_per_person: int | None = None
    missing_person: str = "error"

    _kind: ClassVar[str] = "clip"
    _task: ClassVar[str] = "clip"
    _words: ClassVar[dict[str, str]] = {"n_components": "dim"}
    _arrays: ClassVar[dict[str, str]] = {"image_weights": "x_weights", "image_offset": "x_offset",
                                         "text_weights": "y_weights", "text_offset": "y_offset"}

    def fit(self, X: Any, y: Any = None) -> Self:
        """fit((X, Y)) or fit(X, Y)."""
        first, second = _pair(X, y, "two views")
        views = [table(first, what="X"), table(_view(second), what="Y")]
        names, count = views[0].names, views[0].columns
        self._keep(self._release(views, self._options()), names, count)
        self._keep_second(views[1])
        return self._told()

    def _first_view(self, X: Any) -> Table:
        return _same_names(self._checked(table(X, what="X")), getattr(self, "feature_names_in_", None), "X")

    def _second_view(self, Y: Any) -> Table:
        return _same_names(table(_view(Y), what="Y"), getattr(self, "y_feature_names_in_", None), "Y")

    def embed_x(self, X: Any) -> Any:
        """Unit vectors of rows of the first view. Not private."""
        model = self._fitted()
        return self._framed(model._core.embed(self._first_view(X).source, False), X)

    def embed_y(self, Y: Any) -> Any:
        """Unit vectors of rows of the second view. Not private."""
        model = self._fitted()
        return self._second(model._core.embed(self._second_view(Y).source, True), Y)

    def transform(self, X: Any, Y: Any = None) -> Any:
        """Embeddings of X; of both views for two tables."""
        if Y is None and not isinstance(X, tuple):
            return self.embed_x(X)
        first, second = _pair(X, Y, "two views")
        return self.embed_x(first), self.embed_y(second)

    def _width(self) -> int:
        return self.x_weights_.shape[0]

    def retrieve(self, X: Any, Y: Any, k: int = 1) -> np.ndarray:
        """For each row of X, the places of the k nearest rows of Y, the nearest first. Not private."""
        model = self._fitted()
        return model._core.retrieve(self._first_view(X).source, self._second_view(Y).source, k).astype(np.intp)

    def score(self, X: Any, y: Any = None, k: int = 1) -> float:
        """The share of rows of X whose own partner is among the k nearest of `y`, the second view. Not private."""
        first, second = _pair(X, y, "two views")
        found = self.retrieve(first, second, k)
        return float((found == np.arange(len(found))[:, None]).any(axis=1).mean())

    def cost(self, rows: int | None = None, columns: Any = None) -> list[dict[str, Any]]:
        """What the ledger would be charged. `columns`: of both views, (768, 512)."""
        if columns is None or isinstance(columns, int) or len(columns) != 2:
            raise UsageError("say how many `columns` the two views have: (768, 512)")
        views = [table(np.empty((0, width))) for width in columns]
        return self._cost_of(views, self._options(), rows)

    def forecast(self, rows: int, x_columns: int, y_columns: int, **guess: Any) -> Forecast:
        """How well each method would do on such pairs, before anything is spent."""
        known = {"components": self.n_components, "steps": self.steps, "x_columns": x_columns, "y_columns": y_columns}
        return self._forecast(rows, {**known, **guess})
