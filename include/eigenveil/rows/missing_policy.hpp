// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

enum class MissingPolicy {
  kError,    ///< a NaN or an infinity is an error that names row and column
  kZeroRow,  ///< its row counts as the zero row
};

}  // namespace eigenveil
