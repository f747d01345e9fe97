# SPDX-License-Identifier: Apache-2.0
"""Estimators of one table: principal components and covariances."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from ._base import RowEstimator, Transformer, _bound
from ._forecast import Forecast
from ._model import Model
from ._released import SpectralRelease
from ._rows import table


@dataclass(eq=False, repr=False, kw_only=True)
class _Spectral(SpectralRelease, Transformer, RowEstimator):
    """A covariance's eigenvectors, by whichever method."""

    method: str = "gram"
    rank: int | None = None
    guarantee: str = "strict"
    noise_variance: float | None = None
    spike: float | None = None
    spectrum: Any = None
    expected_rows: int | None = None
    signal_share: float = 1
    scale: str = "range"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Reads the rows once, charges the ledger, releases. `y` is ignored, as scikit-learn has it."""
        rows = table(X, what="X")
        names, count = rows.names, rows.columns
        self._keep(self._release([rows], self._options()), names, count)
        return self._told()

    def _keep(self, model: Model, features: list[str] | None, count: int | None) -> None:
        super()._keep(model, features, count)
        self.explained_variance_ = model.arrays["eigenvalues"]
        # Of the whole variance, noise taken out; None where only the first directions were released.
        self.explained_variance_ratio_ = model.arrays.get("variance_share")

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows in the data's own units, as their scores tell them."""
        return self._fitted()._core.inverse_transform(np.ascontiguousarray(np.asarray(X), dtype=np.float64))

    def forecast(self, rows: int, columns: int | None = None, **guess: Any) -> Forecast:
        """How well each method would do on such rows, before anything is spent. Further guesses: `ev.forecast`."""
        known = {"components": getattr(self, "n_components", None), "row_bound": _bound(self.row_bound)[0], "rank": self.rank,
                 "sparsity": getattr(self, "sparsity", None), "spectrum": self.spectrum,
                 "signal_share": self.signal_share, "columns": self._feature_count(columns)}
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
    method: str = "auto"
    sparsity: int | None = None
    rounds: int | None = None
    filter: str = "shrink"
    grid_ratio: float = 1.25
    start: str | None = None
    score_plot: float | None = None
    label: str | None = None
    classes: Any = None
    drop_unlisted: bool = False

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
