#include "manifest_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace eigenveil {
namespace {

using nlohmann::json;

/// What a key may hold. A number that is not finite is written as null, which therefore passes for a number.
enum class Holds : std::uint8_t { kText, kTexts, kNumber, kCount, kFlag, kList, kObject };

struct KnownKey {
  std::string_view path;  ///< "ledger.used" is the key used of the object ledger
  Holds holds;
};

/// Every key that is read from a model file anywhere in the program.
constexpr KnownKey kKnown[] = {
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
    {"federation", Holds::kObject},
    {"rows", Holds::kNumber},
    {"noisy_rows", Holds::kNumber},
    {"noise_edge", Holds::kNumber},
    {"ridge", Holds::kNumber},
    {"features", Holds::kTexts},
    {"x_features", Holds::kCount},
    {"columns", Holds::kList},
    {"classes", Holds::kTexts},
    {"prompts", Holds::kTexts},
    {"planner", Holds::kObject},
    {"planner.chosen", Holds::kText},
    {"planner.forecasts", Holds::kList},
    {"error_rates", Holds::kObject},
    {"encoders", Holds::kObject},
    {"encoders.image", Holds::kText},
    {"encoders.text", Holds::kText},
    {"encoders.height", Holds::kCount},
    {"encoders.width", Holds::kCount},
    {"encoders.channels", Holds::kCount},
    {"encoders.lower", Holds::kNumber},
    {"encoders.upper", Holds::kNumber},
};

constexpr std::size_t kDeepest = 32;
constexpr std::int64_t kLargestCount = 1'000'000'000;

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
  }
  return "";
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

}  // namespace

Result<json> manifest_from_text(const std::string& text, const std::string& where) {
  json manifest = depth_of(text) > kDeepest ? json(json::value_t::discarded) : json::parse(text, nullptr, false);
  if (manifest.is_discarded() || !manifest.is_object())
    return bad_input(fmt::format(
        "{}: its manifest is not a JSON object such as eigenveil writes. The file is damaged; make it again.", where));
  for (const KnownKey& key : kKnown) {
    const json* value = find(manifest, key.path);
    if (value != nullptr && !fits(*value, key.holds))
      return bad_input(fmt::format("{}: '{}' in its manifest is not {}. The file is damaged; make it again.", where,
                                   key.path, in_words(key.holds)));
  }
  return manifest;
}

}  // namespace eigenveil
