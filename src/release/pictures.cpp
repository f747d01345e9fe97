// SPDX-License-Identifier: Apache-2.0
// Biplot, heatmap, centroids and sites, as inline SVG.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "charts.hpp"
#include "html.hpp"
#include "png.hpp"
#include "svg.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kNamed = 12;  ///< arrows or groups that have their names in a picture

/// A square field in the middle, between two columns of names.
struct Field {
  double height = 276;
  double left = 122;
  double right = 338;
  double top = 30;
  double bottom = 246;
  double low_x;
  double high_x;
  double low_y;
  double high_y;

  double x(double value) const { return left + (value - low_x) / (high_x - low_x) * (right - left); }
  double y(double value) const { return bottom - (value - low_y) / (high_y - low_y) * (bottom - top); }
};

void widen(double& low, double& high) {
  const double span = high > low ? high - low : std::max(1.0, std::abs(high));
  low -= 0.08 * span;
  high += 0.08 * span;
}

std::string cross(const Field& field, const std::vector<std::string>& axes) {
  std::string body = fmt::format(R"(<rect class="frame" x="{}" y="{}" width="{}" height="{}"/>)", field.left, field.top,
                                 field.right - field.left, field.bottom - field.top);
  if (field.low_x < 0 && field.high_x > 0) body += svg::line(field.x(0), field.top, field.x(0), field.bottom, "zero");
  if (field.low_y < 0 && field.high_y > 0) body += svg::line(field.left, field.y(0), field.right, field.y(0), "zero");
  body += svg::text((field.left + field.right) / 2, field.bottom + 20, "middle", axes[0] + " \xE2\x86\x92");
  return axes[1].empty() ? body : body + svg::text(field.left, field.top - 10, "start", "\xE2\x86\x91 " + axes[1]);
}

std::vector<std::size_t> largest_first(const Vector& lengths) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  return order;
}

}  // namespace

std::string biplot_svg(const Vector& first, const Vector& second, const std::vector<std::string>& names,
                       const std::vector<std::string>& axes) {
  const double reach = std::max({first.cwiseAbs().maxCoeff(), second.cwiseAbs().maxCoeff(), 1e-300}) * 1.06;
  Field field{.low_x = -reach, .high_x = reach, .low_y = -reach, .high_y = reach};
  std::string body = cross(field, axes);
  const Vector lengths = (first.cwiseAbs2() + second.cwiseAbs2()).cwiseSqrt();
  const auto order = largest_first(lengths);
  std::vector<svg::Label> labels;
  constexpr std::size_t kDrawn = 400;
  std::string arrows;
  for (std::size_t i = 0; i < std::min(order.size(), kDrawn); ++i) {
    const Eigen::Index j = order[i];
    const double x = field.x(first[j]);
    const double y = field.y(second[j]);
    const bool named = i < kNamed && lengths[j] > 0;
    if (named) arrows += svg::line(field.x(0), field.y(0), x, y, "arrow");
    arrows += fmt::format(R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>)", named ? "point" : "minor", x, y,
                          named ? 3.5 : 2.0);
    if (named) labels.push_back({x, y, names[order[i]]});
  }
  body += svg::labels(std::move(labels), field.left - 8, field.right + 8, field.top + 6, field.bottom - 2) + arrows;
  return svg::picture(field.height, "Biplot",
                      fmt::format("the entries of {} and {}; the longest {} have their names", axes[0], axes[1],
                                  std::min(order.size(), kNamed)),
                      body);
}

std::string heatmap_svg(const Matrix& values, const std::vector<std::string>& names, const std::string& what) {
  constexpr Eigen::Index kReadable = 26;
  constexpr Eigen::Index kMostPixels = 400;
  const Eigen::Index d = values.rows();
  const bool readable = d <= kReadable;
  // Larger ones are averaged over squares of cells.
  const Eigen::Index step = (d + kMostPixels - 1) / kMostPixels;
  const Eigen::Index side = (d + step - 1) / step;
  std::vector<double> pixels;
  for (Eigen::Index i = 0; i < side; ++i)
    for (Eigen::Index j = 0; j < side; ++j) {
      const Eigen::Index rows = std::min(step, d - i * step);
      const Eigen::Index columns = std::min(step, d - j * step);
      pixels.push_back(values.block(i * step, j * step, rows, columns).mean());
    }
  const double left = readable ? 104 : 8;
  const double top = readable ? 84 : 8;
  const double size = svg::kWidth - left - 8;
  const double cell = size / static_cast<double>(d);
  std::string body = fmt::format(
      "<image class=\"pixels\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" "
      "href=\"data:image/png;base64,{}\"/>\n",
      left, top, size, size, base64(diverging_png(pixels, side, side)));
  for (Eigen::Index i = 0; readable && i < d; ++i) {
    const std::string words = svg::shortened(names[i], 14);
    const double at = top + (static_cast<double>(i) + 0.5) * cell;
    body += svg::text(left - 6, at + 4, "end", words);
    body += fmt::format("<text transform=\"translate({:.1f} {}) rotate(-55)\">{}</text>\n",
                        left + (static_cast<double>(i) + 0.5) * cell + 3, top - 6, html::escape(words));
  }
  body += fmt::format(R"(<rect class="frame" x="{}" y="{}" width="{}" height="{}"/>)", left, top, size, size);
  return svg::picture(top + size + 8, what, fmt::format("a matrix of {} by {}, blue below zero and red above", d, d),
                      body);
}

std::string density_svg(const Matrix& counts, const Matrix& edges, double deviation, double most,
                        const std::string& title, const std::vector<std::string>& axes) {
  const Eigen::Index m = counts.rows();
  const Field field{.low_x = edges(0, 0), .high_x = edges(0, m), .low_y = edges(1, 0), .high_y = edges(1, m)};
  std::string cells;
  for (Eigen::Index i = 0; i < m; ++i)
    for (Eigen::Index j = 0; j < m; ++j) {
      if (!(counts(i, j) > 2 * deviation)) continue;
      const double x = field.x(edges(0, i)), y = field.y(edges(1, j + 1));
      cells += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.2f}" height="{:.2f}" opacity="{:.2f}"/>)", x, y,
                           field.x(edges(0, i + 1)) - x + 0.2, field.y(edges(1, j)) - y + 0.2,
                           std::sqrt(std::min(1.0, counts(i, j) / most)));
      cells += '\n';
    }
  std::string body = "<g class=\"density\">\n" + cells + "</g>\n" + cross(field, axes);
  body += svg::text(field.left, field.bottom + 16, "middle", html::rounded(edges(0, 0)), "tick");
  body += svg::text(field.right, field.bottom + 16, "middle", html::rounded(edges(0, m)), "tick");
  body += svg::text(field.left - 6, field.bottom, "end", html::rounded(edges(1, 0)), "tick");
  body += svg::text(field.left - 6, field.top + 8, "end", html::rounded(edges(1, m)), "tick");
  return svg::picture(field.height, title,
                      fmt::format("noisy counts of rows in {} by {} cells along {} and {}", m, m, axes[0], axes[1]),
                      body);
}

std::string centroids_svg(const Matrix& means, const Vector& weights, const std::vector<std::string>& names,
                          const std::vector<std::string>& axes) {
  const bool plane = means.cols() > 1;
  const double most = std::max(weights.maxCoeff(), 1e-300);
  Field field{.low_x = means.col(0).minCoeff(), .high_x = means.col(0).maxCoeff(), .low_y = -1, .high_y = 1};
  if (plane)
    field.low_y = means.col(1).minCoeff(), field.high_y = means.col(1).maxCoeff(), widen(field.low_y, field.high_y);
  if (!plane) field.height = 180, field.bottom = 150;
  widen(field.low_x, field.high_x);
  std::string body = cross(field, {axes[0], plane ? axes[1] : ""});
  std::string dots;
  std::vector<svg::Label> labels;
  const auto order = largest_first(weights);
  constexpr std::size_t kDrawn = 200;
  for (std::size_t i = 0; i < std::min(order.size(), kDrawn); ++i) {
    const Eigen::Index c = order[i];
    if (!(weights[c] > 0)) continue;  // nobody is known to be in it
    const double x = field.x(means(c, 0));
    const double y = field.y(plane ? means(c, 1) : 0.0);
    dots += fmt::format(R"(<circle class="group" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>)", x, y,
                        4 + 10 * std::sqrt(weights[c] / most), html::escape(names[order[i]]));
    if (i < 2 * kNamed) labels.push_back({x, y, names[order[i]]});
  }
  body += dots + svg::labels(std::move(labels), field.left - 8, field.right + 8, field.top + 6, field.bottom - 2);
  return svg::picture(
      field.height, "Where the groups lie",
      fmt::format("the means of {} groups along {}{}", means.rows(), axes[0], plane ? " and " + axes[1] : ""), body);
}

std::string federation_svg(const std::vector<std::string>& sites, const std::string& added, const std::string& seen) {
  constexpr std::size_t kMost = 8;
  constexpr double kRow = 46;
  const std::size_t shown = sites.size() > kMost ? kMost - 1 : sites.size();
  const std::size_t boxes = shown + (sites.size() > shown ? 1 : 0);
  const double height = std::max(150.0, static_cast<double>(boxes) * kRow + 12);
  const double middle = height / 2;
  const auto box = [](double x, double y, double width, double tall, const char* css) {
    return fmt::format(R"(<rect class="{}" x="{}" y="{:.1f}" width="{}" height="{}" rx="5"/>)", css, x, y, width, tall);
  };
  std::string body;
  const double first = middle - static_cast<double>(boxes) * kRow / 2;
  for (std::size_t i = 0; i < boxes; ++i) {
    const double y = first + static_cast<double>(i) * kRow + 4;
    const bool rest = i == shown;
    body += svg::line(170, y + 19, 262, middle, "arrow") + box(4, y, 166, kRow - 8, "site");
    body += svg::text(14, y + 16, "start",
                      rest ? fmt::format("and {} more sites", sites.size() - shown) : svg::shortened(sites[i], 20),
                      "strong");
    body += svg::text(14, y + 31, "start", added);
  }
  body += box(262, middle - 32, 192, 64, "coordinator");
  body += svg::text(358, middle - 8, "middle", "Coordinator", "strong");
  body += svg::text(358, middle + 12, "middle", seen);
  return svg::picture(height, "Who holds rows and adds noise",
                      fmt::format("{} sites, each {}; the coordinator {}", sites.size(), added, seen), body);
}

}  // namespace eigenveil
