// SPDX-License-Identifier: Apache-2.0
// The directions, as pictures or as tables of their largest entries; those of two views side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <vector>

#include "directions.hpp"
#include "eigenveil/release/kinds.hpp"
#include "findings.hpp"
#include "html.hpp"
#include "png.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

constexpr Eigen::Index kOpenPictures = 12;
constexpr Eigen::Index kMostPictures = 64;
constexpr Eigen::Index kOpenTables = 4;
constexpr Eigen::Index kMostTables = 24;
constexpr std::size_t kEntries = 8;
constexpr double kSure = 1.96;  ///< deviations: an entry beyond so many keeps its sign

/// "eigenvalue 12.3", "correlation 0.9"
std::string value_in_words(const Model& model, const DirectionSet& set, Eigen::Index k) {
  if (set.values.size() == 0) return "";
  // The value that the table of verdicts tells
  const Findings found = findings_of(model);
  const Vector& values = found.empty() ? set.values : found.shown();
  return fmt::format("{} {}", kind_of(model.manifest).value, html::rounded(values[k % values.size()]));
}

/// PC1, X1, LD1
std::string title_of(const DirectionSet& set, Eigen::Index k) {
  std::string title = set.names[k];
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return title;
}

std::string picture(const Vector& values, const ReportOptions::ImageShape& shape, const std::string& title,
                    const std::string& words) {
  const std::vector<double> pixels(values.begin(), values.end());
  return fmt::format(
      "<figure><img width=\"{}\" height=\"{}\" alt=\"{} drawn as a picture of {} by {} pixels\" "
      "src=\"data:image/png;base64,{}\"><figcaption><b>{}</b><br>{}</figcaption></figure>\n",
      shape.width, shape.height, title, shape.height, shape.width,
      base64(diverging_png(pixels, shape.height, shape.width)), title, words);
}

std::string pictures(const Model& model, const DirectionSet& set, const ReportOptions::ImageShape& shape) {
  const Matrix& components = set.rows;
  std::string page =
      "<p>Each is drawn in the shape of one row. Every picture has a colour scale of its own, "
      "symmetric about zero. <span class=\"scale\" aria-hidden=\"true\">below zero <i></i> above</span></p>\n"
      "<div class=\"pictures\">\n";
  const Matrix* mean = model.array("mean");
  if (mean != nullptr && mean->size() == components.cols() && !mean->isZero(0)) {
    page += picture(mean->reshaped(), shape, "Mean", "subtracted from every row");
  }
  const Eigen::Index shown = std::min(components.rows(), kMostPictures);
  for (Eigen::Index k = 0; k < shown; ++k) {
    if (k == kOpenPictures)
      page += fmt::format("</div>\n<details>\n<summary>{} more</summary>\n<div class=\"pictures\">\n", shown - k);
    page += picture(components.row(k).transpose(), shape, title_of(set, k), value_in_words(model, set, k));
  }
  return page + (shown > kOpenPictures ? "</div>\n</details>\n" : "</div>\n");
}

/// A bar from zero, and a whisker of the 95% band about `middle`, in units of `largest`.
std::string bar(double value, double middle, double deviation, double largest) {
  const double width = largest > 0 ? 50 * std::abs(value) / largest : 0;
  std::string cell = fmt::format("<span class=\"signed\"><i class=\"{}\" style=\"width:{:.2f}%\"></i>",
                                 value < 0 ? "minus" : "plus", width);
  if (deviation > 0 && largest > 0) {
    const double low = std::clamp(50 + 50 * (middle - kSure * deviation) / largest, 0.0, 100.0);
    const double high = std::clamp(50 + 50 * (middle + kSure * deviation) / largest, 0.0, 100.0);
    cell += fmt::format("<b style=\"left:{:.2f}%;width:{:.2f}%\"></b>", low, high - low);
  }
  return cell + "</span>";
}

std::string table(const Model& model, const DirectionSet& set, const Findings& found, Eigen::Index k) {
  const Matrix& components = set.rows;
  const bool banded = found.deviation.rows() == components.rows() && found.deviation.cols() == components.cols();
  std::vector<std::size_t> order;
  for (Eigen::Index j = 0; j < components.cols(); ++j)
    // Of two views the entries of the other are zero, and of few loadings all others.
    if (components(k, j) != 0 || components.row(k).isZero(0)) order.push_back(j);
  const auto magnitude = [&](std::size_t j) { return std::abs(components(k, j)); };
  const auto deviation = [&](std::size_t j) { return banded ? found.deviation(k, j) : 0.0; };
  const double shrunk = found.shrunk(k);
  const std::size_t shown = std::min(kEntries, order.size());
  std::partial_sort(order.begin(), order.begin() + shown, order.end(), [&](std::size_t a, std::size_t b) {
    return magnitude(a) != magnitude(b) ? magnitude(a) > magnitude(b) : a < b;
  });
  double largest = 0;
  for (std::size_t i = 0; i < shown; ++i)
    largest = std::max(largest, magnitude(order[i]) + kSure * std::min(deviation(order[i]), magnitude(order[i])));
  std::string rows;
  for (std::size_t i = 0; i < shown; ++i) {
    const double value = components(k, order[i]);
    const bool unsure = banded && !(std::abs(shrunk * value) > kSure * deviation(order[i]));
    rows += fmt::format(
        "<tr{}><th scope=\"row\">{}</th><td class=\"loading\">{}</td><td class=\"number\">{:+.3f}</td></tr>\n",
        unsure ? " class=\"unsure\"" : "", html::name(feature_name(model, order[i])),
        bar(value, shrunk * value, deviation(order[i]), largest), value);
  }
  std::string caption = fmt::format("<h3>{}</h3>", title_of(set, k));
  if (found.judged && k < found.values.size() && set.rows.rows() == found.values.size())
    caption += fmt::format(" <span class=\"chip {0}\">{0}</span>", name(found.verdict(k)));
  return fmt::format(
      "<table>\n<caption>{} <span>{}</span></caption>\n<thead><tr><th scope=\"col\">Feature</th>"
      "<td class=\"loading\"></td><th scope=\"col\" class=\"number\">Entry</th></tr></thead>\n<tbody>\n{}"
      "</tbody>\n</table>\n",
      caption, value_in_words(model, set, k), rows);
}

std::string pair_tables(const Model& model, const DirectionSet& set, const Findings& found) {
  const Eigen::Index K = set.rows.rows() / 2;
  std::string page =
      "<p>Each pair has a direction in either view; rows that score high along one tend to score high along the "
      "other.</p>\n";
  const Eigen::Index shown = std::min(K, kMostTables / 2);
  for (Eigen::Index k = 0; k < shown; ++k) {
    if (k == kOpenTables / 2 && shown > k + 1)
      page += fmt::format("<details>\n<summary>{} more</summary>\n", shown - k);
    const std::string chip =
        found.judged ? fmt::format(" <span class=\"chip {0}\">{0}</span>", name(found.verdict(k))) : "";
    page += fmt::format(
        "<div class=\"pair\">\n<p class=\"between\"><b>{}</b>{}</p>\n<div class=\"tables\">\n{}{}</div>\n</div>\n",
        value_in_words(model, set, k), chip, table(model, set, found, k), table(model, set, found, K + k));
  }
  return page + (shown > kOpenTables / 2 + 1 ? "</details>\n" : "");
}

std::string tables(const Model& model, const DirectionSet& set, const Findings& found) {
  if (kind_of(model.manifest).scores.size() == 2) return pair_tables(model, set, found);
  const Matrix& components = set.rows;
  std::string page = components.cols() > static_cast<Eigen::Index>(kEntries)
                         ? fmt::format("<p>The {} largest entries of each, by magnitude.", kEntries)
                         : "<p>The entries of each, largest first.";
  if (found.deviation.size() > 0) page += " Whiskers are 95% bands; entries that may have the other sign are pale.";
  page += "</p>\n<div class=\"tables\">\n";
  const Eigen::Index shown = std::min(components.rows(), kMostTables);
  for (Eigen::Index k = 0; k < shown; ++k) {
    if (k == kOpenTables && shown > k + 1)
      page += fmt::format("</div>\n<details>\n<summary>{} more</summary>\n<div class=\"tables\">\n", shown - k);
    page += table(model, set, found, k);
  }
  return page + (shown > kOpenTables + 1 ? "</div>\n</details>\n" : "</div>\n");
}

}  // namespace

std::string feature_name(const Model& model, std::size_t feature) {
  const auto& manifest = model.manifest;
  if (manifest.is_object() && manifest.contains("features")) {
    const auto& names = manifest["features"];
    if (names.is_array() && feature < names.size() && names[feature].is_string()) return names[feature];
  }
  return fmt::format("{}", feature + 1);
}

std::string directions_part(const Model& model, const ReportOptions& options) {
  const auto set = directions_of(model, "");
  const ModelKind& kind = kind_of(model.manifest);
  if (!set.ok() || kind.prediction == Prediction::kNumber) return "";
  const Matrix* components = &set->rows;
  const auto& shape = options.image_shape;
  const bool fits = shape && shape->height > 0 && shape->width > 0 &&
                    components->cols() / shape->height == shape->width && components->cols() % shape->height == 0;
  std::string page = fmt::format("<h3 class=\"part\">The {}s, entry by entry</h3>\n", kind.item);
  if (shape && !fits) {
    page +=
        fmt::format("<p>Pictures of {} by {} pixels were asked for, which does not fit the number of features.</p>\n",
                    shape->height, shape->width);
  }
  page += fits ? pictures(model, *set, *shape) : tables(model, *set, findings_of(model));
  const Eigen::Index most = fits ? kMostPictures : kMostTables;
  if (components->rows() > most)
    page += fmt::format("<p class=\"note\">The first {} of {}; the model file has them all.</p>\n", most,
                        components->rows());
  return page;
}

}  // namespace eigenveil
