// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/account.hpp"

#include <fmt/format.h>

#include <cmath>

namespace eigenveil {
namespace {

Result<std::vector<PrivacyEvent>> events_of(const std::vector<std::string>& texts) {
  std::vector<PrivacyEvent> events;
  for (const std::string& text : texts) events.push_back(EIGENVEIL_TRY(event_from_text(text)));
  if (events.empty()) return usage_error("there is no answer to account for: list at least one event");
  return events;
}

}  // namespace

Result<double> account_epsilon(const std::vector<std::string>& events, double delta, Accounting accounting) {
  const auto listed = EIGENVEIL_TRY(events_of(events));
  const auto at = EIGENVEIL_TRY(Delta::of(delta));
  const auto epsilon = EIGENVEIL_TRY(epsilon_of(listed, at, accounting));
  if (!std::isinf(epsilon)) return epsilon;
  return usage_error(fmt::format(
      "these answers together have an epsilon above 1000 at delta {:g}, where nothing is promised; list fewer of "
      "them, or such with more noise",
      delta));
}

Result<double> account_delta(const std::vector<std::string>& events, double epsilon, Accounting accounting) {
  const auto listed = EIGENVEIL_TRY(events_of(events));
  const auto at = EIGENVEIL_TRY(Epsilon::of(epsilon));
  return delta_of(listed, at.value(), accounting);
}

Result<std::vector<std::string>> calibrate_events(const std::vector<std::string>& events, double epsilon, double delta,
                                                  Accounting accounting) {
  const PrivacyPlan draft(Adjacency::kReplaceOne, EIGENVEIL_TRY(events_of(events)));
  const auto loss = EIGENVEIL_TRY(Epsilon::of(epsilon));
  const auto failure = EIGENVEIL_TRY(Delta::of(delta));
  const auto plan = EIGENVEIL_TRY(calibrate(draft, loss, failure, accounting));
  std::vector<std::string> texts;
  for (const PrivacyEvent& event : plan.events) texts.push_back(to_text(event));
  return texts;
}

}  // namespace eigenveil
