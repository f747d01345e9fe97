// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eigenveil/privacy/accountant.hpp"

namespace eigenveil {

/// The least epsilon at a delta, rounded up, of all these answers together: "gaussian:mu=0.2,count=8",
/// "pure:epsilon=0.05", "poisson-gaussian:q=0.01,sigma=1,count=1000". An epsilon above 1000 is refused.
Result<double> account_epsilon(const std::vector<std::string>& events, double delta,
                               Accounting accounting = Accounting::kTight);
/// The least delta at an epsilon, rounded up.
Result<double> account_delta(const std::vector<std::string>& events, double epsilon,
                             Accounting accounting = Accounting::kTight);
/// The same answers with the noise that just keeps the budget: their numbers are relative weights.
Result<std::vector<std::string>> calibrate_events(const std::vector<std::string>& events, double epsilon, double delta,
                                                  Accounting accounting = Accounting::kTight);

}  // namespace eigenveil
