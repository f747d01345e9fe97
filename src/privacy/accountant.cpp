#include "eigenveil/privacy/accountant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "eigenveil/privacy/gaussian_dp.hpp"
#include "eigenveil/privacy/pld.hpp"
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
  return std::clamp(std::exp(log_delta) * (1 + 1e-12), std::numeric_limits<double>::denorm_min(), 1.0);
}

Result<double> epsilon_tight(const std::vector<PrivacyEvent>& events, const Summary& summary, Delta delta) {
  if (events.empty()) return 0.0;
  if (summary.mu > tag::Mu::kMost) return kInfinity;
  if (summary.gaussian_only) return gaussian_epsilon(summary.mu, delta);
  // 2^-41: what the discrete noise of Gaussian answers may cost beyond the continuous curve (discrete.proof.md).
  return pld_epsilon(events, std::log(delta.value())) + (summary.mu > 0 ? 0x1p-41 : 0);
}

Result<double> delta_tight(const std::vector<PrivacyEvent>& events, const Summary& summary, double epsilon) {
  if (events.empty()) return 0.0;
  if (summary.mu > tag::Mu::kMost) return 1.0;
  if (summary.gaussian_only) {
    // The logarithm of a Gaussian's delta is finite in exact arithmetic.
    const double log_delta = gaussian_log_delta(summary.mu, epsilon);
    return delta_from_log(std::max(log_delta, std::numeric_limits<double>::lowest()));
  }
  return delta_from_log(pld_log_delta(events, epsilon));
}

}  // namespace

Result<double> epsilon_of(const std::vector<PrivacyEvent>& events, Delta delta, Accounting accounting) try {
  const auto summary = summarise(events);
  if (!summary) return summary.error();
  if (accounting == Accounting::kTight) return epsilon_tight(events, *summary, delta);
  if (summary->subsampled) return no_zcdp();
  return events.empty() ? 0.0 : zcdp::epsilon(summary->rho, std::log(delta.value()));
} catch (const std::bad_alloc&) {
  return internal_error("There is not enough memory to compose the privacy losses; free some, or use fewer events");
}

Result<double> delta_of(const std::vector<PrivacyEvent>& events, double epsilon, Accounting accounting) try {
  if (!(epsilon >= 0 && std::isfinite(epsilon)))
    return usage_error(fmt::format("Epsilon must be finite and not negative, but is {}", epsilon));
  const auto summary = summarise(events);
  if (!summary) return summary.error();
  if (accounting == Accounting::kTight) return delta_tight(events, *summary, epsilon);
  if (summary->subsampled) return no_zcdp();
  return events.empty() ? 0.0 : delta_from_log(zcdp::log_delta(summary->rho, epsilon));
} catch (const std::bad_alloc&) {
  return internal_error("There is not enough memory to compose the privacy losses; free some, or use fewer events");
}

}  // namespace eigenveil
