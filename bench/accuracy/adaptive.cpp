// SPDX-License-Identifier: Apache-2.0
// The first table of the design: Gaussian rows of trace 1 whose top eigenvalue is `gap` times the others.
#include <fmt/format.h>

#include <cmath>

#include "accuracy.hpp"

namespace eigenveil::bench {
namespace {

struct Case {
  std::size_t n;
  std::size_t d;
  double gap;
  double target;  // the design's figure for adaptive-power
};

// Theorem 1.2 of 001 with constant 1: statistical part, and the cost of privacy.
double rate(const Case& c, double epsilon) {
  const auto n = static_cast<double>(c.n);
  const auto d = static_cast<double>(c.d);
  const double top = c.gap / (c.gap + d - 1);
  const double kappa = 1 - 1 / c.gap;
  return d / (epsilon * epsilon * n * n * top * kappa * kappa) +
         1 / (epsilon * epsilon * n * n * top * kappa * kappa * kappa) + 1 / (n * top * kappa * kappa);
}

}  // namespace

void adaptive(const Setting& setting) {
  const std::vector<Case> cases = {
      {20000, 50, 5, 0.006}, {20000, 200, 2, 0.33}, {50000, 500, 2, 0.40}, {50000, 1000, 5, 0.28}};
  Table table("adaptive",
              fmt::format("Adaptive power iteration: mean sin^2 over {} seeds, epsilon = 1, delta = 1e-6, k = 1, row "
                          "bound 1.2",
                          setting.seeds),
              {"n, d, gap", "non-private", "gram", "gram, paper", "power, 4 rounds", "adaptive, 8 rounds",
               "adaptive, best rounds", "adaptive, paper", "design", "rate of 001"});
  LineChart chart{"sin^2, the four cases of the table", "case", "sin^2", {}, false, true};
  std::map<std::string, ChartLine> lines;
  for (std::size_t index = 0; index < cases.size(); ++index) {
    const Case& c = cases[index];
    const SpectrumModel model{c.n, gap_spectrum(c.d, 1, c.gap), 1.2, 1};
    const PcaOptions options{.components = 1};
    const auto tight = budget(1, 1e-6);
    const std::vector<std::size_t> rounds = {4, 6, 8, 12, 16, 24};
    std::map<std::string, double> mean;
    std::vector<double> by_rounds(rounds.size());
    for (int seed = 0; seed < setting.seeds; ++seed) {
      const Drawn drawn = draw(model, seed, setting.threads);
      const auto add = [&](const std::string& name, const PcaProgram& program, const std::optional<Budget>& spent,
                           Calibration calibration = Calibration::kTight) {
        mean[name] += error_of(program, spent, drawn, seed, calibration) / setting.seeds;
      };
      add("non-private", {PcaMethod::kGram, options}, {});
      add("gram", {PcaMethod::kGram, options}, tight);
      add("gram, paper", {PcaMethod::kGram, options}, tight, Calibration::kPaper);
      add("power", {PcaMethod::kPower, options, {.rounds = 4}}, tight);
      add("adaptive, paper", {PcaMethod::kAdaptivePower, options, {.rounds = 8}}, tight, Calibration::kPaper);
      for (std::size_t t = 0; t < rounds.size(); ++t)
        by_rounds[t] +=
            error_of({PcaMethod::kAdaptivePower, options, {.rounds = rounds[t]}}, tight, drawn, seed) / setting.seeds;
    }
    const auto best = std::min_element(by_rounds.begin(), by_rounds.end()) - by_rounds.begin();
    mean["adaptive"] = by_rounds[static_cast<std::size_t>(best)];
    table.add({fmt::format("{}, {}, {}", c.n, c.d, c.gap), number(mean["non-private"]), number(mean["gram"]),
               number(mean["gram, paper"]), number(mean["power"]), number(by_rounds[2]),
               fmt::format("{} ({})", number(mean["adaptive"]), rounds[static_cast<std::size_t>(best)]),
               number(mean["adaptive, paper"]), number(c.target), number(rate(c, 1))});
    for (const auto& [name, value] : mean) {
      lines[name].name = name;
      lines[name].reference = name == "non-private";
      lines[name].points.emplace_back(index + 1, value);
    }
    lines["rate of 001"].name = "rate of 001 (constant 1)";
    lines["rate of 001"].reference = true;
    lines["rate of 001"].points.emplace_back(index + 1, std::min(1.0, rate(c, 1)));
  }
  for (auto& [name, line] : lines) chart.lines.push_back(line);
  table.finish(setting, {chart});
}

}  // namespace eigenveil::bench
