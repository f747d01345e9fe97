# SPDX-License-Identifier: Apache-2.0
"""Differentially private spectral learning: principal components, covariances, regressions, canonical correlations,
discriminants, sliced inverse regression and joint embeddings, with exact noise and a ledger.

>>> import numpy as np, eigenveil as ev
>>> X = np.random.default_rng(0).normal(size=(1000, 4))
>>> pca = ev.PCA(n_components=2, epsilon=1, delta=1e-6, row_bound=3, ledger=None).fit(X)
>>> pca.components_.shape
(2, 4)
"""
import os as _os

from . import _core
from ._errors import (BadInput, BudgetRefused, ConcernWarning, EigenveilError, InternalError, NotPrivateWarning,
                      ReleaseWarning, UsageError)
from ._forecast import Forecast, account, calibrate, forecast
from ._ledger import Ledger, Schema
from ._model import Model
from ._responses import LDA, SIR, LinearRegression, Ridge
from ._spectral import PCA, Covariance, SparsePCA
from ._views import CCA, GEP, ContrastiveHeads

__version__: str = _core.version
__all__ = ["BadInput", "BudgetRefused", "CCA", "ConcernWarning", "ContrastiveHeads", "Covariance", "EigenveilError", "Forecast",
           "GEP", "InternalError", "LDA", "Ledger", "LinearRegression", "Model", "NotPrivateWarning", "PCA",
           "ReleaseWarning", "Ridge", "SIR", "Schema", "SparsePCA", "UsageError", "account", "calibrate", "forecast"]

_os.register_at_fork(after_in_child=_core.after_fork)
