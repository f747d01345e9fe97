# SPDX-License-Identifier: Apache-2.0
"""From whatever holds rows to a source of the library: arrays where they lie, everything else as an Arrow stream."""
from __future__ import annotations

import numbers
import os
import sys
from typing import Any

import numpy as np

from . import _core
from ._errors import BadInput

_PARQUET = (".parquet", ".pq")


def _module(name: str) -> Any:
    try:
        return __import__(name, fromlist=["_"])
    except ImportError:
        raise BadInput(f"reading this needs {name}: pip install eigenveil[{name.split('.')[0]}]") from None


def _is_of(X: Any, package: str, name: str) -> bool:
    """Whether X is an instance of a class of a package that was imported already: nothing is imported to find out."""
    module = sys.modules.get(package)
    return module is not None and isinstance(X, getattr(module, name, ()))


def _dataset_reader(dataset: Any) -> Any:
    # Small batches of a scan that runs ahead by no more than a few, and does not read whole row groups first: memory stays flat.
    kinds = _module("pyarrow.dataset")
    options = None
    if isinstance(getattr(dataset, "format", None), kinds.ParquetFileFormat):
        options = kinds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True, buffer_size=1 << 20)
    return dataset.scanner(batch_size=1 << 13, batch_readahead=2, fragment_readahead=1, fragment_scan_options=options).to_reader()


def _streamable(X: Any) -> Any:
    """An object with `__arrow_c_stream__` for tables that have other names for it; None for what is no table."""
    if _is_of(X, "pyarrow.dataset", "Dataset"):
        return _dataset_reader(X)
    if _is_of(X, "pyarrow.dataset", "Scanner"):
        return X.to_reader()
    if _is_of(X, "polars", "LazyFrame"):
        return X.collect_batches(lazy=True)
    if _is_of(X, "pandas", "DataFrame"):
        return X if _has_pyarrow() else None
    if hasattr(X, "__arrow_c_stream__"):
        return X
    if hasattr(X, "fetch_record_batch"):  # a DuckDB relation of an older version
        return X.fetch_record_batch()
    return None


def _has_pyarrow() -> bool:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def _local(paths: list[str], filesystem: Any) -> list[str] | None:
    """What paths of a file system of pyarrow are called on this machine; None: they are elsewhere, or nobody can tell where."""
    kinds = _module("pyarrow.fs")
    while isinstance(filesystem, kinds.SubTreeFileSystem):
        paths = [f"{filesystem.base_path.rstrip('/')}/{path.lstrip('/')}" for path in paths]
        filesystem = filesystem.base_fs
    return paths if isinstance(filesystem, kinds.LocalFileSystem) else None


def _files(X: Any) -> list[str] | None:
    """Files on this machine that a dataset or a scan of pyarrow reads: the ledger may know them. None: it cannot be told which."""
    if _is_of(X, "pyarrow.dataset", "InMemoryDataset"):
        return []
    if _is_of(X, "pyarrow.dataset", "UnionDataset"):
        parts = [_files(one) for one in X.children]
        return None if None in parts else [path for part in parts for path in part or []]
    if _is_of(X, "pyarrow.dataset", "FileSystemDataset"):
        return _local(list(X.files), X.filesystem)
    return None


def _stream(X: Any, files: list[str] | None) -> Any:
    if _is_of(X, "pandas", "DataFrame"):  # its index is no column
        import pyarrow

        X = pyarrow.Table.from_pandas(X, preserve_index=False)
    return _core.arrow(X.__arrow_c_stream__(), files)


def _unmasked(X: Any) -> Any:
    """What a mask hides is missing: the numbers below it are not looked at."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    return np.ma.filled(X.astype(np.float64 if X.dtype.kind in "biuf" else object), np.nan)


def _numbers(array: np.ndarray, what: str) -> np.ndarray:
    # Raised after the other error is gone: NumPy's quotes the cell, and what follows an error is kept with it.
    wrong: Exception
    try:
        return array.astype(np.float64)
    except TypeError:
        wrong = TypeError(f"{what}: argument must be a string or a number; it holds other objects")
    except ValueError:
        wrong = BadInput(f"{what} holds text: give a table with names, and a schema that lists the values")
    raise wrong


def _array(X: Any, what: str) -> np.ndarray:
    if hasattr(X, "todense") or hasattr(X, "toarray"):
        raise TypeError(f"{what} is a sparse matrix, and rows have to be dense: use X.toarray()")
    array = np.asarray(_unmasked(X))
    if np.iscomplexobj(array):
        raise BadInput(f"{what} holds complex numbers. Complex data not supported: rows are made of real ones")
    if array.dtype == object and array.ndim == 0:  # NumPy made one object of it
        raise TypeError(f"{what} is a {type(X).__name__} and no rows: give an array, a table (pandas.DataFrame makes one of columns), or a path")
    if array.dtype == object or array.dtype.kind in "US":
        array = _numbers(array, what)
    if array.ndim != 2:
        raise BadInput(
            f"{what} must have two dimensions, but has {array.ndim}. Reshape your data either using "
            "array.reshape(-1, 1) if it has a single column or array.reshape(1, -1) if it has a single row"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if any(stride % array.itemsize for stride in array.strides):
        array = np.ascontiguousarray(array)
    return array


class Table:
    """Rows for one call, and what their columns are called."""

    def __init__(self, source: Any, names: list[str] | None, columns: int | None, unfit: str | None = None):
        self.source = source
        self.unfit = unfit  # why no column of it can say whose rows they are; None: one can
        self.names = names  # None: they have none of their own
        self.columns = columns  # None: a file, whose columns the library finds

    def named(self, names: list[str]) -> "Table":
        return Table(_core.join([self.source], names), names, self.columns, self.unfit)


def table(X: Any, names: list[str] | None = None, what: str = "X") -> Table:
    """`names`: of the columns of an array."""
    if isinstance(X, Table):
        return X
    files: list[str] | None = []  # whose budgets pay
    if isinstance(X, (str, os.PathLike)):
        path = os.fspath(X)
        if not os.path.exists(path):  # the library says so
            return Table(_core.path(path), None, None)
        if path.lower().endswith(_PARQUET) or (os.path.isdir(path) and _holds_parquet(path)):
            X = _dataset_reader(_module("pyarrow.dataset").dataset(path))
            files = [path]
        else:
            return Table(_core.path(path), None, None)
    if getattr(X, "ndim", 2) == 1 and not isinstance(X, np.ndarray) or _is_of(X, "polars", "Series") or _is_of(X, "pyarrow", "Array") or _is_of(
            X, "pyarrow", "ChunkedArray"):
        raise BadInput(f"{what} is one column, and rows have two dimensions: give a table that has it")
    if _is_of(X, "pyarrow.dataset", "Dataset") or _is_of(X, "pyarrow.dataset", "Scanner"):
        files = _files(X)
    streamed = _streamable(X)
    if streamed is not None:
        source = _stream(streamed, files)
        return Table(source, list(source.columns), len(source.columns))
    own = [str(name) for name in X.columns] if _is_of(X, "pandas", "DataFrame") else None
    array = _array(X, what)
    if array.shape[1] == 0:
        raise BadInput(f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    given = own if own is not None else names or []
    return Table(_core.array(array, given), own, array.shape[1], _unfit(np.asarray(X).dtype, what))


def _unfit(dtype: np.dtype, what: str) -> str | None:
    """By the type alone, whatever the ids are."""
    if dtype.kind not in "biuf":
        return (f"{what} is an array of text or objects, of which numbers are made: '1' and '01' would be one person. "
                "Give a table whose column of ids is text, or an array of integers")
    if dtype.kind == "f" and dtype.itemsize < 8:
        return (f"{what} is an array of {dtype}, whose integers are rounded from 2^{np.finfo(dtype).nmant + 1} on: two people "
                "would be one. Give an array of float64 or of integers, or a table")
    return None


def _holds_parquet(folder: str) -> bool:
    return any(name.lower().endswith(_PARQUET) for name in os.listdir(folder))


def _is_missing(value: Any) -> bool:
    """None, NaN, and pandas' NA, which is neither equal to itself nor not."""
    try:
        return value is None or not bool(value == value)
    except (TypeError, ValueError):
        return True


def _one_dimension(y: Any) -> np.ndarray:
    if _is_of(y, "pyarrow", "Array"):
        values = y.to_numpy(zero_copy_only=False)
    elif hasattr(y, "to_numpy"):
        values = y.to_numpy()
    else:  # of a list NumPy would look at all values to find a type for each
        values = np.asarray(_unmasked(y) if hasattr(y, "dtype") else y, dtype=None if hasattr(y, "dtype") else object)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise BadInput(f"y must have one dimension, but has {values.ndim}")
    return values


def _label(value: Any, truths: bool) -> str:
    """The text of one value, whatever the others are: that of a number where numbers are meant, and none if it is missing."""
    if _is_missing(value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)) if truths else str(int(value))
    if isinstance(value, numbers.Integral):
        return str(int(value))
    return repr(float(value)) if isinstance(value, numbers.Real) else str(value)


def column(y: Any, name: str, labels: bool = False, truths: bool = False) -> Table:
    """One column beside others: numbers or, of `labels`, texts. `truths`: True and False are names, not numbers."""
    values = _one_dimension(y)
    if values.dtype.kind in "OUS" and labels or values.dtype.kind == "b" and truths:
        return Table(_core.text([_label(value, truths) for value in values], name), [name], 1)
    if values.dtype.kind == "O":
        values = np.asarray([np.nan if _is_missing(value) else value for value in values], dtype=object)
    return Table(_core.array(_array(values.reshape(-1, 1), "y"), [name]), [name], 1)


def beside(left: Table, right: Table, prefixes: tuple[str, str]) -> tuple[Table, list[str], list[str]]:
    """Both tables side by side, and the names of the columns of each."""
    if left.columns is None or right.columns is None:
        raise BadInput("two files do not stand side by side: give one file and name the columns of each part")
    first = left.names or [f"{prefixes[0]}{i + 1}" for i in range(left.columns)]
    second = right.names or [f"{prefixes[1]}{i + 1}" for i in range(right.columns)]
    if set(first) & set(second):
        first, second = [f"x.{name}" for name in first], [f"y.{name}" for name in second]
    return Table(_core.join([left.source, right.source], first + second), None, len(first + second), left.unfit or right.unfit), first, second
