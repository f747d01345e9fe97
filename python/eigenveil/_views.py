# SPDX-License-Identifier: Apache-2.0
"""Estimators of two tables: two views of the same rows, or two matrices."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, Sequence

import numpy as np

from ._base import Estimator, Generalized
from ._errors import UsageError
from ._forecast import Forecast
from ._released import CorrelationsRelease, HeadsRelease, MatricesRelease
from ._rows import Table, beside, table


def _pair(X: Any, Y: Any, what: str) -> tuple[Any, Any]:
    if Y is not None:
        return X, Y
    if isinstance(X, (tuple, list)) and len(X) == 2:
        return X[0], X[1]
    raise UsageError(f"`fit` of {what} takes two tables, fit((X, Y)) or fit(X, Y): requires y to be passed, but the "
                     "target y is None")


def _view(Y: Any) -> Any:
    """A view of one column may come as a list of numbers."""
    return Y.reshape(-1, 1) if isinstance(Y, np.ndarray) and Y.ndim == 1 else Y


class _TwoViews:
    """Two tables in, two sets of scores out: no step of a Pipeline."""

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.transformer_tags = TransformerTags(preserves_dtype=["float64"])
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit`, then `transform` of the same rows, whose scores are not private."""
        return self.fit(X, y).transform(X, y)  # type: ignore[attr-defined]


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

    def _tables(self, X: Any, Y: Any) -> tuple[Table, dict[str, Any], Table]:
        options = self._options()
        if self.x_columns is not None and Y is None:
            rows = table(X, what="X")
            return rows, options, rows
        first, second = _pair(X, Y, "two tables")
        left = table(first, what="X")
        joined, options["x_columns"], options["y_columns"] = beside(left, table(_view(second), what="Y"), ("x", "y"))
        return joined, options, left

    def fit(self, X: Any, y: Any = None) -> Self:
        """fit((X, Y)), fit(X, Y), or fit(table) with `x_columns` and `y_columns`."""
        rows, options, left = self._tables(X, y)
        self._keep(self._release([rows], options), left.names, left.columns)
        return self

    def transform(self, X: Any, Y: Any = None) -> Any:
        """Scores of both views; of an array X alone, its own. They describe single rows and are not private."""
        model = self._fitted()
        if Y is None and self.x_columns is None and not isinstance(X, (tuple, list)):
            rows = np.asarray(X)
            self._checked(table(rows, what="X"))
            other = np.zeros((len(rows), len(model._core.columns) - self.n_features_in_))  # decides nothing
            return self.transform(rows, other)[0]
        scores = model.transform(self._tables(X, Y)[0])
        half = scores.shape[1] // 2
        return scores[:, :half], scores[:, half:]

    def cost(self, rows: int | None = None, columns: Any = None) -> list[dict[str, Any]]:
        """What the ledger would be charged. `columns`: of the table that has both groups, or of two tables: (4, 7)."""
        if self.x_columns is not None:
            return super().cost(rows, columns)
        if not isinstance(columns, tuple) or len(columns) != 2:
            raise UsageError("say how many `columns` the two tables have: (4, 7)")
        empty = tuple(np.empty((0, width)) for width in columns)
        both, options, _ = self._tables(*empty)
        return self._cost_of([both], options, rows)

    def forecast(self, rows: int, x_columns: int, y_columns: int, **guess: Any) -> Forecast:
        """How well it would do on such rows, before anything is spent."""
        known = {"components": self.n_components, "row_bound": self.row_bound, "sparsity": self.sparsity}
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
        return self

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
        return self

    def embed_x(self, X: Any) -> np.ndarray:
        """Unit vectors of rows of the first view. Not private."""
        return self._fitted()._core.embed(self._checked(table(X, what="X")).source, False)

    def embed_y(self, Y: Any) -> np.ndarray:
        """Unit vectors of rows of the second view. Not private."""
        return self._fitted()._core.embed(table(_view(Y), what="Y").source, True)

    def transform(self, X: Any, Y: Any = None) -> Any:
        """Embeddings of X; of both views for two tables."""
        if Y is None and not isinstance(X, tuple):
            return self.embed_x(X)
        first, second = _pair(X, Y, "two views")
        return self.embed_x(first), self.embed_y(second)

    def retrieve(self, X: Any, Y: Any, k: int = 1) -> np.ndarray:
        """For each row of X, the places of the k nearest rows of Y, the nearest first. Not private."""
        return self._fitted()._core.retrieve(table(X, what="X").source, table(Y, what="Y").source, k).astype(np.intp)

    def score(self, X: Any, Y: Any = None, k: int = 1) -> float:
        """The share of rows of X whose own partner is among the k nearest of Y. Not private."""
        first, second = _pair(X, Y, "two views")
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
