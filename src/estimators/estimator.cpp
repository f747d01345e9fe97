// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/estimator.hpp"

#include <fmt/format.h>

namespace eigenveil {

std::optional<std::string> drowned_warning(const Vector& values, double noise_edge, std::string_view what) {
  const auto drowned = (values.array() <= noise_edge).count();
  if (drowned == 0) return std::nullopt;
  return fmt::format(
      "{} of the {} {} no larger than noise alone would give: they say nothing about the data. Ask for fewer "
      "components, or spend more budget.",
      drowned, values.size(), what);
}

}  // namespace eigenveil
