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
