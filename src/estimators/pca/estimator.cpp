// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "eigenveil/estimators/pca/correlation.hpp"
#include "eigenveil/estimators/pca/method.hpp"
#include "eigenveil/estimators/start.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"

namespace eigenveil {
namespace {

const char* name(RowFilter filter) {
  return filter == RowFilter::kOff ? "off" : filter == RowFilter::kShrink ? "shrink" : "drop";
}

void add_power(nlohmann::json& options, const PcaProgram& program) {
  options["rounds"] = program.power.rounds;
  if (const auto given = program.start.directions.cols(); given > 0) options["start"] = given;
  const RowFilter filter = program.method == PcaMethod::kPower ? RowFilter::kOff : program.power.filter;
  options["filter"] = name(filter);
  if (filter != RowFilter::kOff) options["grid_ratio"] = program.power.grid_ratio;
}

void add_spiked(nlohmann::json& options, const SpikedOptions& spiked) {
  options["guarantee"] = spiked.guarantee == Guarantee::kModel ? "model" : "strict";
  if (spiked.rank) options["rank"] = *spiked.rank;
  if (spiked.noise_variance) options["noise_variance"] = *spiked.noise_variance;
  if (spiked.guarantee == Guarantee::kModel) {
    if (spiked.spike) options["spike"] = *spiked.spike;
  } else {
    options["subspace"] = spiked.subspace == Subspace::kGram ? "gram" : "adaptive-power";
  }
}

void add_choice(Fit& fit, const AfterPilot& after, std::size_t components) {
  const bool products = after.chosen == PcaMethod::kAdaptivePower;
  fit.facts["pilot"] = {
      {"chosen", name(after.chosen)},
      {"sentence",
       fmt::format(
           "A first noisy covariance matrix, the pilot, {} (component {} with about {:.2g}% of the squared length "
           "of a long row): the rest of the budget went to {}.",
           products ? "hardly shows what is wanted" : "shows what is wanted well enough", components, 100 * after.share,
           products ? "products with few directions, which have less noise there (adaptive-power)"
           : after.chosen == PcaMethod::kGram
               ? "the same matrix again (gram)"
               : "the same matrix of rows that are all made of one length, which has less noise (sphere)")}};
}

class PcaEstimator final : public Estimator {
 public:
  explicit PcaEstimator(PcaProgram program) : program_(std::move(program)) {}

  std::string_view name() const override { return "pca"; }
  std::string method() const override { return std::string(eigenveil::name(program_.method)); }
  std::string describe() const override { return eigenveil::describe(program_); }
  std::string purpose() const override {
    return fmt::format("pca, method {}, components {}{}{}", method(), program_.options.components,
                       program_.options.scale == Scale::kCorrelation ? ", correlations" : "",
                       guarantee_words(program_));
  }
  nlohmann::json options() const override { return options_json(program_); }
  Status check(const RowsShape& shape, const Budget& budget) const override {
    return eigenveil::check(program_, shape.columns, budget);
  }
  Result<PrivacyPlan> plan(const RowsShape& shape, const Budget& budget) const override {
    return draft(program_, shape, budget);
  }
  std::optional<std::string> hopeless(const RowsShape& shape, const Budget& budget) const override {
    return eigenveil::hopeless(program_, shape, budget);
  }
  // Rows of one length where noise would have many of them shortened anyway.
  bool suits(const RowsShape& shape, const Budget& budget) const override {
    if (program_.method != PcaMethod::kSphere || !shape.rows) return true;
    const double n_mu = static_cast<double>(*shape.rows) * gaussian_mu(budget.epsilon, budget.delta);
    return share_above(BoundBy::kDirections, program_.options.components, shape.columns, n_mu) >= 0.5;
  }
  std::size_t bytes(std::size_t columns, int threads) const override { return sums_bytes(program_, columns, threads); }
  Result<Fit> fit(Oracle& oracle, const Budget& budget) const override;

 private:
  PcaProgram program_;
};

Result<Fit> PcaEstimator::fit(Oracle& oracle, const Budget& budget) const {
  const auto fitted = EIGENVEIL_TRY(eigenveil::fit(program_, oracle));
  Fit fit{{{"components", fitted.pca.components.transpose()},
           {"eigenvalues", fitted.pca.eigenvalues, true},
           {"mean", fitted.pca.mean, true}},
          fitted.pca.rows};
  add_spread(fit, fitted.pca);
  if (fitted.pca.length) fit.options["row_bound"] = *fitted.pca.length;
  if (fitted.noise_variance)
    fit.arrays.push_back({"noise_variance", Vector::Constant(1, *fitted.noise_variance), true});
  add_facts(fit, fitted.pca, program_.method, fitted.noise_variance, fitted.assumed, budget);
  add_start(fit, program_.start.releases, "began with the directions");
  if (fitted.pca.after_pilot) add_choice(fit, *fitted.pca.after_pilot, program_.options.components);
  fit.judge = fitted.pca.judge;
  warn_if_drowned(fit, fitted.pca.eigenvalues, fitted.pca.noise_edge);
  return fit;
}

}  // namespace

nlohmann::json options_json(const PcaProgram& program) {
  nlohmann::json options = {{"components", program.options.components}};
  if (program.options.sparsity) options["sparsity"] = *program.options.sparsity;
  if (program.options.scale == Scale::kCorrelation) options["scale"] = "correlation";
  if (program.method == PcaMethod::kSpiked)
    add_spiked(options, program.spiked);
  else if (program.method != PcaMethod::kGram && program.method != PcaMethod::kSphere)
    add_power(options, program);
  return options;
}

std::optional<std::string> hopeless(const PcaProgram& program, const RowsShape& shape, const Budget& budget) {
  const bool spiked = program.method == PcaMethod::kSpiked;
  // The noise of a model-based guarantee is that of the model.
  if (spiked && program.spiked.guarantee == Guarantee::kModel) return std::nullopt;
  const bool products = program.method == PcaMethod::kAdaptivePower || program.method == PcaMethod::kSparsePower ||
                        (spiked && program.spiked.subspace != Subspace::kGram);
  return drowned_before(
      shape, budget, program.options.preparation,
      {.filtered = products && program.power.filter != RowFilter::kOff, .sparsity = program.options.sparsity});
}

std::string guarantee_words(const PcaProgram& program) {
  return program.method == PcaMethod::kSpiked && program.spiked.guarantee == Guarantee::kModel ? ", guarantee model"
                                                                                               : "";
}

void add_spread(Fit& fit, const PcaResult& pca) {
  if (pca.spread.size() == 0) return;
  fit.arrays.push_back({"spread", pca.spread, true});
  add_left_out(fit, pca.left_out, pca.spread.size());
}

void add_facts(Fit& fit, const PcaResult& pca, PcaMethod method, std::optional<double> noise_variance,
               const std::optional<AssumedSensitivity>& assumed, const Budget& budget) {
  fit.facts["noise_edge"] = pca.noise_edge;
  if (pca.mean_deviation > 0) fit.facts["mean_deviation"] = pca.mean_deviation;
  if (method == PcaMethod::kSpiked && noise_variance) {
    // The paper's rates for the error of a spiked covariance, from what was released.
    const auto r = static_cast<double>(pca.components.cols());
    const double spike = std::max(0.0, pca.eigenvalues[0] - *noise_variance);
    const double rate = spiked_rate(pca.rows, static_cast<double>(pca.components.rows()), r, spike, *noise_variance,
                                    budget.epsilon, budget.delta);
    fit.facts["error_rates"] = {{"spectral", rate}, {"frobenius", std::sqrt(r) * rate}, {"nuclear", r * rate}};
  }
  if (!assumed) return;
  fit.facts["assumed_sensitivity"] = {{"projector", assumed->bound.projector},
                                      {"sum", assumed->bound.sum},
                                      {"failure_probability", assumed->failure},
                                      {"confidence", assumed->confidence},
                                      {"data_sets", assumed->draws}};
  fit.warnings.push_back(
      fmt::format("Model-based guarantee: one row is assumed to move the projector by at most {:.4g} and the sum of u "
                  "u^T by at most {:.4g}. These were the farthest in {} data sets drawn from the spiked model.",
                  assumed->bound.projector, assumed->bound.sum, assumed->draws));
}

std::unique_ptr<Estimator> estimator(PcaProgram program) { return std::make_unique<PcaEstimator>(std::move(program)); }

}  // namespace eigenveil
