// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/score_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace eigenveil {
namespace {

using Index = Eigen::Index;

constexpr const char* kLabel = "score counts";
constexpr double kDeviations = 4;  // that the grid reaches to each side
constexpr double kFewestCells = 6;
constexpr double kMostCells = 40;

const Matrix* released_array(const Fit& fit, std::string_view name) {
  const auto found =
      std::find_if(fit.arrays.begin(), fit.arrays.end(), [&](const NamedArray& array) { return array.name == name; });
  return found == fit.arrays.end() ? nullptr : &found->values;
}

/// Two unit directions and how long each was: scores are t_i = length_i x_i^T u.
struct Axes {
  Matrix X;  // d x 2
  Vector length;
  Vector reach;  // of the grid, to each side
};

// The first two components; of correlations, of rows that are divided by their spread. No row reaches beyond R along a
// unit direction, and few beyond four deviations, by the released eigenvalue.
Axes axes_of(const Fit& fit, double R) {
  Axes axes{released_array(fit, "components")->topRows(2).transpose(), Vector::Ones(2), Vector::Constant(2, R)};
  if (const Matrix* spread = released_array(fit, "spread"); spread != nullptr)
    axes.X = spread->reshaped().cwiseInverse().asDiagonal() * axes.X;
  const Matrix& eigenvalues = *released_array(fit, "eigenvalues");
  for (Index i = 0; i < 2; ++i) {
    axes.length[i] = axes.X.col(i).norm();
    if (!(axes.length[i] > 0) || !std::isfinite(axes.length[i])) axes.length[i] = 1;
    axes.X.col(i) /= axes.length[i];
    const double deviation = std::sqrt(std::max(0.0, eigenvalues(i))) / axes.length[i];
    if (deviation > 0) axes.reach[i] = std::min(R, kDeviations * deviation);
  }
  // Unit directions may lean on each other: both shorter by a public factor they are short enough for a query.
  return axes;
}

/// Cells to each side: about four deviations of noise in a cell in the middle of a round cloud.
std::size_t cells_for(double rows, Mu mu, std::size_t classes) {
  const double cells = std::sqrt(0.5 * std::max(1.0, rows) * mu.value() / static_cast<double>(classes));
  return static_cast<std::size_t>(std::clamp(std::floor(cells), kFewestCells, kMostCells));
}

std::vector<double> cuts(double reach, std::size_t cells) {
  std::vector<double> inner;
  for (std::size_t j = 1; j < cells; ++j)
    inner.push_back(reach * (2 * static_cast<double>(j) / static_cast<double>(cells) - 1));
  return inner;
}

class WithScorePlot final : public Estimator {
 public:
  WithScorePlot(std::unique_ptr<Estimator> pca, ScorePlot plot) : pca_(std::move(pca)), plot_(std::move(plot)) {}

  std::string_view name() const override { return pca_->name(); }
  std::string method() const override { return pca_->method(); }
  std::string describe() const override { return pca_->describe(); }
  std::string purpose() const override { return pca_->purpose() + ", score plot"; }
  nlohmann::json options() const override {
    nlohmann::json options = pca_->options();
    options["score_plot"] = plot_.share;
    return options;
  }
  Status check(const RowsShape& shape, const Budget& budget) const override {
    EIGENVEIL_TRY(eigenveil::check(plot_, pca_->options().value("components", std::size_t{0})));
    return pca_->check(shape, budget);
  }
  Result<PrivacyPlan> plan(const RowsShape& shape, const Budget& budget) const override {
    PrivacyPlan plan = EIGENVEIL_TRY(pca_->plan(shape, budget));
    double others = 0;
    for (const PrivacyEvent& event : plan.events) {
      const auto count = static_cast<double>(event.count);
      if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism))
        others += count * std::pow(gaussian->mu.value(), 2);
      if (const auto* pure = std::get_if<PureEvent>(&event.mechanism))
        others += count * std::pow(pure->epsilon.value(), 2);
    }
    // share = w^2 / (w^2 + others)
    plan.events.push_back({kLabel, GaussianEvent{std::sqrt(others * plot_.share / (1 - plot_.share))}});
    return plan;
  }
  bool noise_settled() const override { return false; }
  std::optional<std::string> hopeless(const RowsShape& shape, const Budget& budget) const override {
    return pca_->hopeless(shape, budget);
  }
  std::size_t bytes(std::size_t columns, int threads) const override {
    const std::size_t cells =
        static_cast<std::size_t>(kMostCells * kMostCells) * std::max<std::size_t>(1, plot_.classes.size());
    return pca_->bytes(columns, threads) + cells * sizeof(double) * (threads + 6);
  }
  Result<Fit> fit(Oracle& oracle, const Budget& budget) const override {
    Fit fit = EIGENVEIL_TRY(pca_->fit(oracle, budget));
    EIGENVEIL_TRY(count(oracle, fit));
    return fit;
  }
  std::vector<std::string> notes(std::size_t rows) const override { return pca_->notes(rows); }

 private:
  Status count(Oracle& oracle, Fit& fit) const;

  std::unique_ptr<Estimator> pca_;
  ScorePlot plot_;
};

Status WithScorePlot::count(Oracle& oracle, Fit& fit) const {
  const RowsShape shape = oracle.shape();
  const std::size_t classes = std::max<std::size_t>(1, plot_.classes.size());
  const Axes axes = axes_of(fit, shape.lattice.radius);
  const auto mu = EIGENVEIL_TRY(oracle.planned_mu(kLabel));
  const std::size_t m = cells_for(fit.rows.value_or(1), mu, classes);
  // ||X||^2 is at most 2 for two unit columns: half of that is surely short enough after rounding.
  constexpr double kHalf = 0.5;
  const auto X = EIGENVEIL_TRY(Directions::quantise(kHalf * axes.X));
  const auto answer = EIGENVEIL_TRY(
      oracle.ask(kLabel, ScoreCounts{X, cuts(kHalf * axes.reach[0], m), cuts(kHalf * axes.reach[1], m), classes}));
  const Index side = m;
  const Matrix counts = Eigen::Map<const RowMajorMatrix>(answer.value().data(), classes * side, side);
  Matrix edges(2, side + 1);
  for (Index i = 0; i < 2; ++i)
    edges.row(i) = Vector::LinSpaced(side + 1, -1, 1).transpose() * (axes.reach[i] * axes.length[i]);
  // Of N counts of noise alone the largest is about sqrt(2 ln N) deviations.
  const double line = answer.deviation() * (std::sqrt(2 * std::log(static_cast<double>(counts.size()))) + 1);
  const auto above = (counts.array() > line).count();
  fit.arrays.push_back({"score_counts", counts});
  fit.arrays.push_back({"score_edges", edges});
  const std::string sentence =
      above == 0 ? "No count stands out of its noise: the picture of the rows shows noise alone."
                 : fmt::format("The counts of {} of {} cells stand out of their noise.", above, counts.size());
  fit.facts["score_plot"] = {{"share", plot_.share}, {"cells", m},     {"deviation", answer.deviation()},
                             {"line", line},         {"above", above}, {"standing", above == 0 ? "noise" : "holds"},
                             {"sentence", sentence}};
  if (!plot_.classes.empty()) {
    fit.facts["score_plot"]["class_column"] = plot_.class_column;
    fit.facts["classes"] = plot_.classes;
  }
  if (above == 0) fit.warnings.push_back(sentence + " Gather more rows, give it a larger share, or leave it out.");
  return {};
}

}  // namespace

Status check(const ScorePlot& plot, std::size_t components) {
  if (!(plot.share > 0 && plot.share <= 0.9))
    return usage_error(
        fmt::format("`score_plot` must be a share from above 0 to 0.9 of the budget, but is {}", plot.share));
  if (components < 2)
    return usage_error("`score_plot` draws rows along two components: ask for at least 2 `components`");
  return {};
}

std::unique_ptr<Estimator> with_score_plot(std::unique_ptr<Estimator> pca, ScorePlot plot) {
  return std::make_unique<WithScorePlot>(std::move(pca), std::move(plot));
}

}  // namespace eigenveil
