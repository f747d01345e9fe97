// SPDX-License-Identifier: Apache-2.0
// How the error falls with n and with epsilon where the privacy term dominates: sin^2 goes as (epsilon n)^-2 in all
// three papers, so the slope of its logarithm is -2.
#include <fmt/format.h>

#include <cmath>

#include "accuracy.hpp"

namespace eigenveil::bench {
namespace {

struct Line {
  std::string name;
  PcaProgram program;
  SpectrumModel model;  // rows are replaced
  double epsilon;       // at which n is varied
  std::size_t rows;     // at which epsilon is varied
};

// What noise adds: error with noise less error without, on the same rows.
double excess(const Line& line, std::size_t rows, double epsilon, const Setting& setting) {
  SpectrumModel model = line.model;
  model.rows = rows;
  double sum = 0;
  for (int seed = 0; seed < setting.seeds; ++seed) {
    const Drawn drawn = draw(model, seed, setting.threads);
    const double noiseless = error_of(line.program, {}, drawn, seed);
    sum += std::max(0.0, error_of(line.program, budget(epsilon, 1e-6), drawn, seed) - noiseless);
  }
  return sum / setting.seeds;
}

std::vector<Line> lines() {
  Vector spikes = Vector::Ones(100);
  spikes.head(3) << 40, 39, 38;  // no gap between the components is needed
  Vector sparse = Vector::Ones(200);
  sparse[0] = 31;
  const SpectrumModel low{0, gap_spectrum(100, 1, 10), 1.5, 1};
  const SpectrumModel spiked{0, spikes, 1.3 * std::sqrt(spikes.sum()), 3};
  const SpectrumModel few{0, sparse, 1.3 * std::sqrt(sparse.sum()), 1, 1, 10};
  const PcaProgram gram{PcaMethod::kGram, {.components = 1}};
  const PcaProgram adaptive{PcaMethod::kAdaptivePower, {.components = 1}, {.rounds = 5}};
  const PcaProgram loadings{PcaMethod::kSparsePower, {.components = 1, .sparsity = 20}, {.rounds = 4}};
  PcaProgram spiked_program{PcaMethod::kSpiked, {.components = 3}};
  spiked_program.spiked.rank = 3;
  return {{"gram", gram, low, 0.5, 20000},
          {"adaptive-power", adaptive, low, 0.5, 10000},
          {"sparse-power", loadings, few, 0.5, 10000},
          {"spiked", spiked_program, spiked, 0.5, 20000}};
}

}  // namespace

void slopes(const Setting& setting) {
  Table table(
      "slopes",
      fmt::format("Cost of privacy in sin^2, mean over {} seeds: slope of its logarithm against log n (5k, 10k, "
                  "20k, 40k) and log epsilon (0.25 to 4); the theorems give -2",
                  setting.seeds),
      {"method", "5k", "10k", "20k", "40k", "slope in n", "eps 0.25", "0.5", "1", "2", "4", "slope in eps"});
  LineChart by_rows{"Cost of privacy against rows", "rows", "excess sin^2", {}};
  LineChart by_epsilon{"Cost of privacy against epsilon", "epsilon", "excess sin^2", {}};
  for (const Line& line : lines()) {
    std::vector<std::pair<double, double>> rows;
    for (const std::size_t n : {5000, 10000, 20000, 40000})
      rows.emplace_back(static_cast<double>(n), excess(line, n, line.epsilon, setting));
    std::vector<std::pair<double, double>> epsilons;
    for (const double epsilon : {0.25, 0.5, 1.0, 2.0, 4.0})
      epsilons.emplace_back(epsilon, excess(line, line.rows, epsilon, setting));
    std::vector<std::string> cells = {line.name};
    for (const auto& [x, y] : rows) cells.push_back(number(y));
    cells.push_back(fmt::format("{:.2f}", slope(rows)));
    for (const auto& [x, y] : epsilons) cells.push_back(number(y));
    cells.push_back(fmt::format("{:.2f}", slope(epsilons)));
    table.add(cells);
    by_rows.lines.push_back({line.name, rows});
    by_epsilon.lines.push_back({line.name, epsilons});
  }
  const auto add_reference = [](LineChart& chart) {
    const auto& points = chart.lines.front().points;
    const double x0 = points.front().first;
    const double x1 = points.back().first;
    const double y0 = points.front().second * 3;
    chart.lines.push_back({"slope -2", {{x0, y0}, {x1, y0 * x0 * x0 / (x1 * x1)}}, true});
  };
  add_reference(by_rows);
  add_reference(by_epsilon);
  table.finish(setting, {by_rows, by_epsilon});
}

}  // namespace eigenveil::bench
