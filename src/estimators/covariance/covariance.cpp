// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/covariance/covariance.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/estimators/pca/correlation.hpp"
#include "eigenveil/linalg/eigen.hpp"

namespace eigenveil {

Matrix CovarianceFit::dense() const {
  const Matrix& U = pca.components;
  const Vector excess = pca.eigenvalues.array() - noise_variance;
  Matrix sigma = U * excess.asDiagonal() * U.transpose();
  sigma.diagonal().array() += noise_variance;
  return sigma;
}

Matrix CovarianceFit::covariance() const {
  const Vector& s = pca.spread;
  return s.size() == 0 ? dense() : Matrix(s.asDiagonal() * dense() * s.asDiagonal());
}

PcaProgram pca_program(const CovarianceProgram& program) {
  return {program.method, {1, program.preparation, {}, program.scale}, program.spiked.power, program.spiked};
}

Status check(const CovarianceProgram& program, std::size_t columns, const Budget& budget) {
  if (program.method != PcaMethod::kGram && program.method != PcaMethod::kSpiked)
    return usage_error("`method` of a covariance must be auto, gram or spiked");
  return check(pca_program(program), columns, budget);
}

Result<PrivacyPlan> plan(const CovarianceProgram& program, const Budget& budget) {
  return plan(pca_program(program), budget);
}

Result<CovarianceFit> fit(const CovarianceProgram& program, Oracle& oracle) {
  if (program.method == PcaMethod::kSpiked) {
    auto spiked = EIGENVEIL_TRY(fit(pca_program(program), oracle));
    return CovarianceFit{std::move(spiked.pca), *spiked.noise_variance, spiked.assumed};
  }
  auto released = EIGENVEIL_TRY(release_covariance(oracle, program.preparation));
  std::optional<ReleasedCorrelation> correlation;
  if (program.scale == Scale::kCorrelation) correlation = correlation_of(released);
  const std::size_t d = oracle.shape().columns;
  auto pairs = EIGENVEIL_TRY(top_eigenpairs(correlation ? correlation->correlation : released.covariance, d));
  fix_signs(pairs.vectors);
  // The nearest positive semidefinite matrix: negative eigenvalues become zero.
  const double tau = released.prepared.mean_deviation;
  PcaResult pca{pairs.vectors,
                pairs.values.cwiseMax(0.0),
                released.prepared.mean,
                released.prepared.rows,
                correlation ? noise_line(*correlation, pairs.values) : noise_line(moments_of(released), pairs.values),
                tau,
                correlation ? judge_of(*correlation, d) : judge_of(released, d)};
  if (correlation) {
    pca.spread = correlation->spread;
    pca.left_out = correlation->left_out;
  }
  released.covariance.diagonal().array() += tau * tau;  // as it was released
  return CovarianceFit{std::move(pca), 0, {}, NoisyCovariance{std::move(released.covariance), released.noise, tau}};
}

namespace {

class CovarianceEstimator final : public Estimator {
 public:
  CovarianceEstimator(CovarianceProgram program, bool dense) : program_(std::move(program)), dense_(dense) {}

  std::string_view name() const override { return "covariance"; }
  std::string method() const override { return std::string(eigenveil::name(program_.method)); }
  std::string purpose() const override {
    return fmt::format("covariance, method {}{}{}", method(),
                       program_.scale == Scale::kCorrelation ? ", correlations" : "",
                       guarantee_words(pca_program(program_)));
  }
  nlohmann::json options() const override {
    nlohmann::json options = options_json(pca_program(program_));
    options.erase("components");
    return options;
  }
  Status check(const RowsShape& shape, const Budget& budget) const override {
    return eigenveil::check(program_, shape.columns, budget);
  }
  Result<PrivacyPlan> plan(const RowsShape& shape, const Budget& budget) const override {
    return draft(pca_program(program_), shape, budget);
  }
  std::optional<std::string> hopeless(const RowsShape& shape, const Budget& budget) const override {
    return eigenveil::hopeless(pca_program(program_), shape, budget);
  }
  std::size_t bytes(std::size_t columns, int threads) const override {
    return sums_bytes(pca_program(program_), columns, threads);
  }
  Result<Fit> fit(Oracle& oracle, const Budget& budget) const override {
    const auto fitted = EIGENVEIL_TRY(eigenveil::fit(program_, oracle));
    Fit fit{{{"components", fitted.pca.components.transpose()},
             {"eigenvalues", fitted.pca.eigenvalues, true},
             {"noise_variance", Vector::Constant(1, fitted.noise_variance), true},
             {"mean", fitted.pca.mean, true}},
            fitted.pca.rows};
    add_spread(fit, fitted.pca);
    if (program_.method == PcaMethod::kGram || dense_) fit.arrays.push_back({"covariance", fitted.covariance()});
    if (program_.scale == Scale::kCorrelation) fit.arrays.push_back({"correlation", fitted.dense()});
    if (fitted.noisy) {
      fit.arrays.push_back({"second_moments", fitted.noisy->second_moments});
      fit.facts["second_moments"] = {{"deviation", fitted.noisy->deviation},
                                     {"mean_deviation", fitted.noisy->mean_deviation},
                                     {"rows", fitted.pca.rows}};
    }
    add_facts(fit, fitted.pca, program_.method, fitted.noise_variance, fitted.assumed, budget);
    fit.judge = fitted.pca.judge;
    return fit;
  }

 private:
  CovarianceProgram program_;
  bool dense_;
};

}  // namespace

std::unique_ptr<Estimator> estimator(CovarianceProgram program, bool dense) {
  return std::make_unique<CovarianceEstimator>(std::move(program), dense);
}

}  // namespace eigenveil
