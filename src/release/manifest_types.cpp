// SPDX-License-Identifier: Apache-2.0
#include "manifest_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "eigenveil/release/kinds.hpp"

namespace eigenveil {
namespace {

using nlohmann::json;

/// The keys that models of any kind may have; kinds.cpp has those of one kind alone. A key that is in neither is read
/// nowhere in the program.
constexpr ManifestKey kCommon[] = {
    {"eigenveil", Holds::kText},
    {"model", Holds::kText},
    {"method", Holds::kText},
    {"options", Holds::kObject},
    {"options.row_bound", Holds::kNumber},
    {"adjacency", Holds::kText},
    {"epsilon", Holds::kNumber},
    {"delta", Holds::kNumber},
    {"certified_epsilon", Holds::kNumber},
    {"accounting", Holds::kText},
    {"calibration", Holds::kText},
    {"events", Holds::kList},
    {"noise", Holds::kList},
    {"guarantee", Holds::kText},
    {"guarantee_kind", Holds::kText},
    {"private", Holds::kFlag},
    {"warnings", Holds::kTexts},
    {"ledger", Holds::kObject},
    {"ledger.used", Holds::kFlag},
    {"ledger.dataset", Holds::kText},
    {"ledger.unit", Holds::kText},
    {"ledger.entry", Holds::kCount},
    {"ledger.mark", Holds::kText},
    {"ledger.generation", Holds::kCount},
    {"ledger.epsilon", Holds::kNumber},
    {"ledger.delta", Holds::kNumber},
    {"ledger.spent_before", Holds::kNumber},
    {"ledger.spent_after", Holds::kNumber},
    {"ledger.remaining", Holds::kNumber},
    {"released", Holds::kText},
    {"purpose", Holds::kText},
    {"federation", Holds::kObject},
    {"rows", Holds::kNumber},
    {"noisy_rows", Holds::kNumber},
    {"people", Holds::kNumber},
    {"noisy_people", Holds::kNumber},
    {"person", Holds::kObject},
    {"person.column", Holds::kText},
    {"person.weight", Holds::kText},
    {"person.estimand", Holds::kText},
    {"features", Holds::kTexts},
    {"columns", Holds::kList},
    {"start", Holds::kPromises},
};

constexpr std::size_t kDeepest = 32;
constexpr std::int64_t kLargestCount = 1'000'000'000;
constexpr std::size_t kMostPromises = 1000;

const char* in_words(Holds holds) {
  switch (holds) {
    case Holds::kText:
      return "text";
    case Holds::kTexts:
      return "a list of texts";
    case Holds::kNumber:
      return "a number";
    case Holds::kCount:
      return "a whole number from 0 to a billion";
    case Holds::kFlag:
      return "true or false";
    case Holds::kList:
      return "a list";
    case Holds::kObject:
      return "an object";
    case Holds::kPromises:
      return "a list of at most 1000 promises";
  }
  return "";
}

bool is_promise(const json& value) {
  constexpr std::size_t kLongest = 64;
  const auto has = [&](const char* key, auto is) {
    const auto found = value.find(key);
    return found != value.end() && is(*found);
  };
  const auto text = [](const json& one) {
    return one.is_string() && one.get_ref<const std::string&>().size() <= kLongest;
  };
  const auto number = [](const json& one) { return one.is_number(); };
  return value.is_object() && value.size() == 5 && has("sha256", text) && has("epsilon", number) &&
         has("delta", number) && has("adjacency", text) && has("unit", text);
}

bool fits(const json& value, Holds holds) {
  switch (holds) {
    case Holds::kText:
      return value.is_string();
    case Holds::kTexts:
      return value.is_array() &&
             std::all_of(value.begin(), value.end(), [](const json& one) { return one.is_string(); });
    case Holds::kNumber:
      return value.is_number() || value.is_null();
    case Holds::kCount:
      return value.is_number_unsigned() && value.get<std::uint64_t>() <= kLargestCount;
    case Holds::kFlag:
      return value.is_boolean();
    case Holds::kList:
      return value.is_array();
    case Holds::kObject:
      return value.is_object();
    case Holds::kPromises:
      return value.is_array() && value.size() <= kMostPromises && std::all_of(value.begin(), value.end(), is_promise);
  }
  return false;
}

/// The value of a key, or of a key of a key; nullptr if there is none.
const json* find(const json& manifest, std::string_view path) {
  const std::size_t dot = path.find('.');
  const auto found = manifest.find(std::string(path.substr(0, dot)));
  if (found == manifest.end()) return nullptr;
  if (dot == std::string_view::npos) return &*found;
  const auto inner = found->is_object() ? found->find(std::string(path.substr(dot + 1))) : found->end();
  return found->is_object() && inner != found->end() ? &*inner : nullptr;
}

/// Brackets that are open at once, outside of texts.
std::size_t depth_of(const std::string& text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if ((c == ']' || c == '}') && depth > 0) --depth;
  }
  return deepest;
}

Status check_keys(const json& manifest, std::span<const ManifestKey> keys, const std::string& where) {
  for (const ManifestKey& key : keys) {
    const json* value = find(manifest, key.path);
    if (value != nullptr && !fits(*value, key.holds))
      return bad_input(fmt::format("{}: '{}' in its manifest is not {}. The file is damaged; make it again.", where,
                                   key.path, in_words(key.holds)));
  }
  return {};
}

/// Each promise once held the one before it, one level deeper a release, until nobody could read it. A list has no
/// depth.
void flatten_start(json& manifest) {
  const auto start = manifest.find("start");
  if (start == manifest.end() || !start->is_object()) return;
  json promises = json::array();
  for (json one = std::move(*start); !one.is_null();) {
    json before;
    if (one.is_object() && one.contains("start")) {
      before = std::move(one["start"]);
      one.erase("start");
    }
    promises.push_back(std::move(one));
    one = std::move(before);
  }
  *start = std::move(promises);
}

}  // namespace

Result<json> manifest_from_text(const std::string& text, const std::string& where) {
  json manifest = depth_of(text) > kDeepest ? json(json::value_t::discarded) : json::parse(text, nullptr, false);
  if (manifest.is_discarded() || !manifest.is_object())
    return bad_input(fmt::format(
        "{}: its manifest is not a JSON object such as eigenveil writes. The file is damaged; make it again.", where));
  flatten_start(manifest);
  EIGENVEIL_TRY(check_keys(manifest, kCommon, where));
  EIGENVEIL_TRY(check_keys(manifest, kind_of(manifest).keys, where));
  return manifest;
}

}  // namespace eigenveil
