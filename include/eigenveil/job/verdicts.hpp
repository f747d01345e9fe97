// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "eigenveil/estimators/estimator.hpp"

namespace eigenveil {

/// Judges a fit and adds what was found to its arrays and facts, under the names that its kind of model gives them.
/// A fit that cannot be judged says so in a warning: what was paid for is not lost.
void add_verdicts(Fit& fit, std::string_view kind);

}  // namespace eigenveil
