// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/renyi.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "slack.hpp"

namespace eigenveil {
namespace {

// Covers every rounding error below: at orders up to 4096 they stay under 1e-10 of the result (renyi.proof.md).
constexpr double kRoundUp = 1 + 1e-9;

// D = alpha mu^2 / 2
double renyi(const GaussianEvent& event, int alpha) { return alpha * event.mu * event.mu / 2; }

// Randomised response dominates every epsilon-DP mechanism, so D is its divergence:
// (alpha-1) D = ln((e^(alpha eps) + e^((1-alpha) eps)) / (1 + e^eps))
//             = ln(1 + (e^(alpha eps) - 1)(1 - e^(-(alpha-1) eps)) / (1 + e^eps))
double renyi(const PureEvent& event, int alpha) {
  const double epsilon = event.epsilon;
  if (alpha * epsilon > 700)
    return epsilon + (std::log1p(std::exp((1 - 2.0 * alpha) * epsilon)) - std::log1p(std::exp(-epsilon))) / (alpha - 1);
  const double excess = std::expm1(alpha * epsilon) * -std::expm1((1 - alpha) * epsilon) / (1 + std::exp(epsilon));
  return std::log1p(excess) / (alpha - 1);
}

// ln(e^x - 1) for x > 0
double log_expm1(double x) { return x > 1 ? x + std::log1p(-std::exp(-x)) : std::log(std::expm1(x)); }

// (alpha-1) D = ln(sum_k C(alpha,k) (1-q)^(alpha-k) q^k e^((k^2-k) / 2 sigma^2))
//             = ln(1 + sum_{k>=2} C(alpha,k) (1-q)^(alpha-k) q^k (e^((k^2-k) / 2 sigma^2) - 1))
// (Mironov, Talwar and Zhang 2019, sections 3.1 and 3.3: the other direction is never larger.)
double renyi(const PoissonGaussianEvent& event, int alpha) {
  if (event.q >= 1) return renyi(GaussianEvent{1 / event.sigma}, alpha);
  const double q =
      std::max(event.q.value(), 1e-100);  // D grows with q: up is the safe side, and rounding stays bounded
  const double sigma = event.sigma;
  std::vector<double> log_terms;
  long double log_binomial = std::log(static_cast<long double>(alpha));
  for (int k = 2; k <= alpha; ++k) {
    log_binomial += std::log(static_cast<long double>(alpha - k + 1) / k);
    log_terms.push_back(static_cast<double>(log_binomial) + (alpha - k) * std::log1p(-q) + k * std::log(q) +
                        log_expm1(k * (k - 1.0) / 2 / sigma / sigma));
  }
  const double largest = *std::max_element(log_terms.begin(), log_terms.end());
  if (!std::isfinite(largest)) return largest > 0 ? largest : 0;
  double sum = 0;
  for (double log_term : log_terms) sum += std::exp(log_term - largest);
  const double log_excess = largest + std::log(sum);
  return (std::max(log_excess, 0.0) + std::log1p(std::exp(-std::abs(log_excess)))) / (alpha - 1);
}

}  // namespace

double renyi_of(const Mechanism& mechanism, int alpha) {
  return std::visit([alpha](const auto& event) { return renyi(event, alpha) * kRoundUp; }, mechanism);
}

// ln(1 - 1/alpha) + (ln(1/delta) - ln alpha) / (alpha - 1)
double renyi_conversion(int alpha, Delta delta) {
  const double first = std::log1p(-1.0 / alpha);
  const double second = -slack::log_delta_left(slack::of_history(), std::log(delta.value())) / (alpha - 1);
  const double third = std::log(static_cast<double>(alpha)) / (alpha - 1);
  constexpr double kSlack = 8 * std::numeric_limits<double>::epsilon();
  return first + second - third + kSlack * (second + third - first);
}

std::vector<int> renyi_orders() {
  std::vector<int> orders;
  for (int alpha = 2; alpha <= 4096; alpha += std::max(1, alpha / 24)) orders.push_back(alpha);
  return orders;
}

}  // namespace eigenveil
