// SPDX-License-Identifier: Apache-2.0
// The title, what must not be overlooked, and the release at a glance.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "eigenveil/release/kinds.hpp"
#include "html.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

std::optional<std::size_t> features(const Model& model) {
  const auto& manifest = model.manifest;
  if (manifest.is_object() && manifest.contains("features") && manifest["features"].is_array())
    return manifest["features"].size();
  return std::nullopt;
}

/// "of 60,000 rows and 784 features", as far as the manifest tells.
std::string data_in_words(const Model& model) {
  const auto people = html::number_at(model.manifest, "people");
  const auto rows = people ? people : html::number_at(model.manifest, "rows");
  const auto columns = features(model);
  const std::string_view what = people ? "people" : std::string_view(kind_of(model.manifest).rows);
  std::string words = "a data set";
  if (rows) words += fmt::format(" of {} {}", whole(*rows), what);
  if (columns)
    words += fmt::format("{} {} features", rows ? " and" : " with", html::grouped(static_cast<long long>(*columns)));
  return words;
}

std::string lead(const Model& model) {
  const auto method = html::text_at(model.manifest, "method");
  std::string words = fmt::format("This page describes {} of {}", released_in_words(model), data_in_words(model));
  if (method) words += fmt::format(" ({} {})", kind_of(model.manifest).method, html::name(*method));
  return words + (is_private(model)
                      ? ". It was released with differential privacy."
                      : ". <strong>The release is not private.</strong> The same computation with secret noise would "
                        "have differential privacy; this one has none.");
}

std::string caution(const std::string& title, const std::string& words) {
  return fmt::format("<div class=\"caution\" role=\"note\"><p><strong>{}</strong> {}</p></div>\n", title, words);
}

/// What the guarantee rests on beyond the noise, where that is more than usual.
std::string conditions(const Model& model) {
  const auto& manifest = model.manifest;
  std::string page;
  if (html::text_at(manifest, "guarantee_kind").value_or("strict") != "strict")
    page +=
        caution("Model-based guarantee.",
                "It holds only for rows that are independent draws of an assumed model. If the rows are not, nothing "
                "is promised.");
  if (html::text_at(manifest, "calibration") == "paper")
    page +=
        caution("The noise of a paper.",
                "It was taken as printed and not fitted to a budget. What it guarantees was computed afterwards and "
                "is stated below.");
  const auto federation = manifest.is_object() ? manifest.find("federation") : manifest.end();
  if (manifest.is_object() && federation != manifest.end() && html::text_at(*federation, "aggregation") == "secure")
    page += caution("Secure aggregation.",
                    "The guarantee rests on how many sites may share what they know with the coordinator: see what it "
                    "rests on, below.");
  return page;
}

std::string warnings(const Model& model) {
  const auto& manifest = model.manifest;
  if (!manifest.is_object() || !manifest.contains("warnings") || !manifest["warnings"].is_array()) return "";
  std::string list;
  for (const auto& warning : manifest["warnings"]) {
    if (warning.is_string()) list += fmt::format("<li>{}</li>\n", html::escape(warning.get<std::string>()));
  }
  if (list.empty()) return "";
  return fmt::format("<div class=\"caution\" role=\"note\"><p><strong>Warnings</strong></p>\n<ul>\n{}</ul>\n</div>\n",
                     list);
}

using Facts = std::vector<std::pair<std::string, std::string>>;

void add_text(Facts& facts, const char* title, const std::optional<std::string>& text) {
  if (text && !text->empty()) facts.emplace_back(title, html::name(*text));
}

nlohmann::json ledger_of(const nlohmann::json& manifest) {
  const auto ledger = manifest.is_object() ? manifest.find("ledger") : manifest.end();
  return manifest.is_object() && ledger != manifest.end() && ledger->is_object() ? *ledger : nlohmann::json::object();
}

std::string glance(const Model& model) {
  const auto& manifest = model.manifest;
  if (!manifest.is_object()) return "";
  const nlohmann::json ledger = ledger_of(manifest);
  Facts facts;
  add_text(facts, "Data set", html::text_at(ledger, "dataset"));
  add_text(facts, "Released", html::text_at(manifest, "released"));
  add_text(facts, "Purpose", html::text_at(manifest, "purpose"));
  if (const auto entry = html::number_at(ledger, "entry"))
    facts.emplace_back("Ledger entry", fmt::format("#{}", whole(*entry)));
  facts.emplace_back(is_private(model) ? "Protects" : "Would protect", "one " + unit_of(manifest));
  const auto epsilon = stated_epsilon(manifest);
  const auto delta = html::number_at(manifest, "delta");
  if (epsilon && delta)
    facts.emplace_back(is_private(model) ? "Privacy" : "Would be",
                       fmt::format("&epsilon;&nbsp;=&nbsp;{}, <span class=\"unbroken\">&delta;&nbsp;=&nbsp;{}</span>",
                                   html::exact(*epsilon), html::exact(*delta)));
  add_text(facts, "Eigenveil version", html::text_at(manifest, "eigenveil"));
  std::string list;
  for (const auto& [title, value] : facts) list += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", title, value);
  return fmt::format("<dl class=\"glance\">\n{}</dl>\n", list);
}

}  // namespace

std::string whole(double value) {
  constexpr double kLargest = 9e15;
  return std::abs(value) < kLargest ? html::grouped(std::llround(value)) : html::rounded(value);
}

std::optional<double> stated_epsilon(const nlohmann::json& manifest) {
  const bool paper = html::text_at(manifest, "calibration") == "paper";
  return html::number_at(manifest, paper ? "certified_epsilon" : "epsilon");
}

std::string unit_of(const nlohmann::json& manifest) {
  if (const auto person = manifest.find("person"); person != manifest.end() && person->is_object()) return "person";
  return kind_of(manifest).rows == "pairs" ? "pair" : "row";
}

std::string head_section(const Model& model) {
  std::string page = fmt::format(
      "<header>\n<p class=\"eyebrow\">Eigenveil release report</p>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>\n",
      kind_of(model.manifest).title, lead(model));
  if (!is_private(model)) {
    page +=
        "<div class=\"alarm\" role=\"alert\"><strong>NOT PRIVATE</strong>\n<p>This model does not "
        "vouch for its privacy: its noise may be known, and can then be taken away. Treat it like the data it was made "
        "from: do not publish it and do not share "
        "it.</p></div>\n";
  }
  return page + glance(model) + conditions(model) + warnings(model) + "</header>\n";
}

}  // namespace eigenveil
