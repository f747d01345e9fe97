// SPDX-License-Identifier: Apache-2.0
// What was fixed before any row was read.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "eigenveil/release/kinds.hpp"
#include "html.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string center_in_words(const std::string& center) {
  if (center == "range") return "about the middle of each column's range";
  if (center == "private") return "about a private mean, which is part of the release";
  if (center == "mean") return "about the mean, found privately in two steps; it is part of the release";
  if (center == "none") return "about zero";
  return html::name(center);
}

std::string missing_in_words(const std::string& missing) {
  if (missing == "error") return "a cell that is missing or cannot be read stops the run, before anything is spent";
  if (missing == "zero-row") return "a row with a missing cell counts as zero";
  if (missing == "value") return "a missing cell counts as a public value, the same for every row; every row stays";
  if (missing == "category")
    return "a missing cell counts as a category of its own, or a public number; every row stays";
  return html::name(missing);
}

std::string bounds_in_words(const NumericColumn& column) {
  if (!std::isfinite(column.lower) || !std::isfinite(column.upper)) return "a number, bounded by the row bound alone";
  return fmt::format("a number from {} to {}{}", html::rounded(column.lower), html::rounded(column.upper),
                     column.missing ? fmt::format("; where it is missing, {}", html::rounded(*column.missing)) : "");
}

std::string values_in_words(const CategoricalColumn& column) {
  constexpr std::size_t kShown = 12;
  std::string words = "one of ";
  for (std::size_t i = 0; i < std::min(kShown, column.values.size()); ++i)
    words += fmt::format("{}{}", i == 0 ? "" : ", ", html::name(column.values[i]));
  if (column.values.size() > kShown) words += fmt::format(" and {} more", column.values.size() - kShown);
  if (column.other) words += fmt::format("; anything else counts as {}", html::name(column.values[*column.other]));
  if (column.missing && *column.missing < column.values.size())
    words += fmt::format("; where it is missing, {}", html::name(column.values[*column.missing]));
  else if (column.missing)
    words += "; where it is missing, all of them in equal parts";
  if (column.weight != 1) words += fmt::format("; as long as {} numbers", html::rounded(column.weight));
  return words;
}

/// All columns; one line where they are all alike.
std::string columns(const nlohmann::json& manifest) {
  const auto found = manifest.find("columns");
  if (found == manifest.end()) return "";
  const auto specs = columns_from_json(*found);
  if (!specs.ok() || specs->empty()) return "";
  std::vector<std::string> words;
  for (const ColumnSpec& spec : *specs)
    words.push_back(std::holds_alternative<NumericColumn>(spec.kind)
                        ? bounds_in_words(std::get<NumericColumn>(spec.kind))
                        : values_in_words(std::get<CategoricalColumn>(spec.kind)));
  const bool alike = std::all_of(words.begin(), words.end(), [&](const std::string& one) { return one == words[0]; });
  if (alike && words.size() > 3)
    return fmt::format("<p>All {} columns alike: each is {}.</p>\n",
                       html::grouped(static_cast<long long>(words.size())), words[0]);
  constexpr std::size_t kOpen = 10;
  constexpr std::size_t kMost = 500;
  std::string rows;
  for (std::size_t i = 0; i < std::min(words.size(), kMost); ++i)
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", html::name((*specs)[i].name), words[i]);
  std::string table = fmt::format(
      "<table class=\"facts\">\n<thead><tr><th scope=\"col\">Column</th><th scope=\"col\">May "
      "be</th></tr></thead>\n<tbody>\n{}</tbody>\n</table>\n",
      rows);
  const std::string more =
      words.size() > kMost
          ? fmt::format("<p class=\"note\">The first {} of {} columns; the model file has them all.</p>\n", kMost,
                        words.size())
          : "";
  if (words.size() <= kOpen) return table;
  return fmt::format("<details>\n<summary>The {} columns and their bounds</summary>\n{}{}</details>\n",
                     html::grouped(static_cast<long long>(words.size())), table, more);
}

bool has_categories(const nlohmann::json& manifest) {
  const auto found = manifest.find("columns");
  const auto specs =
      found == manifest.end() ? Result<std::vector<ColumnSpec>>(std::vector<ColumnSpec>()) : columns_from_json(*found);
  return specs.ok() && std::any_of(specs->begin(), specs->end(), [](const ColumnSpec& spec) {
           return std::holds_alternative<CategoricalColumn>(spec.kind);
         });
}

std::string names_of(const nlohmann::json& list) {
  constexpr std::size_t kShown = 24;
  std::string words;
  for (std::size_t i = 0; i < std::min(kShown, list.size()); ++i)
    if (list[i].is_string())
      words += fmt::format("{}{}", words.empty() ? "" : ", ", html::name(list[i].get<std::string>()));
  if (list.size() > kShown) words += fmt::format(" and {} more", list.size() - kShown);
  return words;
}

const char* bound_in_words(const nlohmann::json& manifest, const nlohmann::json& options) {
  if (html::text_at(manifest, "method") == "sphere")
    return ", found privately: about half of the rows were longer. All of them were made of one length";
  return html::text_at(options, "row_bound_kind") == "private" ? ", found privately: longer rows were shortened to it"
                                                               : "";
}

}  // namespace

std::string fixed_section(const Model& model) {
  const auto& manifest = model.manifest;
  if (!manifest.is_object()) return "";
  const nlohmann::json options = manifest.value("options", nlohmann::json());
  Facts facts;
  if (const auto target = html::text_at(manifest, "target")) facts.emplace_back("Target", html::name(*target));
  if (const auto response = html::text_at(manifest, "response")) facts.emplace_back("Response", html::name(*response));
  for (const char* groups : {"classes", "slices"})
    if (const auto found = manifest.find(groups); found != manifest.end() && found->is_array() && !found->empty())
      facts.emplace_back(html::capitalised(groups), names_of(*found));
  if (const auto center = html::text_at(options, "center")) facts.emplace_back("Centring", center_in_words(*center));
  if (const auto missing = html::text_at(options, "missing"))
    facts.emplace_back("Missing cells", missing_in_words(*missing));
  if (html::text_at(options, "scale") == "correlation")
    facts.emplace_back("Scale",
                       "each feature is divided by its deviation, as it was released: components of correlations");
  if (has_categories(manifest))
    facts.emplace_back("Categories",
                       "all values of a column together are as long as one number, unless the column says otherwise");
  if (const auto bound = html::number_at(options, "row_bound"))
    facts.emplace_back("Row bound", fmt::format("{}{}", html::rounded(*bound), bound_in_words(manifest, options)));
  if (const auto rows = html::number_at(manifest, "rows"))
    facts.emplace_back("Number of rows", whole(*rows) + ", public");
  if (const auto rows = html::number_at(manifest, "noisy_rows"))
    facts.emplace_back("Number of rows", "about " + whole(*rows) + ", released with noise");
  if (const auto people = html::number_at(manifest, "people"))
    facts.emplace_back("Number of people", whole(*people) + ", public");
  if (const auto person = manifest.find("person"); person != manifest.end() && person->is_object()) {
    facts.emplace_back("Protects", "one person, with all their rows");
    for (const auto& [key, title] : {std::pair("column", "Whose row it is"), std::pair("weight", "Weight of rows"),
                                     std::pair("estimand", "What it is about")})
      if (const auto text = html::text_at(*person, key)) facts.emplace_back(title, html::name(*text));
  }
  if (const auto adjacency = html::text_at(manifest, "adjacency"))
    facts.emplace_back("Neighbours", html::name(*adjacency));
  const auto encoders = manifest.find("encoders");
  if (encoders != manifest.end() && encoders->is_object())
    for (const char* view : {"image", "text"})
      if (const auto encoder = html::text_at(*encoders, view))
        facts.emplace_back(fmt::format("Encoder of {}s", view), html::name(*encoder));
  std::string rows;
  for (const auto& [title, value] : facts)
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", title, value);
  const std::string table =
      rows.empty() ? "" : fmt::format("<table class=\"facts\">\n<tbody>\n{}</tbody>\n</table>\n", rows);
  const std::string body = table + columns(manifest);
  if (body.empty()) return "";
  return "<section>\n<h2>What was fixed in advance</h2>\n<p>Chosen by people from what was public, before a row was "
         "read. Values outside of bounds are moved to them, longer rows are made as short as the row bound.</p>\n" +
         body + "</section>\n";
}

}  // namespace eigenveil
