// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace eigenveil::svg {

/// Charts are drawn 460 wide: on a phone their text stays legible, and on a desktop two stand side by side.
inline constexpr double kWidth = 460;

/// An inline picture with its title and description for those who do not see it. Both are escaped.
std::string picture(double height, std::string_view title, std::string_view description, const std::string& body);

std::string line(double x1, double y1, double x2, double y2, std::string_view css);
/// `anchor` is start, middle or end. The text is escaped.
std::string text(double x, double y, std::string_view anchor, std::string_view words, std::string_view css = {});

/// At most `most` characters, the last of them an ellipsis if some are left out. Cuts between characters of UTF-8.
std::string shortened(std::string_view words, std::size_t most);

/// The round step (1, 2 or 5 times a power of ten) that cuts `span` into about `wanted` pieces.
double round_step(double span, double wanted);

/// A name beside a point: in a column at the edge, tied to its point by a line.
struct Label {
  double x;
  double y;
  std::string words;
};
/// Names of points in the columns at `left` and `right`, moved apart so that none lies on another between `top` and
/// `bottom`.
std::string labels(std::vector<Label> all, double left, double right, double top, double bottom);

}  // namespace eigenveil::svg
