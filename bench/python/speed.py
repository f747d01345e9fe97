# SPDX-License-Identifier: Apache-2.0
"""What Python costs: a fit beside the same call from C++, a Parquet file beside pyarrow's own scan, an import. Turn by turn in one run,
each with one thread (--threads: of the fit, and pyarrow's cores); seconds are of the processor, which others on the machine disturb less, and of the clock.
Usage: bench/python/run [--rows N] [--columns D] [--gigabytes G] [--turns T] [--threads T] [--cached] [--part fit|parquet|import]... [FOLDER]
The Parquet file comes from the disk each time, as one larger than the memory does; with --cached from the memory that the system keeps it in.
FOLDER (build/bench): where the Parquet file is made and deleted again."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUDGET = {"epsilon": 1, "delta": 1e-6, "ledger": None, "insecure_seed": 1}


def kilobytes(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field + ":"))


def timed(work):
    """What `work` costs: seconds, and memory at its peak beyond what there was before."""
    with open("/proc/self/clear_refs", "w") as forget:
        forget.write("5")
    before, cpu, wall = kilobytes("VmRSS"), time.process_time(), time.perf_counter()
    found = work()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
            "peak_mb": (kilobytes("VmHWM") - before) / 1024, **(found or {})}


def fits(rows, columns, threads):
    """A process of its own: one fit for every line of its input."""
    import warnings

    import numpy as np
    import eigenveil as ev

    warnings.simplefilter("ignore")
    i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
    X = np.empty((rows, columns))
    for first in range(0, rows, 1000):  # as bench_front makes them
        part = i[first:first + 1000]
        X[first:first + 1000] = ((part * 7919 + j * j * 613 + part // 17 * j) % 1009) / 1009 - 0.5

    def fit():
        pca = ev.PCA(5, row_bound=20, threads=threads, **BUDGET).fit(X)
        return {"first": float(pca.components_[0, 0]).hex()}

    for _ in sys.stdin:
        print(json.dumps(timed(fit)), flush=True)


def scans(path, threads):
    """A process of its own: a scan of pyarrow's or a fit, as the line says."""
    import warnings

    import pyarrow
    import pyarrow.dataset
    import eigenveil as ev

    warnings.simplefilter("ignore")
    pyarrow.set_cpu_count(threads)
    pyarrow.set_io_thread_count(threads)

    def scan():
        reader = pyarrow.dataset.dataset(path).scanner(batch_readahead=2, fragment_readahead=1).to_reader()
        return {"rows": sum(batch.num_rows for batch in reader)}

    def flat():
        options = pyarrow.dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True, buffer_size=1 << 20)
        reader = pyarrow.dataset.dataset(path).scanner(batch_readahead=2, fragment_readahead=1, fragment_scan_options=options).to_reader()
        return {"rows": sum(batch.num_rows for batch in reader)}

    def read():
        # Rows are read, bounded and put onto the lattice; the first answer would come next.
        class Enough(Exception):
            pass

        def stop(step, share):
            if step == "reserving budget":
                raise Enough

        try:
            ev.Covariance(row_bound=20, progress=stop, memory=256 << 20, threads=threads, **BUDGET).fit(path)
        except Enough:
            pass

    def fit():
        ev.Covariance(row_bound=20, memory=256 << 20, threads=threads, **BUDGET).fit(path)

    for line in sys.stdin:
        print(json.dumps(timed({"scan": scan, "flat": flat, "read": read, "fit": fit}[line.strip()])), flush=True)


def child(threads, *command):
    return subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)})


def ask(process, line="go"):
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def least(turns, key):
    return min(turn[key] for turn in turns)


def show(who, turns):
    print(f"{who:28} cpu {least(turns, 'cpu'):8.2f} s   clock {least(turns, 'wall'):8.2f} s   "
          f"peak +{max(turn['peak_mb'] for turn in turns):7.0f} MB", flush=True)


def compare_fits(given, folder):
    here = child(given.threads, sys.executable, __file__, "--child-fit", given.rows, given.columns, given.threads)
    there = child(given.threads, ROOT / "build/release/bench/bench_front", given.rows, given.columns, given.threads)
    found = {"C++": [], "Python": []}
    for _ in range(given.turns):
        found["C++"].append(ask(there))
        found["Python"].append(ask(here))
    here.stdin.close(), there.stdin.close()
    assert len({turn["first"] for turns in found.values() for turn in turns}) == 1, "the two found different components"
    print(f"fit of {given.rows:,} x {given.columns}, the better of {given.turns} turns; the lattice has "
          f"{given.rows * given.columns * 4 / 2**20:.0f} MB")
    for who, turns in found.items():
        show(who, turns)
    print(f"Python over C++: {least(found['Python'], 'cpu') / least(found['C++'], 'cpu'):.3f} (cpu), "
          f"{least(found['Python'], 'wall') / least(found['C++'], 'wall'):.3f} (clock)")


def make_parquet(path, gigabytes):
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    draw = np.random.default_rng(0)
    rows = 1 << 17
    columns = {f"x{j}": draw.normal(size=rows) for j in range(50)}
    table = pyarrow.table(columns)
    # No dictionaries and no compression: the numbers are as random as numbers are.
    with pyarrow.parquet.ParquetWriter(path, table.schema, compression="none", use_dictionary=False) as writer:
        while not path.exists() or path.stat().st_size < gigabytes * 1e9:
            writer.write_table(table)


def forget(path):
    """The file's pages are no longer in memory."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def compare_scans(given, folder):
    path = folder / "rows.parquet"
    make_parquet(path, given.gigabytes)
    try:
        what = {"pyarrow's scan": "scan", "pyarrow's, a page at a time": "flat", "rows read, bounded, stored": "read", "the whole fit": "fit"}
        found = {who: [] for who in what}
        for _ in range(given.turns):
            for who, line in what.items():
                if not given.cached:
                    forget(path)
                # A process of its own each time: what an allocator kept would hide what the next one takes, in memory and in time.
                process = child(given.threads, sys.executable, __file__, "--child-scan", path, given.threads)
                found[who].append(ask(process, line))
                process.stdin.close()
                process.wait()
        size = path.stat().st_size
        print(f"Parquet file of {size / 1e9:.1f} GB, 50 columns, {found['pyarrow' + chr(39) + 's scan'][0]['rows']:,} rows, from "
              f"{'memory' if given.cached else 'the disk'}")
        for who, turns in found.items():
            show(who, turns)
            print(f"{'':28} {size / 1e6 / least(turns, 'cpu'):.0f} MB/s (cpu), {size / 1e6 / least(turns, 'wall'):.0f} MB/s (clock)")
        scan, flat, read, fit = found.values()
        for one, beside in (("read", read), ("fit", fit)):
            for other, turns in (("pyarrow's scan", scan), ("pyarrow's, a page at a time", flat)):
                print(f"{one} over {other}, by speed: {least(turns, 'cpu') / least(beside, 'cpu'):.2f} (cpu), {least(turns, 'wall') / least(beside, 'wall'):.2f} (clock)")
    finally:
        path.unlink()


def compare_imports(given, folder):
    code = "import time{}; c, t = time.process_time(), time.perf_counter(); import {}; print(time.process_time() - c, time.perf_counter() - t)"
    for before, what in (("", "numpy"), ("", "eigenveil"), (", numpy", "eigenveil")):
        runs = [subprocess.run([sys.executable, "-c", code.format(before, what)], capture_output=True, text=True, check=True).stdout.split()
                for _ in range(7)]
        print(f"import {what}{' after numpy' if before else ''}: {min(float(cpu) for cpu, _ in runs):.3f} s (cpu), "
              f"{min(float(wall) for _, wall in runs):.3f} s (clock)")


def main():
    if sys.argv[1:2] == ["--child-fit"]:
        return fits(*map(int, sys.argv[2:5]))
    if sys.argv[1:2] == ["--child-scan"]:
        return scans(sys.argv[2], int(sys.argv[3]))
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=200_000)
    arguments.add_argument("--columns", type=int, default=500)
    arguments.add_argument("--gigabytes", type=float, default=10)
    arguments.add_argument("--turns", type=int, default=3)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--cached", action="store_true")
    parts = {"fit": compare_fits, "parquet": compare_scans, "import": compare_imports}
    arguments.add_argument("--part", choices=parts, action="append")
    arguments.add_argument("folder", nargs="?", type=pathlib.Path, default=ROOT / "build" / "bench")
    given = arguments.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for part in given.part or parts:
        parts[part](given, given.folder)


if __name__ == "__main__":
    main()
