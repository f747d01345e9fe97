// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/pld.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "composition.hpp"

namespace eigenveil {
namespace {

using loss::Composition;
using loss::Direction;
using loss::Grid;
using loss::Source;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kFineStep = 0.02;       // of the root mean square scale of the events
constexpr double kCoarseStep = 0.05;     // when the fine one needs too many points
constexpr double kFewPoints = 65536;     // what the fine step may cost
constexpr double kMostPoints = 4194304;  // what any composition may cost
constexpr double kMostCells = 262144;    // of one event
constexpr double kSmallestStep = 1e-12;
constexpr double kLargestStep = 0.25;       // above it, rounding up no longer costs O(h^2) but O(h)
constexpr std::size_t kMostDistinct = 200;  // more kinds of events are rounded to a common ladder
constexpr double kLowestLogDelta = -1500;   // far below the range of double

/// Equal answers together, all Gaussians as one: mu^2 adds.
class Merger {
 public:
  void add(const PrivacyEvent& event, double ladder) {
    const auto count = static_cast<double>(event.count);
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) {
      mu_ = std::hypot(mu_, gaussian->mu * std::sqrt(count)) * (1 + 4e-16);
    } else if (const auto* pure = std::get_if<PureEvent>(&event.mechanism)) {
      pure_[std::min(tag::PureEpsilon::kMost, up(pure->epsilon, ladder))] += count;
    } else {
      const auto& [q, sigma] = std::get<PoissonGaussianEvent>(event.mechanism);
      poisson_[{std::min(1.0, up(q, ladder)), std::max(tag::NoiseMultiplier::kLeast, 1 / up(1 / sigma, ladder))}] +=
          count;
    }
  }
  std::size_t distinct() const { return pure_.size() + poisson_.size(); }
  std::vector<Source> sources() const {
    std::vector<Source> out;
    if (mu_ > 0) out.push_back({GaussianEvent{mu_}, 1});
    for (const auto& [epsilon, count] : pure_) out.push_back({PureEvent{epsilon}, count});
    for (const auto& [key, count] : poisson_)
      out.push_back({PoissonGaussianEvent{std::get<0>(key), std::get<1>(key)}, count});
    return out;
  }

 private:
  /// The next power of `ladder` at or above the value: more loss, never less.
  static double up(double value, double ladder) {
    if (ladder == 1) return value;
    return std::max(value, std::exp(std::ceil(std::log(value) / std::log(ladder)) * std::log(ladder)));
  }

  double mu_ = 0;
  std::map<double, double> pure_;
  std::map<std::tuple<double, double>, double> poisson_;
};

std::vector<Source> merge(const std::vector<PrivacyEvent>& events) {
  for (const double ladder : {1.0, 1.001, 1.01, 1.1}) {
    Merger merger;
    for (const PrivacyEvent& event : events) {
      merger.add(event, ladder);
      if (ladder < 1.1 && merger.distinct() > kMostDistinct) break;
    }
    if (ladder == 1.1 || merger.distinct() <= kMostDistinct) return merger.sources();
  }
  return {};
}

/// The minimiser of a quasi-convex function of theta > 0, to a few percent: halving or doubling, then golden sections.
double best_tilt(double start, double floor, const std::function<double(double)>& value) {
  double theta = start;
  double here = value(theta);
  for (int halvings = 0; halvings < 60; ++halvings) {
    const double next = value(theta / 2);
    if (!(next < here)) break;
    theta /= 2;
    here = next;
  }
  for (int doublings = 0; doublings < 60; ++doublings) {
    const double next = value(2 * theta);
    if (!(next < here - 0.01 * std::abs(here)) || !(here > floor)) break;
    theta *= 2;
    here = next;
  }
  constexpr double kGolden = 0.6180339887498949;
  double low = std::log(theta / 2);
  double high = std::log(theta * 2);
  double left = high - kGolden * (high - low);
  double right = low + kGolden * (high - low);
  double at_left = value(std::exp(left));
  double at_right = value(std::exp(right));
  for (int section = 0; section < 7; ++section) {
    if (at_left < at_right) {
      high = right;
      right = left;
      at_right = at_left;
      at_left = value(std::exp(left = high - kGolden * (high - low)));
    } else {
      low = left;
      left = right;
      at_left = at_right;
      at_right = value(std::exp(right = low + kGolden * (high - low)));
    }
  }
  return std::exp((low + high) / 2);
}

/// One direction of a plan: its sources and the scales that choose grid and tilt.
struct Job {
  const std::vector<Source>& sources;
  Direction direction;
  double answers = 0;
  double total_scale = 0;  // standard deviation of the summed loss, about

  Job(const std::vector<Source>& all, Direction which) : sources(all), direction(which) {
    double squared = 0;
    for (const Source& source : sources) {
      answers += source.count;
      squared += source.count * std::max(loss::squared_scale(source.mechanism, Direction::kRemove),
                                         loss::squared_scale(source.mechanism, Direction::kAdd));
    }
    total_scale = std::sqrt(squared);
  }
  /// ln of the mass of one answer that may count as infinite loss: e^-14 of delta, shared among all answers.
  double log_tail(double log_delta) const { return std::max(log_delta, kLowestLogDelta) - 14 - std::log(answers); }
  double cumulant(double theta, double log_delta) const {
    double sum = 0;
    for (const Source& source : sources)
      sum += source.count * loss::cumulant(source.mechanism, direction, theta, log_tail(log_delta));
    return sum;
  }
  double first_tilt() const { return 1e-3 / std::max(total_scale, 1e-150); }
  double event_scale() const { return total_scale / std::sqrt(answers); }
};

/// A step of about `wanted` that divides the pure epsilon that weighs most: pure events then sit on the grid, but for a
/// rounding error that `discretise` treats like any other distance.
double aligned(const Job& job, double wanted) {
  double weight = 0;
  double epsilon = 0;
  for (const Source& source : job.sources)
    if (const auto* pure = std::get_if<PureEvent>(&source.mechanism))
      if (const double w = source.count * pure->epsilon * pure->epsilon; w > weight) {
        weight = w;
        epsilon = pure->epsilon;
      }
  return epsilon >= wanted ? epsilon / std::ceil(epsilon / wanted) : wanted;
}

std::optional<Composition> compose(const Job& job, double theta, double log_delta, double step, double& points_wanted) {
  points_wanted = 0;
  Grid grid{.step = aligned(job, step), .theta = theta, .log_tail = 0, .log_cut_low = 0};
  grid.log_tail = job.log_tail(log_delta);
  grid.log_cut_low = -32 - std::log(job.answers);
  for (int attempt = 0; attempt < 5; ++attempt) {
    double cells = 0;
    for (const Source& source : job.sources)
      cells = std::max(cells, loss::cells(source.mechanism, job.direction, grid));
    if (!std::isfinite(cells)) return std::nullopt;
    if (cells <= kMostCells) break;
    if (attempt == 4) return std::nullopt;
    grid.step = aligned(job, grid.step * 1.1 * cells / kMostCells);
  }
  grid.theta = std::min(theta, 30 / grid.step);
  return Composition::of(job.sources, job.direction, grid, kMostPoints, points_wanted);
}

/// Composes at the finest step, not above `finest`, that the budget of points allows.
std::optional<Composition> compose_within_budget(const Job& job, double theta, double log_delta, double finest) {
  // A window takes about 18 standard deviations.
  const double fraction =
      std::clamp(kFineStep * (18 * std::sqrt(job.answers) / kFineStep) / kFewPoints, kFineStep, kCoarseStep);
  double step = std::min(fraction * job.event_scale(), std::max(finest, 18 * job.total_scale / kFewPoints));
  step = std::clamp(step, kSmallestStep, kLargestStep);
  for (int attempt = 0; attempt < 8; ++attempt) {
    double points = 0;
    if (auto out = compose(job, theta, log_delta, step, points)) return out;
    if (points == 0 || !std::isfinite(points)) return std::nullopt;
    step *= 1.2 * std::max(1.0, points / kMostPoints);
  }
  return std::nullopt;
}

/// ln delta <= K(theta) + g(theta) - theta eps with g = theta ln theta - (1 + theta) ln(1 + theta), for every theta > 0
/// (zcdp.proof.md, with alpha = 1 + theta).
double log_bound(const Job& job, double theta, double log_delta) {
  return job.cumulant(theta, log_delta) - theta * std::log1p(1 / theta) - std::log1p(theta);
}

/// The tilts for a wanted epsilon and a wanted delta; `log_delta` says in both cases which tail is cut off.
double tilt_for_epsilon(const Job& job, double start, double epsilon, double log_delta) {
  return best_tilt(start, kLowestLogDelta,
                   [&](double theta) { return log_bound(job, theta, log_delta) - theta * epsilon; });
}
double tilt_for_delta(const Job& job, double start, double log_delta) {
  return best_tilt(start, -kInfinite,
                   [&](double theta) { return (log_bound(job, theta, log_delta) - log_delta) / theta; });
}

double epsilon_one_way(const std::vector<Source>& sources, Direction direction, double log_delta) {
  const Job job(sources, direction);
  if (!std::isfinite(job.total_scale)) return kInfinite;
  const double theta = tilt_for_delta(job, job.first_tilt(), log_delta);
  const auto first = compose_within_budget(job, theta, log_delta, kInfinite);
  if (!first) return kInfinite;
  const double rough = first->epsilon(log_delta);
  if (!(rough > 0 && std::isfinite(rough))) return rough;
  // Once more if the tilt was not the one for this epsilon, or if epsilon is so few grid steps that linear
  // interpolation over a step is no longer negligible. Both results are valid.
  constexpr double kStepsPerEpsilon = 400;
  const double finest = rough / kStepsPerEpsilon;
  const double better = tilt_for_epsilon(job, theta, rough, log_delta);
  const bool steps_suffice = std::min(kLargestStep, kFineStep * job.event_scale()) < 2 * finest;
  if (steps_suffice && std::abs(std::log(better / theta)) < 0.3) return rough;
  const auto second = compose_within_budget(job, better, log_delta, finest);
  return second ? std::min(rough, second->epsilon(log_delta)) : rough;
}

double log_delta_one_way(const std::vector<Source>& sources, Direction direction, double epsilon) {
  const Job job(sources, direction);
  if (!std::isfinite(job.total_scale)) return 0;
  // Which tail is cut off depends on delta, which is estimated first without a cut, then with one.
  double theta = job.first_tilt();
  double estimate = kLowestLogDelta;
  for (int pass = 0; pass < 2; ++pass) {
    theta = tilt_for_epsilon(job, theta, epsilon, estimate);
    estimate = std::min(0.0, log_bound(job, theta, estimate) - theta * epsilon) - 12;
  }
  const auto composed = compose_within_budget(job, theta, estimate, epsilon > 0 ? epsilon / 200 : kInfinite);
  return composed ? composed->log_delta(epsilon) : 0;
}

/// What pure events alone can lose at most; infinity if there are others.
double largest_loss(const std::vector<Source>& sources) {
  double sum = 0;
  for (const Source& source : sources) {
    const auto* pure = std::get_if<PureEvent>(&source.mechanism);
    if (pure == nullptr) return kInfinite;
    sum += source.count * pure->epsilon;
  }
  return sum * (1 + 1e-15 * static_cast<double>(sources.size()));
}

bool symmetric(const std::vector<Source>& sources) {
  return std::none_of(sources.begin(), sources.end(), [](const Source& source) {
    return std::holds_alternative<PoissonGaussianEvent>(source.mechanism);
  });
}

/// The worse of a value that may be NaN and another: NaN counts as the worst.
double worse(double a, double b, double worst) { return std::isnan(a) || std::isnan(b) ? worst : std::max(a, b); }

/// Noise a thousand times smaller than what it hides: no grid is fine enough, and every bound would say "infinite".
bool hardly_noisy(const std::vector<Source>& sources) {
  constexpr double kMostLoss = 1000;
  return std::any_of(sources.begin(), sources.end(), [](const Source& source) {
    const auto* gaussian = std::get_if<GaussianEvent>(&source.mechanism);
    const auto* sampled = std::get_if<PoissonGaussianEvent>(&source.mechanism);
    return (gaussian != nullptr && gaussian->mu > kMostLoss) || (sampled != nullptr && sampled->sigma < 1 / kMostLoss);
  });
}

}  // namespace

double pld_epsilon(const std::vector<PrivacyEvent>& events, double log_delta) {
  const auto sources = merge(events);
  if (sources.empty()) return 0;
  if (hardly_noisy(sources)) return kInfinite;
  double epsilon = worse(0, epsilon_one_way(sources, Direction::kRemove, log_delta), kInfinite);
  if (!symmetric(sources)) epsilon = worse(epsilon, epsilon_one_way(sources, Direction::kAdd, log_delta), kInfinite);
  return std::min(epsilon, largest_loss(sources));
}

double pld_log_delta(const std::vector<PrivacyEvent>& events, double epsilon) {
  const auto sources = merge(events);
  if (sources.empty() || epsilon >= largest_loss(sources)) return -kInfinite;
  if (hardly_noisy(sources)) return 0;
  double log_delta = worse(-kInfinite, log_delta_one_way(sources, Direction::kRemove, epsilon), 0);
  if (!symmetric(sources)) log_delta = worse(log_delta, log_delta_one_way(sources, Direction::kAdd, epsilon), 0);
  return std::min(log_delta, 0.0);
}

}  // namespace eigenveil
