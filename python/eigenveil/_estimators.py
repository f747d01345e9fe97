# SPDX-License-Identifier: Apache-2.0
"""The estimators: parameters, which of them a call takes, and what its arrays are called."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Sequence

import numpy as np

from . import _core
from ._base import Estimator, RowEstimator, Transformer
from ._errors import BadInput, EigenveilError, UsageError
from ._forecast import Forecast
from ._ledger import Schema
from ._model import Model
from ._rows import Table, beside, column, table

_Y = "y"  # what a response is called that came beside the rows


def _pair(X: Any, Y: Any, what: str) -> tuple[Any, Any]:
    if Y is not None:
        return X, Y
    if isinstance(X, (tuple, list)) and len(X) == 2:
        return X[0], X[1]
    raise UsageError(f"`fit` of {what} takes two tables: fit((X, Y)) or fit(X, Y)")


@dataclass(eq=False, repr=False, kw_only=True)
class _Spectral(Transformer, RowEstimator):
    """A covariance's eigenvectors, by whichever method."""

    method: str = "gram"
    rank: int | None = None
    guarantee: str = "strict"
    noise_variance: float | None = None
    spike: float | None = None
    spectrum: Any = None
    expected_rows: int | None = None
    signal_share: float = 1

    def fit(self, X: Any, y: Any = None) -> Any:
        """Reads the rows once, charges the ledger, releases. `y` is ignored, as scikit-learn has it."""
        rows = table(X, what="X")
        names, count = rows.names, rows.columns
        self._keep(self._release([rows], self._options()), names, count)
        return self

    def _keep(self, model: Model, features: list[str] | None, count: int | None) -> None:
        super()._keep(model, features, count)
        eigenvalues = model.arrays["eigenvalues"]
        total = eigenvalues.sum()
        self.explained_variance_ = eigenvalues
        self.explained_variance_ratio_ = eigenvalues / total if total > 0 else eigenvalues

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows in the data's own units, as their scores tell them."""
        return self._fitted()._core.inverse_transform(np.ascontiguousarray(np.asarray(X), dtype=np.float64))

    def forecast(self, rows: int, columns: int | None = None, **guess: Any) -> Forecast:
        """How well each method would do on such rows, before anything is spent. Further guesses: `ev.forecast`."""
        known = {"components": getattr(self, "n_components", None), "row_bound": self.row_bound, "rank": self.rank,
                 "sparsity": getattr(self, "sparsity", None), "spectrum": self.spectrum,
                 "signal_share": self.signal_share, "columns": len(self._public_columns(columns))}
        return self._forecast(rows, {**known, **guess})


@dataclass(eq=False, repr=False, kw_only=True)
class PCA(_Spectral):
    """Private principal components.

    >>> import numpy as np, eigenveil as ev
    >>> X = np.random.default_rng(0).normal(size=(2000, 5)) * [2, 1, 0.1, 0.1, 0.1]
    >>> pca = ev.PCA(2, epsilon=1, delta=1e-6, row_bound=4, ledger=None).fit(X)
    >>> pca.components_.shape, pca.transform(X).shape
    ((2, 5), (2000, 2))
    >>> pca.cost(columns=5)[0]["epsilon"] <= 1
    True
    """

    n_components: int = field(kw_only=False)
    sparsity: int | None = None
    rounds: int | None = None
    filter: str = "shrink"
    grid_ratio: float = 1.25

    _kind: ClassVar[str] = "pca"
    _task: ClassVar[str] = "pca"


@dataclass(eq=False, repr=False, kw_only=True)
class SparsePCA(PCA):
    """Private principal components with few loadings.

    >>> import numpy as np, eigenveil as ev
    >>> X = np.random.default_rng(0).normal(size=(2000, 6)) * [2, 1, 0.1, 0.1, 0.1, 0.1]
    >>> pca = ev.SparsePCA(1, sparsity=2, epsilon=1, delta=1e-6, row_bound=4, ledger=None).fit(X)
    >>> int((pca.components_ != 0).sum())
    2
    """

    sparsity: int = field(kw_only=True)  # type: ignore[assignment]


@dataclass(eq=False, repr=False, kw_only=True)
class Covariance(_Spectral):
    """A private covariance matrix.

    >>> import numpy as np, eigenveil as ev
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> ev.Covariance(epsilon=1, delta=1e-6, row_bound=4, ledger=None).fit(X).covariance_.shape
    (3, 3)
    """

    dense: bool = False

    _kind: ClassVar[str] = "covariance"
    _task: ClassVar[str] = "covariance"

    def regress(self, target: str, ridge: float | None = None) -> Model:
        """A regression of a column on the others, from what was paid for already (center="private")."""
        return Model(self._fitted()._core.regress(target, ridge))


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(RowEstimator):
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
    _arrays: ClassVar[dict[str, str]] = {"coefficients": "coef"}

    def _options(self) -> dict[str, Any]:
        options = super()._options()
        if self.target is not None:
            return options
        options["target"] = _Y
        if self.y_range is not None:
            lower, upper = self.y_range
            if self.schema is not None:
                schema = self.schema if isinstance(self.schema, Schema) else Schema.load(self.schema)
                options.pop("schema", None)
                options["bounds"] = [*schema._columns, (_Y, float(lower), float(upper))]
            else:
                options["ranges"] = [*(options["ranges"] or []), (float(lower), float(upper), _Y)]
        return options

    def fit(self, X: Any, y: Any = None) -> Any:
        """Reads the rows once, charges the ledger, releases."""
        rows = table(X, what="X")
        names, count = rows.names, rows.columns
        if self.target is None:
            if y is None:
                raise UsageError("the response: requires y to be passed, but the target y is None; or name a `target`")
            rows, first, second = beside(rows, column(y, _Y), ("", ""))
            if second != [_Y]:
                raise UsageError(f"a column is called {_Y!r}, as the response beside the rows: name a `target` instead")
        self._keep(self._release([rows], self._options()), names, count if self.target is None else None)
        return self

    def _keep(self, model: Model, features: list[str] | None, count: int | None) -> None:
        super()._keep(model, features, count)
        self.intercept_ = float(model.arrays["intercept"][0])
        self.intervals_ = self.manifest_.get("coefficients", [])

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for single rows: they are not private."""
        return self._scores(X)[:, 0]

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
class _Generalized(RowEstimator):
    """A v = lambda B v, of sums over rows."""

    noise: str | None = None
    sparsity: int | None = None
    init: str = "auto"
    step: float | None = None
    rounds: int | None = None
    ridge: float | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class CCA(_Generalized):
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
        joined, options["x_columns"], options["y_columns"] = beside(left, table(second, what="Y"), ("x", "y"))
        return joined, options, left

    def fit(self, X: Any, y: Any = None) -> Any:
        """fit((X, Y)), fit(X, Y), or fit(table) with `x_columns` and `y_columns`."""
        rows, options, left = self._tables(X, y)
        self._keep(self._release([rows], options), left.names, left.columns)
        return self

    def transform(self, X: Any, Y: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Scores of both views. They describe single rows and are not private."""
        scores = self._fitted().transform(self._tables(X, Y)[0])
        half = scores.shape[1] // 2
        return scores[:, :half], scores[:, half:]

    def _cost_options(self) -> dict[str, Any]:
        options = self._options()
        if self.x_columns is None:
            raise UsageError("say which are the `x_columns` and the `y_columns`")
        return options

    def forecast(self, rows: int, x_columns: int, y_columns: int, **guess: Any) -> Forecast:
        """How well it would do on such rows, before anything is spent."""
        known = {"components": self.n_components, "row_bound": self.row_bound, "sparsity": self.sparsity}
        return self._forecast(rows, {**known, "x_columns": x_columns, "y_columns": y_columns, **guess})


@dataclass(eq=False, repr=False, kw_only=True)
class LDA(Transformer, _Generalized):
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
    _task: ClassVar[str] = "fda"

    def _options(self) -> dict[str, Any]:
        options = super()._options()
        if self.label is None:
            options["label"] = _Y
        return options

    def fit(self, X: Any, y: Any = None) -> Any:
        """Reads the rows once, charges the ledger, releases."""
        rows = table(X, what="X")
        names, count = rows.names, rows.columns
        if self.label is None:
            if y is None:
                raise UsageError("the classes: requires y to be passed, but the target y is None; or name a `label`")
            rows, first, second = beside(rows, column(y, _Y), ("", ""))
            if second != [_Y]:
                raise UsageError(f"a column is called {_Y!r}, as the classes beside the rows: name a `label` instead")
        self._classes = None if self.classes is None else list(self.classes)
        self._keep(self._release([rows], self._options()), names, count if self.label is None else None)
        return self

    def _keep(self, model: Model, features: list[str] | None, count: int | None) -> None:
        super()._keep(model, features, count)
        listed = self.manifest_["classes"]
        own = {str(one): one for one in self._classes or []}
        self.classes_ = np.asarray([own.get(one, one) for one in listed])

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row. Not private."""
        model = self._fitted()
        places = {name: place for place, name in enumerate(self.manifest_["classes"])}
        found = model._core.predict_classes(model._table(X))
        return self.classes_[[places[name] for name in found]]

    def score(self, X: Any, y: Any) -> float:
        """The share of rows whose class is found. Not private."""
        return float((self.predict(X) == np.asarray(y)).mean())

    def forecast(self, rows: int, columns: int | None = None, **guess: Any) -> Forecast:
        """How well it would do on such rows, before anything is spent."""
        known = {"components": self.n_components, "row_bound": self.row_bound, "sparsity": self.sparsity,
                 "columns": len(self._public_columns(columns)), "classes": len(self.classes or [0, 1])}
        return self._forecast(rows, {**known, **guess})


@dataclass(eq=False, repr=False, kw_only=True)
class SIR(Transformer, _Generalized):
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
    _task: ClassVar[str] = "sir"

    def _options(self) -> dict[str, Any]:
        options = super()._options()
        if self.response is None:
            options["response"] = _Y
        if self.cuts is not None:
            options["cuts"] = [float(cut) for cut in self.cuts]
        return options

    def fit(self, X: Any, y: Any = None) -> Any:
        """Reads the rows once, charges the ledger, releases."""
        rows = table(X, what="X")
        names, count = rows.names, rows.columns
        if self.response is None:
            if y is None:
                raise UsageError("the response: requires y to be passed, but the target y is None; or name a `response`")
            rows, first, second = beside(rows, column(y, _Y), ("", ""))
            if second != [_Y]:
                raise UsageError(f"a column is called {_Y!r}, as the response beside the rows: name a `response` instead")
        self._keep(self._release([rows], self._options()), names, count if self.response is None else None)
        return self

    def forecast(self, rows: int, columns: int | None = None, **guess: Any) -> Forecast:
        """How well it would do on such rows, before anything is spent."""
        known = {"components": self.n_components, "row_bound": self.row_bound, "sparsity": self.sparsity,
                 "columns": len(self._public_columns(columns)), "slices": self.slices}
        return self._forecast(rows, {**known, **guess})


@dataclass(eq=False, repr=False, kw_only=True)
class GEP(Estimator):
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
    noise: str | None = None
    sparsity: int | None = None
    init: str = "auto"
    step: float | None = None
    rounds: int | None = None
    ridge: float | None = None

    _kind: ClassVar[str] = "gep"

    def fit(self, X: Any, y: Any = None) -> Any:
        """fit((A, B)) or fit(A, B): d x d, symmetric."""
        A, B = _pair(X, y, "two matrices")
        matrices = [table(A, what="A"), table(B, what="B")]
        self._keep(self._release(matrices, self._options()), None, matrices[0].columns)
        return self

    def cost(self, rows: int | None = None, columns: int | Sequence[str] | None = None) -> list[dict[str, Any]]:
        """There is none to forecast: a matrix of the user's own is charged as it is."""
        raise UsageError("what two matrices of your own cost is known when they are released")


@dataclass(eq=False, repr=False, kw_only=True)
class ContrastiveHeads(Estimator):
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

    _kind: ClassVar[str] = "clip"
    _task: ClassVar[str] = "clip"
    _words: ClassVar[dict[str, str]] = {"n_components": "dim"}
    _arrays: ClassVar[dict[str, str]] = {"image_weights": "x_weights", "image_offset": "x_offset",
                                         "text_weights": "y_weights", "text_offset": "y_offset"}

    def fit(self, X: Any, y: Any = None) -> Any:
        """fit((X, Y)) or fit(X, Y)."""
        first, second = _pair(X, y, "two views")
        views = [table(first, what="X"), table(second, what="Y")]
        names, count = views[0].names, views[0].columns
        self._keep(self._release(views, self._options()), names, count)
        return self

    def embed_x(self, X: Any) -> np.ndarray:
        """Unit vectors of rows of the first view. Not private."""
        return self._fitted()._core.embed(table(X, what="X").source, False)

    def embed_y(self, Y: Any) -> np.ndarray:
        """Unit vectors of rows of the second view. Not private."""
        return self._fitted()._core.embed(table(Y, what="Y").source, True)

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
        views = [_core.array(np.empty((0, width)), []) for width in columns]
        try:
            return _core.cost(self._kind, views, self._options(), self._spending(), rows)
        except EigenveilError as error:
            raise self._said(error) from None

    def forecast(self, rows: int, x_columns: int, y_columns: int, **guess: Any) -> Forecast:
        """How well each method would do on such pairs, before anything is spent."""
        known = {"components": self.n_components, "steps": self.steps, "x_columns": x_columns, "y_columns": y_columns}
        return self._forecast(rows, {**known, **guess})
