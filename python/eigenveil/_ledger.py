# SPDX-License-Identifier: Apache-2.0
"""Budgets on disk, and what is public about columns."""
from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from . import _core


class Ledger:
    """Budgets in one file, shared by any number of processes. Every call opens it and closes it again.

    >>> import tempfile, os, eigenveil as ev
    >>> with ev.Ledger(os.path.join(tempfile.mkdtemp(), "study.db")) as ledger:
    ...     ledger.create("patients", epsilon=2, delta=1e-6)
    ...     ledger.show("patients")["remaining_epsilon"] > 1.99
    True
    """

    def __init__(self, path: str | os.PathLike[str] | None = None):
        """Without a path: the program's own ledger, in the home folder."""
        self.path = _core.ledger_default_path() if path is None else os.fspath(path)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held open."""

    def __repr__(self) -> str:
        return f"Ledger({self.path!r})"

    def create(self, name: str, *, epsilon: float, delta: float, adjacency: str = "replace-one", person: str = "",
               allow_model_based: bool = False, data: Sequence[str | os.PathLike[str]] = ()) -> None:
        """Gives a data set a budget that all its releases together must keep. `data`: files that belong to it; `person`: the column that
        says whose a row is, if the budget is for people and not for rows."""
        _core.ledger_create(self.path, name, epsilon, delta, adjacency, person, allow_model_based,
                            [os.fspath(path) for path in data])

    def list(self) -> list[dict[str, Any]]:
        """All data sets: what they may spend, what they spent, and on what."""
        return _core.ledger_list(self.path)

    def show(self, name: str) -> dict[str, Any]:
        """One data set."""
        return _core.ledger_show(self.path, name)

    def release_unused(self, name: str) -> int:
        """Gives back every charge whose run never answered anything; says how many."""
        return _core.ledger_release_unused(self.path, name)

    def accept_restore(self, name: str, spent: float | None = None) -> None:
        """After an older copy of the file came back: says what was spent since."""
        _core.ledger_accept_restore(self.path, name, spent)

    def verify(self) -> int:
        """How many records match their checksums. One that does not is an error."""
        return _core.ledger_verify(self.path)


Column = tuple[float, float] | Sequence[str]


class Schema:
    """What is said in public about the columns, before any row is read.

    A pair of numbers bounds a column; a list of texts is all that a column may hold. `missing` says what a missing value
    counts as (missing="value" or "category" of an estimator); `weight`, how many numbers the texts of a column are as long as.

    >>> import eigenveil as ev
    >>> ev.Schema({"age": (0, 120), "sex": ["F", "M", "unknown"]}, other={"sex": "unknown"}).names
    ['age', 'sex']
    """

    def __init__(self, columns: Mapping[str, Column], *, other: Mapping[str, str] | None = None,
                 missing: Mapping[str, Any] | None = None, weight: Mapping[str, float] | None = None):
        self._columns: list[tuple[Any, ...]] = []
        for name, kind in columns.items():
            filled = (missing or {}).get(name)
            if len(kind) == 2 and not any(isinstance(bound, str) for bound in kind):
                self._columns.append((name, float(kind[0]), float(kind[1]), None if filled is None else float(filled)))
            else:
                values = [str(value) for value in kind]
                stands = (other or {}).get(name)
                self._columns.append((name, values, None if stands is None else values.index(stands),
                                      None if filled is None else values.index(filled), float((weight or {}).get(name, 1))))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Schema":
        """A TOML file of the program's."""
        schema = cls({})
        schema._columns = _core.schema_columns(os.fspath(path))
        return schema

    @classmethod
    def of(cls, said: "Schema | Mapping[str, Column] | str | os.PathLike[str]") -> "Schema":
        """A schema as an estimator takes it: itself, its columns, or a file."""
        return said if isinstance(said, Schema) else cls(said) if isinstance(said, Mapping) else cls.load(said)

    @staticmethod
    def template(path: str | os.PathLike[str], header: bool | None = None) -> str:
        """The text of a TOML schema for a file, with bounds left to be filled in. No row is looked at."""
        return _core.schema_template(os.fspath(path), header)

    @property
    def names(self) -> list[str]:
        return [column[0] for column in self._columns]

    def features(self, without: str | None = None) -> int:
        """How many numbers a row becomes: a column of texts counts once for each of them. But for a column `without`.

        >>> import eigenveil as ev
        >>> ev.Schema({"age": (0, 120), "sex": ["F", "M", "unknown"]}).features()
        4
        """
        return sum(len(column[1]) if isinstance(column[1], list) else 1
                   for column in self._columns if column[0] != without)

    def __repr__(self) -> str:
        return f"Schema({self.names})"
