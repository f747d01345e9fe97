// SPDX-License-Identifier: Apache-2.0
#pragma once

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
PrivacyPlan without_noise(PrivacyPlan plan);

inline Mu mu_of(const PrivacyEvent& event) { return std::get<GaussianEvent>(event.mechanism).mu; }

BoundedRows bound_matrix(const RowMajorMatrix& rows, double radius, int threads = 2);

inline LocalOracle oracle_over(const RowMajorMatrix& rows, double radius, const PrivacyPlan& plan, std::uint64_t seed,
                               int threads = 2) {
  return {bound_matrix(rows, radius, threads), reserve_without_ledger(plan), SecureRandom::insecure(seed)};
}

Matrix normal_matrix(std::mt19937_64& random, Eigen::Index rows, Eigen::Index columns);

/// Gaussian rows with covariance of trace 1 whose top eigenvalue is `gap` times the others, along `direction`.
RowMajorMatrix gapped_rows(std::mt19937_64& random, Eigen::Index n, Eigen::Index d, double gap, Vector& direction);

/// sin^2 of the angle between subspaces with orthonormal bases: (k - ||V^T Q||_F^2) / k
double sin_squared(const Matrix& V, const Matrix& Q);

}  // namespace eigenveil::test
