// SPDX-License-Identifier: Apache-2.0
#include "slack.hpp"

#include <algorithm>
#include <cmath>

#include "loss.hpp"

namespace eigenveil::slack {
namespace {

using loss::kInfinity;
using loss::log_add;

constexpr Slack kGaussianNoise{kLatticeEpsilon, kLatticeLogDelta, kLogCut};
constexpr Slack kLaplaceNoise{0, 0, -kInfinity};  // exact, on all integers

struct Noise {
  const Slack& operator()(const GaussianEvent&) const { return kGaussianNoise; }
  const Slack& operator()(const PureEvent&) const { return kLaplaceNoise; }
  const Slack& operator()(const PoissonGaussianEvent&) const { return kGaussianNoise; }
};

}  // namespace

// four times (3.4 log2 N + 8) 2^-53 of fourier.proof.md, and a little more
double transform(double points) { return 1.5e-15 * (4 + std::log2(points)); }

Slack of_plan(const std::vector<PrivacyEvent>& events) {
  Slack all{0, 0, -kInfinity};
  double answers = 0;
  for (const PrivacyEvent& event : events) {
    const Slack& noise = std::visit(Noise{}, event.mechanism);
    // One bound for all integers that a plan releases, not one for each answer.
    all = {std::max(all.epsilon, noise.epsilon), std::max(all.log_factor, noise.log_factor),
           std::max(all.log_cut, noise.log_cut)};
    answers += static_cast<double>(event.count);
  }
  all.log_factor += kCurve + kSums + kAnswer * answers;
  return all;
}

Slack of_history() { return {0, kCurve, kLogCut}; }

double log_delta_left(const Slack& slack, double log_delta) {
  const double cut = slack.log_cut + kLargestEpsilon - log_delta;
  return cut < 0 ? log_delta + std::log1p(-std::exp(cut)) - slack.log_factor : -kInfinity;
}

double log_delta_with(const Slack& slack, double log_delta, double epsilon) {
  double sum = log_delta + slack.log_factor;
  // (epsilon + s, delta)-DP is (epsilon, delta + e^epsilon (e^s - 1))-DP
  if (const double lacking = slack.epsilon - epsilon; lacking > 0)
    sum = log_add(sum, epsilon + std::log(std::expm1(lacking)) + kCurve);
  return std::min(0.0, log_add(sum, epsilon + slack.log_cut));
}

double epsilon_with(const Slack& slack, double epsilon) {
  const double all = (epsilon + slack.epsilon) * (1 + kEpsilon);
  return all <= kLargestEpsilon ? all : kInfinity;
}

}  // namespace eigenveil::slack
