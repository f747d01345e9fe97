// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/estimators/pca/method.hpp"

namespace eigenveil {

/// `method` is gram (the whole matrix, made positive semidefinite) or spiked (a few components and one variance).
struct CovarianceProgram {
  PcaMethod method = PcaMethod::kGram;
  PreparationOptions preparation = {};
  SpikedOptions spiked = {};
  Scale scale = Scale::kRange;
};

/// What was released before anything was derived from it: per row, about the released mean if there is one.
struct NoisyCovariance {
  Matrix second_moments;
  double deviation;       ///< of an entry off the diagonal; sqrt 2 times as much on it
  double mean_deviation;  ///< of an entry of the mean; 0: none was released
};

/// With correlations C takes the place of Sigma, and Sigma = diag(spread) C diag(spread).
/// Sigma = U (diag(eigenvalues) - sigma^2 I) U^T + sigma^2 I. For gram U is square and sigma^2 is 0.
struct CovarianceFit {
  PcaResult pca;
  double noise_variance;
  std::optional<AssumedSensitivity> assumed = {};  ///< spiked, with a guarantee that rests on the model
  std::optional<NoisyCovariance> noisy = {};       ///< gram

  Matrix dense() const;       ///< Sigma, or C
  Matrix covariance() const;  ///< Sigma
};

Status check(const CovarianceProgram& program, std::size_t columns, const Budget& budget);
Result<PrivacyPlan> plan(const CovarianceProgram& program, const Budget& budget);
Result<CovarianceFit> fit(const CovarianceProgram& program, Oracle& oracle);

/// The program as an estimator. `dense`: spiked writes the d x d matrix too.
std::unique_ptr<Estimator> estimator(CovarianceProgram program, bool dense);

/// The same answers as a PCA program asks for.
PcaProgram pca_program(const CovarianceProgram& program);

}  // namespace eigenveil
