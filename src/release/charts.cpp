// SPDX-License-Identifier: Apache-2.0
#include "charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "html.hpp"
#include "svg.hpp"

namespace eigenveil {
namespace {

constexpr double kHeight = 300;
constexpr double kLeft = 58;
constexpr double kRight = 452;
constexpr double kTop = 34;
constexpr double kBottom = 250;

/// An axis whose ends are ticks; logarithmic where the values span more than that many times.
constexpr double kLogarithmic = 50;

struct ValueAxis {
  bool log;
  double low;
  double high;
  double step;   ///< of a linear axis
  int exponent;  ///< labels of a linear axis are in units of 10^exponent

  double y(double value) const {
    const double part =
        log ? std::log(std::clamp(value, low, high) / low) / std::log(high / low) : (value - low) / (high - low);
    return kBottom - std::clamp(part, 0.0, 1.0) * (kBottom - kTop);
  }
  std::vector<double> ticks() const {
    std::vector<double> all;
    if (!log) {
      const auto count = static_cast<int>(std::lround((high - low) / step));
      for (int i = 0; i <= count; ++i) all.push_back(low + i * step);
      return all;
    }
    const bool wide = high / low > 2e4;
    for (double power = std::pow(10, std::floor(std::log10(low))); power <= high * 1.001; power *= 10)
      for (const double factor : {1.0, 3.0})
        if (power * factor >= low * 0.999 && power * factor <= high * 1.001 && (factor == 1.0 || !wide))
          all.push_back(power * factor);
    return all;
  }
  std::string label(double tick) const {
    if (log) return html::rounded(tick);
    const double unit = std::pow(10.0, exponent);
    const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step / unit) + 1e-9)));
    const double shown = std::abs(tick) < step / 2 ? 0.0 : tick / unit;
    return decimals == 0 ? html::grouped(std::llround(shown)) : fmt::format("{:.{}f}", shown, decimals);
  }
};

ValueAxis value_axis(const Findings& found, std::optional<double> edge) {
  const Vector& values = found.shown();
  double most = std::max(values.maxCoeff(), edge.value_or(0));
  double least = std::min(values.minCoeff(), edge.value_or(values.minCoeff()));
  if (found.banded()) most = std::max(most, found.high.maxCoeff());
  if (values.minCoeff() > 0 && least > 0 && most / least > kLogarithmic) return {true, least / 1.4, most * 1.2, 1, 0};
  if (found.banded()) least = std::min(least, found.low.minCoeff());
  const double high = std::max(most, 0.0);
  const double low = std::min(least, 0.0);
  const double span = high > low ? high - low : 1;
  const double step = svg::round_step(span, 5);
  const double magnitude = std::floor(std::log10(std::max({high, -low, step})));
  const bool readable = magnitude >= -2 && magnitude < 6;
  return {false, std::floor(low / step) * step, std::max(std::ceil(high / step * 0.9999999), 1.0) * step, step,
          readable ? 0 : static_cast<int>(3 * std::floor(magnitude / 3))};
}

double x_of(Eigen::Index k, Eigen::Index count) {
  const double inset = std::min(30.0, (kRight - kLeft) / (2.0 * static_cast<double>(count)));
  const double part = count > 1 ? static_cast<double>(k) / static_cast<double>(count - 1) : 0.5;
  return kLeft + inset + part * (kRight - kLeft - 2 * inset);
}

std::string draw_axes(const ValueAxis& axis, Eigen::Index count, const ModelKind& kind) {
  std::string body;
  for (const double tick : axis.ticks()) {
    body +=
        fmt::format(R"(<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>)", kLeft, kRight, axis.y(tick));
    body += fmt::format(R"(<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 8,
                        axis.y(tick) + 4, axis.label(tick));
    body += '\n';
  }
  body += svg::line(kLeft, axis.y(axis.log ? axis.low : 0), kRight, axis.y(axis.log ? axis.low : 0), "axis");
  const auto every = std::max<Eigen::Index>(1, std::lround(svg::round_step(static_cast<double>(count), 16)));
  for (Eigen::Index k = 1; k <= count; ++k) {
    if (k % every != 0 && k != 1) continue;
    body += fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x_of(k - 1, count),
                        kBottom + 18, k);
  }
  const std::string unit = axis.exponent == 0 ? "" : fmt::format(" (in units of 1e{})", axis.exponent);
  body += '\n' + svg::text(2, 14, "start", html::capitalised(kind.value) + unit + (axis.log ? ", logarithmic" : ""));
  return body + svg::text((kLeft + kRight) / 2, kBottom + 40, "middle", html::capitalised(kind.item));
}

/// All that noise alone would typically reach.
std::string draw_edge(const ValueAxis& axis, double edge) {
  const std::string value = html::rounded(edge);
  const double from = axis.y(axis.log ? axis.low : 0);
  const double y = axis.y(edge);
  std::string body = fmt::format(R"(<rect class="noise-area" x="{}" y="{:.1f}" width="{}" height="{:.1f}"/>)", kLeft, y,
                                 kRight - kLeft, std::max(0.0, from - y));
  body += fmt::format(
      R"(<line class="edge" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"><title>Noise alone: {3}</title></line>)", kLeft,
      kRight, y, value);
  body += svg::line(kRight - 30, 10, kRight, 10, "edge");
  body += svg::text(kRight - 36, 14, "end", "Noise alone: " + value, "edge-label");
  return body;
}

std::string band_in_words(const Findings& found, Eigen::Index k) {
  if (!found.banded()) return "";
  return fmt::format(", 95% band {} to {}", html::rounded(found.low[k]), html::rounded(found.high[k]));
}

}  // namespace

std::string scree_svg(const Findings& found, std::optional<double> noise_edge, const ModelKind& kind) {
  const Vector& values = found.shown();
  const Eigen::Index count = values.size();
  const ValueAxis axis = value_axis(found, noise_edge);
  std::string body = draw_axes(axis, count, kind);
  if (noise_edge && std::isfinite(*noise_edge)) body += draw_edge(axis, *noise_edge);
  std::string points;
  std::string dots;
  const double radius = count > 60 ? 2.5 : 4.5;
  for (Eigen::Index k = 0; k < count; ++k) {
    const double x = x_of(k, count);
    const double y = axis.y(values(k));
    points += fmt::format("{}{:.1f},{:.1f}", k == 0 ? "" : " ", x, y);
    const std::string judged = found.judged ? fmt::format(" {}", name(found.verdict(k))) : "";
    if (found.banded()) dots += svg::line(x, axis.y(found.low[k]), x, axis.y(found.high[k]), "band" + judged);
    dots += fmt::format(R"(<circle class="point{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}{}: {}{}</title></circle>)",
                        judged, x, y, radius, kind.number, k + 1, html::rounded(values(k)), band_in_words(found, k));
    dots += '\n';
  }
  if (!found.banded()) body += fmt::format("<polyline class=\"curve\" points=\"{}\"/>\n", points);
  return svg::picture(kHeight, "Scree plot",
                      fmt::format("the {} released {}s in order, from {} for the first to {} for the last", count,
                                  kind.value, html::rounded(values(0)), html::rounded(values(count - 1))),
                      body + dots);
}

}  // namespace eigenveil
