// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eigenveil/estimators/estimator.hpp"
#include "eigenveil/intake/engine.hpp"

namespace eigenveil {

/// What a person should hear before anything is charged.
struct Concern {
  std::string words;
  bool of_rows = false;  ///< it tells something about the rows: for the operator alone
};

/// For the operator alone, of people none of whom has two rows: it is no reason to stop.
inline constexpr std::string_view kOwnPersonEach =
    "every row is its own person, so that somebody with several rows under several ids is not protected (not private: "
    "do not share). Is `person` the right column?";

/// Whether to go on; an error ends the run, and nothing was charged. Not called without a concern.
using Confirm = std::function<Status(const std::vector<Concern>& concerns)>;

/// A guarantee that hardly guarantees, a fit that will learn nothing, rows that will count as zero. `forecast`: the
/// error of the chosen method, in [0, 1], where one was forecast.
std::vector<Concern> concerns_of(const Estimator& estimator, const RowsShape& shape, const Budget& budget,
                                 const BoundingDiagnostics& diagnostics, std::optional<double> forecast);

/// One sentence after the other, and what to do; of the kind that keeps what is private from stdout.
Error unconfirmed(const std::vector<Concern>& concerns);

}  // namespace eigenveil
