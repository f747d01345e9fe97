// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/gaussian_dp.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "normal.hpp"
#include "slack.hpp"

namespace eigenveil {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// R(x) - R(x + mu) = integral of 1 - t R(t) over [x, x + mu]: the difference of two nearly equal Mills ratios
/// is integrated, the others are subtracted.
double mills_drop(double x, double mu) {
  if (mu > 0.5 * std::max(1.0, x)) return normal::mills(x) - normal::mills(x + mu);
  constexpr int kPanels = 4;
  const double half = mu / (2 * kPanels);
  double mean = 0;
  for (int panel = 0; panel < kPanels; ++panel)
    for (const auto& [node, weight] : normal::kGauss5)
      mean += weight * normal::mills_descent(x + (2 * panel + 1 + node) * half);
  return mu * (mean / (2 * kPanels));
}

/// Two neighbouring doubles (or as near as bisection comes) at which a monotone condition turns from no to yes.
struct Turn {
  double last_no;
  double first_yes;
};

template <class Condition>
Turn turning_point(Condition holds) {
  double yes = 1;
  while (!holds(yes))
    if ((yes *= 2) == kUnbounded) return {std::numeric_limits<double>::max(), kUnbounded};
  double no = yes / 2;
  while (no > 0 && holds(no)) {
    yes = no;
    no /= 2;
  }
  for (;;) {
    const double middle = no + (yes - no) / 2;
    if (middle <= no || middle >= yes) return {no, yes};
    (holds(middle) ? yes : no) = middle;
  }
}

}  // namespace

double gaussian_log_delta(double mu, double epsilon) {
  if (!(mu > 0) || epsilon == kUnbounded) return -kUnbounded;
  if (mu == kUnbounded) return 0;
  // With x = eps/mu - mu/2 = -a: phi(a) = e^eps phi(b), so delta = phi(x) (R(x) - R(x + mu)).
  const double x = epsilon / mu - mu / 2;
  if (x < 0 && mu > 0.5) {
    // 1 - delta = Q(a) + phi(a) R(x + mu): nothing cancels when delta is near 1.
    const double rest = std::exp(normal::log_upper_tail(-x)) +
                        std::exp(-x * x / 2 - normal::kLogSqrtTwoPi) * normal::mills(epsilon / mu + mu / 2);
    return std::log1p(-std::min(rest, 1.0));
  }
  return -x * x / 2 - normal::kLogSqrtTwoPi + std::log(mills_drop(x, mu));
}

double gaussian_epsilon(double mu, Delta delta) { return gaussian_epsilon(mu, std::log(delta.value())); }

double gaussian_epsilon(double mu, double log_delta) {
  if (mu == kUnbounded) return kUnbounded;
  if (gaussian_log_delta(mu, 0) <= log_delta) return 0;
  return turning_point([&](double epsilon) { return gaussian_log_delta(mu, epsilon) <= log_delta; }).first_yes;
}

double gaussian_mu(Epsilon epsilon, Delta delta) { return gaussian_mu(epsilon.value(), std::log(delta.value())); }

double gaussian_mu(double epsilon, double log_delta) {
  return turning_point([&](double mu) { return gaussian_log_delta(mu, epsilon) > log_delta; }).last_no;
}

double mu_of_pure(double epsilon) {
  if (!(epsilon > 0)) return 0;
  if (epsilon == kUnbounded) return kUnbounded;
  // Q(z) = 1 / (1 + e^eps), mu = 2 z. Near eps = 0 both sides are close to 1/2: compare their distance from it.
  const auto far_enough = [&](double z) {
    if (epsilon < 1) return std::erf(z / std::numbers::sqrt2) >= std::tanh(epsilon / 2);
    return normal::log_upper_tail(z) <= -epsilon - std::log1p(std::exp(-epsilon));
  };
  return 2 * turning_point(far_enough).first_yes * (1 + slack::kMuOfPure);
}

}  // namespace eigenveil
