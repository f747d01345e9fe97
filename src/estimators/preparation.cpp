// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/preparation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eigenveil/privacy/gaussian_dp.hpp"

namespace eigenveil {
namespace {

// Shares of the total mu^2. A count is cheap to tell; the mean's error enters the covariance only squared.
constexpr double kCountShare = 0.005;
constexpr double kMeanShare = 0.05;
constexpr double kBoundShare = 0.03;
constexpr double kFirstAbove = 0.005;      // of the rows, before anything is known of the mean
constexpr double kRoughlyAbove = 0.2;      // about a rough mean
constexpr double kTypicallyAbove = 0.25;   // a typical row
constexpr double kBoundOverTypical = 1.5;  // how much longer the bound is than a typical row
constexpr const char* kCountLabel = "row count";
constexpr const char* kMeanLabel = "column sums";
constexpr const char* kFirstBoundLabel = "first row bound";
constexpr const char* kRoughBoundLabel = "rough row bound";
constexpr const char* kRefinedLabel = "refined column sums";
constexpr const char* kBoundLabel = "row bound";

bool counts_rows(Adjacency adjacency, const PreparationOptions& options) {
  return adjacency == Adjacency::kAddRemoveOne || options.count_rows;
}

bool searches(const PreparationOptions& options) { return options.bound_by != BoundBy::kStated; }

bool refines(const PreparationOptions& options) {
  return options.mean == MeanBy::kRefined && options.shares.refined > 0;
}

// Bounds from a thousandth of the present one up to it, `kBoundsPerOctave` per factor of two.
std::vector<double> bound_grid(double radius) {
  std::vector<double> grid;
  for (int i = 10 * kBoundsPerOctave; i >= 0; --i)
    grid.push_back(radius * std::exp2(-static_cast<double>(i) / kBoundsPerOctave));
  return grid;
}

double share_of(const Oracle& oracle, const PreparationOptions& options, double rows) {
  return share_above(options.bound_by, options.directions, oracle.shape().columns, rows * oracle.total_mu());
}

// Rows about a mean whose error is about tau sqrt(d) long are hardly shorter than that. A search that noise decides
// would end far below, where next to nothing is left of the rows but the direction of that error.
Result<FoundLength> search_bound(Oracle& oracle, const char* label, const PreparationOptions& options, double above,
                                 const Preparation& known) {
  const double rows = known.rows;
  const RowsShape shape = oracle.shape();
  const std::vector<double> grid = bound_grid(shape.lattice.radius);
  // The search errs by some 2 / epsilon rows: a target within that of none lets it run on to longer rows.
  const double error = (options.bound_by == BoundBy::kMoments ? 0.5 : 2) / EIGENVEIL_TRY(oracle.planned_epsilon(label));
  const double target = std::min(above * rows + error, rows / 2);
  const auto found =
      EIGENVEIL_TRY(oracle.first_at_most(label, NormExceedance{grid, {}}, static_cast<std::int64_t>(target)));
  const double least = known.mean_deviation * std::sqrt(static_cast<double>(shape.columns)) / 2;
  const double n = std::max(rows, 1.0);
  return FoundLength{std::clamp(least, grid[*found], shape.lattice.radius), target / n, error / n};
}

Status shorten_to(Oracle& oracle, double radius) {
  const auto bound = EIGENVEIL_TRY(RowBound::of(radius));
  return oracle.recenter(Vector::Zero(oracle.shape().columns), bound);
}

Status bound_rows(Oracle& oracle, const char* label, const PreparationOptions& options, double most,
                  Preparation& known) {
  const double above = std::min(most, share_of(oracle, options, known.rows));
  known.found = EIGENVEIL_TRY(search_bound(oracle, label, options, above, known));
  return shorten_to(oracle, known.found->length);
}

struct NoisyMean {
  Vector mean;
  double deviation;
};

Result<NoisyMean> ask_mean(Oracle& oracle, const char* label, double rows) {
  const auto sums = EIGENVEIL_TRY(oracle.ask(label, ClassSums{1}));
  const double n = std::max(1.0, rows);  // no rows have no mean, and are answered like others
  return NoisyMean{sums.value().col(0) / n, sums.deviation() / n};
}

// R2 = R + t1 (sqrt(d) + 1): what a row of length R about the mean is about m1, whose error is about t1 sqrt(d) long;
// never more than 2 L, which no row exceeds.
double refined_radius(double L, double R, double t1, double d) { return std::min(2 * L, R + t1 * (std::sqrt(d) + 1)); }

Status find_mean(Oracle& oracle, const PreparationOptions& options, Preparation& result) {
  const RowsShape shape = oracle.shape();
  const double L = shape.lattice.radius;
  const double R = options.bound ? options.bound->value() : L;
  const auto d = static_cast<double>(shape.columns);
  // Ranges may be far wider than the rows: a sum of rows that are shorter has less noise.
  if (searches(options) && refines(options))
    EIGENVEIL_TRY(bound_rows(oracle, kFirstBoundLabel, options, kFirstAbove, result));
  const double first = oracle.shape().lattice.radius;
  auto rough = EIGENVEIL_TRY(ask_mean(oracle, kMeanLabel, result.rows));
  result.mean = std::move(rough.mean);
  const double t1 = result.mean_deviation = rough.deviation;
  const auto move = [&oracle](const Vector& by, double radius) -> Status {
    return oracle.recenter(by, EIGENVEIL_TRY(RowBound::of(radius)));
  };
  if (!refines(options)) return move(result.mean, R);

  // Without a public R no row may be cut yet: |x - m1| <= L + |m1|.
  const bool stated = options.bound || !searches(options);
  const double whole = std::min(2 * first, first + result.mean.norm());
  EIGENVEIL_TRY(move(result.mean, stated ? refined_radius(first, R, t1, d) : whole));
  if (searches(options)) EIGENVEIL_TRY(bound_rows(oracle, kRoughBoundLabel, options, kRoughlyAbove, result));
  const double R2 = oracle.shape().lattice.radius;
  if (searches(options)) result.far = result.found;
  const auto refined = EIGENVEIL_TRY(ask_mean(oracle, kRefinedLabel, result.rows));
  const double t2 = refined.deviation;
  // m = m1 + r t1^2 / (t1^2 + t2^2): the two weighted by their precision
  const double both = std::hypot(t1, t2);
  const Vector step = refined.mean * (both > 0 ? t1 / both * (t1 / both) : 1);
  result.mean += step;
  result.mean_deviation = both > 0 ? t1 / both * t2 : 0;
  // Where rows were shortened about an m1 that lies far off, r says too little and its precision nothing.
  if (searches(options) && t1 * std::sqrt(d) > R2 / 2) result.mean_deviation = t1;
  return move(step, stated ? R : R2 + step.norm());
}

}  // namespace

PreparationOptions with_shares(PreparationOptions options, const RowsShape& shape, const Budget& budget) {
  if (options.mean != MeanBy::kRefined) return options;
  const double L = shape.lattice.radius;
  const double R = options.bound ? options.bound->value() : L;
  const bool stated = !searches(options);
  const auto d = static_cast<double>(shape.columns);
  if (!shape.rows) {
    // The number of rows is private, or nobody knows it yet.
    if (stated && R > L / 2) options.shares = {options.shares.rough + options.shares.refined, 0};
    return options;
  }
  const double nu =
      static_cast<double>(std::max<std::size_t>(1, *shape.rows)) * gaussian_mu(budget.epsilon, budget.delta);
  const double rho = stated ? L / R : 4;
  const double rough = std::clamp(64 * rho * rho * d / (nu * nu), 0.005, 0.1);
  // ~ argmin over a of 1 / (1 - a) + 16 d / (a^2 nu^2): the Gram matrix has less budget, the mean less error
  const double x = std::cbrt(32 * d / (nu * nu));
  const double refined = std::min(x / (1 + 2 * x / 3), 0.5 - rough);
  const double t1 = 2 * L / (std::sqrt(rough) * nu);
  // A second sum of rows that are hardly shorter than whole ones would tell less than a first one with its share.
  if (stated && refined_radius(L, R, t1, d) > 0.8 * L)
    options.shares = {std::clamp(x / (1 + 2 * x / 3), 0.005, 0.5), 0};
  else
    options.shares = {rough, refined};
  return options;
}

double share_above(BoundBy by, std::size_t directions, std::size_t columns, double n_mu) {
  constexpr double kMost = 0.5;
  if (by == BoundBy::kMiddle || !(n_mu > 0)) return kMost;
  const double sigma = 1 / n_mu;
  if (by == BoundBy::kMoments) return std::min(kMost, static_cast<double>(columns) * sigma / 3);
  // lambda_i = 1 / i; lost: sum over i <= k < j of (lambda_i - lambda_j) sin^2_ij, sin^2_ij = s^2 / ((lambda_i -
  // lambda_j)^2 + s^2), s being the noise where the eigenvalues sum up to H_d
  double harmonic = 0, lost = 0, kept = 0;
  for (std::size_t i = 1; i <= columns; ++i) harmonic += 1 / static_cast<double>(i);
  const double s2 = std::pow(sigma * harmonic, 2);
  const std::size_t k = std::min(directions, columns);
  for (std::size_t i = 1; i <= k; ++i) {
    kept += 1 / static_cast<double>(i);
    for (std::size_t j = k + 1; j <= columns; ++j) {
      const double gap = 1 / static_cast<double>(i) - 1 / static_cast<double>(j);
      lost += gap * s2 / (gap * gap + s2);
    }
  }
  return std::min(kMost, 500 * lost / kept);
}

// R(a') = typical (b / a')^c, c = log(far / typical) / log(b / a), and a' = a (R(a') / typical)^4:
//   (b / a')^(1 + 4 c) = b / a,   R(a') = typical (far / typical)^(1 / (1 + 4 c))
double bound_for_tail(double a, double far, double b, double typical) {
  if (!(a < b && far > typical)) return typical;
  const double c = std::log(far / typical) / std::log(b / a);
  return typical * std::pow(far / typical, 1 / (1 + 4 * c));
}

std::vector<PrivacyEvent> plan_preparation(Adjacency adjacency, const PreparationOptions& options,
                                           double remaining_weight) {
  const double count = counts_rows(adjacency, options) ? kCountShare : 0;
  const double mean = options.mean == MeanBy::kOnce      ? kMeanShare
                      : options.mean == MeanBy::kRefined ? options.shares.rough
                                                         : 0;
  const double refined = refines(options) ? options.shares.refined : 0;
  const double rough_bound = refined > 0 && searches(options) ? kBoundShare / 3 : 0;
  const double bound = searches(options) ? kBoundShare - 2 * rough_bound : 0;
  // total weight^2 W with (1 - count - ... - bound) W = remaining_weight^2
  const double total = remaining_weight * remaining_weight / (1 - count - mean - 2 * rough_bound - refined - bound);
  std::vector<PrivacyEvent> events;
  if (count > 0) events.push_back({kCountLabel, GaussianEvent{std::sqrt(count * total)}});
  if (rough_bound > 0) events.push_back({kFirstBoundLabel, PureEvent{std::sqrt(rough_bound * total)}});
  if (mean > 0) events.push_back({kMeanLabel, GaussianEvent{std::sqrt(mean * total)}});
  if (rough_bound > 0) events.push_back({kRoughBoundLabel, PureEvent{std::sqrt(rough_bound * total)}});
  if (refined > 0) events.push_back({kRefinedLabel, GaussianEvent{std::sqrt(refined * total)}});
  if (bound > 0) events.push_back({kBoundLabel, PureEvent{std::sqrt(bound * total)}});
  return events;
}

Result<Preparation> prepare(Oracle& oracle, const PreparationOptions& given) {
  const RowsShape shape = oracle.shape();
  Preparation result{static_cast<double>(shape.rows.value_or(0)), Vector::Zero(shape.columns)};
  result.widest = shape.lattice.radius;
  if (counts_rows(shape.adjacency, given)) {
    const auto count = EIGENVEIL_TRY(oracle.ask(kCountLabel, ClassCounts{1}));
    result.rows = std::max(1.0, std::round(count.value()(0, 0)));
  }
  // How many sums there are was settled by the plan.
  PreparationOptions options = given;
  if (!oracle.plans(kRefinedLabel)) options.shares.refined = 0;
  if (options.mean != MeanBy::kNone) EIGENVEIL_TRY(find_mean(oracle, options, result));
  if (!searches(options)) return result;
  const double above = share_of(oracle, options, result.rows);
  if (result.far && options.bound_by == BoundBy::kDirections && above < kTypicallyAbove) {
    result.found = EIGENVEIL_TRY(search_bound(oracle, kBoundLabel, options, kTypicallyAbove, result));
    EIGENVEIL_TRY(shorten_to(
        oracle, bound_for_tail(std::max(above, 1e-9), result.far->length, kTypicallyAbove, result.found->length)));
  } else {
    EIGENVEIL_TRY(bound_rows(oracle, kBoundLabel, options, 1, result));
  }
  result.bound_found = true;
  return result;
}

namespace {

double two_digits(double rows) {
  const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(rows)) - 1));
  return std::ceil(rows / unit) * unit;
}

}  // namespace

std::optional<std::string> drowned_before(const RowsShape& shape, const Budget& budget, const PreparationOptions& given,
                                          const LessHidden& less) {
  if (!shape.rows || shape.columns < 2) return std::nullopt;
  const PreparationOptions options = with_shares(given, shape, budget);
  // A search finds how long rows are: whatever that is, they are measured by it.
  const double L = searches(options) ? 1 : shape.lattice.radius;
  const double R = options.bound && !searches(options) ? std::min(L, options.bound->value()) : L;
  const double over_typical = searches(options) ? 1 : kBoundOverTypical;
  const auto d = static_cast<double>(shape.columns);
  const auto n = static_cast<double>(std::max<std::size_t>(1, *shape.rows));
  const double mu = gaussian_mu(budget.epsilon, budget.delta);
  double spent = 0;
  for (const PrivacyEvent& event : plan_preparation(budget.adjacency, options, 1))
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) spent += gaussian->mu * gaussian->mu;
  const double sigma = R * R * std::sqrt(1 + spent) / (n * mu);
  double harmonic = 0;
  for (std::size_t i = 1; i <= shape.columns; ++i) harmonic += 1 / static_cast<double>(i);
  const double lambda = R * R / (over_typical * over_typical * harmonic);
  const bool refined = refines(options);
  const double share = options.mean == MeanBy::kOnce ? kMeanShare
                       : refined                     ? options.shares.refined
                                                     : options.shares.rough;
  const double tau = options.mean == MeanBy::kNone ? 0 : 2 * (refined ? R : L) / (n * mu * std::sqrt(share));
  const double met = less.sparsity ? std::min(d, static_cast<double>(*less.sparsity) * std::max(1.0, std::log(d))) : d;
  const double ease = less.filtered ? R / std::sqrt(lambda) : 1;
  const double hidden = std::max(sigma * std::sqrt(met) / ease, tau * tau * met);
  if (lambda > hidden) return std::nullopt;
  return fmt::format(
      "with {} rows of {} columns and epsilon {:g} the noise will hide everything: it reaches {:.2g} times what the "
      "first direction of typical rows would show. About {:.0f} rows would be needed, or fewer columns, or a shorter "
      "row bound",
      *shape.rows, shape.columns, budget.epsilon.value(), hidden / lambda,
      two_digits(2 * n * std::max(1.0, hidden / lambda)));
}

double noise_edge(double sigma, double tau, double d) {
  const double wigner = 2 * sigma * std::sqrt(d);
  const double theta = tau * tau * std::pow(std::sqrt(d) + 1.2, 2);
  if (!(theta > sigma * std::sqrt(d))) return wigner;
  return std::max(wigner, theta + sigma * sigma * d / theta + 2.3 * sigma);
}

std::optional<std::string> classes_drowned_before(const RowsShape& shape, const Budget& budget,
                                                  const PreparationOptions& given, const ClassAnswers& answers) {
  if (!shape.rows || answers.groups < 2) return std::nullopt;
  double spent = 0;
  for (const PrivacyEvent& event : plan_preparation(budget.adjacency, with_shares(given, shape, budget), 1))
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) spent += gaussian->mu * gaussian->mu;
  const double mu = gaussian_mu(budget.epsilon, budget.delta) / std::sqrt(1 + spent);
  const auto n = static_cast<double>(std::max<std::size_t>(1, *shape.rows));
  const auto d = static_cast<double>(shape.columns), C = static_cast<double>(answers.counted),
             K = static_cast<double>(answers.groups);
  // One row may leave a class for another: sqrt 2 of counts; 2 R of sums, in units of R.
  const double counted =
      answers.counts_share > 0 ? answers.deviations * std::sqrt(2.0) / (mu * std::sqrt(answers.counts_share)) : 0;
  const double of_counts = counted * C / n;
  const double of_sums =
      2 / (mu * std::sqrt(answers.sums_share)) * (std::sqrt(d) + std::sqrt(K)) * std::sqrt(K) / n * kBoundOverTypical;
  const double ratio = std::max(of_counts, of_sums);
  if (!(ratio > 1)) return std::nullopt;
  const std::string why = of_counts >= of_sums
                              ? fmt::format("one of {} {} must have {:.0f} rows to be told from noise", answers.counted,
                                            answers.word, two_digits(counted))
                              : fmt::format("it moves the means of {} {} {:.2g} times as far as typical rows are long",
                                            answers.groups, answers.word, of_sums);
  return fmt::format(
      "with {} rows of {} columns and epsilon {:g} the noise will hide everything: {}. About {:.0f} rows would be "
      "needed, or fewer {}",
      *shape.rows, shape.columns, budget.epsilon.value(), why, two_digits(2 * n * ratio), answers.word);
}

}  // namespace eigenveil
