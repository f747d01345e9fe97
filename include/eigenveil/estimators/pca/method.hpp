// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "eigenveil/estimators/estimator.hpp"
#include "eigenveil/estimators/pca/spiked.hpp"
#include "eigenveil/privacy/budget.hpp"

namespace eigenveil {

std::string_view name(PcaMethod method);
Result<PcaMethod> pca_method_from_name(std::string_view text);

/// Directions that rounds begin with, and the release that they are of. What begins there tells of that release too, so
/// whatever it promises it promises beside that one.
struct GivenStart {
  Matrix directions = {};                             ///< as columns of length 1; none: rounds begin anywhere
  std::vector<std::string> features = {};             ///< what its entries belong to
  nlohmann::json releases = nlohmann::json::array();  ///< whose they are, and what that had used: `promises_of`
};

/// One of the PCA methods with all its options: what is forecast and a job runs.
struct PcaProgram {
  PcaMethod method;
  PcaOptions options;
  PowerOptions power = {};
  SpikedOptions spiked = {};
  GivenStart start = {};  ///< power, sparse-power, adaptive-power
};

struct PcaFit {
  PcaResult pca;
  std::optional<double> noise_variance;            ///< spiked
  std::optional<AssumedSensitivity> assumed = {};  ///< spiked, with a guarantee that rests on the model
};

/// Refuses options that do not go together, and what does not fit the number of columns.
Status check(const PcaProgram& program, std::size_t columns, const Budget& budget);

/// Every answer the program will ask for, with relative weights for `calibrate`.
PrivacyPlan draft(const PcaProgram& program, Adjacency adjacency);
/// The same, where shares of a mean follow what is public about the rows.
PrivacyPlan draft(PcaProgram program, const RowsShape& shape, const Budget& budget);
/// The first with its noise settled.
Result<PrivacyPlan> plan(const PcaProgram& program, const Budget& budget);

/// The oracle's plan is what `plan` gave.
Result<PcaFit> fit(const PcaProgram& program, Oracle& oracle);

/// Bytes of the program's own sums besides the rows.
std::size_t sums_bytes(const PcaProgram& program, std::size_t columns, int threads);

/// The program as an estimator.
std::unique_ptr<Estimator> estimator(PcaProgram program);

// What a covariance, which asks for the same, says of itself too.

/// The program's options, as a manifest tells them.
nlohmann::json options_json(const PcaProgram& program);
/// What the ledger remembers of a fit whose guarantee rests on a model.
std::string guarantee_words(const PcaProgram& program);
/// Why rows of that shape would teach nothing, if they would not.
std::optional<std::string> hopeless(const PcaProgram& program, const RowsShape& shape, const Budget& budget);
/// Of correlations: the deviations of the features, and what was left out.
void add_spread(Fit& fit, const PcaResult& pca);
/// Noise edge, rates of the error, and what a model-based guarantee assumes.
void add_facts(Fit& fit, const PcaResult& pca, PcaMethod method, std::optional<double> noise_variance,
               const std::optional<AssumedSensitivity>& assumed, const Budget& budget);

/// A d x d matrix beyond this is the wrong tool.
inline constexpr std::size_t kMostGramColumns = 4096;

/// The rival programs for a task, best guess of the options included: with a sparsity those that use it.
std::vector<PcaProgram> candidates(const PcaOptions& options, std::size_t columns);

/// "gram", "adaptive-power, 4 rounds", ...
std::string describe(const PcaProgram& program);

}  // namespace eigenveil
