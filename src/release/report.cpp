// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/report.hpp"

#include <fmt/format.h>

#include "charts.hpp"
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

}  // namespace

std::string scree_section(const Model& model) {
  const ModelKind& kind = kind_of(model.manifest);
  const Matrix* values = model.array(std::string(kind.values));
  if (values == nullptr || values->size() == 0 || !values->allFinite()) return "";
  const auto edge = html::number_at(model.manifest, "noise_edge");
  std::string page = "<section>\n<h2>Scree plot</h2>\n<figure>\n";
  page += scree_svg(values->reshaped(), edge, kind);
  page += fmt::format("<figcaption>{}", kind.meaning);
  if (edge) {
    page +=
        " Noise alone would typically reach the dashed line: a component near it or below it says little about the "
        "data.";
  }
  return page + "</figcaption>\n</figure>\n</section>\n";
}

namespace {

std::string sections(const Model& model, const ReportOptions& options) {
  return summary_section(model) + facts_section(model) + budget_section(model) + scree_section(model) +
         estimates_section(model) + components_section(model, options) + use_section(model) + check_section(model);
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
