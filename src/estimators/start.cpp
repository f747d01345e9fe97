// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/start.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "eigenveil/base/figures.hpp"

namespace eigenveil {

void add_start(Fit& fit, const nlohmann::json& starts, std::string_view used) {
  if (starts.empty()) return;
  fit.facts["start"] = starts;
  constexpr std::size_t kNamed = 3;
  std::string promises;
  for (std::size_t i = 0; i < std::min(kNamed, starts.size()); ++i)
    promises += fmt::format("{}epsilon {}, delta {}", i == 0 ? "" : "; ", plain(starts[i]["epsilon"]),
                            plain(starts[i]["delta"]));
  if (starts.size() > kNamed) promises += fmt::format("; and {} more", starts.size() - kNamed);
  const bool one = starts.size() == 1;
  fit.beside = fmt::format(
      "This release {} of {} ({}), and whoever sees it learns of {} too. What is promised here comes on top: {} "
      "together promise what a ledger adds them up to.",
      used, one ? "another one" : "others, which it was given or which those had used", promises,
      one ? "that one" : "those",
      one ? "if the other one was made of these data as well, the two"
          : "this one and whichever of them were made of these data as well");
  fit.warnings.push_back(fit.beside);
}

}  // namespace eigenveil
