// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fit.hpp"

namespace eigenveil::test {

PrivacyPlan without_noise(PrivacyPlan plan) {
  for (PrivacyEvent& event : plan.events) {
    const bool counts = event.label.ends_with("count") || event.label.ends_with("counts");
    const double mu = counts                          ? kLittleNoiseOfCounts
                      : plan.model_based              ? kLittleNoiseOfModels
                      : event.label.ends_with("sums") ? kLittleNoiseOfSums
                                                      : kHardlyAnyNoise;
    if (auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) gaussian->mu = mu;
    if (auto* pure = std::get_if<PureEvent>(&event.mechanism)) pure->epsilon = kHardlyAnySearchNoise;
    if (auto* poisson = std::get_if<PoissonGaussianEvent>(&event.mechanism)) poisson->sigma = 1 / kHardlyAnyNoise;
  }
  return plan;
}

BoundedRows bound_matrix(const RowMajorMatrix& rows, double radius, int threads) {
  MemorySource source(rows);
  BoundingOptions options{.bound = *RowBound::of(radius)};
  options.threads = threads;
  return *BoundedRows::read(source, ColumnMap::identity(source.columns()), options);
}

Matrix normal_matrix(std::mt19937_64& random, Eigen::Index rows, Eigen::Index columns) {
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, columns, [&] { return normal(random); });
}

RowMajorMatrix gapped_rows(std::mt19937_64& random, Eigen::Index n, Eigen::Index d, double gap, Vector& direction) {
  direction = normal_matrix(random, d, 1).col(0).normalized();
  const double s = 1 / (gap + static_cast<double>(d) - 1);
  RowMajorMatrix rows = std::sqrt(s) * normal_matrix(random, n, d);
  const Vector along = std::sqrt((gap - 1) * s) * normal_matrix(random, n, 1).col(0);
  rows += along * direction.transpose();
  return rows;
}

double sin_squared(const Matrix& V, const Matrix& Q) {
  const auto k = static_cast<double>(Q.cols());
  return (k - (V.transpose() * Q).squaredNorm()) / k;
}

}  // namespace eigenveil::test
