// SPDX-License-Identifier: Apache-2.0
#include "loss.hpp"

#include <algorithm>
#include <cmath>

#include "normal.hpp"

namespace eigenveil::loss {

double log_add(double a, double b) {
  const double top = std::max(a, b);
  return top == -kInfinity ? top : top + std::log1p(std::exp(std::min(a, b) - top));
}

namespace {

/// The pair (1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2). A Gaussian answer is the case q = 1, s = 1 / mu.
struct Mixture {
  double q;
  double s;
  Direction direction;
  double log_peak = -normal::kLogSqrtTwoPi - std::log(s);

  bool forward() const { return direction == Direction::kRemove; }
  double sign() const { return forward() ? 1 : -1; }

  /// ln of the likelihood ratio, l(x) = ln(1 - q + q e^u), u = (2x - 1) / (2 s^2): increasing in x.
  double log_ratio(double x) const {
    const double u = (x - 0.5) / (s * s);
    if (q == 1) return u;
    return u < 30 ? std::log1p(q * std::expm1(u)) : u + std::log(q + (1 - q) * std::exp(-u));
  }
  /// The inverse of log_ratio; -infinity at and below its infimum ln(1-q).
  double point(double l) const {
    if (q == 1) return 0.5 + s * s * l;
    if (l > 700) return 0.5 + s * s * (l - std::log(q));
    const double ratio = std::expm1(l) / q;
    return ratio <= -1 ? -kInfinity : 0.5 + s * s * std::log1p(ratio);
  }
  /// ln of P's density at x, given l = log_ratio(x).
  double log_density(double x, double l) const {
    const double z = x / s;
    return log_peak - z * z / 2 + (forward() ? l : 0);
  }
  /// ln P(X > x) and ln P(X < x).
  double log_above(double x) const {
    const double base = normal::log_upper_tail(x / s);
    if (!forward()) return base;
    return log_add(std::log1p(-q) + base, std::log(q) + normal::log_upper_tail((x - 1) / s));
  }
  double log_below(double x) const {
    const double base = normal::log_upper_tail(-x / s);
    if (!forward()) return base;
    return log_add(std::log1p(-q) + base, std::log(q) + normal::log_upper_tail((1 - x) / s));
  }
};

Mixture mixture_of(const GaussianEvent& event, Direction) {
  return {.q = 1, .s = 1 / event.mu, .direction = Direction::kRemove};
}
Mixture mixture_of(const PoissonGaussianEvent& event, Direction direction) {
  return {.q = event.q, .s = event.sigma, .direction = event.q == 1 ? Direction::kRemove : direction};
}

/// z with Q(z) <= e^log_mass, from Q(z) <= e^{-z^2/2}.
double tail_quantile(double log_mass) { return std::sqrt(std::max(0.0, -2 * log_mass)); }

/// Calls visit(x) on equidistant points over [low, high], few enough to be cheap and dense enough for the
/// trapezoidal rule to be exact to many digits on Gaussian bumps of width s; returns their distance.
template <class Visit>
double trapezoid(const Mixture& mixture, double low, double high, Visit visit) {
  constexpr double kMostPoints = 40000;
  const double wanted = std::min(mixture.s / 2, mixture.s * mixture.s);
  const double points = std::ceil(std::clamp((high - low) / wanted, 1.0, kMostPoints));
  const double distance = (high - low) / points;
  const auto last = static_cast<int>(points);
  for (int i = 0; i <= last; ++i) visit(low + i * distance);
  return distance;
}

double cumulant_of(const Mixture& mixture, double theta, double log_tail) {
  if (mixture.q == 1) return theta * (theta + 1) / (2 * mixture.s * mixture.s);
  // The integrand e^{-x^2/2s^2} r(x)^a, a = 1 + theta forward and -theta backward, peaks where x = a r'/r s^2, and
  // r'/r s^2 = q e^u / (1 - q + q e^u) is at most 1, and for x < 0 at most what it is at 0.
  const double reach = 9 * mixture.s;
  const double cut = mixture.s * tail_quantile(log_tail);
  const double high = mixture.forward() ? 1 + std::min(theta + reach, cut) : reach;
  const double share = mixture.q * std::exp(-0.5 / (mixture.s * mixture.s));
  const double low = mixture.forward() ? -reach : -std::min(reach + theta * share / (1 - mixture.q + share), cut);
  double top = -kInfinity;
  double sum = 0;
  const double distance = trapezoid(mixture, low, high, [&](double x) {
    const double l = mixture.log_ratio(x);
    const double term = mixture.log_density(x, l) + theta * mixture.sign() * l;
    if (term > top) {
      sum *= std::exp(top - term);
      top = term;
    }
    sum += std::exp(term - top);
  });
  return top + std::log(sum * distance);
}

double variance_of(const Mixture& mixture) {
  if (mixture.q == 1) return 1 / (mixture.s * mixture.s);
  double mass = 0;
  double first = 0;
  double second = 0;
  trapezoid(mixture, -9 * mixture.s, (mixture.forward() ? 1 : 0) + 9 * mixture.s, [&](double x) {
    const double l = mixture.log_ratio(x);
    const double p = std::exp(mixture.log_density(x, l));
    mass += p;
    first += p * l;
    second += p * l * l;
  });
  return second / mass - (first / mass) * (first / mass);
}

/// Where the mixture is cut, in x and in cells [i h, (i+1) h) of its log ratio.
struct Cut {
  double x_low;
  double x_high;
  double first_cell;
  double end_cell;
};

Cut cut_of(const Mixture& mixture, const Grid& grid) {
  // P(X > 1 + s z) <= Q(z), P(X < -s z) <= Q(z), and for q = 1 even P(X < 1 - s z) = Q(z).
  const double low = mixture.forward() ? grid.log_cut_low : grid.log_tail;
  const double high = mixture.forward() ? grid.log_tail : grid.log_cut_low;
  Cut cut{};
  cut.x_low = (mixture.q == 1 ? 1 : 0) - mixture.s * tail_quantile(low);
  cut.x_high = (mixture.forward() ? 1 : 0) + mixture.s * tail_quantile(high);
  cut.first_cell = std::floor(mixture.log_ratio(cut.x_low) / grid.step);
  cut.end_cell = std::max(cut.first_cell + 1, std::ceil(mixture.log_ratio(cut.x_high) / grid.step));
  return cut;
}

/// Spreads P over the ends of its cells: a loss L in [e, e + h] goes to e + h with weight
/// w = (1 - e^{-(L - e)}) / (1 - e^{-h}) and to e with 1 - w, which keeps both its P and its Q mass.
class Spreader {
 public:
  Spreader(const Mixture& mixture, const Grid& grid, double log_scale, Masses& out)
      : mixture_(mixture), grid_(grid), log_scale_(log_scale), out_(out) {}

  /// Integrates over [from, to], which lies in the cell whose lower loss is `cell` steps.
  void integrate(double cell, double from, double to) {
    const double foot = cell * grid_.step;
    const double half = (to - from) / 2;
    if (mixture_.s < 0.1 && vanishes(foot, from + half)) return;
    double all = 0;
    double up = 0;
    for (const auto& [node, weight] : normal::kGauss5) {
      const double x = from + half * (1 + node);
      const double l = mixture_.log_ratio(x);
      const double p = weight * std::exp(mixture_.log_density(x, l) + grid_.theta * foot - log_scale_);
      all += p;
      up += p * std::clamp(std::expm1(foot - mixture_.sign() * l) / whole_, 0.0, 1.0);
    }
    at(cell) += half * (all - up);
    at(cell + 1) += half * up * rise_;
  }

  void put(double index, double log_mass) {
    at(index) += std::exp(log_mass + grid_.theta * index * grid_.step - log_scale_);
  }

 private:
  /// Between two far bumps every mass is below the smallest double, and would be added as 0.
  bool vanishes(double foot, double x) const {
    const double exponent = mixture_.log_density(x, mixture_.log_ratio(x)) + grid_.theta * foot - log_scale_;
    return exponent < -1500 - 2 * std::abs(x) / mixture_.s;
  }
  double& at(double index) { return out_.mass[static_cast<long long>(index) - out_.first]; }

  const Mixture& mixture_;
  const Grid& grid_;
  double log_scale_;
  Masses& out_;
  double whole_ = std::expm1(-grid_.step);
  double rise_ = std::exp(grid_.theta * grid_.step);
};

Masses discretise_mixture(const Mixture& mixture, const Grid& grid) {
  const Cut cut = cut_of(mixture, grid);
  const bool forward = mixture.forward();
  Masses out;
  out.first = static_cast<long long>(forward ? cut.first_cell : -cut.end_cell);
  out.mass.assign(static_cast<std::size_t>(cut.end_cell - cut.first_cell) + 1, 0.0);
  out.log_scale = cumulant_of(mixture, grid.theta, grid.log_tail);
  out.log_infinite = forward ? mixture.log_above(cut.x_high) : mixture.log_below(cut.x_low);

  Spreader spreader(mixture, grid, out.log_scale, out);
  double from = cut.x_low;
  const auto cells = static_cast<long long>(cut.end_cell - cut.first_cell);
  for (long long cell = 0; cell < cells; ++cell) {
    const double i = cut.first_cell + static_cast<double>(cell);
    const double end = cell + 1 == cells ? cut.x_high : std::min(cut.x_high, mixture.point((i + 1) * grid.step));
    while (from < end) {
      // z deviations from its centre a bump varies on the scale s / z.
      const double z = std::max(std::abs(from), std::abs(from - 1)) / mixture.s;
      const double longest = mixture.s / std::max(4.0, 2 * z);
      const double to = std::min(end, std::max(from + longest, std::nextafter(from, kInfinity)));
      spreader.integrate(forward ? i : -(i + 1), from, to);
      from = to;
    }
  }
  // What was cut off below moves up to the nearest grid point that is not below it.
  if (forward)
    spreader.put(cut.first_cell + 1, mixture.log_below(cut.x_low));
  else
    spreader.put(-cut.end_cell + 1, mixture.log_above(cut.x_high));
  return out;
}

/// The two-point law that dominates every eps-DP answer: loss +-eps with mass e^{+-eps} / (1 + e^{+-eps}).
double log_mass_of_pure(double loss) {
  return loss > 0 ? -std::log1p(std::exp(-loss)) : loss - std::log1p(std::exp(loss));
}

double cumulant_of(const PureEvent& event, double theta) {
  return log_add(log_mass_of_pure(event.epsilon) + theta * event.epsilon,
                 log_mass_of_pure(-event.epsilon) - theta * event.epsilon);
}

/// The cell of a loss: index step <= loss < (index + 1) step, decided without rounding (fma rounds once, and keeps the
/// sign).
double foot_of(double loss, double step) {
  double index = std::floor(loss / step);
  while (std::fma(index, step, -loss) > 0) --index;
  while (std::fma(index + 1, step, -loss) <= 0) ++index;
  return index;
}

Masses discretise_pure(const PureEvent& event, const Grid& grid) {
  Masses out;
  const double low = foot_of(-event.epsilon, grid.step);
  const double high = foot_of(event.epsilon, grid.step);
  out.first = static_cast<long long>(low);
  out.mass.assign(static_cast<std::size_t>(high - low) + 2, 0.0);
  out.log_scale = cumulant_of(event, grid.theta);
  out.log_infinite = -kInfinity;
  for (const double loss : {-event.epsilon.value(), event.epsilon.value()}) {
    const double foot = loss < 0 ? low : high;
    const double up = std::min(1.0, std::expm1(std::fma(foot, grid.step, -loss)) / std::expm1(-grid.step));
    const auto index = static_cast<std::size_t>(foot - low);
    const double log_p = log_mass_of_pure(loss) - out.log_scale;
    out.mass[index] += (1 - up) * std::exp(log_p + grid.theta * foot * grid.step);
    out.mass[index + 1] += up * std::exp(log_p + grid.theta * (foot + 1) * grid.step);
  }
  return out;
}

}  // namespace

double cumulant(const Mechanism& mechanism, Direction direction, double theta, double log_tail) {
  if (const auto* pure = std::get_if<PureEvent>(&mechanism)) return cumulant_of(*pure, theta);
  if (const auto* gaussian = std::get_if<GaussianEvent>(&mechanism))
    return cumulant_of(mixture_of(*gaussian, direction), theta, log_tail);
  return cumulant_of(mixture_of(std::get<PoissonGaussianEvent>(mechanism), direction), theta, log_tail);
}

double squared_scale(const Mechanism& mechanism, Direction direction) {
  if (const auto* pure = std::get_if<PureEvent>(&mechanism)) {
    const double shortest = std::min(pure->epsilon.value(), 1.0);
    return shortest * shortest;
  }
  if (const auto* gaussian = std::get_if<GaussianEvent>(&mechanism))
    return variance_of(mixture_of(*gaussian, direction));
  return variance_of(mixture_of(std::get<PoissonGaussianEvent>(mechanism), direction));
}

double cells(const Mechanism& mechanism, Direction direction, const Grid& grid) {
  if (const auto* pure = std::get_if<PureEvent>(&mechanism)) return 2 * pure->epsilon / grid.step + 2;
  const Mixture mixture = std::holds_alternative<GaussianEvent>(mechanism)
                              ? mixture_of(std::get<GaussianEvent>(mechanism), direction)
                              : mixture_of(std::get<PoissonGaussianEvent>(mechanism), direction);
  const Cut cut = cut_of(mixture, grid);
  constexpr double kLargestIndex = 1e15;
  if (!(std::abs(cut.first_cell) < kLargestIndex && std::abs(cut.end_cell) < kLargestIndex)) return kInfinity;
  return cut.end_cell - cut.first_cell + 2;
}

Masses discretise(const Mechanism& mechanism, Direction direction, const Grid& grid) {
  if (const auto* pure = std::get_if<PureEvent>(&mechanism)) return discretise_pure(*pure, grid);
  if (const auto* gaussian = std::get_if<GaussianEvent>(&mechanism))
    return discretise_mixture(mixture_of(*gaussian, direction), grid);
  return discretise_mixture(mixture_of(std::get<PoissonGaussianEvent>(mechanism), direction), grid);
}

}  // namespace eigenveil::loss
