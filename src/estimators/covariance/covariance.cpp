#include "eigenveil/estimators/covariance/covariance.hpp"

#include <cmath>

#include "eigenveil/estimators/pca/gram.hpp"
#include "eigenveil/linalg/eigen.hpp"

namespace eigenveil {

Matrix CovarianceFit::dense() const {
  const Matrix& U = pca.components;
  const Vector excess = pca.eigenvalues.array() - noise_variance;
  Matrix sigma = U * excess.asDiagonal() * U.transpose();
  sigma.diagonal().array() += noise_variance;
  return sigma;
}

PcaProgram pca_program(const CovarianceProgram& program) {
  return {program.method, {1, program.preparation, {}}, program.spiked.power, program.spiked};
}

Status check(const CovarianceProgram& program, std::size_t columns, const Budget& budget) {
  if (program.method != PcaMethod::kGram && program.method != PcaMethod::kSpiked)
    return usage_error("--method of a covariance must be auto, gram or spiked");
  return check(pca_program(program), columns, budget);
}

Result<PrivacyPlan> plan(const CovarianceProgram& program, const Budget& budget) {
  return plan(pca_program(program), budget);
}

Result<CovarianceFit> fit(const CovarianceProgram& program, const Budget& budget, Oracle& oracle) {
  if (program.method == PcaMethod::kSpiked) {
    auto spiked = EIGENVEIL_TRY(fit(pca_program(program), budget, oracle));
    return CovarianceFit{std::move(spiked.pca), *spiked.noise_variance, spiked.assumed};
  }
  auto released = EIGENVEIL_TRY(release_covariance(oracle, program.preparation));
  const std::size_t d = oracle.shape().columns;
  auto pairs = EIGENVEIL_TRY(top_eigenpairs(released.covariance, d));
  fix_signs(pairs.vectors);
  // The nearest positive semidefinite matrix: negative eigenvalues become zero.
  PcaResult pca{pairs.vectors, pairs.values.cwiseMax(0.0), released.prepared.mean, released.prepared.rows,
                2 * released.noise * std::sqrt(static_cast<double>(d))};
  return CovarianceFit{std::move(pca), 0};
}

}  // namespace eigenveil
