// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/QR>
#include <cmath>
#include <random>

#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/query/local_oracle.hpp"

namespace eigenveil::test {

/// There is no answer without noise. At this mu it is far below one lattice step: an exact sum is the nearest integer.
inline constexpr double kHardlyAnyNoise = 0x1p55;
/// The same for what moves by fewer lattice steps: counts of rows, sums of rows, and what a model is assumed to move.
inline constexpr double kLittleNoiseOfCounts = 0x1p19;
inline constexpr double kLittleNoiseOfSums = 0x1p38;
inline constexpr double kLittleNoiseOfModels = 0x1p35;
/// Of a search: a count is wrong with a probability of about e^-50.
inline constexpr double kHardlyAnySearchNoise = 100;

/// The plan with nearly all its noise taken away.
inline PrivacyPlan without_noise(PrivacyPlan plan) {
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

inline Mu mu_of(const PrivacyEvent& event) { return std::get<GaussianEvent>(event.mechanism).mu; }

inline BoundedRows bound_matrix(const RowMajorMatrix& rows, double radius, int threads = 2) {
  MemorySource source(rows);
  BoundingOptions options{.bound = *RowBound::of(radius)};
  options.threads = threads;
  return *BoundedRows::read(source, ColumnMap::identity(source.columns()), options);
}

inline LocalOracle oracle_over(const RowMajorMatrix& rows, double radius, const PrivacyPlan& plan, std::uint64_t seed,
                               int threads = 2) {
  return {bound_matrix(rows, radius, threads), reserve_without_ledger(plan), SecureRandom::insecure(seed)};
}

inline Matrix normal_matrix(std::mt19937_64& random, Eigen::Index rows, Eigen::Index columns) {
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, columns, [&] { return normal(random); });
}

/// Gaussian rows with covariance of trace 1 whose top eigenvalue is `gap` times the others, along `direction`.
inline RowMajorMatrix gapped_rows(std::mt19937_64& random, Eigen::Index n, Eigen::Index d, double gap,
                                  Vector& direction) {
  direction = normal_matrix(random, d, 1).col(0).normalized();
  const double s = 1 / (gap + static_cast<double>(d) - 1);
  RowMajorMatrix rows = std::sqrt(s) * normal_matrix(random, n, d);
  const Vector along = std::sqrt((gap - 1) * s) * normal_matrix(random, n, 1).col(0);
  rows += along * direction.transpose();
  return rows;
}

/// sin^2 of the angle between subspaces with orthonormal bases: (k - ||V^T Q||_F^2) / k
inline double sin_squared(const Matrix& V, const Matrix& Q) {
  const auto k = static_cast<double>(Q.cols());
  return (k - (V.transpose() * Q).squaredNorm()) / k;
}

}  // namespace eigenveil::test
