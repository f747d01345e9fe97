// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "eigenveil/estimators/estimator.hpp"

namespace eigenveil {

/// What the error of a forecast is called.
struct ErrorUnit {
  const char* key;    ///< in a manifest
  const char* title;  ///< over a column
  const char* axis;   ///< of a chart
};
inline constexpr ErrorUnit kSine{"sin2", "sin^2", "forecast error, sin^2"};
inline constexpr ErrorUnit kRelative{"relative_error", "rel. err.", "forecast relative error"};

using Truth = std::function<Matrix(const std::string& array)>;

/// How far the fit of a kind of model is from the truth.
struct Measure {
  std::string_view kind;
  ErrorUnit unit;
  double (*error)(const Truth& truth, const Fit& fit);
  bool components = false;  ///< the lost variance of its array "components" is worth knowing
};

/// The kind's row of the table; without one, the relative error of the first array.
const Measure& measure_of(std::string_view kind);

/// sin^2 = (k - ||V^T Q||_F^2) / k
double sin_squared(const Matrix& V, const Matrix& Q);

}  // namespace eigenveil
