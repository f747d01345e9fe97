// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/papers/as_printed.hpp"

#include <fmt/format.h>

#include "eigenveil/estimators/gep/matrices.hpp"
#include "eigenveil/papers/noise.hpp"

namespace eigenveil::papers {
namespace {

/// Says of itself what `told` says.
class Printed : public Estimator {
 public:
  explicit Printed(std::unique_ptr<Estimator> told) : told_(std::move(told)) {}

  std::string_view name() const override { return told_->name(); }
  std::string method() const override { return told_->method(); }
  std::string describe() const override { return told_->describe(); }
  std::string purpose() const override { return told_->purpose(); }
  nlohmann::json options() const override { return told_->options(); }
  Status check(const RowsShape& shape, const Budget& budget) const override { return told_->check(shape, budget); }
  bool noise_settled() const final { return true; }
  std::size_t bytes(std::size_t columns, int threads) const override { return told_->bytes(columns, threads); }
  Result<Fit> fit(Oracle& oracle, const Budget& budget) const override { return told_->fit(oracle, budget); }
  std::vector<std::string> notes(std::size_t rows) const override { return told_->notes(rows); }

 protected:
  const Estimator& told() const { return *told_; }

 private:
  std::unique_ptr<Estimator> told_;
};

/// A PCA, or the covariance that asks for the same. The paper's options follow from the budget.
class PrintedPca final : public Printed {
 public:
  using Make = std::function<std::unique_ptr<Estimator>(const PcaProgram&)>;
  PrintedPca(PcaProgram program, Make make)
      : Printed(make(program)), program_(std::move(program)), make_(std::move(make)) {}

  nlohmann::json options() const override {
    nlohmann::json said = told().options();
    said.erase("filter");  // the paper's own
    said.erase("grid_ratio");
    return said;
  }
  Status check(const RowsShape& shape, const Budget& budget) const override {
    if (program_.method == PcaMethod::kSphere || program_.method == PcaMethod::kPilot)
      return usage_error(fmt::format("`calibration` paper: no paper prescribes the noise of {}", told().method()));
    if (program_.options.preparation.mean != MeanBy::kNone || program_.options.preparation.bound_by != BoundBy::kStated)
      return usage_error(
          "`calibration` paper reproduces a paper as it is, with rows that are centred and bounded already: use "
          "`center` range or none and a public `row_bound`");
    const SpikedOptions& spiked = program_.spiked;
    if (program_.method == PcaMethod::kSpiked &&
        (spiked.guarantee != Guarantee::kModel || !spiked.noise_variance || !spiked.spike))
      return usage_error(
          "`calibration` paper for spiked is the paper's algorithm: it needs `guarantee` model, `noise_variance` and "
          "`spike`");
    return told().check(shape, budget);
  }
  Result<PrivacyPlan> plan(const RowsShape& /*shape*/, const Budget& budget) const override {
    return papers::plan(as_printed(program_, budget.epsilon, budget.delta), budget);
  }
  Result<Fit> fit(Oracle& oracle, const Budget& budget) const override {
    return make_(as_printed(program_, budget.epsilon, budget.delta))->fit(oracle, budget);
  }

 private:
  PcaProgram program_;
  Make make_;
};

class PrintedGep final : public Printed {
 public:
  using Noise = PrivacyPlan (*)(PrivacyPlan, Epsilon, Delta);
  PrintedGep(const GepOptions& options, std::unique_ptr<Estimator> told, std::unique_ptr<Estimator> done, Noise noise)
      : Printed(std::move(told)), options_(options), done_(std::move(done)), noise_(noise) {}

  Status check(const RowsShape& shape, const Budget& budget) const override {
    if (options_.noise != GepNoise::kEachStep)
      return usage_error("`calibration` paper is the paper's flow: use it with `noise` each-step");
    if (options_.components != 1)
      return usage_error("`calibration` paper finds one vector, as the paper does: use `components` 1");
    if (options_.preparation.mean != MeanBy::kNone || options_.preparation.bound_by != BoundBy::kStated)
      return usage_error("`calibration` paper has no budget for a mean or a row bound: give public ones");
    if (budget.adjacency != Adjacency::kReplaceOne)
      return usage_error("`calibration` paper divides by the number of rows, so it must be public: use replace-one");
    return told().check(shape, budget);
  }
  Result<PrivacyPlan> plan(const RowsShape& shape, const Budget& budget) const override {
    return noise_(EIGENVEIL_TRY(done_->plan(shape, budget)), budget.epsilon, budget.delta);
  }
  Result<Fit> fit(Oracle& oracle, const Budget& budget) const override { return done_->fit(oracle, budget); }

 private:
  GepOptions options_;
  std::unique_ptr<Estimator> done_;
  Noise noise_;
};

class PrintedBatch final : public Printed {
 public:
  PrintedBatch(bool printed, std::unique_ptr<Estimator> told) : Printed(std::move(told)), printed_(printed) {}

  Status check(const RowsShape& shape, const Budget& budget) const override {
    if (!printed_)
      return usage_error("`calibration` paper is the paper's algorithm: it needs `method` batch, without `start`");
    return told().check(shape, budget);
  }
  Result<PrivacyPlan> plan(const RowsShape& shape, const Budget& budget) const override {
    return batch(EIGENVEIL_TRY(told().plan(shape, budget)), budget.epsilon, budget.delta, budget.accounting);
  }

 private:
  bool printed_;
};

}  // namespace

PcaProgram as_printed(PcaProgram program, Epsilon epsilon, Delta delta) {
  program.power.filter = program.method == PcaMethod::kAdaptivePower ? RowFilter::kDrop : RowFilter::kOff;
  program.power.grid_ratio = 2;
  program.power.narrow = false;
  program.power.rows_above = rows_above(program.power.rounds, epsilon, delta);
  return program;
}

GepOptions as_printed(GepOptions options) {
  options.literal = true;
  return options;
}

CcaOptions as_printed(CcaOptions options) {
  options.gep = as_printed(options.gep);
  if (!options.gep.step) options.gep.step = 0.1;
  return options;
}

PrivacyPlan plan(const PcaProgram& program, const Budget& budget) {
  PrivacyPlan shape = draft(program, budget.adjacency);
  switch (program.method) {
    case PcaMethod::kGram:
    case PcaMethod::kSphere:
    case PcaMethod::kPilot:
      return gram(std::move(shape), budget.epsilon, budget.delta);
    case PcaMethod::kSpiked:
      return spiked(std::move(shape), budget.epsilon, budget.delta);
    case PcaMethod::kAdaptivePower:
      return adaptive_power(std::move(shape), budget.epsilon, budget.delta);
    case PcaMethod::kPower:
    case PcaMethod::kSparsePower:
      break;
  }
  return sparse_power(std::move(shape), program.options.components, budget.epsilon, budget.delta);
}

std::unique_ptr<Estimator> estimator(PcaProgram program) {
  return std::make_unique<PrintedPca>(std::move(program),
                                      [](const PcaProgram& printed) { return eigenveil::estimator(printed); });
}

// Neither gram nor spiked has an option that its paper would change.
std::unique_ptr<Estimator> estimator(CovarianceProgram program, bool dense) {
  return std::make_unique<PrintedPca>(
      pca_program(program), [program, dense](const PcaProgram&) { return eigenveil::estimator(program, dense); });
}

std::unique_ptr<Estimator> estimator(CcaOptions options) {
  return std::make_unique<PrintedGep>(options.gep, eigenveil::estimator(options),
                                      eigenveil::estimator(as_printed(options)), cca);
}

std::unique_ptr<Estimator> estimator(ClassOptions options) {
  ClassOptions printed = options;
  printed.gep = as_printed(options.gep);
  return std::make_unique<PrintedGep>(options.gep, eigenveil::estimator(options), eigenveil::estimator(printed),
                                      options.problem == ClassProblem::kFisher ? fda : sir);
}

std::unique_ptr<Estimator> estimator(GepOptions options, double sensitivity_a, double sensitivity_b) {
  return std::make_unique<PrintedGep>(options, eigenveil::estimator(options, sensitivity_a, sensitivity_b),
                                      eigenveil::estimator(as_printed(options), sensitivity_a, sensitivity_b),
                                      matrices);
}

std::unique_ptr<Estimator> estimator(const ClipOptions& options, std::unique_ptr<Estimator> inner) {
  return std::make_unique<PrintedBatch>(options.method == ClipMethod::kBatch && !options.start_by, std::move(inner));
}

void stamp(nlohmann::json& manifest, Epsilon asked, double certified) {
  manifest["calibration"] = "paper";
  manifest["warnings"].push_back(fmt::format(
      "{}: the noise is what the paper prescribes for epsilon {:g}; our accountant certifies {:.4g}.",
      certified > asked.value() ? "Paper calibration, not certified" : "Paper calibration", asked.value(), certified));
}

}  // namespace eigenveil::papers
