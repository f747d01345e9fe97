// SPDX-License-Identifier: Apache-2.0
// Numbers with their intervals.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "eigenveil/release/kinds.hpp"
#include "html.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

struct Interval {
  double lower;
  double upper;
};

std::optional<Interval> interval_of(const nlohmann::json& estimated) {
  const auto lower = html::number_at(estimated, "lower");
  const auto upper = html::number_at(estimated, "upper");
  if (!lower || !upper || !std::isfinite(*lower) || !std::isfinite(*upper)) return std::nullopt;
  return Interval{*lower, *upper};
}

std::string interval_in_words(const nlohmann::json& estimated) {
  const auto interval = interval_of(estimated);
  if (!interval) return "no interval";
  return fmt::format("{} to {}", html::rounded(interval->lower), html::rounded(interval->upper));
}

bool holds_zero(const nlohmann::json& estimated) {
  const auto interval = interval_of(estimated);
  return interval && interval->lower <= 0 && interval->upper >= 0;
}

/// What a column moves the target by over half of its public range, by the column's name: numbers that can be compared.
using Units = std::unordered_map<std::string, double>;

Units units_of(const Model& model) {
  Units units;
  const Matrix* scale = model.array("scale");
  for (Eigen::Index i = 0; scale != nullptr && i < scale->size(); ++i) {
    const double s = scale->reshaped()[i];
    if (std::isfinite(s) && s > 0) units.emplace(feature_name(model, i), 1 / s);
  }
  return units;
}

/// 0: it is no column (an intercept), or its range is not known.
double unit_of_effect(const Units& units, const nlohmann::json& estimated) {
  const auto found = units.find(html::text_at(estimated, "name").value_or(""));
  return found == units.end() ? 0 : found->second;
}

/// The interval about a line at zero, on one axis for all columns.
std::string forest_cell(const nlohmann::json& estimated, double unit, double reach) {
  const auto interval = interval_of(estimated);
  const auto value = html::number_at(estimated, "value");
  if (!interval || !value || !(unit > 0) || !(reach > 0)) return "<span class=\"forest\"></span>";
  const auto at = [&](double x) { return std::clamp(50 + 50 * x * unit / reach, 0.0, 100.0); };
  return fmt::format(
      "<span class=\"forest{}\"><b style=\"left:{:.2f}%;width:{:.2f}%\"></b><i style=\"left:{:.2f}%\"></i></span>",
      holds_zero(estimated) ? " none" : "", at(interval->lower),
      std::max(0.5, at(interval->upper) - at(interval->lower)), at(*value));
}

std::string table_row(const nlohmann::json& estimated, double unit, double reach) {
  const auto value = html::number_at(estimated, "value");
  return fmt::format(
      "<tr{}><th scope=\"row\">{}</th><td class=\"loading\">{}</td><td class=\"number\">{}</td><td "
      "class=\"number\">{}{}</td></tr>\n",
      holds_zero(estimated) || !interval_of(estimated) ? " class=\"unsure\"" : "",
      html::name(html::text_at(estimated, "name").value_or("?")), forest_cell(estimated, unit, reach),
      value ? html::rounded(*value) : "unknown", interval_in_words(estimated),
      holds_zero(estimated) ? "<br>compatible with no effect" : "");
}

std::string table(const Units& units, const nlohmann::json& list, const std::string& title) {
  std::vector<double> reaches;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const auto interval = interval_of(list[i]); interval && unit_of_effect(units, list[i]) > 0)
      reaches.push_back(std::max(std::abs(interval->lower), std::abs(interval->upper)) *
                        unit_of_effect(units, list[i]));
  // One that is not determined at all would flatten all others: the axis ends at four times the median.
  std::sort(reaches.begin(), reaches.end());
  const double reach = reaches.empty() ? 0 : std::min(reaches.back(), 4 * reaches[reaches.size() / 2]);
  constexpr std::size_t kShown = 20;
  std::string rows[2];
  for (std::size_t i = 0; i < list.size(); ++i)
    rows[i < kShown ? 0 : 1] += table_row(list[i], unit_of_effect(units, list[i]), reach);
  const std::string head = fmt::format(
      "<table class=\"estimates\">\n<caption>{}</caption>\n<thead><tr><th scope=\"col\">Column</th><td "
      "class=\"loading\"></td><th scope=\"col\" class=\"number\">Value</th><th scope=\"col\" class=\"number\">95% "
      "interval</th></tr></thead>\n<tbody>\n",
      title);
  std::string page = head + rows[0] + "</tbody>\n</table>\n";
  if (!rows[1].empty())
    page += fmt::format("<details>\n<summary>The other {}</summary>\n{}{}</tbody>\n</table>\n</details>\n",
                        list.size() - kShown, head, rows[1]);
  return page;
}

/// "R^2: 0.51 (95% interval 0.44 to 0.57)."
std::string sentence(const nlohmann::json& estimated, std::string_view title) {
  const auto value = html::number_at(estimated, "value");
  if (!value) return fmt::format("<p>{}: unknown, the noise is too large.</p>\n", title);
  return fmt::format("<p>{}: {} (95% interval {}).</p>\n", title, html::rounded(*value), interval_in_words(estimated));
}

/// "Of 5 columns, 2 have an effect whose sign is certain: age, bmi."
std::string lead(const Units& units, const nlohmann::json& list) {
  std::string names;
  std::size_t sure = 0;
  std::size_t columns = 0;
  constexpr std::size_t kNamed = 8;
  for (const auto& one : list) {
    if (!(unit_of_effect(units, one) > 0)) continue;
    ++columns;
    if (!interval_of(one) || holds_zero(one)) continue;
    if (sure++ < kNamed)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", html::name(html::text_at(one, "name").value_or("?")));
  }
  if (sure == 0)
    return "<p class=\"verdict\">No column has an effect that can be told from none: the intervals all hold zero, or "
           "have no end.</p>\n";
  return fmt::format("<p class=\"verdict\">Of {} columns, {} {} an effect whose sign is certain at 95%: {}{}.</p>\n",
                     columns, sure, sure == 1 ? "has" : "have", names,
                     sure > kNamed ? fmt::format(" and {} more", sure - kNamed) : "");
}

}  // namespace

std::string estimates_part(const Model& model) {
  const ModelKind& kind = kind_of(model.manifest);
  const auto subject = html::text_at(model.manifest, kind.subject);
  const Units units = kind.estimates.empty() ? Units() : units_of(model);
  std::string page;
  for (const Estimates& estimates : kind.estimates) {
    const auto found = model.manifest.find(std::string(estimates.key));
    if (found == model.manifest.end()) continue;
    page += found->is_array()
                ? lead(units, *found) +
                      table(units, *found,
                            fmt::format("{}{}", estimates.title, subject ? " for " + html::name(*subject) : ""))
                : sentence(*found, estimates.title);
  }
  if (page.empty()) return "";
  for (const Figure& figure : kind.figures)
    if (const auto value = html::number_at(model.manifest, figure.key))
      page += fmt::format("<p>{}</p>\n", fmt::format(fmt::runtime(figure.sentence), *value));
  return page + fmt::format(
                    "<p class=\"note\">{} Bars compare columns: they show the effect over half of a column's "
                    "public range.</p>\n",
                    kind.meaning);
}

}  // namespace eigenveil
