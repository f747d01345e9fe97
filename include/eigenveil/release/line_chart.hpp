// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace eigenveil {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>>
      points;              ///< x ascending; on a logarithmic axis what is not positive is left out
  bool reference = false;  ///< drawn dashed and grey: a bound, a rate, another's figure
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<ChartLine> lines;
  bool log_x = true;
  bool log_y = true;
};

/// Charts below each other in one SVG that needs nothing else.
std::string line_charts_svg(const std::vector<LineChart>& charts);

}  // namespace eigenveil
