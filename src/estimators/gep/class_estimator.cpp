// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "eigenveil/estimators/gep/classes.hpp"

namespace eigenveil {
namespace {

std::vector<std::string> merged_names(const std::vector<std::string>& fine, const std::vector<double>& cuts,
                                      const std::vector<std::size_t>& first) {
  if (first.empty()) return fine;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const bool last = i + 1 == first.size();
    if (i == 0 && last)
      names.emplace_back("all");
    else if (i == 0)
      names.push_back(fmt::format("below {:g}", cuts[first[1] - 1]));
    else if (last)
      names.push_back(fmt::format("{:g} and more", cuts[first[i] - 1]));
    else
      names.push_back(fmt::format("{:g} to {:g}", cuts[first[i] - 1], cuts[first[i + 1] - 1]));
  }
  return names;
}

class ClassEstimator final : public Estimator {
 public:
  explicit ClassEstimator(ClassOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return fisher() ? "fda" : "sir"; }
  std::string method() const override { return std::string(eigenveil::name(options_.gep.noise)); }
  std::string purpose() const override {
    return fmt::format("{}, noise {}, components {}", name(), method(), options_.gep.components);
  }
  nlohmann::json options() const override {
    nlohmann::json json = options_json(options_.gep);
    if (fisher()) json["unlisted"] = options_.drop_unlisted ? "drop" : "error";
    if (options_.merged) json["slices"] = fmt::format("private:{}", *options_.merged);
    return json;
  }
  Status check(const RowsShape& shape, const Budget& /*budget*/) const override {
    return eigenveil::check(shape, options_);
  }
  Result<PrivacyPlan> plan(const RowsShape& shape, const Budget& budget) const override {
    ClassOptions options = with_sums_share(options_, shape.columns);
    options.gep.preparation = with_shares(options.gep.preparation, shape, budget);
    return plan_classes(budget.adjacency, options);
  }
  std::optional<std::string> hopeless(const RowsShape& shape, const Budget& budget) const override {
    return eigenveil::hopeless(shape, budget, options_);
  }
  std::size_t bytes(std::size_t columns, int threads) const override {
    return sums_bytes(options_.gep, columns, std::max(options_.classes, options_.gep.components), threads);
  }
  Result<Fit> fit(Oracle& oracle, const Budget& budget) const override;

 private:
  bool fisher() const { return options_.problem == ClassProblem::kFisher; }
  ClassOptions options_;
};

Result<Fit> ClassEstimator::fit(Oracle& oracle, const Budget& /*budget*/) const {
  const auto found = EIGENVEIL_TRY(fit_classes(oracle, options_));
  const GepResult& solution = found.solution;
  Fit fit{{{fisher() ? "scalings" : "directions", solution.vectors},
           {"eigenvalues", solution.values, true},
           {fisher() ? "class_means" : "slice_means", found.class_means},
           {"priors", found.priors, true},
           {"mean", found.mean, true}},
          found.rows};
  fit.judge = solution.judge;
  add_solution(fit, solution.ridge, solution.noise_edge, solution.values, solution.notes);
  const auto names = merged_names(options_.names, options_.cuts, found.first);
  fit.facts[fisher() ? "classes" : "slices"] = names;
  if (!fisher()) fit.facts["response"] = options_.response;
  if (found.empty.size() == names.size())
    fit.warnings.push_back(
        fmt::format("Noise hides every {}: nothing could be told apart, and the directions are noise.",
                    fisher() ? "class" : "slice"));
  for (const std::size_t empty : found.empty)
    fit.warnings.push_back(fmt::format(
        "{} '{}': its released count is no larger than noise, so it has no mean of its own and takes no part.",
        fisher() ? "Class" : "Slice", names[empty]));
  return fit;
}

}  // namespace

std::unique_ptr<Estimator> estimator(ClassOptions options) {
  // Classes that nobody named, as those of made-up rows, have numbers.
  for (std::size_t c = options.names.size(); c < options.classes; ++c) options.names.push_back(std::to_string(c + 1));
  return std::make_unique<ClassEstimator>(std::move(options));
}

}  // namespace eigenveil
