// SPDX-License-Identifier: Apache-2.0
#include "charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "html.hpp"

namespace eigenveil {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 330;
constexpr double kLeft = 66;
constexpr double kRight = 704;
constexpr double kTop = 34;
constexpr double kBottom = 280;

/// The round step (1, 2 or 5 times a power of ten) that cuts `span` into about `wanted` pieces.
double round_step(double span, double wanted) {
  const double raw = span / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power * 1.0000001) return factor * power;
  }
  return 10 * power;
}

/// A linear axis whose ends are ticks.
struct ValueAxis {
  double low;
  double high;
  double step;
  int exponent;  ///< labels are in units of 10^exponent

  double y(double value) const { return kBottom - (value - low) / (high - low) * (kBottom - kTop); }
  std::string label(double tick) const {
    const double unit = std::pow(10.0, exponent);
    const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step / unit) + 1e-9)));
    const double shown = std::abs(tick) < step / 2 ? 0.0 : tick / unit;
    return decimals == 0 ? html::grouped(std::llround(shown)) : fmt::format("{:.{}f}", shown, decimals);
  }
};

ValueAxis value_axis(const Vector& values, std::optional<double> also) {
  const double high = std::max({values.maxCoeff(), also.value_or(0), 0.0});
  const double low = std::min(values.minCoeff(), 0.0);
  const double span = high > low ? high - low : 1;
  const double step = round_step(span, 5);
  const double magnitude = std::floor(std::log10(std::max({high, -low, step})));
  const bool readable = magnitude >= -2 && magnitude < 7;
  return {std::floor(low / step) * step, std::max(std::ceil(high / step * 0.9999999), 1.0) * step, step,
          readable ? 0 : static_cast<int>(3 * std::floor(magnitude / 3))};
}

double x_of(Eigen::Index k, Eigen::Index count) {
  const double inset = std::min(36.0, (kRight - kLeft) / (2.0 * static_cast<double>(count)));
  const double part = count > 1 ? static_cast<double>(k) / static_cast<double>(count - 1) : 0.5;
  return kLeft + inset + part * (kRight - kLeft - 2 * inset);
}

std::string draw_axes(const ValueAxis& axis, Eigen::Index count, std::string_view value) {
  std::string svg;
  const auto ticks = static_cast<int>(std::lround((axis.high - axis.low) / axis.step));
  for (int i = 0; i <= ticks; ++i) {
    const double tick = axis.low + i * axis.step;
    svg +=
        fmt::format(R"(<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>)", kLeft, kRight, axis.y(tick));
    svg += fmt::format(R"(<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 10,
                       axis.y(tick) + 4, axis.label(tick));
    svg += '\n';
  }
  svg += fmt::format(R"(<line class="axis" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>)", kLeft, kRight, axis.y(0));
  const auto every = std::max<Eigen::Index>(1, std::lround(round_step(static_cast<double>(count), 20)));
  for (Eigen::Index k = 1; k <= count; ++k) {
    if (k % every != 0 && k != 1) continue;
    svg += fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x_of(k - 1, count),
                       kBottom + 20, k);
  }
  const std::string unit = axis.exponent == 0 ? "" : fmt::format(" (in units of 1e{})", axis.exponent);
  svg += fmt::format(R"(<text x="{}" y="{}">{}{}</text>)", 4, 16, html::capitalised(value), unit);
  svg += fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="middle">Component</text>)", (kLeft + kRight) / 2,
                     kBottom + 42);
  return svg + '\n';
}

/// The dashed line, and its legend above the plot, where no point can lie under it.
std::string draw_edge(const ValueAxis& axis, double edge) {
  constexpr double kLegend = 12;
  constexpr double kSample = 36;
  const std::string value = html::rounded(edge);
  std::string svg = fmt::format(
      R"(<line class="edge" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"><title>Noise alone: {3}</title></line>)", kLeft,
      kRight, axis.y(edge), value);
  svg += fmt::format(R"(<line class="edge" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>)", kRight - kSample, kRight, kLegend);
  svg += fmt::format(R"(<text class="edge-label" x="{}" y="{}" text-anchor="end">Noise alone: {}</text>)",
                     kRight - kSample - 8, kLegend + 4, value);
  return svg + '\n';
}

}  // namespace

std::string scree_svg(const Vector& values, std::optional<double> noise_edge, const ModelKind& kind) {
  const Eigen::Index count = values.size();
  const ValueAxis axis = value_axis(values, noise_edge);
  std::string svg = fmt::format(
      R"(<svg viewBox="0 0 {} {}" role="img" aria-labelledby="scree-title scree-desc" xmlns="http://www.w3.org/2000/svg">)"
      "\n<title id=\"scree-title\">Scree plot</title>\n<desc id=\"scree-desc\">The {} released {}s in order, "
      "from {} for the first to {} for the last.</desc>\n",
      kWidth, kHeight, count, kind.value, html::rounded(values(0)), html::rounded(values(count - 1)));
  svg += draw_axes(axis, count, kind.value);
  std::string points;
  std::string dots;
  const double radius = count > 60 ? 2.5 : 4.5;
  for (Eigen::Index k = 0; k < count; ++k) {
    const double x = x_of(k, count);
    const double y = axis.y(values(k));
    points += fmt::format("{}{:.1f},{:.1f}", k == 0 ? "" : " ", x, y);
    dots += fmt::format(R"(<circle class="point" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}{}: {}</title></circle>)", x,
                        y, radius, kind.number, k + 1, html::rounded(values(k)));
    dots += '\n';
  }
  svg += fmt::format("<polyline class=\"curve\" points=\"{}\"/>\n", points);
  if (noise_edge) svg += draw_edge(axis, *noise_edge);
  return svg + dots + "</svg>\n";
}

}  // namespace eigenveil
