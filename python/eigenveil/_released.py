# SPDX-License-Identifier: Apache-2.0
"""What a fitted estimator has, for type checkers and readers: an array of the model is an attribute under its name and an underscore
(src/release/kinds.cpp lists them). What a method does not release is not there."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._model import Model


class Release:
    """Of every kind."""

    model_: Model
    manifest_: dict[str, Any]
    verdict_: list[str] | None  # direction by direction; None where the method has no verdict
    n_features_in_: int
    feature_names_in_: np.ndarray  # where the rows had names
    y_feature_names_in_: np.ndarray  # where there are two views, and the second had names


class RowsRelease(Release):
    """Of rows: their mean, and the map from columns to features."""

    mean_: np.ndarray
    offset_: np.ndarray
    scale_: np.ndarray


class DirectionsRelease(RowsRelease):
    """Of directions: what a verdict adds."""

    angle_: np.ndarray
    verdict_first_: np.ndarray
    verdict_last_: np.ndarray
    variance_share_: np.ndarray
    variance_share_low_: np.ndarray
    variance_share_high_: np.ndarray


class ValuesRelease(DirectionsRelease):
    """Of directions with eigenvalues."""

    eigenvalues_: np.ndarray
    eigenvalues_estimate_: np.ndarray
    eigenvalues_low_: np.ndarray
    eigenvalues_high_: np.ndarray


class SpectralRelease(ValuesRelease):
    components_: np.ndarray
    components_deviation_: np.ndarray
    explained_variance_: np.ndarray
    explained_variance_ratio_: np.ndarray | None  # of the whole variance; None where only the first directions are known
    noise_variance_: np.ndarray
    covariance_: np.ndarray
    correlation_: np.ndarray
    spread_: np.ndarray
    second_moments_: np.ndarray
    score_counts_: np.ndarray
    score_edges_: np.ndarray


class RegressionRelease(RowsRelease):
    coef_: np.ndarray
    intercept_: float
    intervals_: list[dict[str, Any]]


class CorrelationsRelease(DirectionsRelease):
    x_weights_: np.ndarray
    y_weights_: np.ndarray
    x_weights_deviation_: np.ndarray
    y_weights_deviation_: np.ndarray
    correlations_: np.ndarray
    correlations_estimate_: np.ndarray
    correlations_low_: np.ndarray
    correlations_high_: np.ndarray


class ClassesRelease(ValuesRelease):
    scalings_: np.ndarray
    scalings_deviation_: np.ndarray
    class_means_: np.ndarray
    priors_: np.ndarray
    classes_: np.ndarray


class SlicesRelease(ValuesRelease):
    directions_: np.ndarray
    directions_deviation_: np.ndarray
    slice_means_: np.ndarray
    priors_: np.ndarray


class MatricesRelease(ValuesRelease):
    vectors_: np.ndarray
    vectors_deviation_: np.ndarray


class HeadsRelease(Release):
    x_weights_: np.ndarray
    x_offset_: np.ndarray
    y_weights_: np.ndarray
    y_offset_: np.ndarray
