# SPDX-License-Identifier: Apache-2.0
"""How much memory rows take on their way in: what is larger than memory flows through, and an array is copied onto the lattice alone.
Each in a process of its own, since memory that one test gave back may serve the next."""
import subprocess
import sys

import numpy as np
import pytest

MEASURE = """
import sys, warnings
import numpy as np
import eigenveil as ev
warnings.simplefilter("ignore")

def kilobytes(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field + ":"))

def fit(X, **more):
    return ev.Covariance(row_bound=20, epsilon=1, delta=1e-6, ledger=None, threads=1, **more).fit(X)

SETUP
fit(few())  # what a library takes once, whatever the rows
given = rows()
with open("/proc/self/clear_refs", "w") as forget:
    forget.write("5")
before = kilobytes("VmRSS")
found = fit(given, **MORE)
print(found.manifest_["rows"], (kilobytes("VmHWM") - before) / 1024)
"""


def peak(setup, *arguments, more="{}"):
    """Rows that were read, and megabytes beyond what there was before."""
    code = MEASURE.replace("SETUP", setup).replace("MORE", more)
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows, megabytes = done.stdout.split()
    return int(rows), float(megabytes)


ROWS, WIDTH = 2_000_000, 40  # 640 MB in a file, 320 MB on the lattice


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("parquet")
    part = np.random.default_rng(0).normal(size=(50_000, WIDTH))
    table = pyarrow.table({f"x{j}": part[:, j] for j in range(WIDTH)})
    for name, times in (("few", 1), ("rows", ROWS // len(part))):
        with pyarrow.parquet.ParquetWriter(folder / f"{name}.parquet", table.schema, compression="none", use_dictionary=False) as file:
            for _ in range(times):
                file.write_table(table)
    return folder


STREAMS = {
    "a Parquet file": "def of(path): return path",
    "a dataset": "import pyarrow.dataset\ndef of(path): return pyarrow.dataset.dataset(path)",
    "batches": "import pyarrow as pa, pyarrow.parquet as pq\n"
               "def of(path):\n"
               "    file = pq.ParquetFile(path, pre_buffer=False)\n"
               "    return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(8192))",
    "DuckDB": "import duckdb\nduckdb.sql('set memory_limit = \\'128MB\\'; set threads = 1; set enable_progress_bar = false')\n"
              "def of(path): return duckdb.sql(f\"select * from '{path}'\")",
    "polars, lazy": "import polars\ndef of(path): return polars.scan_parquet(path).filter(polars.col('x0') > -100)",
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_larger_than_memory_flow_through(parquet, tmp_path, monkeypatch, name):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where rows on the lattice wait
    monkeypatch.setenv("POLARS_MAX_THREADS", "1")
    setup = STREAMS[name] + "\ndef few(): return of(sys.argv[1])\ndef rows(): return of(sys.argv[2])"
    rows, megabytes = peak(setup, parquet / "few.parquet", parquet / "rows.parquet", more="{'memory': 128 << 20}")
    assert rows == ROWS
    assert megabytes < 310  # less than the lattice, and half of the rows; a scan that is faster than the fit holds batches


@pytest.mark.parametrize("kind", ["f8", "f4", "i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_is_copied_onto_the_lattice_alone(kind, order):
    rows, width = 200_000, 150
    setup = f"def make(n): return np.ones((n, {width}), '{kind}', order='{order}')\ndef few(): return make(100)\ndef rows(): return make({rows})"
    found, megabytes = peak(setup)
    assert found == rows
    assert megabytes < rows * width * 4 / 2**20 + 50
