// SPDX-License-Identifier: Apache-2.0
// What was promised, what was not, and what it rests on.
#include <fmt/format.h>

#include <cmath>
#include <regex>

#include "charts.hpp"
#include "eigenveil/release/kinds.hpp"
#include "html.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

bool strict(const nlohmann::json& manifest) {
  return html::text_at(manifest, "guarantee_kind").value_or("strict") == "strict";
}

/// What the guarantee holds for: nothing beyond what the manifest's own words say.
std::string neighbours_in_words(const nlohmann::json& manifest) {
  const std::string adjacency = html::text_at(manifest, "adjacency").value_or("");
  const std::string unit = unit_of(manifest);
  if (!strict(manifest)) {
    return "This is a model-based guarantee: it holds only for rows that are independent draws of the model, and for "
           "neighbours that replace one by an independent copy. For other rows or neighbours nothing is promised.";
  }
  if (adjacency == "replace-one") {
    return fmt::format(
        "This holds between any two data sets of which one comes from the other by replacing one {0}, "
        "whatever is in them; how many there are is public.",
        unit);
  }
  if (adjacency == "add-remove-one") {
    return fmt::format(
        "This holds between any two data sets of which one comes from the other by adding or removing "
        "one {0}, whatever is in them; how many there are is kept private.",
        unit);
  }
  return adjacency.empty() ? ""
                           : fmt::format("Neighbouring data sets are those of the relation {}.", html::name(adjacency));
}

/// "one in a million", as a number
std::string one_in(double delta) {
  return delta > 0 && delta < 1 ? fmt::format(" (about one in {})", html::rounded(std::round(1 / delta))) : "";
}

/// Two plain sentences: the odds, and between what.
std::string promise(const Model& model) {
  const auto& manifest = model.manifest;
  const auto epsilon = stated_epsilon(manifest);
  const auto delta = html::number_at(manifest, "delta");
  if (!epsilon || !delta) return "<p>The manifest does not state a guarantee.</p>\n";
  const std::string words = fmt::format(
      "Someone who sees this release, even knowing everything about everybody else, can change their odds on any "
      "statement about one {} by at most a factor of {} (&epsilon;&nbsp;=&nbsp;{}), except with probability {}{}.",
      unit_of(manifest), html::rounded(std::exp(*epsilon)), html::exact(*epsilon), html::exact(*delta), one_in(*delta));
  if (!is_private(model))
    return fmt::format(
        "<p><strong>Nothing was promised: this release is NOT PRIVATE.</strong> With secret noise the "
        "promise would have been:</p>\n<p class=\"promise void\">{}</p>\n",
        words);
  return fmt::format("<p class=\"promise\">{} {}</p>\n", words, neighbours_in_words(manifest));
}

std::string list(const std::vector<std::string>& items) {
  std::string page = "<ul>\n";
  for (const std::string& item : items) page += fmt::format("<li>{}</li>\n", item);
  return page + "</ul>\n";
}

std::string not_promised(const Model& model) {
  const std::string unit = unit_of(model.manifest);
  std::vector<std::string> items = {
      fmt::format("That nothing can be learnt about groups. What holds for most of the data may be guessed of any one "
                  "{}, whether or not their data was used.",
                  unit)};
  if (unit == "row" || unit == "pair")
    items.push_back(fmt::format("That a person is protected who has several {0}s: the promise is for one {0}.", unit));
  items.emplace_back(
      "That other releases of the same data cost nothing: they add to this one. A ledger keeps the total.");
  if (!kind_of(model.manifest).scores.empty())
    items.emplace_back("That scores or predictions of private rows are private: they describe single rows.");
  return list(items);
}

/// Every release that this one tells of, newest first.
std::string releases_used(const nlohmann::json& manifest) {
  const auto start = manifest.is_object() ? manifest.find("start") : manifest.end();
  if (!manifest.is_object() || start == manifest.end() || !start->is_array() || start->empty()) return "";
  std::string promises;
  for (const auto& one : *start)
    promises += fmt::format("{}&epsilon;&nbsp;=&nbsp;{} with &delta;&nbsp;=&nbsp;{}", promises.empty() ? "" : "; ",
                            html::exact(html::number_at(one, "epsilon").value_or(0)),
                            html::exact(html::number_at(one, "delta").value_or(0)));
  return start->size() == 1
             ? fmt::format(
                   "<strong>The release whose numbers it used.</strong> This one tells of that one too, and what is "
                   "promised here comes on top of what that one promised: {}.",
                   promises)
             : fmt::format(
                   "<strong>The {} releases whose numbers it used</strong>, or which those had used. This one tells of "
                   "all "
                   "of them, and what is promised here comes on top of what they promised: {}.",
                   start->size(), promises);
}

std::string rests_on(const Model& model) {
  const auto& manifest = model.manifest;
  std::vector<std::string> items;
  if (!is_private(model)) items.emplace_back("<strong>Nothing: nobody vouches that its noise stayed secret.</strong>");
  if (!strict(manifest))
    items.emplace_back(
        "<strong>A model of the rows.</strong> They must be independent draws of it; this cannot be "
        "checked from the release.");
  if (html::text_at(manifest, "calibration") == "paper")
    items.emplace_back(
        "<strong>The noise that a paper prints</strong>, and what was computed for it here: not what the "
        "paper claims.");
  const auto federation = manifest.is_object() ? manifest.find("federation") : manifest.end();
  if (manifest.is_object() && federation != manifest.end())
    if (const auto condition = html::text_at(*federation, "condition"))
      items.push_back(fmt::format("<strong>The sites.</strong> {}", html::escape(*condition)));
  if (const std::string begun = releases_used(manifest); !begun.empty()) items.push_back(begun);
  const nlohmann::json options = manifest.is_object() ? manifest.value("options", nlohmann::json()) : nlohmann::json();
  if (html::number_at(options, "sensitivity_a"))
    items.emplace_back(
        "<strong>How much one row can move the given matrices</strong>, as whoever made the release stated it.");
  items.emplace_back("Bounds, categories and classes that did not come from the rows: they are listed below.");
  if (is_private(model))
    items.emplace_back("Noise that stayed secret, from the random numbers of the operating system.");
  const std::string accounting = html::text_at(manifest, "accounting").value_or("");
  if (!accounting.empty())
    items.push_back(fmt::format("The sum over all noisy answers, certified by {} accounting.", html::name(accounting)));
  return list(items);
}

/// Who holds rows, and who adds which noise.
std::string sites(const nlohmann::json& manifest) {
  const auto federation = manifest.is_object() ? manifest.find("federation") : manifest.end();
  if (!manifest.is_object() || federation == manifest.end() || !federation->is_object()) return "";
  const auto names = federation->find("sites");
  std::vector<std::string> all;
  if (names != federation->end() && names->is_array())
    for (const auto& one : *names)
      if (one.is_string()) all.push_back(one.get<std::string>());
  if (all.empty()) return "";
  const bool secure = html::text_at(*federation, "aggregation") == "secure";
  const auto shares = html::number_at(*federation, "shares").value_or(1);
  const std::string added =
      secure ? fmt::format("mask + 1/{} of the noise", html::rounded(shares)) : "adds the full noise";
  std::string page =
      "<figure class=\"wide\">\n" + federation_svg(all, added, secure ? "sees only the total" : "sees noisy sums");
  page += fmt::format("<figcaption>Each site keeps its rows and its own budget. {}</figcaption>\n</figure>\n",
                      secure ? "Masks cancel in the total, so that the coordinator learns nothing of one site's sum."
                             : "Each site's sum is noisy before it leaves.");
  return page;
}

}  // namespace

std::string promise_section(const Model& model) {
  std::string page = "<section>\n<h2>What was promised</h2>\n" + promise(model);
  page += "<div class=\"columns\">\n<div>\n<h3>What it does not promise</h3>\n" + not_promised(model) +
          "</div>\n<div>\n<h3>What it rests on</h3>\n" + rests_on(model) + "</div>\n</div>\n";
  page += sites(model.manifest);
  if (const auto guarantee = html::text_at(model.manifest, "guarantee")) {
    page += fmt::format(
        "<details open>\n<summary>The guarantee, word for "
        "word</summary>\n<blockquote><p>{}</p></blockquote>\n</details>\n",
        html::escape(std::regex_replace(*guarantee, std::regex("e-0([0-9])"), "e-$1")));
  }
  return page + "</section>\n";
}

}  // namespace eigenveil
