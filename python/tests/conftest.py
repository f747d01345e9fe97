# SPDX-License-Identifier: Apache-2.0
"""Every test has a home of its own, so that no ledger of a person's is touched."""
import os
import pathlib
import subprocess
import warnings

import numpy as np
import pytest

import eigenveil as ev

PROGRAM = os.environ.get("EIGENVEIL_PROGRAM", "")
SEEDED = {"epsilon": 2, "delta": 1e-6, "ledger": None, "insecure_seed": 7}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home" / "data"))
    return tmp_path / "home"


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ev.NotPrivateWarning)
        warnings.simplefilter("ignore", ev.ReleaseWarning)
        yield


@pytest.fixture(scope="session")
def rows():
    """Columns 1-5 normal, then a class and a response."""
    rng = np.random.default_rng(20261117)
    X = rng.normal(size=(700, 5)) * [1.0, 0.8, 0.6, 0.4, 0.2]
    X[:, 3] += 0.5 * X[:, 0]
    label = (X[:, 0] + 0.3 * rng.normal(size=700) > 0).astype(float)
    response = X[:, 1] + 0.2 * rng.normal(size=700)
    return np.round(np.column_stack([X, label, response]), 3)


@pytest.fixture
def program(tmp_path):
    """Runs the program with the seed of the tests; gives the arrays that it wrote."""
    if not PROGRAM:
        pytest.skip("EIGENVEIL_PROGRAM is not set")

    def run(*args):
        out = tmp_path / "program.npz"
        subprocess.run([PROGRAM, *map(str, args), "--epsilon", "2", "--delta", "1e-6", "--no-ledger", "--yes", "--force", "--insecure-seed",
                        "7", "--quiet", "--json", "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        with np.load(out) as found:
            return {name: found[name] for name in found.files if not name.endswith(".json")}

    return run


def same(model, arrays):
    ours = model.model_.arrays if hasattr(model, "model_") else model.arrays
    assert sorted(ours) == sorted(name for name, values in arrays.items() if values.dtype == np.float64)
    for name, values in ours.items():
        assert values.shape == arrays[name].shape, name
        assert values.tobytes() == np.ascontiguousarray(arrays[name]).tobytes(), name
