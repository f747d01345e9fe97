// SPDX-License-Identifier: Apache-2.0
// Numbers with their intervals.
#include <fmt/format.h>

#include "eigenveil/release/kinds.hpp"
#include "html.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

std::string interval_in_words(const nlohmann::json& estimated) {
  const auto lower = html::number_at(estimated, "lower");
  const auto upper = html::number_at(estimated, "upper");
  if (!lower || !upper) return "no interval";
  return fmt::format("{} to {}", html::rounded(*lower), html::rounded(*upper));
}

bool holds_zero(const nlohmann::json& estimated) {
  const auto lower = html::number_at(estimated, "lower");
  const auto upper = html::number_at(estimated, "upper");
  return lower && upper && *lower <= 0 && *upper >= 0;
}

std::string table_row(const nlohmann::json& estimated) {
  const auto value = html::number_at(estimated, "value");
  return fmt::format("<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}{}</td></tr>\n",
                     html::name(html::text_at(estimated, "name").value_or("?")),
                     value ? html::rounded(*value) : "unknown", interval_in_words(estimated),
                     holds_zero(estimated) ? "<br>compatible with no effect" : "");
}

std::string table(const nlohmann::json& list, std::string_view title) {
  std::string rows;
  for (const auto& one : list) rows += table_row(one);
  return fmt::format(
      "<table>\n<caption>{0}</caption>\n<thead><tr><th scope=\"col\">Column</th><th scope=\"col\" "
      "class=\"number\">Value</th><th scope=\"col\" class=\"number\">95% interval</th></tr></thead>\n<tbody>\n{1}"
      "</tbody>\n</table>\n",
      title, rows);
}

/// "R^2: 0.51 (95% interval 0.44 to 0.57)."
std::string sentence(const nlohmann::json& estimated, std::string_view title) {
  const auto value = html::number_at(estimated, "value");
  if (!value) return fmt::format("<p>{}: unknown, the noise is too large.</p>\n", title);
  return fmt::format("<p>{}: {} (95% interval {}).</p>\n", title, html::rounded(*value), interval_in_words(estimated));
}

}  // namespace

std::string estimates_section(const Model& model) {
  const ModelKind& kind = kind_of(model.manifest);
  const auto subject = html::text_at(model.manifest, kind.subject);
  std::string page;
  for (const Estimates& estimates : kind.estimates) {
    const auto found = model.manifest.find(std::string(estimates.key));
    if (found == model.manifest.end()) continue;
    page += found->is_array()
                ? table(*found, fmt::format("{}{}", estimates.title, subject ? " for " + html::name(*subject) : ""))
                : sentence(*found, estimates.title);
  }
  if (page.empty()) return "";
  for (const Figure& figure : kind.figures)
    if (const auto value = html::number_at(model.manifest, figure.key))
      page += fmt::format("<p>{}</p>\n", fmt::format(fmt::runtime(figure.sentence), *value));
  return fmt::format("<section>\n<h2>What was found</h2>\n{}<p class=\"note\">{}</p>\n</section>\n", page,
                     kind.meaning);
}

}  // namespace eigenveil
