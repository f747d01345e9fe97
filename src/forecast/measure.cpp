// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/forecast/measure.hpp"

#include <algorithm>
#include <array>

#include "eigenveil/forecast/forecast.hpp"
#include "eigenveil/linalg/subspace.hpp"

namespace eigenveil {
namespace {

// ||M' - M||_F / ||M||_F
double relative(const Truth& truth, const Fit& fit, const std::string& array) {
  const Matrix M = truth(array);
  return (array_of(fit, array) - M).norm() / M.norm();
}

// Of what the columns span.
double angle(const Truth& truth, const Fit& fit, const std::string& array) {
  return sin_squared(orthonormal(truth(array)), orthonormal(array_of(fit, array)));
}

// Of what the rows span.
double row_angle(const Truth& truth, const Fit& fit, const std::string& array) {
  return sin_squared(truth(array).transpose(), orthonormal(array_of(fit, array).transpose()));
}

// Components that are orthonormal rows: of the leading ones, where one side has more.
double leading_angle(const Truth& truth, const Fit& fit) {
  const Matrix U = truth("components").transpose();
  const Matrix V = array_of(fit, "components").transpose();
  const Eigen::Index common = std::min(U.cols(), V.cols());
  return sin_squared(U.leftCols(common), V.leftCols(common));
}

constexpr std::array kMeasures = {
    Measure{"pca", kSine, leading_angle, true},
    Measure{"covariance", kRelative, [](const Truth& t, const Fit& f) { return relative(t, f, "covariance"); }},
    Measure{"cca", kSine,
            [](const Truth& t, const Fit& f) { return angle(t, f, "x_weights") / 2 + angle(t, f, "y_weights") / 2; }},
    Measure{"fda", kSine, [](const Truth& t, const Fit& f) { return angle(t, f, "scalings"); }},
    Measure{"sir", kSine, [](const Truth& t, const Fit& f) { return angle(t, f, "directions"); }},
    Measure{"clip", kSine,
            [](const Truth& t, const Fit& f) {
              return (row_angle(t, f, "image_weights") + row_angle(t, f, "text_weights")) / 2;
            }},
};
constexpr Measure kAnyOther{"", kRelative,
                            [](const Truth& t, const Fit& f) { return relative(t, f, f.arrays.front().name); }};

}  // namespace

double sin_squared(const Matrix& V, const Matrix& Q) {
  const auto k = static_cast<double>(Q.cols());
  return std::max(0.0, (k - (V.transpose() * Q).squaredNorm()) / k);
}

const Measure& measure_of(std::string_view kind) {
  const auto row =
      std::find_if(kMeasures.begin(), kMeasures.end(), [&](const Measure& one) { return one.kind == kind; });
  return row == kMeasures.end() ? kAnyOther : *row;
}

}  // namespace eigenveil
