// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eigenveil/ledger/ledger.hpp"

namespace eigenveil::ledger {

using Events = std::vector<PrivacyEvent>;
using Limit = DatasetBudget::Limit;

/// What holds a data set's budget under full adaptivity: filter.proof.md. Chosen from the first plan and the budget
/// alone, then kept.
struct Filter {
  enum class Kind {
    kOpen,      ///< nothing is charged yet
    kGaussian,  ///< the sum of mu^2 stays within gaussian_mu(epsilon, delta)^2
    kRenyi,     ///< the sum of Renyi divergences of order alpha stays within epsilon - renyi_conversion(alpha, delta)
    kSingle,    ///< one plan, certified by itself, fills the budget
  };
  Kind kind = Kind::kOpen;
  int alpha = 0;
};

std::string describe(const Filter& filter);

/// Whether everything charged so far together with a new plan stays within the budget. Exact: the order of the
/// events does not matter, and a sum that meets the budget to the last bit fits.
bool fits(const Filter& filter, const Limit& limit, const Events& events);

/// The filter that a first plan fixes; kOpen when the plan exceeds the budget under each of them.
Filter choose_filter(const Limit& limit, const Events& plan);

/// The epsilon at the limit's delta of everything charged: a report, never above the limit.
double spent_epsilon(const Filter& filter, const Limit& limit, const Events& events);
/// The same for a data set without a limit, at `delta`: a report, not a promise.
double recorded_epsilon(const Events& events, Delta delta);
/// What a further Gaussian release may ask for at the limit's delta, rounded down to four digits.
double remaining_epsilon(const Filter& filter, const Limit& limit, const Events& events);

}  // namespace eigenveil::ledger
