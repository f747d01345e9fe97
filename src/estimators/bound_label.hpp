// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

/// The search for the rows' bound, in a plan.
inline constexpr const char* kBoundLabel = "row bound";

}  // namespace eigenveil
