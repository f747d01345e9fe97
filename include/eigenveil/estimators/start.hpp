// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "eigenveil/estimators/estimator.hpp"

namespace eigenveil {

/// Says in a fit that it used the numbers of other releases, and what they promised: `starts` lists them
/// (job/manifest.hpp). Given what it used, a release is as private as its noise makes it; but it tells of that, too.
/// `used`: "began with the directions". Nothing is said of none.
void add_start(Fit& fit, const nlohmann::json& starts, std::string_view used);

}  // namespace eigenveil
