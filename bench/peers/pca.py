# SPDX-License-Identifier: Apache-2.0
"""Private PCA beside what papers propose: the same rows, the same (epsilon, delta) for a replaced row, won and lost cell by cell.
Writes pca-peers.md. Usage: bench/peers/run pca [--quick] [--seeds N] [--rows N,...] [--columns D,...] [FOLDER]

The peers are written here from their papers, each with the accounting that suits it best: all of them ask for Gaussian answers
only, so that mu^2 adds up, and symmetric noise has the deviation of an off-diagonal entry that its Frobenius sensitivity needs.
What their papers take as known they are told, also where that is private (said at each). Rows have mean zero, and everybody
knows it."""
import argparse
import math
import multiprocessing
import pathlib
import statistics
import warnings

import numpy as np

warnings.simplefilter("ignore")
EPSILON, DELTA = 1.0, 1e-6
BOUND, LOOSE = 2.5, 25.0  # in lengths of a typical row


def mu_of(epsilon, delta):
    """The Gaussian mechanism with sensitivity / deviation = mu is (epsilon, delta)-private, no larger one is (Balle and Wang)."""
    def phi(x):
        return math.erfc(-x / math.sqrt(2)) / 2
    low, high = 1e-6, 50.0
    for _ in range(200):
        mu = (low + high) / 2
        enough = phi(-epsilon / mu + mu / 2) - math.exp(epsilon) * phi(-epsilon / mu - mu / 2) <= delta
        low, high = (mu, high) if enough else (low, mu)
    return low


MU = mu_of(EPSILON, DELTA)


# What rows are drawn from.

def gap(ratio):
    def values(d, k):
        return np.concatenate([np.full(k, ratio), np.ones(d - k)])
    return values


def five_spikes(d, k):
    values = np.ones(d)
    values[:5] = 40 / 1.5 ** np.arange(5)
    return values


SPECTRA = {"gap 5": gap(5.0), "gap 2": gap(2.0), "decay": lambda d, k: 0.8 ** np.arange(d) + 0.01,
           "1/i": lambda d, k: 1 / np.arange(1, d + 1), "5 spikes": five_spikes}
SHAPES = [(name, name, "normal", BOUND) for name in SPECTRA] + [
    ("5 spikes, t3", "5 spikes", "t3", BOUND), ("5 spikes, outliers", "5 spikes", "outliers", BOUND),
    ("5 spikes, loose", "5 spikes", "normal", LOOSE), ("gap 5, loose", "gap 5", "normal", LOOSE)]


def make(spectrum, tails, n, d, k, seed):
    """Rows of trace 1, their true directions and eigenvalues."""
    draw = np.random.default_rng(seed)
    basis = np.linalg.qr(draw.normal(size=(d, d)))[0]
    values = SPECTRA[spectrum](d, k)
    values = values / values.sum()
    X = draw.normal(size=(n, d)) * np.sqrt(values)
    if tails == "t3":
        X *= np.sqrt(3 / draw.chisquare(3, size=(n, 1)))
    X = X @ basis.T
    if tails == "outliers":
        far = draw.normal(size=(len(X[::200]), d))
        X[::200] = far * (10 * np.linalg.norm(X[::200], axis=1) / np.linalg.norm(far, axis=1))[:, None]
    return X, basis[:, :k], values


def sin2(truth, found):
    return 1 - np.linalg.norm(truth.T @ np.linalg.qr(found)[0]) ** 2 / truth.shape[1]


# Peers: rows, their public bound, how many, mu, a generator, and what is true (values) -> d x k.

def symmetric(d, deviation, draw):
    noise = draw.normal(size=(d, d)) * deviation
    return np.triu(noise, 1) + np.triu(noise, 1).T + np.diag(np.diag(noise)) * math.sqrt(2)


def clipped(X, radius):
    return X * np.minimum(1, radius / np.maximum(np.linalg.norm(X, axis=1), 1e-300))[:, None]


def top(S, k):
    return np.linalg.eigh(S)[1][:, ::-1][:, :k]


def noisy_gram(X, radius, mu, draw):
    """|x x^T - y y^T| <= sqrt(2) radius^2, and symmetric noise of deviation s off the diagonal hides sqrt(2) s mu."""
    return X.T @ X + symmetric(X.shape[1], radius ** 2 / mu, draw)


def analyze_gauss(X, bound, k, mu, draw, values):
    """Dwork, Talwar, Thakurta, Zhang 2014."""
    return top(noisy_gram(clipped(X, bound), bound, mu, draw), k)


def found_radius(X, bound, mu, draw, share):
    """Dong, Liang, Yi 2022 stop where what clipping takes meets the noise. They find it by a sparse vector over powers of two; here
    noisy counts of all powers at once, which cost less."""
    d, steps = X.shape[1], 24
    edges = bound * 2.0 ** -np.arange(steps)
    lengths = np.linalg.norm(clipped(X, bound), axis=1)
    counts = np.array([(lengths > edge).sum() for edge in edges[1:]]) * 1.0
    bins = np.diff(np.concatenate([[0], counts]))  # rows between an edge and half of it
    bins = np.maximum(0, bins + draw.normal(size=bins.size) * math.sqrt(2) / (mu * math.sqrt(share)))
    best, cost = bound, math.inf
    for j, edge in enumerate(edges):
        bias = sum(bins[i] * edges[i] ** 2 for i in range(j))
        noise = 2 * math.sqrt(d) * edge ** 2 / (mu * math.sqrt(1 - share))
        if bias + noise < cost:
            best, cost = edge, bias + noise
    return best


def adaptive_cov(X, bound, k, mu, draw, values):
    share = 0.25
    radius = found_radius(X, bound, mu, draw, share)
    return top(noisy_gram(clipped(X, radius), radius, mu * math.sqrt(1 - share), draw), k)


def separate_cov(X, bound, k, mu, draw, values):
    """The same paper: eigenvalues and eigenvectors apart, half of mu^2 each (of the rest); for directions only the latter count."""
    share = 0.25
    radius = found_radius(X, bound, mu, draw, share)
    return top(noisy_gram(clipped(X, radius), radius, mu * math.sqrt((1 - share) / 2), draw), k)


def pairwise_sphere(X, bound, k, mu, draw, values):
    """Differences of disjoint pairs of rows, made of unit length: no bound and no mean is needed."""
    half = len(X) // 2
    D = X[:half] - X[half:2 * half]
    D /= np.maximum(np.linalg.norm(D, axis=1), 1e-300)[:, None]
    return top(noisy_gram(D, 1.0, mu, draw), k)


def dp_oja(X, bound, k, mu, draw, values):
    """Liu, Kong, Jain, Oh 2022, one direction: disjoint batches, each gradient clipped. Told: the length of a typical gradient, the
    first eigenvalue and the gap."""
    if k > 1:
        return None
    n, d = X.shape
    rounds = max(20, int(10 * math.log(d) * values[0] / max(values[0] - values[1], 0.05 * values[0])))
    batch = n // rounds
    if batch < 10:
        return None
    clip = 2 * math.sqrt(values[0])  # rows have trace 1
    spread, step_gap = values[0], max(values[0] - values[1], 0.05 * values[0])
    w = draw.normal(size=d)
    w /= np.linalg.norm(w)
    order = draw.permutation(n)
    for t in range(rounds):
        rows = X[order[t * batch:(t + 1) * batch]]
        gradients = rows * (rows @ w)[:, None]
        total = clipped(gradients, clip).sum(axis=0) + draw.normal(size=d) * 2 * clip / mu
        w = w + 4 / (step_gap * (4 * spread / step_gap + t + 1)) * total / batch
        w /= np.linalg.norm(w)
    return w[:, None]


def coinpress(X, bound, k, mu, draw, values):
    """Biswas, Dong, Kamath, Ullman 2020: four rounds, shares 1/8, 1/8, 1/8, 5/8; the covariance is below bound^2 I."""
    n, d = X.shape
    A = np.eye(d) / bound
    beta = math.log(4 * n)
    gamma2 = d + 2 * math.sqrt(d * beta) + 2 * beta
    for share in (1 / 8, 1 / 8, 1 / 8, 5 / 8):
        deviation = gamma2 / (mu * math.sqrt(share)) / n
        W = clipped(X @ A, math.sqrt(gamma2))
        Z = W.T @ W / n + symmetric(d, deviation, draw)
        eta = 2 * math.sqrt(d / n) + d / n
        values_z, vectors = np.linalg.eigh(Z)
        upper = np.minimum(1, np.maximum(values_z, 0) + eta + 2 * deviation * math.sqrt(d))  # the last bound holds too
        last = A
        A = A @ (vectors / np.sqrt(upper)) @ vectors.T
    inverse = np.linalg.inv(last)
    return top(inverse.T @ Z @ inverse, k)


def ours(method):
    def fit(X, bound, k, mu, draw, values):
        import eigenveil as ev
        seed = int(draw.integers(1 << 31))  # the same for all of ours: two that do the same differ by nothing
        return ev.PCA(k, epsilon=EPSILON, delta=DELTA, row_bound=f"auto:{bound}", center="none", method=method, ledger=None,
                      insecure_seed=seed).fit(X).components_.T
    return fit


OURS = {"auto": ours("auto"), "gram": ours("gram"), "sphere": ours("sphere"), "adaptive-power": ours("adaptive-power")}
PEERS = {"Analyze Gauss": analyze_gauss, "AdaptiveCov": adaptive_cov, "SeparateCov": separate_cov, "pairwise sphere": pairwise_sphere,
         "DP-Oja": dp_oja, "CoinPress": coinpress}


def cell(job):
    (name, spectrum, tails, bound), n, d, k, seeds = job
    errors = {}
    for seed in range(seeds):
        X, truth, values = make(spectrum, tails, n, d, k, seed)
        for who, method in {**OURS, **PEERS}.items():
            draw = np.random.default_rng(1000 + seed)
            try:
                found = method(X, bound, k, MU, draw, values)
            except Exception as problem:  # noqa: BLE001: who cannot is not compared
                print(f"{name} {n} {d} {k}: {who}: {problem}", flush=True)
                found = None
            if found is not None:
                errors.setdefault(who, []).append(sin2(truth, found))
    return name, n, d, k, {who: statistics.mean(found) for who, found in errors.items()}


def write(path, lines, seeds):
    """A cell is a draw where everybody is lost, as far as directions at random are."""
    wins, regrets, listed = 0, [], []
    table = []
    for name, n, d, k, errors in lines:
        best = min(errors.values())
        regret = errors["auto"] / best
        hopeless = best > 0.5 * (1 - k / d)
        good = regret <= 1.2 or hopeless
        wins += good
        regrets.append(1.0 if hopeless else regret)
        if not good:
            listed.append(f"{name}, {n:,} x {d}, k = {k}: {min(errors, key=errors.get)} {best:.2g}, auto {errors['auto']:.2g} ({regret:.2f})")
        shown = " | ".join(f"{errors[who]:.2g}" if who in errors else "-" for who in {**OURS, **PEERS})
        table.append(f"| {name} | {n:,} | {d} | {k} | {shown} | {'hopeless' if hopeless else f'{regret:.2f}'} |")
    mean = math.exp(statistics.mean(math.log(r) for r in regrets))
    text = ["# Beside what papers propose", "",
            f"`bench/peers/run pca`: mean sin^2 over {seeds} data sets per cell, epsilon = {EPSILON:g}, delta = {DELTA:g}, replace-one. Public bounds are {BOUND:g} typical rows, "
            f"loose ones {LOOSE:g}. All methods see the same rows, of mean zero, which everybody knows. The peers are written from their papers (bench/peers/pca.py) "
            "and told what those take as known. A cell is hopeless where nobody finds half of the directions.", "",
            f"`auto` is the best of all, or within 1.2 of it, in {wins} of {len(lines)} cells ({100 * wins / len(lines):.0f}%); its geometric mean regret is {mean:.2f}.", "",
            *([f"The other {len(listed)}:", "", *[f"- {line}" for line in listed], ""] if listed else []),
            "| rows | n | d | k | " + " | ".join({**OURS, **PEERS}) + " | regret of auto |",
            "|---" * (5 + len(OURS) + len(PEERS)) + "|", *table]
    path.write_text("\n".join(text) + "\n")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--seeds", type=int, default=10)
    arguments.add_argument("--rows", default="2000,20000,100000")
    arguments.add_argument("--columns", default="10,50,200,1000")
    arguments.add_argument("folder", nargs="?", default="docs/results")
    given = arguments.parse_args()
    seeds = 1 if given.quick else given.seeds
    rows = [2000] if given.quick else [int(n) for n in given.rows.split(",")]
    columns = [10] if given.quick else [int(d) for d in given.columns.split(",")]
    jobs = [(shape, n, d, k, seeds) for n in rows for d in columns for shape in SHAPES for k in (1, 5)]
    lines = []
    with multiprocessing.get_context("spawn").Pool(max(1, multiprocessing.cpu_count() if len(jobs) > 20 else 1)) as pool:
        for line in pool.imap(cell, jobs):
            print(*line[:4], {who: f"{error:.2g}" for who, error in line[4].items()}, flush=True)
            lines.append(line)
    write(pathlib.Path(given.folder) / "pca-peers.md", lines, seeds)


if __name__ == "__main__":
    main()
