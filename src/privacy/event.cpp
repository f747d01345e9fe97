// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/privacy/event.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <string_view>

namespace eigenveil {
namespace {

constexpr std::string_view kForms =
    "expected gaussian:mu=M, pure:epsilon=E or poisson-gaussian:q=Q,sigma=S, each with ,count=N if repeated";

using Fields = std::map<std::string, std::string, std::less<>>;

Error refuse(std::string_view text, std::string_view reason) {
  return usage_error(fmt::format("The event '{}' {}; {}", text, reason, kForms));
}

Result<Fields> split_fields(std::string_view text, std::string_view list) {
  Fields fields;
  while (!list.empty()) {
    const auto comma = list.find(',');
    const auto item = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    const auto equals = item.find('=');
    if (equals == std::string_view::npos) return refuse(text, fmt::format("has '{}', which is no field=value", item));
    if (!fields.emplace(item.substr(0, equals), item.substr(equals + 1)).second)
      return refuse(text, fmt::format("gives {} twice", item.substr(0, equals)));
  }
  return fields;
}

template <class Number>
bool parse(const std::string& word, Number& value) {
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  return problem == std::errc{} && end == word.data() + word.size();
}

/// Takes `field` out of `fields`.
template <class Level>
Result<Level> take_level(std::string_view text, Fields& fields, std::string_view field) {
  const auto found = fields.find(field);
  if (found == fields.end()) return refuse(text, fmt::format("lacks {}", field));
  double value = 0;
  if (!parse(found->second, value) || !std::isfinite(value))
    return refuse(text, fmt::format("has {}='{}', which is no finite number", field, found->second));
  fields.erase(found);
  return Level::of(value);
}

Result<Mechanism> take_mechanism(std::string_view text, std::string_view kind, Fields& fields) {
  if (kind == "gaussian") {
    const auto mu = EIGENVEIL_TRY(take_level<Mu>(text, fields, "mu"));
    return Mechanism{GaussianEvent{mu}};
  }
  if (kind == "pure") {
    const auto epsilon = EIGENVEIL_TRY(take_level<PureEpsilon>(text, fields, "epsilon"));
    return Mechanism{PureEvent{epsilon}};
  }
  if (kind == "poisson-gaussian") {
    const auto q = EIGENVEIL_TRY(take_level<SampleRate>(text, fields, "q"));
    const auto sigma = EIGENVEIL_TRY(take_level<NoiseMultiplier>(text, fields, "sigma"));
    return Mechanism{PoissonGaussianEvent{q, sigma}};
  }
  return refuse(text, fmt::format("is of the unknown kind '{}'", kind));
}

struct Writer {
  std::string operator()(const GaussianEvent& event) const { return fmt::format("gaussian:mu={}", event.mu.value()); }
  std::string operator()(const PureEvent& event) const { return fmt::format("pure:epsilon={}", event.epsilon.value()); }
  std::string operator()(const PoissonGaussianEvent& event) const {
    return fmt::format("poisson-gaussian:q={},sigma={}", event.q.value(), event.sigma.value());
  }
};

}  // namespace

std::string out_of_range(const char* name, double least, double most, double value) {
  return fmt::format("{} must lie between {:.3g} and {:.3g}, but is {}", name, least, most, value);
}

Result<PrivacyEvent> event_from_text(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) return refuse(text, "has no ':' after its kind");
  auto split = EIGENVEIL_TRY(split_fields(text, std::string_view(text).substr(colon + 1)));
  Fields fields = std::move(split);
  PrivacyEvent event{.label = {}, .mechanism = GaussianEvent{1}, .count = 1};
  if (const auto count = fields.find("count"); count != fields.end()) {
    if (!parse(count->second, event.count))
      return refuse(text, fmt::format("has count='{}', which is no whole number", count->second));
    fields.erase(count);
  }
  const auto mechanism = EIGENVEIL_TRY(take_mechanism(text, std::string_view(text).substr(0, colon), fields));
  if (!fields.empty()) return refuse(text, fmt::format("has the unknown field {}", fields.begin()->first));
  event.mechanism = mechanism;
  EIGENVEIL_TRY(validate(event));
  return event;
}

std::string to_text(const PrivacyEvent& event) {
  const std::string text = std::visit(Writer{}, event.mechanism);
  return event.count == 1 ? text : fmt::format("{},count={}", text, event.count);
}

Status validate(const PrivacyEvent& event) {
  if (event.count < 1)
    return usage_error(fmt::format("count of a privacy event must be at least 1, but is {}", event.count));
  return {};
}

}  // namespace eigenveil
