// SPDX-License-Identifier: Apache-2.0
#include "svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "html.hpp"

namespace eigenveil::svg {
namespace {

constexpr double kSpacing = 15;
constexpr std::size_t kLongestLabel = 15;

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

std::string column(std::vector<Label> all, double at, bool left, double top, double bottom) {
  std::stable_sort(all.begin(), all.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
  std::vector<double> y;
  for (const Label& one : all) y.push_back(y.empty() ? std::max(top, one.y) : std::max(y.back() + kSpacing, one.y));
  // What was pushed below the bottom pushes back.
  double limit = bottom;
  for (std::size_t i = y.size(); i-- > 0; limit = y[i] - kSpacing) y[i] = std::min(y[i], limit);
  std::string body;
  for (std::size_t i = 0; i < all.size(); ++i) {
    body += line(all[i].x, all[i].y, at, y[i], "leader");
    body += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}<title>{}</title></text>)",
                        at + (left ? -4 : 4), y[i] + 4, left ? "end" : "start",
                        html::escape(shortened(all[i].words, kLongestLabel)), html::escape(all[i].words));
    body += '\n';
  }
  return body;
}

}  // namespace

std::string picture(double height, std::string_view title, std::string_view description, const std::string& body) {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}: {}\" xmlns=\"http://www.w3.org/2000/svg\">\n"
      "<title>{}</title>\n<desc>{}</desc>\n{}</svg>\n",
      kWidth, height, html::escape(title), html::escape(description), html::escape(title), html::escape(description),
      body);
}

std::string line(double x1, double y1, double x2, double y2, std::string_view css) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", css, x1, y1, x2,
                     y2);
}

std::string text(double x, double y, std::string_view anchor, std::string_view words, std::string_view css) {
  const std::string kind = css.empty() ? "" : fmt::format(" class=\"{}\"", css);
  return fmt::format("<text{} x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", kind, x, y, anchor,
                     html::escape(words));
}

std::string shortened(std::string_view words, std::size_t most) {
  std::size_t characters = 0;
  std::size_t cut = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (continues(words[i])) continue;
    if (++characters == most) cut = i;
  }
  return characters <= most ? std::string(words) : std::string(words.substr(0, cut)) + "\xE2\x80\xA6";
}

double round_step(double span, double wanted) {
  const double raw = span / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power * 1.0000001) return factor * power;
  }
  return 10 * power;
}

std::string labels(std::vector<Label> all, double left, double right, double top, double bottom) {
  std::vector<Label> sides[2];
  // Half of them on each side: those further left go left.
  std::stable_sort(all.begin(), all.end(), [](const Label& a, const Label& b) { return a.x < b.x; });
  const auto most = static_cast<std::size_t>((bottom - top) / kSpacing) + 1;
  for (std::size_t i = 0; i < all.size(); ++i) sides[i < (all.size() + 1) / 2 ? 0 : 1].push_back(all[i]);
  for (auto& side : sides) side.resize(std::min(side.size(), most));
  return column(std::move(sides[0]), left, true, top, bottom) + column(std::move(sides[1]), right, false, top, bottom);
}

}  // namespace eigenveil::svg
