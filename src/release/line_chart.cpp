// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/line_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "html.hpp"

namespace eigenveil {
namespace {

constexpr double kPlotWidth = 960;
constexpr double kPlotHeight = 400;
constexpr double kPlotLeft = 76;
constexpr double kPlotRight = 600;
constexpr double kPlotTop = 44;
constexpr double kPlotBottom = 340;
constexpr std::array<const char*, 8> kColours = {"#1f5fa8", "#c2410c", "#2e7d32", "#7b3fa0",
                                                 "#b8860b", "#0e7490", "#be185d", "#525252"};

struct Axis {
  bool log;
  double low;
  double high;

  double place(double value) const {
    return log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }
  bool shows(double value) const { return std::isfinite(value) && (!log || value > 0); }
};

Axis axis_of(const std::vector<double>& values, bool log) {
  Axis axis{log, 0, 1};
  std::vector<double> shown;
  for (const double v : values)
    if (axis.shows(v)) shown.push_back(v);
  if (shown.empty()) return log ? Axis{true, 0.1, 1} : axis;
  const auto [least, most] = std::minmax_element(shown.begin(), shown.end());
  if (log) {
    axis.low = *least / 1.15;
    axis.high = *most * 1.15;
    return axis;
  }
  axis.low = std::min(0.0, *least);
  axis.high = *most > axis.low ? *most * 1.05 : axis.low + 1;
  return axis;
}

// 1, 2, 5 times powers of ten; only the powers when there are many of them
std::vector<double> ticks(const Axis& axis) {
  std::vector<double> result;
  if (axis.log) {
    const bool wide = axis.high / axis.low > 2000;
    for (double power = std::pow(10, std::floor(std::log10(axis.low))); power <= axis.high; power *= 10)
      for (const double factor : {1.0, 2.0, 5.0})
        if (power * factor >= axis.low && power * factor <= axis.high && (factor == 1.0 || !wide))
          result.push_back(power * factor);
    return result;
  }
  const double raw = (axis.high - axis.low) / 5;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (raw <= factor * power) step = factor * power;
  for (double t = std::ceil(axis.low / step) * step; t <= axis.high * (1 + 1e-9); t += step) result.push_back(t);
  return result;
}

std::string label(double value) {
  if (value == 0) return "0";
  const double magnitude = std::abs(value);
  if (magnitude >= 1e9 || magnitude < 1e-4) return fmt::format("{:.0e}", value);
  if (magnitude >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (magnitude >= 1e3) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

double x_of(const Axis& axis, double value) { return kPlotLeft + axis.place(value) * (kPlotRight - kPlotLeft); }
double y_of(const Axis& axis, double value) { return kPlotBottom - axis.place(value) * (kPlotBottom - kPlotTop); }

std::string draw_axes(const LineChart& chart, const Axis& x, const Axis& y) {
  std::string svg =
      fmt::format("<text class=\"title\" x=\"{}\" y=\"22\">{}</text>\n", kPlotLeft, html::escape(chart.title));
  for (const double t : ticks(y))
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>\n",
        kPlotLeft, kPlotRight, y_of(y, t), kPlotLeft - 8, y_of(y, t) + 4, label(t));
  for (const double t : ticks(x))
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4}</text>\n",
        x_of(x, t), kPlotTop, kPlotBottom, kPlotBottom + 18, label(t));
  svg += fmt::format("<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", kPlotLeft, kPlotTop,
                     kPlotRight - kPlotLeft, kPlotBottom - kPlotTop);
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (kPlotLeft + kPlotRight) / 2,
                     kPlotBottom + 40, html::escape(chart.x_label));
  svg += fmt::format("<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                     (kPlotTop + kPlotBottom) / 2, html::escape(chart.y_label));
  return svg;
}

std::string draw_line(const ChartLine& line, const Axis& x, const Axis& y, std::size_t index) {
  const std::string style = line.reference
                                ? fmt::format("stroke=\"#777\" stroke-dasharray=\"{}\"", index % 2 == 0 ? "6 4" : "2 3")
                                : fmt::format("stroke=\"{}\"", kColours.at(index % kColours.size()));
  std::string points;
  std::string dots;
  for (const auto& [px, py] : line.points) {
    if (!x.shows(px) || !y.shows(py)) continue;
    points += fmt::format("{:.1f},{:.1f} ", x_of(x, px), y_of(y, py));
    if (!line.reference)
      dots += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"><title>{}: {}, {}</title></circle>", x_of(x, px),
          y_of(y, py), kColours.at(index % kColours.size()), html::escape(line.name), label(px), html::rounded(py));
  }
  const double legend = kPlotTop + 12 + 20 * static_cast<double>(index);
  return fmt::format(
      "<polyline class=\"line\" {0} points=\"{1}\"/>{2}\n<line class=\"line\" {0} x1=\"{3}\" x2=\"{4}\" y1=\"{5}\" "
      "y2=\"{5}\"/><text x=\"{6}\" y=\"{7}\">{8}</text>\n",
      style, points, dots, kPlotRight + 16, kPlotRight + 42, legend, kPlotRight + 50, legend + 4,
      html::escape(line.name));
}

std::string draw_chart(const LineChart& chart, double offset) {
  std::vector<double> xs;
  std::vector<double> ys;
  for (const ChartLine& line : chart.lines)
    for (const auto& [px, py] : line.points) {
      xs.push_back(px);
      ys.push_back(py);
    }
  const Axis x = axis_of(xs, chart.log_x);
  const Axis y = axis_of(ys, chart.log_y);
  std::string svg = fmt::format("<g transform=\"translate(0 {})\">\n", offset) + draw_axes(chart, x, y);
  for (std::size_t i = 0; i < chart.lines.size(); ++i) svg += draw_line(chart.lines[i], x, y, i);
  return svg + "</g>\n";
}

}  // namespace

std::string line_charts_svg(const std::vector<LineChart>& charts) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n"
      "<style>text{{font:13px system-ui,sans-serif;fill:#222}}.title{{font-weight:600;font-size:15px}}"
      ".grid{{stroke:#e4e4e4}}.frame{{fill:none;stroke:#888}}.line{{fill:none;stroke-width:2}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kPlotWidth, kPlotHeight * static_cast<double>(std::max<std::size_t>(charts.size(), 1)));
  for (std::size_t i = 0; i < charts.size(); ++i) svg += draw_chart(charts[i], kPlotHeight * static_cast<double>(i));
  return svg + "</svg>\n";
}

}  // namespace eigenveil
