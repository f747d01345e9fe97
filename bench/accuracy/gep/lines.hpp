// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "eigenveil/release/line_chart.hpp"
#include "tests/support/views.hpp"

namespace eigenveil::bench {

/// Noise-free solution, ours once, ours each step, the paper's: one point of an experiment.
struct Errors {
  double once = 0;
  double each_step = 0;
  double paper = 0;
};

/// Three lines over epsilon.
inline LineChart chart(const std::string& title, const std::map<double, Errors>& by_epsilon) {
  LineChart chart{
      title, "epsilon", "1 - |cos|", {{"once (default)", {}}, {"each-step", {}}, {"paper's noise and flow", {}}}};
  for (const auto& [epsilon, errors] : by_epsilon) {
    chart.lines[0].points.emplace_back(epsilon, errors.once);
    chart.lines[1].points.emplace_back(epsilon, errors.each_step);
    chart.lines[2].points.emplace_back(epsilon, errors.paper);
  }
  return chart;
}

inline void print_row(const std::string& name, const Errors& errors) {
  fmt::print("| {:44} | {:9.2g} | {:9.2g} | {:9.2g} |\n", name, errors.once, errors.each_step, errors.paper);
  std::fflush(stdout);
}

inline void print_head(const char* first) {
  fmt::print("\n| {:44} | once      | each-step | paper     |\n|{:-<46}|-----------|-----------|-----------|\n", first,
             "");
}

}  // namespace eigenveil::bench
