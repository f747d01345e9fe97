// SPDX-License-Identifier: Apache-2.0
// The components, as pictures or as tables of their largest entries.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <vector>

#include "directions.hpp"
#include "eigenveil/release/kinds.hpp"
#include "html.hpp"
#include "png.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

constexpr Eigen::Index kMostPictures = 64;
constexpr Eigen::Index kMostTables = 24;
constexpr std::size_t kEntries = 10;

std::string bare_name(const Model& model, std::size_t feature) {
  const auto& manifest = model.manifest;
  if (manifest.is_object() && manifest.contains("features")) {
    const auto& names = manifest["features"];
    if (names.is_array() && feature < names.size() && names[feature].is_string()) return names[feature];
  }
  return fmt::format("{}", feature + 1);
}

/// "lambda = 12.3 (45.6%)", "correlation 0.9"
std::string value_in_words(const Model& model, const DirectionSet& set, Eigen::Index k) {
  if (set.values.size() == 0) return "";
  const ModelKind& kind = kind_of(model.manifest);
  const double value = set.values[k];
  if (!kind.shares) return fmt::format("{} {}", kind.value, html::rounded(value));
  const double sum = set.values.cwiseMax(0).sum();
  std::string words = fmt::format("&lambda; = {}", html::rounded(value));
  if (sum > 0 && value >= 0) words += fmt::format(" ({})", html::percent(value / sum));
  return words;
}

/// PC1, X1, LD1
std::string title_of(const DirectionSet& set, Eigen::Index k) {
  std::string title = set.names[static_cast<std::size_t>(k)];
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
      "<p>Each component is drawn in the shape of one row. Every picture has a colour scale of its own, "
      "symmetric about zero.</p>\n<p class=\"scale\" aria-hidden=\"true\">negative <i></i> positive</p>\n"
      "<div class=\"pictures\">\n";
  const Matrix* mean = model.array("mean");
  if (mean != nullptr && mean->size() == components.cols() && !mean->isZero(0)) {
    page += picture(mean->reshaped(), shape, "Mean", "subtracted from every row");
  }
  for (Eigen::Index k = 0; k < std::min(components.rows(), kMostPictures); ++k) {
    page += picture(components.row(k).transpose(), shape, title_of(set, k), value_in_words(model, set, k));
  }
  return page + "</div>\n";
}

std::string entry_row(const std::string& name, double value, double largest) {
  const double width = largest > 0 ? 50 * std::abs(value) / largest : 0;
  return fmt::format(
      "<tr><th scope=\"row\">{}</th><td class=\"loading\"><span class=\"signed\"><i class=\"{}\" "
      "style=\"width:{:.2f}%\"></i></span></td><td class=\"number\">{:+.3f}</td></tr>\n",
      html::name(name), value < 0 ? "minus" : "plus", width, value);
}

std::string table(const Model& model, const DirectionSet& set, Eigen::Index k) {
  const Matrix& components = set.rows;
  std::vector<std::size_t> order(static_cast<std::size_t>(components.cols()));
  std::iota(order.begin(), order.end(), 0);
  const auto magnitude = [&](std::size_t j) { return std::abs(components(k, static_cast<Eigen::Index>(j))); };
  const std::size_t shown = std::min(kEntries, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
      [&](std::size_t a, std::size_t b) { return magnitude(a) != magnitude(b) ? magnitude(a) > magnitude(b) : a < b; });
  std::string rows;
  for (std::size_t i = 0; i < shown; ++i) {
    const double value = components(k, static_cast<Eigen::Index>(order[i]));
    rows += entry_row(bare_name(model, order[i]), value, magnitude(order[0]));
  }
  return fmt::format(
      "<table>\n<caption><h3>{}</h3><span>{}</span></caption>\n<thead><tr><th scope=\"col\">Feature</th>"
      "<td class=\"loading\"></td><th scope=\"col\" class=\"number\">Entry</th></tr></thead>\n<tbody>\n{}"
      "</tbody>\n</table>\n",
      title_of(set, k), value_in_words(model, set, k), rows);
}

std::string tables(const Model& model, const DirectionSet& set) {
  const Matrix& components = set.rows;
  std::string page = components.cols() > static_cast<Eigen::Index>(kEntries)
                         ? fmt::format("<p>The {} largest entries of each component, by magnitude.</p>\n", kEntries)
                         : "<p>The entries of each component, largest first.</p>\n";
  page += "<div class=\"tables\">\n";
  for (Eigen::Index k = 0; k < std::min(components.rows(), kMostTables); ++k) page += table(model, set, k);
  return page + "</div>\n";
}

}  // namespace

std::string components_section(const Model& model, const ReportOptions& options) {
  const auto set = directions_of(model, "");
  if (!set.ok() || kind_of(model.manifest).prediction == Prediction::kNumber) return "";
  const Matrix* components = &set->rows;
  const auto& shape = options.image_shape;
  const bool fits = shape && shape->height > 0 && shape->width > 0 &&
                    static_cast<std::size_t>(components->cols()) / shape->height == shape->width &&
                    static_cast<std::size_t>(components->cols()) % shape->height == 0;
  std::string page = "<section>\n<h2>Components</h2>\n";
  if (shape && !fits) {
    page +=
        fmt::format("<p>Pictures of {} by {} pixels were asked for, which does not fit the number of features.</p>\n",
                    shape->height, shape->width);
  }
  page += fits ? pictures(model, *set, *shape) : tables(model, *set);
  if (kind_of(model.manifest).shares) {
    page +=
        "<p class=\"note\">&lambda; is the eigenvalue; percentages are shares of the sum of the released "
        "eigenvalues.</p>\n";
  }
  const Eigen::Index most = fits ? kMostPictures : kMostTables;
  if (components->rows() > most) {
    page += fmt::format("<p class=\"note\">The first {} of {} components; the model file has them all.</p>\n", most,
                        components->rows());
  }
  return page + "</section>\n";
}

}  // namespace eigenveil
