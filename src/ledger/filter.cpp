// SPDX-License-Identifier: Apache-2.0
#include "filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "eigenveil/privacy/gaussian_dp.hpp"
#include "eigenveil/privacy/renyi.hpp"

namespace eigenveil::ledger {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// 113 bits: the square of a double (106 bits) is exact, also times a count below 2^7.
#if LDBL_MANT_DIG == 113
using Quad = long double;
#else
__extension__ using Quad = __float128;
#endif
constexpr Quad kNextUp =
    1 + Quad{DBL_EPSILON} * Quad{DBL_EPSILON} / 256;  // 1 + 2^-112: x * kNextUp exceeds x by an ulp

Quad times_up(Quad value, long long count) { return count < 128 ? value * count : value * count * kNextUp * kNextUp; }

// a <= b, both non-negative: the sum, rounded up unless it is exact (s - b is exact: Dekker 1971).
Quad add_up(Quad a, Quad b) {
  const Quad s = a + b;
  return s - b < a ? s * kNextUp : s;
}

// The share by which Gaussian answers are run with more noise than accounted. Charged to pure answers, so that the
// whole history has this reserve for its noise being discrete (filter.proof.md).
constexpr double kDiscreteReserve = 1 + 0x1p-20;

// The GDP parameter of one answer. A Poisson sample has none of use: such plans are held by the Renyi filter.
double gaussian_mu_of(const Mechanism& mechanism) {
  if (const auto* gaussian = std::get_if<GaussianEvent>(&mechanism)) return gaussian->mu;
  if (const auto* pure = std::get_if<PureEvent>(&mechanism)) return mu_of_pure(pure->epsilon) * kDiscreteReserve;
  return kInfinity;
}

Quad charge_of(const Filter& filter, const PrivacyEvent& event) {
  if (filter.kind == Filter::Kind::kRenyi) return times_up(renyi_of(event.mechanism, filter.alpha), event.count);
  const Quad mu = gaussian_mu_of(event.mechanism);
  return times_up(mu * mu, event.count);
}

// Summed from the smallest up, so that the order of the reservations cannot matter; each step is monotone, so a part
// never counts for more than the whole.
Quad charge_of(const Filter& filter, const Events& events) {
  std::vector<Quad> terms;
  for (const PrivacyEvent& event : events) terms.push_back(charge_of(filter, event));
  std::sort(terms.begin(), terms.end());
  Quad sum = 0;
  for (Quad term : terms) sum = term == Quad{kInfinity} ? term : add_up(std::min(sum, term), std::max(sum, term));
  return sum;
}

Quad capacity_of(const Filter& filter, const Limit& limit) {
  if (filter.kind == Filter::Kind::kRenyi)
    return Quad{limit.epsilon.value()} - Quad{renyi_conversion(filter.alpha, limit.delta)};
  const Quad mu = gaussian_mu(limit.epsilon, limit.delta);
  return mu * mu;
}

// The order at which the plan could be repeated most often: later plans of a data set tend to resemble the first.
Filter best_renyi(const Limit& limit, const Events& plan) {
  Filter best;
  Quad least_share = kInfinity;
  for (int alpha : renyi_orders()) {
    const Filter filter{Filter::Kind::kRenyi, alpha};
    const Quad capacity = capacity_of(filter, limit);
    if (!(capacity > 0)) continue;
    const Quad share = charge_of(filter, plan) / capacity;
    if (share < least_share) {
      least_share = share;
      best = filter;
    }
  }
  return best;
}

double root(Quad value) { return std::sqrt(static_cast<double>(value)); }

}  // namespace

std::string describe(const Filter& filter) {
  switch (filter.kind) {
    case Filter::Kind::kOpen:
      return "open";
    case Filter::Kind::kGaussian:
      return "Gaussian: the sum of mu^2 over all answers is limited";
    case Filter::Kind::kRenyi:
      return fmt::format("Renyi: the sum of Renyi divergences of order {} over all answers is limited", filter.alpha);
    case Filter::Kind::kSingle:
      return "single: one plan fills the whole budget";
  }
  return {};
}

bool fits(const Filter& filter, const Limit& limit, const Events& events) {
  if (filter.kind == Filter::Kind::kOpen || filter.kind == Filter::Kind::kSingle) return false;
  return charge_of(filter, events) <= capacity_of(filter, limit);
}

Filter choose_filter(const Limit& limit, const Events& plan) {
  const Filter gaussian{Filter::Kind::kGaussian};
  if (fits(gaussian, limit, plan)) return gaussian;
  const Filter renyi = best_renyi(limit, plan);
  if (fits(renyi, limit, plan)) return renyi;
  const Result<double> own = epsilon_of(plan, limit.delta);
  return {own.ok() && *own <= limit.epsilon.value() ? Filter::Kind::kSingle : Filter::Kind::kOpen};
}

double spent_epsilon(const Filter& filter, const Limit& limit, const Events& events) {
  if (events.empty()) return 0;
  double spent = limit.epsilon.value();
  if (filter.kind == Filter::Kind::kGaussian) spent = gaussian_epsilon(root(charge_of(filter, events)), limit.delta);
  if (filter.kind == Filter::Kind::kRenyi)
    spent = static_cast<double>(charge_of(filter, events)) + renyi_conversion(filter.alpha, limit.delta);
  if (filter.kind == Filter::Kind::kSingle)
    if (const Result<double> own = epsilon_of(events, limit.delta); own.ok()) spent = *own;
  return std::clamp(spent, 0.0, limit.epsilon.value());
}

double recorded_epsilon(const Events& events, Delta delta) {
  if (events.empty()) return 0;
  const Quad mu_squared = charge_of({Filter::Kind::kGaussian}, events);
  if (mu_squared < Quad{kInfinity}) return gaussian_epsilon(root(mu_squared), delta);
  double least = kInfinity;
  for (int alpha : renyi_orders()) {
    const double charge = static_cast<double>(charge_of({Filter::Kind::kRenyi, alpha}, events));
    least = std::min(least, charge + renyi_conversion(alpha, delta));
  }
  return std::max(least, 0.0);
}

double remaining_epsilon(const Filter& filter, const Limit& limit, const Events& events) {
  if (events.empty()) return limit.epsilon.value();
  if (filter.kind == Filter::Kind::kOpen || filter.kind == Filter::Kind::kSingle) return 0;
  const Quad left = capacity_of(filter, limit) - charge_of(filter, events);
  if (left <= 0) return 0;
  const double mu = root(filter.kind == Filter::Kind::kRenyi ? 2 * left / filter.alpha : left);
  const double epsilon = gaussian_epsilon(mu, limit.delta) * (1 - 1e-7);
  if (epsilon <= 0) return 0;
  const double digit = std::pow(10.0, std::floor(std::log10(epsilon)) - 3);
  return std::floor(epsilon / digit) * digit;
}

}  // namespace eigenveil::ledger
