# SPDX-License-Identifier: Apache-2.0
"""What all estimators share: scikit-learn's manners, without scikit-learn."""
from __future__ import annotations

import inspect
import os
import re
import sys
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, ClassVar, Mapping, Self, Sequence, cast

import numpy as np

from . import _core
from ._errors import BadInput, ConcernWarning, EigenveilError, NotPrivateWarning, ReleaseWarning, UsageError
from ._forecast import Forecast, forecast
from ._ledger import Ledger, Schema
from ._model import Model
from ._released import Release
from ._rows import Table, table

_SPENDING = ("epsilon", "delta", "adjacency", "accounting", "ledger", "dataset", "insecure_seed")
_OURS = ("progress", "y_range")  # what the library has no option for
_THEIRS = {"unlisted": "drop_unlisted"}  # the program's: ours
STANDARD = "standard"
AUTO = "auto"
# Values of options as they are written here.
_PHRASES = ((r"`eigenveil ledger create`", "`Ledger.create`"), (r"`unlisted` drop", "`drop_unlisted`"), (r"`missing` (value|zero-row|category)", r'`missing="\1"`'),
            (r"`ranges` '(.+?)=(\S+?):(\S+?)'", r"`ranges={'\1': (\2, \3)}`"), (r"`ranges` ([^\s'`=]+)=([^\s:]+):([^\s:]+)", r"`ranges={'\1': (\2, \3)}`"),
            (r"`no_ledger`", "`ledger=None`"), (r"`dataset` NAME", "`dataset=NAME`"),
            (r"`ranges` LO:HI \(or COLUMN=LO:HI\)", "`ranges=(LO, HI)` or `ranges={COLUMN: (LO, HI)}`"), (r"`ranges` LO:HI", "`ranges=(LO, HI)`"))
_COLUMNS = "say how many `columns` the rows will have, or what they are called"


def _bar() -> Callable[[str, float], object]:
    """A bar of tqdm's if it is installed, else a line on stderr per step."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return lambda step, share: None if share else print(f"eigenveil: {step}", file=sys.stderr)
    bar = tqdm(total=1.0, bar_format="{desc}: {percentage:3.0f}% |{bar}|")

    def show(step: str, share: float) -> None:
        bar.set_description_str(step)
        bar.n = share
        bar.refresh()
        if step == "done":
            bar.close()

    return show


def _range_list(ranges: Any) -> list[tuple[float, float, str]] | None:
    """(0, 1): of every column; {"age": (0, 110), None: (0, 1)}: of one, and of all others."""
    if ranges is None:
        return None
    pairs = ranges.items() if isinstance(ranges, Mapping) else [(None, ranges)]
    try:
        return [(float(lower), float(upper), "" if name is None else str(name)) for name, (lower, upper) in pairs]
    except (TypeError, ValueError):
        raise UsageError("`ranges` must be (LO, HI) for all columns, or {COLUMN: (LO, HI), None: (LO, HI)}, where None stands for "
                         f"every other column, but is {ranges!r}") from None


def _bound(said: Any) -> tuple[Any, bool | None]:
    """The program's words: a number; "auto", found below what the ranges allow, "auto:MAX" below that; "range": what they allow.
    The bound that is stated, and whether a lower one is looked for."""
    if not isinstance(said, str):
        return said, None
    if said in (AUTO, "range"):
        return None, said == AUTO
    try:
        return float(said.removeprefix(AUTO + ":")), said.startswith(AUTO) or None
    except ValueError:
        raise UsageError(f"`row_bound` must be a number, auto, auto:MAX or range, but is {said!r}") from None


@dataclass(eq=False, repr=False, kw_only=True)
class Estimator(Release):
    """Public parameters of a release; nothing is read, checked or spent before `fit`."""

    epsilon: float
    delta: float | str
    adjacency: str = "replace-one"
    accounting: str = "tight"
    ledger: Any = STANDARD
    dataset: str | None = None
    insecure_seed: int | None = None
    threads: int | None = None
    memory: int | None = None
    progress: Any = None

    _kind: ClassVar[str] = ""
    _task: ClassVar[str] = ""  # what a forecast calls it
    _words: ClassVar[dict[str, str]] = {"n_components": "components"}  # ours: the library's
    _arrays: ClassVar[dict[str, str]] = {}  # the library's: ours
    _direct: ClassVar[str] = "fit"

    # Parameters, as scikit-learn asks for them.

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in sorted(self._names())}

    def set_params(self, **params: Any) -> Self:
        """Changes parameters; what was fitted stays until the next `fit`."""
        known = self._names()
        for name, value in params.items():
            if name not in known:
                raise UsageError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {known!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {name: one.default for name, one in inspect.signature(type(self).__init__).parameters.items()}
        said = ", ".join(f"{name}={value!r}" for name in self._names()
                         if (value := getattr(self, name)) is not defaults[name] and
                         not _same(value, defaults[name]))
        fitted = getattr(self, "model_", None)
        stamp = "  # NOT PRIVATE: the noise was seeded" if fitted is not None and not fitted.is_private else ""
        return f"{type(self).__name__}({said}){stamp}"

    def _repr_html_(self) -> str:
        from html import escape

        shown = f"<pre>{escape(repr(self))}</pre>"
        return shown + self.model_._repr_html_() if hasattr(self, "model_") else shown

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        # Noise makes every release another one, unless it is seeded.
        return Tags(estimator_type=None, target_tags=TargetTags(required=False), transformer_tags=None,
                    classifier_tags=None, regressor_tags=None, input_tags=InputTags(),
                    non_deterministic=self.insecure_seed is None)

    # What the library is asked.

    def _spending(self) -> dict[str, Any]:
        spending = {name: getattr(self, name) for name in _SPENDING}
        if self.delta == AUTO:  # settled once the rows are counted
            spending.update(delta=0.5, auto_delta=True)
        ledger = self.ledger
        if isinstance(ledger, Ledger):
            spending["ledger"] = ledger.path
        elif ledger == STANDARD:
            spending["ledger"] = ""
        elif isinstance(ledger, (str, os.PathLike)):
            spending["ledger"] = os.fspath(ledger)
        elif ledger is not None and ledger is not False:
            raise UsageError("`ledger` must be 'standard', a path, a Ledger, or None for none")
        else:
            spending["ledger"] = None
        return spending

    def _options(self) -> dict[str, Any]:
        options = {}
        for name in self._names():
            if name in _SPENDING or name in _OURS:
                continue
            value = getattr(self, name)
            if isinstance(value, np.integer):
                value = int(value)
            if name == "ranges":
                value = _range_list(value)
            if name == "schema" and isinstance(value, (Schema, Mapping)):
                name, value = "bounds", list(Schema.of(value)._columns)
            elif name in ("schema", "spectrum") and isinstance(value, os.PathLike):
                value = os.fspath(value)
            if name == "person" and value is not None:
                value = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
            if name in ("columns", "x_columns", "y_columns", "classes") and value is not None:
                value = [str(one) for one in ([value] if isinstance(value, str) else value)]
            options[self._words.get(name, name)] = value
        return options

    def _said(self, error: EigenveilError) -> EigenveilError:
        """The same with options called as they are here."""
        return type(error)(self._named(str(error)))

    def _named(self, words: str) -> str:
        back = {**_THEIRS, **{theirs: ours for ours, theirs in self._words.items()}}
        for theirs, ours in _PHRASES:
            words = re.sub(theirs, ours, words)
        return re.sub(r"`(\w+)`", lambda found: f"`{back.get(found[1], found[1])}`", words)

    def _listener(self) -> Any:
        return _bar() if self.progress is True else self.progress or None

    def _release(self, tables: Sequence[Table], options: dict[str, Any]) -> Model:
        for one in tables:
            if getattr(self, "person", None) is not None and one.unfit:
                raise BadInput(f"`person`: {one.unfit}")

        # Before the charge: where warnings are errors, nothing is charged.
        def warn(words: str) -> None:
            warnings.warn(self._named(words) + ".", ConcernWarning, stacklevel=4)

        try:
            core = _core.fit(self._kind, [one.source for one in tables], options, self._spending(), self._listener(), warn)
        except EigenveilError as error:
            raise self._said(error) from None
        return Model(core)

    def _told(self) -> Any:
        """What the release warns of, once it is kept: where warnings are errors, it is paid for all the same."""
        for warning in self.model_.warnings:
            kind = NotPrivateWarning if "NOT PRIVATE" in warning else ReleaseWarning
            warnings.warn(warning, kind, stacklevel=3)
        return self

    def _keep(self, model: Model, features: list[str] | None, count: int | None) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self.model_ = model
        self.manifest_ = model.manifest
        self.n_features_in_ = len(model._core.columns) if count is None else count
        if features is not None:
            self.feature_names_in_ = np.asarray(features, dtype=object)
        for name, values in model.arrays.items():
            setattr(self, self._arrays.get(name, name) + "_", values)
        # In words, direction by direction; None where the method has no verdict.
        self.verdict_ = self.manifest_.get("verdicts", {}).get("standing")

    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            try:
                from sklearn.exceptions import NotFittedError
            except ImportError:
                raise UsageError(f"This {type(self).__name__} instance is not fitted yet: call `fit` first") from None
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call `fit` first")
        return self.model_

    def _scores(self, X: Any) -> np.ndarray:
        model = self._fitted()
        return model.transform(self._checked(table(X, what="X")))

    def _checked(self, found: Table) -> Table:
        """Refuses rows without names that have another number of columns."""
        wanted = self.n_features_in_
        if found.columns is not None and found.names is None and found.columns != wanted:
            raise BadInput(f"X has {found.columns} features, but {type(self).__name__} is expecting {wanted} features "
                           "as input")
        return found

    def _schema(self) -> Schema | None:
        schema = getattr(self, "schema", None)
        return None if schema is None else Schema.of(schema)

    def _feature_count(self, columns: int | Sequence[str] | None, without: str | None = None) -> int:
        """How many numbers a row has: a schema's texts count one by one. But for the column that is explained."""
        schema = self._schema()
        if columns is None and schema is not None:
            return schema.features(without)
        named = self._public_columns(columns)
        self._said_columns = columns if columns is not None else named  # so that `cost` need not be told again
        return sum(name != without for name in named)

    def _named_columns(self) -> list[str] | None:
        """What the schema or the ranges call them."""
        schema = self._schema()
        if schema is not None:
            return schema.names
        return [one[2] for one in _range_list(getattr(self, "ranges", None)) or [] if one[2]] or None

    def _public_columns(self, columns: int | Sequence[str] | None) -> list[str]:
        if columns is None:
            columns = self._named_columns()
        if columns is None:
            raise UsageError(_COLUMNS)
        return [str(i + 1) for i in range(columns)] if isinstance(columns, (int, np.integer)) else list(columns)

    def cost(self, rows: int | None = None, columns: int | Sequence[str] | None = None) -> list[dict[str, Any]]:
        """What the ledger would be charged: every noisy answer. Nothing is read or charged.

        One entry per method; several where a forecast would decide between them.
        """
        given = columns if columns is not None else self._named_columns()
        if given is None:  # as many as were forecast or fitted before
            given = getattr(self, "_said_columns", None) or getattr(self, "n_features_in_", None)
        if given is not None:
            return self._cost_of_columns(given, rows)
        # Most costs are the same for any number of columns: then it need not be said.
        width = 2 + int(getattr(self, "n_components", None) or 0)
        cost, other = self._cost_of_columns(width, rows), self._cost_of_columns(2 * width, rows)
        if cost != other:
            raise UsageError(f"{_COLUMNS}: this costs more or less, depending on them")
        return cost

    def _cost_of_columns(self, columns: int | Sequence[str], rows: int | None) -> list[dict[str, Any]]:
        names = self._cost_names(self._public_columns(columns))
        return self._cost_of([Table(_core.array(np.empty((0, len(names))), names), names, len(names))], self._options(), rows)

    def _cost_names(self, names: list[str]) -> list[str]:
        return names

    def _cost_of(self, tables: Sequence[Table], options: dict[str, Any], rows: int | None) -> list[dict[str, Any]]:
        spending = {**self._spending(), "delta": self._delta_for(rows)}
        spending.pop("auto_delta", None)
        try:
            return _core.cost(self._kind, [one.source for one in tables], options, spending, rows)
        except EigenveilError as error:
            raise self._said(error) from None

    def _delta_for(self, rows: int | None) -> float:
        """`delta`, or what "auto" is for so many rows: rows^-1.1."""
        if self.delta != AUTO:
            return cast(float, self.delta)  # of another kind it is refused with the sentence for it
        if rows is None:
            raise UsageError("`delta` auto follows the number of `rows`: say how many there will be")
        return max(2, rows) ** -1.1

    def _forecast(self, rows: int, guess: dict[str, Any]) -> Forecast:
        known = {"adjacency": self.adjacency, "threads": self.threads}
        try:
            return forecast(self._task, rows=rows, epsilon=self.epsilon, delta=self._delta_for(rows),
                            **{**known, **guess})
        except EigenveilError as error:
            raise self._said(error) from None

    def report(self, path: str | os.PathLike[str], image_shape: tuple[int, int] | None = None) -> None:
        """Writes a page about the release that needs nothing else."""
        self._fitted().report(path, image_shape)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the release as model.npz, the program's own format."""
        self._fitted().save(path)

    # A pickle keeps the parameters and what was released: nothing else is ever kept of the rows.

    def __getstate__(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in self._names()}
        if state.get("progress") is not None:
            state["progress"] = state["progress"] is True or None
        kept = {name: value for name, value in vars(self).items()
                if name in ("model_", "feature_names_in_", "y_feature_names_in_", "n_features_in_", "classes_", "_output")}
        return {"params": state, "kept": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state["params"])
        kept = dict(state["kept"])
        model = kept.pop("model_", None)
        vars(self).update({name: value for name, value in kept.items() if name.startswith("_")})
        if model is not None:
            names = kept.get("feature_names_in_")
            self._keep(model, None if names is None else list(names), kept.get("n_features_in_"))
            for name in ("classes_", "y_feature_names_in_"):  # as they were given then
                if name in kept:
                    setattr(self, name, kept[name])


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and isinstance(value, (int, float, str, bool)) and value == default


@dataclass(eq=False, repr=False, kw_only=True)
class RowEstimator(Estimator):
    """Rows are bounded by what is public about them: a row bound, ranges of columns, or a schema."""

    row_bound: float | str | None = None
    ranges: Any = None
    schema: Any = None
    center: str | None = None
    missing: str | None = None
    columns: Any = None
    header: str | None = None
    delimiter: str | None = None
    fields: int | None = None
    member: str | None = None
    person: str | int | None = None
    person_weight: str = "equal"
    max_rows_per_person: int | None = None
    missing_person: str = "error"

    def _options(self) -> dict[str, Any]:
        options = super()._options()
        options["row_bound"], options["find_row_bound"] = _bound(self.row_bound)
        return options


@dataclass(eq=False, repr=False, kw_only=True)
class Generalized(RowEstimator):
    """A v = lambda B v, of sums over rows."""

    noise: str | None = None
    sparsity: int | None = None
    init: str = "auto"
    step: float | None = None
    rounds: int | None = None
    ridge: float | None = None


class Transformer:
    """Scores of rows, as arrays or as frames."""

    _output: str | None = None

    def set_output(self, *, transform: str | None = None) -> Self:
        """`transform` gives arrays ("default"), "pandas" or "polars" frames."""
        if transform is not None:
            if transform not in ("default", "pandas", "polars"):
                raise ValueError(f"output must be 'default', 'pandas' or 'polars', but is {transform!r}")
            self._output = transform
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.transformer_tags = TransformerTags(preserves_dtype=["float64"])
        return tags

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """pc1, pc2, ...: as the program calls them."""
        return np.asarray(self._fitted()._core.score_names, dtype=object)  # type: ignore[attr-defined]

    def transform(self, X: Any) -> Any:
        """Scores of rows along the released directions: they describe single rows and are not private."""
        return self._framed(self._scores(X), X)  # type: ignore[attr-defined]

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """`fit`, then `transform` of the same rows, whose scores are not private."""
        return self.fit(X, y, **fit_params).transform(X)  # type: ignore[attr-defined]

    def _framed(self, scores: np.ndarray, X: Any, names: Any = None) -> Any:
        """`names`: of the scores, if they are not those of `get_feature_names_out`."""
        output = self._output
        if output is None and "sklearn" in sys.modules:  # what sklearn.set_config says for all
            output = sys.modules["sklearn"].get_config()["transform_output"]
        if output is None or output == "default":
            return scores
        names = list(self.get_feature_names_out() if names is None else names)
        if output == "pandas":
            import pandas

            return pandas.DataFrame(scores, columns=names, index=getattr(X, "index", None))
        import polars

        return polars.DataFrame(scores, schema=names)
