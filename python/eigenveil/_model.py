# SPDX-License-Identifier: Apache-2.0
"""What a release made public."""
from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from . import _core
from ._rows import Table, table


class Model:
    """A release of any kind: released arrays, and a manifest that says how they came about.

    The file is the program's: ``eigenveil transform``, ``eigenveil report`` and ``numpy.load`` open it.

    >>> import numpy as np, eigenveil as ev
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = ev.PCA(1, epsilon=1, delta=1e-6, row_bound=3, ledger=None).fit(X).model_
    >>> model.kind, "eigenvalues" in model.arrays
    ('pca', True)
    """

    def __init__(self, core: Any):
        self._core = core

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Model":
        """Opens a model.npz of this package or of the program."""
        return cls(_core.Model.load(os.fspath(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes model.npz, which appears whole or not at all. The ledger that paid takes note of it, for ``eigenveil ledger verify``."""
        self._core.save(os.fspath(path))

    @property
    def kind(self) -> str:
        return self._core.kind

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return self._core.arrays

    @property
    def manifest(self) -> dict[str, Any]:
        """Every privacy event, the guarantee in words, the options."""
        return json.loads(self._core.manifest)

    @property
    def warnings(self) -> list[str]:
        return self._core.warnings

    @property
    def is_private(self) -> bool:
        """False: the noise was seeded."""
        return self._core.is_private

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in an entry of what was released."""
        return self._core.deviation

    @property
    def rows(self) -> float | None:
        """Their number where it is public, or a released noisy count."""
        return self._core.rows

    def report(self, path: str | os.PathLike[str], image_shape: tuple[int, int] | None = None) -> None:
        """Writes a page about the release that needs nothing else."""
        self._core.report(os.fspath(path), image_shape)

    def _table(self, X: Any) -> Any:
        found = X if isinstance(X, Table) else table(X)
        columns = self._core.columns
        if found.columns is not None and found.columns == len(columns):
            if found.names is None or (found.names != columns and columns == [str(i + 1) for i in range(len(columns))]):
                found = found.named(columns)
        return found.source

    def transform(self, X: Any) -> np.ndarray:
        """Scores of rows: they describe single rows and are not private."""
        return self._core.transform(self._table(X))

    def __reduce__(self) -> Any:
        vectors = {name: values.ndim == 1 for name, values in self.arrays.items()}
        parts = [(name, values.reshape(-1, 1) if vectors[name] else values, vectors[name])
                 for name, values in self.arrays.items()]
        return _restored, (parts, self._core.manifest)

    def __repr__(self) -> str:
        stamp = "" if self.is_private else ", NOT PRIVATE"
        shapes = ", ".join(f"{name} {values.shape}" for name, values in self.arrays.items())
        return f"<eigenveil.Model {self.kind}: {shapes}{stamp}>"

    def _repr_html_(self) -> str:
        # A page of its own in a frame: its style touches nothing else in the notebook.
        page = self._core.report_html().replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{page}" style="width:100%;height:30em;border:1px solid #ccc"></iframe>'


def _restored(parts: list[tuple[str, np.ndarray, bool]], manifest: str) -> Model:
    return Model(_core.Model.from_parts([(n, np.ascontiguousarray(v), is_vector) for n, v, is_vector in parts], manifest))
