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

namespace {

/// What the values of a scree plot are.
std::string value_in_words(const Model& model) {
  const std::string kind = html::text_at(model.manifest, "model").value_or("");
  if (kind == "cca") return "The correlation between the two views along a pair of directions, after noise.";
  if (kind == "fda")
    return "The eigenvalue of a direction is how far classes lie apart along it, over how far rows of one class "
           "spread, "
           "after noise.";
  if (kind == "sir")
    return "The eigenvalue of a direction is the share of its variation that the slices of the response explain, after "
           "noise.";
  if (kind == "gep") return "The generalized eigenvalue of a vector, after noise.";
  return "The eigenvalue of a component is the variation of the rows along it, after noise.";
}

}  // namespace

std::string scree_section(const Model& model) {
  const Matrix* values = model.array("eigenvalues");
  if (values == nullptr) values = model.array("correlations");
  if (values == nullptr || values->size() == 0 || !values->allFinite()) return "";
  const auto edge = html::number_at(model.manifest, "noise_edge");
  std::string page = "<section>\n<h2>Scree plot</h2>\n<figure>\n";
  page += scree_svg(values->reshaped(), edge);
  page += "<figcaption>" + value_in_words(model);
  if (edge) {
    page +=
        " Noise alone would typically reach the dashed line: a component near it or below it says little about the "
        "data.";
  }
  return page + "</figcaption>\n</figure>\n</section>\n";
}

std::string html_report(const Model& model, const ReportOptions& options) {
  std::string page = kHead;
  page += kReportStyle;
  page += "</style>\n</head>\n<body>\n<main>\n";
  page += summary_section(model);
  page += facts_section(model);
  page += budget_section(model);
  page += scree_section(model);
  page += components_section(model, options);
  page += use_section(model);
  page += check_section(model);
  page += "<footer>Made from the released model alone: no row of the data was read for this page.</footer>\n";
  return page + "</main>\n</body>\n</html>\n";
}

}  // namespace eigenveil
