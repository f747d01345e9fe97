// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "eigenveil/release/model.hpp"

namespace eigenveil {

using nlohmann::json;

json events_to_json(const std::vector<PrivacyEvent>& events) {
  json list = json::array();
  for (const auto& event : events) {
    const PrivacyEvent one{event.label, event.mechanism, 1};
    list.push_back({{"label", event.label}, {"mechanism", to_text(one)}, {"count", event.count}});
  }
  return list;
}

Result<std::vector<PrivacyEvent>> events_from_json(const json& list) {
  if (!list.is_array()) return bad_input("'events' in the manifest is not a list.");
  std::vector<PrivacyEvent> events;
  for (const auto& entry : list) {
    const auto broken = [&](const std::string& why) {
      return bad_input(fmt::format("Event {} of 'events' in the manifest: {}", events.size() + 1, why));
    };
    if (!entry.is_object() || !entry.contains("mechanism") || !entry["mechanism"].is_string()) {
      return broken("it has no 'mechanism' such as \"gaussian:mu=0.2\".");
    }
    auto event = event_from_text(entry["mechanism"].get<std::string>());
    if (!event.ok()) return broken(event.error().message);
    if (entry.contains("label") && entry["label"].is_string()) event->label = entry["label"].get<std::string>();
    if (const auto count = entry.find("count"); count != entry.end()) {
      if (!count->is_number_integer()) return broken("its 'count' is not a whole number.");
      event->count = count->get<long long>();
    }
    if (auto valid = validate(*event); !valid.ok()) return broken(valid.error().message);
    events.push_back(*std::move(event));
  }
  return events;
}

}  // namespace eigenveil
