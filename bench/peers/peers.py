# SPDX-License-Identifier: Apache-2.0
"""Eigenveil beside OpenDP, diffprivlib and scikit-learn (not private): the same rows, the same epsilon, error and seconds,
in one run. Writes peers.md and peers.svg. Usage: bench/peers/run [--quick] [--minutes M] [FOLDER]

Each peer gets what its documentation asks for: OpenDP and diffprivlib a bound on the norm or ranges, all of them the same
public ones. Neither PCA takes a delta: the guarantees of both are pure (delta = 0) and so the stronger ones. A method that does not finish
within LIMIT is stopped and not tried on what comes after, where rows times epsilon are more. With --minutes the whole ends by then: what still runs is stopped, and the table
says after how many seconds."""
import argparse
import multiprocessing
import pathlib
import resource
import signal
import statistics
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")
DELTA = 1e-6
LIMIT = 900  # seconds of the processor that a method may take for one data set
UNFINISHED = "not finished in"
PCA, REGRESSION = "PCA, k = 3", "regression"
ENOUGH = 40  # after so many seconds a method gets no further data sets


def spiked(n, d, spikes, seed):
    draw = np.random.default_rng(seed)
    basis = np.linalg.qr(draw.normal(size=(d, d)))[0]
    scale = np.concatenate([np.sqrt(spikes), np.ones(d - len(spikes))])
    X = draw.normal(size=(n, d)) * scale @ basis.T
    bound = 1.2 * np.sqrt(sum(spikes) + d)  # of the model, not of the rows
    return X, bound


def responses(n, d, seed):
    draw = np.random.default_rng(seed)
    X = draw.uniform(-1, 1, size=(n, d))
    beta = np.linspace(1, -1, d)
    return X, np.clip(X @ beta + 0.3 * draw.normal(size=n), -d, d), beta


def lost(X, V, k):
    """Share of what the best k directions explain that these k do not."""
    values, best = np.linalg.eigh(np.cov(X.T))
    Q = np.linalg.qr(V.T)[0]
    return 1 - np.trace(Q.T @ np.cov(X.T) @ Q) / values[-k:].sum()


def ours_pca(X, k, epsilon, bound):
    import eigenveil as ev
    return ev.PCA(k, epsilon=epsilon, delta=DELTA, row_bound=bound, ledger=None).fit(X).components_


def opendp_pca(X, k, epsilon, bound):
    import opendp.prelude as dp
    dp.enable_features("contrib", "floating-point", "honest-but-curious")
    model = dp.sklearn.decomposition.PCA(epsilon=epsilon, row_norm=bound, n_samples=len(X), n_features=X.shape[1],
                                         n_components=k)
    return model.fit(X).components_


def diffprivlib_pca(X, k, epsilon, bound):
    from diffprivlib.models import PCA
    limit = bound / np.sqrt(X.shape[1])
    model = PCA(k, epsilon=epsilon, data_norm=bound, bounds=(-limit, limit))
    return model.fit(X).components_


def sklearn_pca(X, k, epsilon, bound):
    from sklearn.decomposition import PCA
    return PCA(k).fit(X).components_


def ours_regression(X, y, epsilon):
    import eigenveil as ev
    d = X.shape[1]
    fit = ev.LinearRegression(ranges=(-1, 1), y_range=(-d, d), epsilon=epsilon, delta=DELTA, ledger=None).fit(X, y)
    return fit.coef_


def diffprivlib_regression(X, y, epsilon):
    from diffprivlib.models import LinearRegression
    d = X.shape[1]
    return LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-d, d)).fit(X, y).coef_


def sklearn_regression(X, y, epsilon):
    from sklearn.linear_model import LinearRegression
    return LinearRegression().fit(X, y).coef_


PCAS = {"eigenveil": ours_pca, "OpenDP": opendp_pca, "diffprivlib": diffprivlib_pca, "scikit-learn, not private": sklearn_pca}
REGRESSIONS = {"eigenveil": ours_regression, "diffprivlib": diffprivlib_regression,
               "scikit-learn, not private": sklearn_regression}


def one(method, data, args, into, end):
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, resource.RLIM_INFINITY))
    if end is not None:
        signal.setitimer(signal.ITIMER_REAL, max(0.01, end - time.monotonic()))
    start = time.process_time()  # of the processor, which others on the machine disturb less
    try:
        found = np.asarray(method(*data, *args))
    except Exception as problem:  # noqa: BLE001: a peer that cannot is a line of the table
        into.send((None, f"{type(problem).__name__}: {str(problem)[:70]}"))
        return
    into.send((found, time.process_time() - start))


def measured(method, make, error, runs, end):
    """Median error, median seconds, data sets; each in a process that can be stopped."""
    errors, seconds = [], []
    for seed in range(runs):
        data, args = make(seed)
        out, into = multiprocessing.Pipe(duplex=False)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = multiprocessing.Process(target=one, args=(method, data, args, into, end))
        process.start()
        into.close()
        try:
            found, took = out.recv()
        except EOFError:
            process.join()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.0f} s, when the run had to end"
            limits = {-signal.SIGXCPU: f"{LIMIT / 60:g} minutes", -signal.SIGALRM: spent}
            if process.exitcode in limits and seconds:  # one that finished counts
                break
            return None, f"{UNFINISHED} {limits[process.exitcode]}" if process.exitcode in limits else f"ended with code {process.exitcode}", 0
        process.join()
        if found is None:
            return None, took, 0
        seconds.append(took)
        errors.append(error(data, found))
        if sum(seconds) > ENOUGH:
            break
    return statistics.median(errors), statistics.median(seconds), len(errors)


def pca_case(n, d, epsilon):
    def make(seed):
        X, bound = spiked(n, d, [20, 10, 5], seed)
        return (X, 3), (epsilon, bound)
    return make, lambda data, V: float(lost(data[0], V, 3))


def regression_case(n, d, epsilon):
    def make(seed):
        X, y, _ = responses(n, d, seed)
        return (X, y), (epsilon,)
    beta = responses(2, d, 0)[2]
    return make, lambda data, c: float(np.linalg.norm(c - beta) / np.linalg.norm(beta))


def all_of(task, who, method, case, shapes, epsilons, runs, into, end):
    """Every case of one method, the small ones first."""
    gave_up = False
    for n, d in shapes:
        for epsilon in epsilons:
            found = (None, "not tried: the one before did not finish", 0) if gave_up else measured(method, *case(n, d, epsilon), runs, end)
            gave_up = gave_up or (found[0] is None and found[1].startswith(UNFINISHED))
            into.put((task, n, d, epsilon, who, *found))
    into.put(None)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--minutes", type=float)
    arguments.add_argument("folder", nargs="?", default="docs/results")
    given = arguments.parse_args()
    end = None if given.minutes is None else time.monotonic() + 60 * given.minutes
    runs = 1 if given.quick else 5
    epsilons = [1] if given.quick else [0.5, 1, 4]
    shapes = [(2_000, 10)] if given.quick else [(500, 5), (2_000, 10), (20_000, 20), (20_000, 100), (100_000, 200)]
    regressions = [(2_000, 3)] if given.quick else [(500, 3), (2_000, 5), (20_000, 5), (20_000, 20), (200_000, 5)]
    for method in ("diffprivlib.models", "eigenveil", "opendp.prelude", "sklearn.decomposition", "sklearn.linear_model"):
        __import__(method)  # before the clock starts
    queue = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=all_of, args=(PCA, who, method, pca_case, shapes, epsilons, runs, queue, end)) for who, method in PCAS.items()]
    workers += [multiprocessing.Process(target=all_of, args=(REGRESSION, who, method, regression_case, regressions, epsilons, runs, queue, end))
                for who, method in REGRESSIONS.items()]
    for worker in workers:  # beside each other: seconds are those of the processor
        worker.start()
    lines, left = [], len(workers)
    while left > 0:
        line = queue.get()
        left -= line is None
        if line is not None:
            print(line, flush=True)
            lines.append(line)
    order = {who: place for place, who in enumerate(PCAS)}
    lines.sort(key=lambda line: (line[0] != PCA, line[1:4], order[line[4]]))
    points = {who: [(f"{n:,} x {d}, {epsilon}", found) for task, n, d, epsilon, name, found, *_ in lines if (task, name) == (PCA, who)]
              for who in PCAS}
    folder = pathlib.Path(given.folder)
    write(folder / "peers.md", lines, runs)
    draw(folder / "peers.svg", points)


def said(lines):
    """Who has the least error among the private ones, and who is fastest: counted, not chosen."""
    text = []
    for task in dict.fromkeys(line[0] for line in lines):
        groups = {}
        for _, n, d, epsilon, who, found, seconds, _ in (line for line in lines if line[0] == task):
            if found is not None and "not private" not in who:
                groups.setdefault((n, d, epsilon), []).append((float(found), seconds, who))
        alone = sum(len(group) == 1 for group in groups.values())
        groups = {case: group for case, group in groups.items() if len(group) > 1}
        for what, place in (("least error", 0), ("fewest seconds", 1)):
            winners = [min(group, key=lambda one: one[place])[2] for group in groups.values()]
            counts = ", ".join(f"{who} {winners.count(who)}" for who in dict.fromkeys(sorted(winners)))
            text.append(f"{task}, {what} among the private ones, of {len(groups)} cases in which more than one finished: {counts}. ")
        if alone:
            text.append(f"In {alone} cases eigenveil alone finished, or was tried.")
        for what, place in (("error is less", 0), ("time is less", 1)):
            better = [f"{n:,} x {d} at {epsilon} ({ahead[2]}, {ahead[place]:.2g} to {own:.2g})" for (n, d, epsilon), group in groups.items()
                      for ahead in [min(group, key=lambda one: one[place])] if ahead[2] != "eigenveil"
                      for own in [one[place] for one in group if one[2] == "eigenveil"]]
            if better:
                text.append(f"A peer's {what} than ours: {'; '.join(better)}.")
        text.append("")
    return text


def write(path, lines, runs):
    def cell(value):
        return f"{value:.2g}" if isinstance(value, float) else str(value)

    text = ["# Beside the peers", "",
            f"`bench/peers/run`, one thread, seconds of the processor; medians over up to {runs} data sets per line (fewer where one takes long), all methods on the same rows "
            f"at the same epsilon, with processes of their own. Eigenveil: delta = {DELTA:g}; OpenDP and diffprivlib know no delta here, and their pure "
            "guarantee is the stronger one. PCA: share of the variance of the best three directions that is lost, rows of a spiked normal "
            "model, with a bound on the norm that the model implies. Regression: relative error of the coefficients. diffprivlib's noise comes "
            "from floating-point numbers.", "", *said(lines), "",
            "![errors](peers.svg)", "", "| task | rows | columns | epsilon | who | error | seconds | data sets |", "|---|---|---|---|---|---|---|---|"]
    for task, n, d, epsilon, who, found, seconds, sets in lines:
        error = "-" if found is None else cell(float(found))
        text.append(f"| {task} | {n:,} | {d} | {epsilon} | {who} | {error} | {cell(seconds)} | {sets} |")
    path.write_text("\n".join(text) + "\n")


def draw(path, points):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.5))
    for name, found in points.items():
        axes.plot([label for label, _ in found], [np.nan if error is None else max(error, 1e-8) for _, error in found], "o-", label=name)
    axes.set_yscale("log")
    axes.set_ylabel("share of the variance lost")
    axes.tick_params(axis="x", rotation=60)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
