// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "html.hpp"
#include "report_sections.hpp"
#include "report_style.hpp"

namespace eigenveil {
namespace {

/// Scripts and anything from the network are forbidden to the page, whatever a model may hold.
constexpr const char* kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Eigenveil report</title>
<style>)";

bool is_drawable(const Model& model) {
  return std::all_of(model.arrays.begin(), model.arrays.end(), [](const NamedArray& array) {
    const double* numbers = array.values.data();
    return std::all_of(numbers, numbers + array.values.size(),
                       [](double x) { return std::isnan(x) || x == html::within_reach(x); });
  });
}

/// A file may hold any number: charts get those that they can draw.
Model drawable(Model model) {
  for (NamedArray& array : model.arrays) array.values = array.values.unaryExpr(&html::within_reach).eval();
  return model;
}

std::string sections(const Model& model, const ReportOptions& options) {
  if (!is_drawable(model)) return sections(drawable(model), options);
  const std::string page = head_section(model) + found_section(model, options) + promise_section(model) +
                           budget_section(model) + fixed_section(model) + made_section(model) + use_section(model);
  // A release that is not private has a red edge on every page of it.
  return fmt::format("<div class=\"{}\">\n{}{}</div>\n", is_private(model) ? "release" : "release unsafe", page,
                     glossary_section(page));
}

std::string page_of(const std::string& body, const char* made_from) {
  return std::string(kHead) + kReportStyle + "</style>\n</head>\n<body>\n<main>\n" + body +
         fmt::format("<footer>Made from {}: no row of the data was read for this page.</footer>\n", made_from) +
         "</main>\n</body>\n</html>\n";
}

}  // namespace

std::string html_report(const Model& model, const ReportOptions& options) {
  return page_of(sections(model, options), "the released model alone");
}

std::string html_dossier(const std::vector<Model>& models, const std::vector<std::string>& names,
                         const ReportOptions& options) {
  std::string contents;
  std::string body;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const std::string name = html::name(names[i]);
    contents += fmt::format("<li><a href=\"#model-{}\">{}</a>: {}</li>\n", i + 1, name, released_in_words(models[i]));
    body += fmt::format("<article id=\"model-{}\">\n<p class=\"note\">{}</p>\n{}</article>\n", i + 1, name,
                        sections(models[i], options));
  }
  return page_of("<nav aria-label=\"Models\">\n<ol>\n" + contents + "</ol>\n</nav>\n" + body,
                 "the released models alone");
}

}  // namespace eigenveil
