# SPDX-License-Identifier: Apache-2.0
"""What comes before a release: nothing here reads a row or spends anything."""
from __future__ import annotations

import json
from typing import Any, Callable, Sequence

from . import _core


def account(events: str | Sequence[str], *, delta: float | None = None, epsilon: float | None = None,
            accounting: str = "tight") -> float:
    """The epsilon of all these answers together at a delta, or the delta at an epsilon; rounded up.

    >>> import eigenveil as ev
    >>> round(ev.account("gaussian:mu=0.2,count=8", delta=1e-6), 3)
    2.582
    """
    from ._errors import UsageError

    listed = [events] if isinstance(events, str) else list(events)
    if (delta is None) == (epsilon is None):
        raise UsageError("give `delta` to learn epsilon, or `epsilon` to learn delta: one of the two")
    if delta is not None:
        return _core.account_epsilon(listed, delta, accounting)
    assert epsilon is not None
    return _core.account_delta(listed, epsilon, accounting)


def calibrate(events: str | Sequence[str], *, epsilon: float, delta: float, accounting: str = "tight") -> list[str]:
    """The same answers with the least noise that keeps the budget; their numbers are relative weights.

    >>> import eigenveil as ev
    >>> noise = ev.calibrate(["gaussian:mu=1", "gaussian:mu=2"], epsilon=1, delta=1e-6)
    >>> ev.account(noise, delta=1e-6) <= 1
    True
    """
    listed = [events] if isinstance(events, str) else list(events)
    return _core.calibrate(listed, epsilon, delta, accounting)


class Forecast:
    """How well each method would do. Shows itself as a table, in a notebook with its curves."""

    def __init__(self, found: dict[str, Any], svg: str, draw: Callable[[], str] | None = None):
        self.data = found
        self._svg = svg
        self._draw = draw

    @property
    def svg(self) -> str:
        """The error against rows and epsilon, drawn when somebody looks."""
        if not self._svg and self._draw is not None:
            self._svg = self._draw()
        return self._svg

    @property
    def best(self) -> str:
        return self.data["best"]

    @property
    def methods(self) -> list[dict[str, Any]]:
        return self.data["methods"]

    @property
    def warnings(self) -> list[str]:
        return self.data["warnings"]

    @property
    def outcome(self) -> str:
        """What the best method will have reached, in words, and what would take it to all that is wanted."""
        return self.data["outcome"]["sentence"]

    @property
    def error(self) -> float:
        """Of the best method."""
        return next(one["error"] for one in self.methods if one["method"] == self.best)

    def _cells(self) -> list[list[str]]:
        def needed(value: Any) -> str:
            return "out of reach" if value is None else f"{value:,.4g}"

        return [[("* " if one["method"] == self.best else "  ") + one["method"], f"{one['error']:.3g}",
                 f"{one['seconds']:.2g}", needed(one.get("rows_needed")), needed(one.get("epsilon_needed"))]
                for one in self.methods]

    def _head(self) -> list[str]:
        target = self.data["target_error"]
        return ["method", "error", "seconds", f"rows for {target:g}", f"epsilon for {target:g}"]

    def __repr__(self) -> str:
        lines = [self._head(), *self._cells()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        table = "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
        return "\n".join([self.outcome, table, "* the best forecast; nothing was spent", *self.warnings])

    def _repr_html_(self) -> str:
        from html import escape

        def row(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self._cells())
        notes = "".join(f"<p>{escape(warning)}</p>" for warning in self.warnings)
        return f"<p>{escape(self.outcome)}</p><table>{row(self._head(), 'th')}{body}</table>{notes}{self.svg}"


def forecast(task: str, *, rows: int, epsilon: float, delta: float, curves: bool = False,
             progress: Callable[[str, float], object] | None = None, **guess: Any) -> Forecast:
    """Which method, how good, how long: each is run on made-up rows with the noise that the budget asks for.

    `task`: pca, covariance, regress, cca, fda, sir or clip. `guess`: what is publicly known of the rows: columns (or x_columns
    and y_columns), components, sparsity, row_bound, gap or decay or spectrum, signal_share, rank, correlation, classes,
    separation, slices, explained, spread, ridge, batch, steps, target_error, adjacency, threads.

    >>> import eigenveil as ev
    >>> found = ev.forecast("pca", rows=20_000, columns=20, components=2, epsilon=1, delta=1e-6, gap=5)
    >>> found.error < 0.5
    True
    """
    asked = {"task": task, "rows": rows, "epsilon": epsilon, "delta": delta, "curves": curves, **guess}
    found, svg = _core.forecast(asked, progress)
    return Forecast(json.loads(found), svg, lambda: _core.forecast({**asked, "curves": True}, None)[1])
