// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

enum class GepNoise {
  kOnce,      ///< the sums are released once and solved exactly: d^2 memory
  kEachStep,  ///< every round asks for the products that a step needs: O(d) memory besides the rows
};

enum class GepStart {
  kAuto,    ///< once: the dense solution; each step: random
  kRandom,  ///< a fixed public vector
  kAdmm,    ///< once, sparse: a convex relaxation over the released matrices (linalg/fantope.hpp)
};

}  // namespace eigenveil
