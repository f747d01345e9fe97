// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/regress/regress.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "eigenveil/estimators/preparation.hpp"
#include "statistics.hpp"

namespace eigenveil {
namespace {

// Own units: y = target_offset + (theta_0 c + sum theta_k scale_k (column_k - offset_k)) / target_scale.

/// a with intercept = target_offset + a' theta / target_scale: the fitted value where all columns are 0.
Vector intercept_functional(const NoisyMoments& moments, const RegressUnits& units) {
  Vector a(units.scale.size() + 1);
  a << moments.constant, -units.scale.cwiseProduct(units.offset);
  return a;
}

std::optional<Interval> scaled(const std::optional<Interval>& interval, double factor, double shift = 0) {
  if (!interval) return interval;
  return Interval{shift + factor * interval->lower, shift + factor * interval->upper};
}

/// Without a constant: intercept = m_y - v' theta, v = mean + scale offset, with the error of the mean, of theta and of
/// sampling, which are independent.
std::optional<Interval> centred_intercept(const noisy_gram::Equations& equations, const ReleasedMean& centre,
                                          const Vector& v) {
  const Vector& g = equations.solution();
  const Vector Hv = equations.inverse().transpose() * v;
  const double n = equations.moments().rows;
  const double residual = std::max(0.0, g.dot(equations.moments().M * g)) / n;
  const double variance = centre.deviation * centre.deviation * g.squaredNorm() +
                          Hv.dot((equations.noise(g) + equations.sampling(g)) * Hv) + residual / n;
  const double value = centre.mean[v.size()] + v.dot(g.head(v.size()));
  const double reach = noisy_gram::kNormal95 * std::sqrt(variance);
  return Interval{value - reach, value + reach};
}

/// The typical ratio of an interval's length to the length that sampling alone would give.
double widening(const noisy_gram::Equations& equations, const Matrix& functionals,
                const std::vector<std::optional<Interval>>& found) {
  const Matrix sampling = equations.sampling(equations.solution());
  std::vector<double> ratios;
  for (std::size_t j = 0; j < found.size(); ++j) {
    const Vector Ha = equations.inverse().transpose() * functionals.col(j);
    const double alone = 2 * noisy_gram::kNormal95 * std::sqrt(Ha.dot(sampling * Ha));
    if (found[j] && alone > 0) ratios.push_back((found[j]->upper - found[j]->lower) / alone);
  }
  if (ratios.empty()) return 0;
  std::nth_element(ratios.begin(), ratios.begin() + ratios.size() / 2, ratios.end());
  return ratios[ratios.size() / 2];
}

}  // namespace

Result<Regression> regression(const NoisyMoments& moments, const RegressUnits& units, std::optional<double> ridge,
                              const std::optional<ReleasedMean>& centre) {
  const bool constant = moments.constant > 0;
  const Eigen::Index d = units.scale.size();
  const Eigen::Index first = constant ? 1 : 0;
  if (moments.M.rows() != d + first + 1 || constant == centre.has_value() || !moments.M.allFinite())
    return internal_error("the moments of a regression do not fit its columns");
  const noisy_gram::Equations equations(moments);
  if (!equations.inverse().allFinite())
    return bad_input("the released moments are singular: a column is a combination of the others");
  const Vector theta = ridge ? noisy_gram::ridged(moments, *ridge) : noisy_gram::shrunk(moments);
  Matrix functionals = Matrix::Identity(d + first, d + first);
  if (constant) functionals.col(0) = intercept_functional(moments, units);
  const auto found = noisy_gram::intervals(equations, functionals);

  Regression result{.noise_edge = equations.noise_edge(), .least_variation = equations.least_variation()};
  const double unit = 1 / units.target_scale;
  for (Eigen::Index k = 0; k < d; ++k)
    result.slopes.push_back(
        {units.scale[k] * unit * theta[first + k], scaled(found[first + k], units.scale[k] * unit)});
  if (constant) {
    result.intercept = {units.target_offset + unit * functionals.col(0).dot(theta),
                        scaled(found[0], unit, units.target_offset)};
  } else {
    const Vector v = centre->mean.head(d) + units.scale.cwiseProduct(units.offset);
    const auto interval = found.front() ? centred_intercept(equations, *centre, v) : std::nullopt;
    result.intercept = {units.target_offset + unit * (centre->mean[d] - v.dot(theta)),
                        scaled(interval, unit, units.target_offset)};
  }
  if (const auto quality = noisy_gram::quality(equations)) {
    const auto& [value, interval] = quality->residual_variance;
    result.residual_variance = Estimated{value * unit * unit, scaled(interval, unit * unit)};
    result.r_squared = quality->r_squared;
  }
  result.widening = widening(equations, functionals, found);
  return result;
}

namespace {

nlohmann::json json_of(const std::optional<Estimated>& estimated) {
  nlohmann::json object = {{"value", nullptr}, {"lower", nullptr}, {"upper", nullptr}};
  if (!estimated) return object;
  object["value"] = estimated->value;
  if (estimated->interval) {
    object["lower"] = estimated->interval->lower;
    object["upper"] = estimated->interval->upper;
  }
  return object;
}

nlohmann::json json_of(const std::string& name, const Estimated& estimated) {
  nlohmann::json object = json_of(estimated);
  object["name"] = name;
  return object;
}

/// The features of x that take part, in order.
std::vector<Eigen::Index> features_used(const RegressOptions& options, Eigen::Index target) {
  std::vector<Eigen::Index> used;
  for (Eigen::Index i = 0; i < options.scale.size(); ++i)
    if (i != target && std::count(options.baselines.begin(), options.baselines.end(), i) == 0 &&
        std::count(options.drowned.begin(), options.drowned.end(), i) == 0)
      used.push_back(i);
  return used;
}

/// Leaves out the categories whose variation noise alone would also give: so few people have them, if any, that nothing
/// about the other columns could be told either. `variation`: of each feature about its mean, as a sum over rows.
/// Something is kept to explain the target with, whatever the noise.
RegressOptions without_drowned(const RegressOptions& options, Eigen::Index target, const Vector& variation,
                               double noise_edge) {
  RegressOptions rest = options;
  rest.categories.clear();
  for (const Eigen::Index i : options.categories)
    (variation[i] > noise_edge ? rest.categories : rest.drowned).push_back(i);
  std::sort(rest.drowned.begin(), rest.drowned.end(),
            [&](Eigen::Index a, Eigen::Index b) { return variation[a] < variation[b]; });
  if (features_used(rest, target).empty() && !rest.drowned.empty()) rest.drowned.pop_back();
  return rest;
}

double noise_edge(double deviation, Eigen::Index features) {
  return 2 * deviation * std::sqrt(static_cast<double>(features));
}

RegressUnits units_of(const RegressOptions& options, const std::vector<Eigen::Index>& used, Eigen::Index target) {
  return {options.offset(used), options.scale(used), options.offset[target], options.scale[target]};
}

void add_words(Fit& fit, const Regression& found, const RegressOptions& options) {
  if (!found.intercept.interval)
    fit.warnings.push_back(
        fmt::format("The coefficients are not determined: the privacy noise (up to {:.3g}) is as large as the least "
                    "variation of the columns ({:.3g}), so the release cannot tell them apart, and there is no "
                    "interval. More rows, a larger epsilon, fewer columns or tighter bounds would help. Predictions "
                    "use a shrunk estimate.",
                    found.noise_edge, std::max(0.0, found.least_variation)));
  fit.warnings.emplace_back(
      "The intervals count the privacy noise and the sampling error. They assume a linear model whose errors have the "
      "same variance everywhere; second moments cannot show otherwise.");
  if (!options.whole)
    fit.warnings.emplace_back(
        "Rows longer than the row bound were shortened; the intervals do not count the bias of that.");
  const auto say_of = [&](const char* sentence, const std::vector<Eigen::Index>& features) {
    std::vector<std::string> names;
    for (const Eigen::Index i : features) names.push_back(options.names[i]);
    if (!names.empty()) fit.warnings.push_back(fmt::format(fmt::runtime(sentence), fmt::join(names, ", ")));
  };
  say_of("Categories are compared with the first of their column: {}.", options.baselines);
  say_of("Noise hides whether anybody is in these categories; they count like the first of their column: {}.",
         options.drowned);
}

/// `mean`: of x and y, as features.
Fit fit_of(const Regression& found, const RegressOptions& options, Eigen::Index target, const Vector& mean,
           double rows) {
  const auto used = features_used(options, target);
  const Eigen::Index d = options.scale.size() - 1;
  Vector slopes = Vector::Zero(d + 1);
  nlohmann::json list = {json_of("(intercept)", found.intercept)};
  for (std::size_t k = 0; k < used.size(); ++k) {
    slopes[used[k]] = found.slopes[k].value;
    list.push_back(json_of(options.names[used[k]], found.slopes[k]));
  }
  const auto without_target = [&](const Vector& all) {
    Vector rest(d);
    rest << all.head(target), all.tail(d - target);
    return rest;
  };
  Fit fit{{{"coefficients", without_target(slopes), true},
           {"intercept", Vector::Constant(1, found.intercept.value), true},
           {"mean", without_target(mean), true}},
          rows};
  fit.facts = {{"target", options.names[target]},
               {"coefficients", std::move(list)},
               {"residual_variance", json_of(found.residual_variance)},
               {"r_squared", json_of(found.r_squared)},
               {"noise_edge", found.noise_edge},
               {"least_variation", found.least_variation},
               {"widening", found.widening > 0 ? nlohmann::json(found.widening) : nlohmann::json()}};
  add_words(fit, found, options);
  return fit;
}

class RegressEstimator final : public Estimator {
 public:
  explicit RegressEstimator(RegressOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "regress"; }
  std::string method() const override { return options_.ridge ? "ridge" : "shrunk"; }
  std::string purpose() const override { return "regress"; }
  nlohmann::json options() const override {
    nlohmann::json options = {{"constant", options_.constant}};
    if (options_.ridge) options["ridge"] = *options_.ridge;
    return options;
  }
  Status check(const RowsShape& shape, const Budget& /*budget*/) const override {
    if (shape.columns != static_cast<std::size_t>(options_.scale.size()) + 1 || options_.scale.size() < 2)
      return bad_input("a regression needs a target and at least one other column");
    if (options_.ridge && !(*options_.ridge >= 0)) return usage_error("`ridge` must be auto or at least 0");
    return {};
  }
  Result<PrivacyPlan> plan(const RowsShape& /*shape*/, const Budget& budget) const override {
    PrivacyPlan plan(budget.adjacency, {});
    plan.events.push_back({kCovarianceLabel, GaussianEvent{1.0}});
    return plan;
  }
  std::optional<std::string> hopeless(const RowsShape& shape, const Budget& budget) const override {
    RowsShape without_constant = shape;
    without_constant.columns = shape.columns - 1;
    return drowned_before(without_constant, budget, {});
  }
  std::size_t bytes(std::size_t columns, int threads) const override {
    // a sum per thread, the exact total (twice as wide), the released matrix and its solvers
    return columns * columns * sizeof(double) * (threads + 12);
  }
  Result<Fit> fit(Oracle& oracle, const Budget& /*budget*/) const override {
    const auto gram = EIGENVEIL_TRY(oracle.ask(kCovarianceLabel, Gram{}));
    const Matrix& G = gram.value();
    const Eigen::Index target = options_.scale.size() - 1;
    const Eigen::Index one = target + 1;
    const auto public_rows = oracle.shape().rows;
    const Vector sums = G.col(one).head(one);
    const Vector variation = G.diagonal().head(one).array() - sums.array().square() / std::max(G(one, one), 1e-300);
    const RegressOptions kept = without_drowned(options_, target, variation, noise_edge(gram.deviation(), one));
    std::vector<Eigen::Index> order = features_used(kept, target);
    const RegressUnits units = units_of(kept, order, target);
    order.insert(order.begin(), one);
    order.push_back(target);
    NoisyMoments moments{G(order, order), gram.deviation(), 0, options_.constant};
    const double square = options_.constant * options_.constant;
    // Every row has its whole constant, and their number is public: nothing about that entry is private.
    if (public_rows && options_.complete && options_.whole) {
      moments.exact = true;
      moments.M(0, 0) = static_cast<double>(*public_rows) * square;
    }
    const bool counted = public_rows && options_.complete;
    moments.rows = counted ? static_cast<double>(*public_rows) : std::max(10.0, std::round(moments.M(0, 0) / square));
    const auto found = EIGENVEIL_TRY(regression(moments, units, options_.ridge));
    const double height = std::max(moments.M(0, 0), 10 * square) / options_.constant;
    return fit_of(found, kept, target, sums / height, public_rows ? static_cast<double>(*public_rows) : moments.rows);
  }

 private:
  RegressOptions options_;
};

}  // namespace

std::unique_ptr<Estimator> estimator(RegressOptions options) {
  return std::make_unique<RegressEstimator>(std::move(options));
}

Result<Fit> fit_from(const ReleasedMoments& released, const RegressOptions& given, Eigen::Index target) {
  // The mean's error r enters the moments as n r r': n tau^2 on the diagonal, and noise of the Gram's own shape.
  const double shift = released.rows * released.centre.deviation * released.centre.deviation;
  const double deviation = std::hypot(released.rows * released.deviation, shift);
  const Vector variation = released.rows * released.second_moments.diagonal();
  const RegressOptions options = without_drowned(given, target, variation, noise_edge(deviation, variation.size()));
  std::vector<Eigen::Index> order = features_used(options, target);
  if (order.empty()) return bad_input("a regression needs a target and at least one other column");
  const RegressUnits units = units_of(options, order, target);
  order.push_back(target);
  NoisyMoments moments{released.rows * released.second_moments(order, order), deviation, released.rows, 0};
  moments.M.diagonal().array() -= shift;
  if (!moments.M.allFinite())
    return bad_input("`from`: the numbers of this covariance are too large to compute with; make it again");
  const ReleasedMean centre{released.centre.mean(order), released.centre.deviation};
  const auto found = EIGENVEIL_TRY(regression(moments, units, options.ridge, centre));
  return fit_of(found, options, target, released.centre.mean, released.rows);
}

}  // namespace eigenveil
