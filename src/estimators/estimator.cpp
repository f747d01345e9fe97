// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/estimator.hpp"

#include <fmt/format.h>

namespace eigenveil {

std::string drowned_warning(std::size_t drowned, std::size_t of) {
  return fmt::format(
      "{} of the {} directions {} no larger than noise alone would give: {} nothing about the data. Ask for fewer "
      "components, or spend more budget.",
      drowned, of, drowned == 1 ? "is" : "are", drowned == 1 ? "it says" : "they say");
}

void warn_if_drowned(Fit& fit, const Vector& values, double noise_edge) {
  const std::size_t drowned = (values.array() <= noise_edge).count();
  if (drowned > 0 && !fit.judge) fit.warnings.push_back(drowned_warning(drowned, values.size()));
}

}  // namespace eigenveil
