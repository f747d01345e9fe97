// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

enum class MissingPolicy {
  kError,    ///< a NaN or an infinity is an error that names row and column
  kZeroRow,  ///< its row counts as the zero row
  // Public rules for a cell (MissingRule): the row stays. One without a class or a response counts as the zero row.
  kValue,     ///< it counts as a public value
  kCategory,  ///< likewise; one of a categorical column counts as a category of its own
};

}  // namespace eigenveil
