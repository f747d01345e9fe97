// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/verdict/verdict.hpp"

namespace eigenveil {

/// The eigenvalues behind a released second moment, without what noise and sampling added.
struct MomentModel {
  Vector top;        ///< those that stand out
  Vector response;   ///< of each: by how much of a change of it the released one changes
  double level = 0;  ///< of all others
};

/// The verdict of `judge_moments`, and what it rests on.
Result<Verdict> judge_moments(const MomentMatrix& released, std::size_t components, MomentModel& model);

}  // namespace eigenveil
