// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/described.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace eigenveil {

Result<double> Stated::number(const std::string& name) const {
  const std::string& said = text(name);
  double value = 0;
  const auto [end, failure] = std::from_chars(said.data(), said.data() + said.size(), value);
  if (failure == std::errc() && end == said.data() + said.size() && std::isfinite(value)) return value;
  return usage_error(fmt::format("`{}` must be a number, but is '{}'", name, said));
}

Result<std::optional<double>> Stated::number_unless(const std::string& name, std::string_view word) const {
  if (text(name) == word) return std::optional<double>();
  return std::optional<double>(EIGENVEIL_TRY(number(name)));
}

}  // namespace eigenveil
