// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/accountant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "eigenveil/privacy/gaussian_dp.hpp"
#include "eigenveil/privacy/pld.hpp"
#include "slack.hpp"
#include "zcdp.hpp"

namespace eigenveil {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What the events amount to where there is a closed form.
struct Summary {
  double mu = 0;   ///< of all Gaussian answers together, rounded up
  double rho = 0;  ///< zCDP of Gaussian and pure answers together, rounded up
  bool gaussian_only = true;
  bool subsampled = false;
};

Result<Summary> summarise(const std::vector<PrivacyEvent>& events) {
  Summary out;
  for (const PrivacyEvent& event : events) {
    if (const auto status = validate(event); !status)
      return Error{status.error().code, event.label.empty()
                                            ? status.error().message
                                            : fmt::format("{} (event '{}')", status.error().message, event.label)};
    const auto count = static_cast<double>(event.count);
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) {
      out.mu = std::hypot(out.mu, gaussian->mu * std::sqrt(count));
      out.rho += gaussian->mu * gaussian->mu / 2 * count;
      continue;
    }
    out.gaussian_only = false;
    if (const auto* pure = std::get_if<PureEvent>(&event.mechanism))
      out.rho += pure->epsilon * pure->epsilon / 2 * count;
    else
      out.subsampled = true;
  }
  // of at most three roundings for each event
  const double rounding = 1 + 4e-16 * static_cast<double>(events.size());
  out.mu *= rounding;
  out.rho *= rounding;
  return out;
}

Error no_zcdp() {
  return usage_error(
      "zCDP accounting covers gaussian and pure events only, but the plan has a poisson-gaussian event; use the tight "
      "accounting");
}

/// e^log_delta, rounded up: above 0 unless delta is exactly 0, never above 1.
double delta_from_log(double log_delta) {
  if (log_delta == -kInfinity) return 0;
  return std::clamp(std::exp(log_delta) * (1 + slack::kEpsilon), std::numeric_limits<double>::denorm_min(), 1.0);
}

/// Gaussian answers beyond it have an epsilon above slack::kLargestEpsilon at every delta up to 1/2, and the range of
/// double is never left below it.
constexpr double kLargestMu = 100;

// The curves of the ideal mechanisms, with real noise and real arithmetic. What is lacking to those that run is added
// in `epsilon_of` and `delta_of`, from the one table of slack.md.

double ideal_epsilon(const std::vector<PrivacyEvent>& events, const Summary& summary, double log_delta,
                     Accounting accounting) {
  if (summary.mu > kLargestMu || log_delta == -kInfinity) return kInfinity;
  if (accounting == Accounting::kZcdp) return zcdp::epsilon(summary.rho, log_delta);
  return summary.gaussian_only ? gaussian_epsilon(summary.mu, log_delta) : pld_epsilon(events, log_delta);
}

double ideal_log_delta(const std::vector<PrivacyEvent>& events, const Summary& summary, double epsilon,
                       Accounting accounting) {
  if (summary.mu > kLargestMu) return 0;
  if (accounting == Accounting::kZcdp) return zcdp::log_delta(summary.rho, epsilon);
  if (!summary.gaussian_only) return pld_log_delta(events, epsilon);
  // The logarithm of a Gaussian's delta is finite in exact arithmetic.
  return std::max(gaussian_log_delta(summary.mu, epsilon), std::numeric_limits<double>::lowest());
}

}  // namespace

Result<double> epsilon_of(const std::vector<PrivacyEvent>& events, Delta delta, Accounting accounting) try {
  const auto summary = EIGENVEIL_TRY(summarise(events));
  if (accounting == Accounting::kZcdp && summary.subsampled) return no_zcdp();
  if (events.empty()) return 0.0;
  const auto paid = slack::of_plan(events);
  const double left = slack::log_delta_left(paid, std::log(delta.value()));
  return slack::epsilon_with(paid, ideal_epsilon(events, summary, left, accounting));
} catch (const std::bad_alloc&) {
  return internal_error("There is not enough memory to compose the privacy losses; free some, or use fewer events");
}

Result<double> delta_of(const std::vector<PrivacyEvent>& events, double epsilon, Accounting accounting) try {
  if (!(epsilon >= 0 && epsilon <= slack::kLargestEpsilon))
    return usage_error(fmt::format("`epsilon` must lie between 0 and {}, but is {}", slack::kLargestEpsilon, epsilon));
  const auto summary = EIGENVEIL_TRY(summarise(events));
  if (accounting == Accounting::kZcdp && summary.subsampled) return no_zcdp();
  if (events.empty()) return 0.0;
  const auto paid = slack::of_plan(events);
  const double at = std::max(0.0, epsilon * (1 - slack::kEpsilon) - paid.epsilon);
  const double ideal = ideal_log_delta(events, summary, at, accounting);
  return delta_from_log(slack::log_delta_with(paid, ideal, epsilon));
} catch (const std::bad_alloc&) {
  return internal_error("There is not enough memory to compose the privacy losses; free some, or use fewer events");
}

}  // namespace eigenveil
