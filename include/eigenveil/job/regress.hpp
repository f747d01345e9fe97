// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/job/forecast.hpp"
#include "eigenveil/job/release.hpp"

namespace eigenveil {

/// Private linear regression of one column on the others, from a data file to a released model.
struct RegressJob {
  FitJob fit;          ///< a row bound is that of the whole row: the columns, the weighted target and the constant
  std::string target;  ///< column
  std::optional<double> ridge = {};  ///< added to the mean squares of the scaled columns; none: auto
};

/// Model "regress": coefficients (d) and intercept (1) in the columns' own units, mean, offset and scale (d).
/// Intervals, residual variance and R^2 are in the manifest.
Result<Study> study(RegressJob job);

/// The same from a covariance that was released before, by method gram and about a released mean. Nothing is charged.
Result<Model> regress_from(const Model& covariance, const std::string& target, std::optional<double> ridge);

/// A guess of what the rows are like: Gaussian columns of which the target is a sum, and a rest that they do not
/// explain.
struct RegressModel {
  std::size_t rows;
  std::size_t columns;                   ///< besides the target
  double explained = 0.5;                ///< share of the target's variance: R^2
  double spread = 0.3;                   ///< deviation of a column, and of the target, over half of its range
  std::optional<double> row_bound = {};  ///< of the whole row; none: nothing that the ranges allow is shortened
};

/// How far the coefficients will be from those of the same rows without privacy noise.
ForecastRequest regress_forecast(const RegressModel& model, const Budget& budget, std::optional<double> ridge);

}  // namespace eigenveil
