// SPDX-License-Identifier: Apache-2.0
// What was released, under which guarantee, and the plain facts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "directions.hpp"
#include "eigenveil/release/kinds.hpp"
#include "html.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

/// How many directions of the kind were released: pairs of them for two views.
std::optional<Eigen::Index> directions(const Model& model) {
  const auto set = directions_of(model, "");
  if (!set.ok()) return std::nullopt;
  return set->rows.rows() / static_cast<Eigen::Index>(kind_of(model.manifest).scores.size());
}

std::string whole(double value) {
  constexpr double kLargest = 9e15;
  return std::abs(value) < kLargest ? html::grouped(std::llround(value)) : html::rounded(value);
}

std::optional<std::size_t> features(const Model& model) {
  const auto& manifest = model.manifest;
  if (manifest.contains("features") && manifest["features"].is_array()) return manifest["features"].size();
  return std::nullopt;
}

/// What the guarantee holds for: nothing beyond what the manifest's own words say.
std::string neighbours_in_words(const nlohmann::json& manifest) {
  const std::string adjacency = html::text_at(manifest, "adjacency").value_or("");
  if (html::text_at(manifest, "guarantee_kind").value_or("strict") != "strict") {
    return "This is a model-based guarantee: it holds only for rows that are independent draws of the model, and for "
           "neighbours that replace one by an independent copy. For other rows or neighbours nothing is promised.";
  }
  if (adjacency == "replace-one") {
    return "This holds between any two data sets of which one comes from the other by replacing one row; the number of "
           "rows is public.";
  }
  if (adjacency == "add-remove-one") {
    return "This holds between any two data sets of which one comes from the other by adding or removing one row; the "
           "number of rows is kept private.";
  }
  return adjacency.empty() ? ""
                           : fmt::format("Neighbouring data sets are those of the relation {}.", html::name(adjacency));
}

std::string accounting_in_words(const std::string& accounting) {
  if (accounting == "tight") return "The total over all noisy answers was certified by tight accounting.";
  if (accounting == "zcdp")
    return "The total over all noisy answers was certified by zero-concentrated differential privacy.";
  return accounting.empty()
             ? ""
             : fmt::format("The total over all noisy answers was certified by {} accounting.", html::name(accounting));
}

/// "of 60,000 rows and 784 features", as far as the manifest tells.
std::string data_in_words(const Model& model) {
  const auto rows = html::number_at(model.manifest, "rows");
  const auto columns = features(model);
  std::string words = "a data set";
  const auto people = html::number_at(model.manifest, "people");
  if (rows) words += fmt::format(" of {} rows", whole(*rows));
  if (people) words += fmt::format(" of {} people", whole(*people));
  if (columns)
    words += fmt::format("{} {} features", rows || people ? " and" : " with",
                         html::grouped(static_cast<long long>(*columns)));
  return words;
}

std::string parameters(const Model& model) {
  const auto epsilon = stated_epsilon(model.manifest);
  const auto delta = html::number_at(model.manifest, "delta");
  return fmt::format("&epsilon;&nbsp;=&nbsp;{} and &delta;&nbsp;=&nbsp;{}",
                     epsilon ? html::exact(*epsilon) : "(not stated)", delta ? html::exact(*delta) : "(not stated)");
}

std::string summary(const Model& model) {
  const auto& manifest = model.manifest;
  const auto method = html::text_at(manifest, "method");
  std::string words = fmt::format("This page describes {} of {}", released_in_words(model), data_in_words(model));
  if (method) words += fmt::format(", computed by the method {}", html::name(*method));
  words += ". ";
  std::string adjacency = neighbours_in_words(manifest);
  if (manifest.contains("federation")) adjacency += " The guarantee below names the condition.";
  const std::string accounting = accounting_in_words(html::text_at(manifest, "accounting").value_or(""));
  const ModelKind& kind = kind_of(model.manifest);
  const bool plural = kind.many.starts_with("{}") && directions(model).value_or(1) != 1;
  if (is_private(model)) {
    return words + fmt::format("{} released with differential privacy at {}. {} {}", plural ? "They were" : "It was",
                               parameters(model), adjacency, accounting);
  }
  return words + fmt::format(
                     "<strong>The release is not private.</strong> The same computation with secret noise would have "
                     "differential privacy at {}; this one has none.",
                     parameters(model));
}

std::string warnings(const Model& model) {
  const auto& manifest = model.manifest;
  if (!manifest.is_object() || !manifest.contains("warnings") || !manifest["warnings"].is_array()) return "";
  std::string list;
  for (const auto& warning : manifest["warnings"]) {
    if (warning.is_string()) list += fmt::format("<li>{}</li>\n", html::escape(warning.get<std::string>()));
  }
  if (list.empty()) return "";
  return fmt::format("<div class=\"caution\" role=\"note\"><p>Warnings</p>\n<ul>\n{}</ul>\n</div>\n", list);
}

using Facts = std::vector<std::pair<std::string, std::string>>;

void add_text(Facts& facts, const char* title, const std::optional<std::string>& text) {
  if (text) facts.emplace_back(title, html::name(*text));
}

void add_ledger(Facts& facts, const nlohmann::json& manifest) {
  if (!manifest.contains("ledger") || !manifest["ledger"].is_object()) return;
  const auto& ledger = manifest["ledger"];
  if (!ledger.contains("used") || ledger["used"] != true) {
    facts.emplace_back("Ledger", "not used; no budget limits releases of this data");
    return;
  }
  const auto dataset = html::text_at(ledger, "dataset");
  const bool limited = ledger.contains("limited") && ledger["limited"] == true;
  std::string words = dataset ? fmt::format("charged to the data set {}", html::name(*dataset)) : "recorded";
  if (ledger.contains("limited") && !limited) words += "; no budget limits releases of this data";
  facts.emplace_back("Ledger", words);
}

}  // namespace

std::optional<double> stated_epsilon(const nlohmann::json& manifest) {
  const bool paper = html::text_at(manifest, "calibration") == "paper";
  return html::number_at(manifest, paper ? "certified_epsilon" : "epsilon");
}

std::string summary_section(const Model& model) {
  std::string page =
      fmt::format("<header>\n<p class=\"eyebrow\">Eigenveil release report</p>\n<h1>{}</h1>\n</header>\n",
                  kind_of(model.manifest).title);
  page += fmt::format("<p class=\"summary\">{}</p>\n", summary(model));
  if (!is_private(model)) {
    page +=
        "<div class=\"alarm\" role=\"alert\"><strong>NOT PRIVATE</strong>\n<p>The manifest of this model does not "
        "vouch for its privacy. Treat it like the data it was made from: do not publish it and do not share "
        "it.</p></div>\n";
  }
  page += warnings(model);
  if (const auto guarantee = html::text_at(model.manifest, "guarantee")) {
    page += fmt::format("<blockquote><p>{}</p></blockquote>\n", html::escape(*guarantee));
  }
  return page;
}

std::string facts_section(const Model& model) {
  const auto& manifest = model.manifest;
  if (!manifest.is_object()) return "";
  Facts facts;
  add_text(facts, "Model", html::text_at(manifest, "model"));
  add_text(facts, "Method", html::text_at(manifest, "method"));
  if (const auto rows = html::number_at(manifest, "rows")) facts.emplace_back("Rows", whole(*rows));
  if (const auto people = html::number_at(manifest, "people")) facts.emplace_back("People", whole(*people));
  if (const auto person = manifest.value("person", nlohmann::json()); person.is_object()) {
    facts.emplace_back("Protects", "one person, with all their rows");
    add_text(facts, "Whose row it is", html::text_at(person, "column"));
    add_text(facts, "Weight of rows", html::text_at(person, "weight"));
    add_text(facts, "What it is about", html::text_at(person, "estimand"));
  }
  if (const auto columns = features(model)) {
    facts.emplace_back("Features", html::grouped(static_cast<long long>(*columns)));
  }
  add_text(facts, "Target", html::text_at(manifest, "target"));
  if (const auto count = directions(model); count && !manifest.contains("target"))
    facts.emplace_back("Components", html::grouped(*count));
  if (const auto bound = html::number_at(manifest.value("options", nlohmann::json()), "row_bound")) {
    facts.emplace_back("Row bound", html::rounded(*bound));
  }
  if (const auto epsilon = stated_epsilon(manifest)) facts.emplace_back("Epsilon", html::exact(*epsilon));
  if (const auto delta = html::number_at(manifest, "delta")) facts.emplace_back("Delta", html::exact(*delta));
  add_text(facts, "Adjacency", html::text_at(manifest, "adjacency"));
  add_text(facts, "Accounting", html::text_at(manifest, "accounting"));
  add_ledger(facts, manifest);
  add_text(facts, "Eigenveil version", html::text_at(manifest, "eigenveil"));
  std::string rows;
  for (const auto& [title, value] : facts) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", title, value);
  }
  return fmt::format("<section>\n<h2>Facts</h2>\n<table class=\"facts\">\n<tbody>\n{}</tbody>\n</table>\n</section>\n",
                     rows);
}

}  // namespace eigenveil
