// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/pca.hpp"

#include <fmt/format.h>

namespace eigenveil {

Status check(const RowsShape& shape, const PcaOptions& options) {
  if (options.components < 1 || options.components > shape.columns)
    return bad_input(fmt::format("`components` is {} but the data has {} columns", options.components, shape.columns));
  if (options.sparsity && (*options.sparsity < options.components || *options.sparsity > shape.columns))
    return usage_error(fmt::format("`sparsity` is {} but must lie between `components` {} and the {} columns",
                                   *options.sparsity, options.components, shape.columns));
  return {};
}

}  // namespace eigenveil
