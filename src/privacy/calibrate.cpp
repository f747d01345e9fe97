// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"
#include "slack.hpp"

namespace eigenveil {
namespace {

constexpr double kNearEnough = 0.9995;  // of the budget
constexpr double kAim = 0.99975;        // where interpolation aims, between that and the budget

/// What lies beyond the range of a number of an event stays at its end.
template <class Tag>
double within(double value) {
  return std::clamp(value, Tag::kLeast, Tag::kMost);
}

struct Scaler {
  double s;
  Mechanism operator()(const GaussianEvent& event) const { return GaussianEvent{within<tag::Mu>(event.mu * s)}; }
  Mechanism operator()(const PureEvent& event) const { return PureEvent{within<tag::PureEpsilon>(event.epsilon * s)}; }
  Mechanism operator()(const PoissonGaussianEvent& event) const {
    return PoissonGaussianEvent{event.q, within<tag::NoiseMultiplier>(event.sigma / s)};
  }
};

PrivacyPlan scaled(const PrivacyPlan& draft, double s) {
  PrivacyPlan plan = draft;
  for (PrivacyEvent& event : plan.events) event.mechanism = std::visit(Scaler{s}, event.mechanism);
  return plan;
}

/// The squared loss of a plan at scale 1, as if every answer were Gaussian: a first guess rests on it.
struct Weight {
  double operator()(const GaussianEvent& event) const { return event.mu; }
  double operator()(const PureEvent& event) const { return event.epsilon; }
  double operator()(const PoissonGaussianEvent& event) const { return event.q / event.sigma; }
};

/// Without any noise a Poisson sample still hides a row that is never drawn: delta(eps) <= 1 - prod (1-q)^count.
bool delta_covers(const PrivacyPlan& draft, Delta delta) {
  double log_never_drawn = 0;
  for (const PrivacyEvent& event : draft.events) {
    const auto* poisson = std::get_if<PoissonGaussianEvent>(&event.mechanism);
    if (poisson == nullptr) return false;
    log_never_drawn += static_cast<double>(event.count) * std::log1p(-poisson->q);
  }
  return -std::expm1(log_never_drawn) <= delta.value();
}

Result<double> first_guess(const PrivacyPlan& draft, Epsilon epsilon, Delta delta) {
  if (draft.events.empty()) return usage_error("A plan without events has no noise to calibrate");
  double weight = 0;
  for (const PrivacyEvent& event : draft.events) {
    EIGENVEIL_TRY(validate(event));
    weight = std::hypot(weight, std::visit(Weight{}, event.mechanism) * std::sqrt(static_cast<double>(event.count)));
  }
  if (delta_covers(draft, delta))
    return usage_error(fmt::format(
        "Delta {} covers the chance that a row is drawn at all, so every noise scale fits; choose a smaller delta",
        delta.value()));
  // A hair less, so that rounding in the weights does not push a Gaussian plan, whose guess is exact, over the budget.
  const auto paid = slack::of_plan(draft.events);
  const double left = slack::log_delta_left(paid, std::log(delta.value()));
  const double s = gaussian_mu(epsilon.value() - paid.epsilon, left) / weight * (1 - 10 * slack::kEpsilon);
  if (std::isfinite(s) && s > 0) return s;
  return usage_error("The weights of a plan must be finite and not all vanishing, or no noise scale fits the budget");
}

/// A scale, the epsilon certified for it, and the two ends between which the budget lies.
struct Trial {
  double log_scale;
  double epsilon;
};

class Search {
 public:
  Search(const PrivacyPlan& draft, Epsilon budget, Delta delta, Accounting accounting)
      : draft_(draft), budget_(budget.value()), delta_(delta), accounting_(accounting) {}

  /// The largest scale, nearly, whose certified epsilon is within the budget.
  Result<double> run(double guess) {
    Status bracketed = bracket(std::log(guess));
    if (!bracketed) return bracketed.error();
    for (int step = 0; step < 100 && fits_.epsilon < kNearEnough * budget_; ++step) {
      const double width = exceeds_.log_scale - fits_.log_scale;
      if (width < 1e-12) break;  // epsilon jumps over the budget here
      EIGENVEIL_TRY(try_at(fits_.log_scale + width * share(step)));
    }
    return std::exp(fits_.log_scale);
  }

 private:
  Status try_at(double log_scale) {
    const auto epsilon = EIGENVEIL_TRY(epsilon_of(scaled(draft_, std::exp(log_scale)).events, delta_, accounting_));
    (epsilon <= budget_ ? fits_ : exceeds_) = {log_scale, epsilon};
    (epsilon <= budget_ ? has_fit_ : has_excess_) = true;
    return {};
  }

  Status bracket(double log_guess) {
    EIGENVEIL_TRY(try_at(log_guess));
    for (double stride = 0.05; !(has_fit_ && has_excess_); stride *= 2) {
      if (stride > 60)
        return usage_error(fmt::format("No noise scale reaches epsilon {} at delta {}: {}", budget_, delta_.value(),
                                       has_fit_
                                           ? "the delta alone already covers the whole plan; choose a smaller delta"
                                           : "even the largest noise exceeds it; choose a larger epsilon or delta"));
      EIGENVEIL_TRY(try_at(has_fit_ ? fits_.log_scale + stride : exceeds_.log_scale - stride));
    }
    return {};
  }

  /// How far to go from the fitting end: where ln epsilon, interpolated in ln s, is the aim; every third step halves.
  double share(int step) const {
    if (step % 3 == 2 || !(fits_.epsilon > 0) || !std::isfinite(exceeds_.epsilon)) return 0.5;
    const double whole = std::log(exceeds_.epsilon / fits_.epsilon);
    return std::clamp(std::log(kAim * budget_ / fits_.epsilon) / whole, 0.02, 0.98);
  }

  const PrivacyPlan& draft_;
  double budget_;
  Delta delta_;
  Accounting accounting_;
  Trial fits_{};
  Trial exceeds_{};
  bool has_fit_ = false;
  bool has_excess_ = false;
};

}  // namespace

Result<PrivacyPlan> calibrate(const PrivacyPlan& draft, Epsilon epsilon, Delta delta, Accounting accounting) {
  const auto guess = EIGENVEIL_TRY(first_guess(draft, epsilon, delta));
  const auto scale = EIGENVEIL_TRY(Search(draft, epsilon, delta, accounting).run(guess));
  PrivacyPlan plan = scaled(draft, scale);
  // What is handed out is what was certified, once more.
  const auto certified = EIGENVEIL_TRY(epsilon_of(plan.events, delta, accounting));
  if (!(certified <= epsilon.value()))
    return internal_error(
        fmt::format("The calibrated plan has epsilon {}, above the budget {}", certified, epsilon.value()));
  return plan;
}

}  // namespace eigenveil
