// SPDX-License-Identifier: Apache-2.0
// 001's theorem 1.2 over the gap kappa = 1 - lambda_2 / lambda_1: what privacy costs there goes as d / kappa^2 + 1 /
// kappa^3, the statistical part as 1 / kappa^2.
#include <fmt/format.h>

#include <cmath>

#include "page.hpp"

namespace eigenveil::bench {
namespace {

constexpr std::size_t kRows = 100000, kColumns = 100, kFollowers = 3;
constexpr double kTop = 0.1;

/// lambda_1 = 0.1, three followers of (1 - kappa) lambda_1, the rest equal; trace 1.
Vector spectrum_of(double kappa) {
  Vector spectrum(static_cast<Eigen::Index>(kColumns));
  const double followers = (1 - kappa) * kTop;
  spectrum.setConstant((1 - kTop - kFollowers * followers) / static_cast<double>(kColumns - 1 - kFollowers));
  spectrum[0] = kTop;
  spectrum.segment(1, kFollowers).setConstant(followers);
  return spectrum;
}

}  // namespace

void paper_001(const Setting& all) {
  const int seeds = std::min(all.seeds, 4);
  Page page("paper-001", "Paper 001 (adaptive power iteration): error against the gap");
  page.say(fmt::format(
      "{} Gaussian rows of {} columns, trace 1, lambda_1 = {}, {} followers of (1 - kappa) lambda_1 and an even rest, "
      "row bound 1.5, epsilon = 1, delta = 1e-6, k = 1, mean sin^2 over {} seeds. The cost of privacy is the error "
      "with "
      "noise less the error of the same rows without. Theorem 1.2 gives it as d / (epsilon n)^2 / lambda_1 / kappa^2 + "
      "1 / (epsilon n)^2 / lambda_1 / kappa^3, up to logarithms, with T = ln(n / delta epsilon) / kappa rounds.",
      kRows, kColumns, kTop, kFollowers, seeds));
  Table table("", "Mean sin^2",
              {"kappa", "no noise", "gram", "ours, best of 4, 8, 16 rounds", "paper's noise and filter, T = 12 / kappa",
               "paper's, 8 rounds", "cost: ours", "cost: paper's, T = 12 / kappa", "theorem's cost, constant 1"});
  LineChart chart{"Cost of privacy against the gap", "kappa", "sin^2 with noise less without", {}};
  chart.lines = {{"gram", {}},
                 {"ours, best rounds", {}},
                 {"paper's, T = 12 / kappa", {}},
                 {"paper's, 8 rounds", {}},
                 {"theorem 1.2, constant 1", {}, true}};
  for (const double kappa : {0.05, 0.1, 0.2, 0.4, 0.8}) {
    const SpectrumModel model{kRows, spectrum_of(kappa), 1.5, 1};
    const auto spent = budget(1, 1e-6);
    const PcaOptions options{.components = 1};
    const auto many = static_cast<std::size_t>(std::ceil(12 / kappa));
    double quiet = 0, gram = 0, printed = 0, eight = 0;
    std::map<std::size_t, double> ours;
    for (int seed = 0; seed < seeds; ++seed) {
      const Drawn drawn = draw(model, seed, all.threads);
      const auto adaptive = [&](std::size_t rounds, Calibration calibration) {
        return error_of({PcaMethod::kAdaptivePower, options, {.rounds = rounds}}, spent, drawn, seed, calibration) /
               seeds;
      };
      quiet += error_of({PcaMethod::kGram, options}, {}, drawn, seed) / seeds;
      gram += error_of({PcaMethod::kGram, options}, spent, drawn, seed) / seeds;
      for (const std::size_t rounds : {4, 8, 16}) ours[rounds] += adaptive(rounds, Calibration::kTight);
      printed += adaptive(many, Calibration::kPaper);
      eight += adaptive(8, Calibration::kPaper);
    }
    double best = 1;
    std::size_t best_rounds = 0;
    for (const auto& [rounds, error] : ours)
      if (error < best) {
        best = error;
        best_rounds = rounds;
      }
    const double n2 = static_cast<double>(kRows) * static_cast<double>(kRows);
    const double rate = (static_cast<double>(kColumns) / (kappa * kappa) + std::pow(kappa, -3)) / (n2 * kTop);
    table.add({number(kappa), number(quiet), number(gram), fmt::format("{} ({})", number(best), best_rounds),
               number(printed), number(eight), number(best - quiet), number(printed - quiet), number(rate)});
    for (const auto& [line, error] : {std::pair(0, gram), {1, best}, {2, printed}, {3, eight}})
      chart.lines[static_cast<std::size_t>(line)].points.emplace_back(kappa, std::max(0.0, error - quiet));
    chart.lines[4].points.emplace_back(kappa, rate);
  }
  page.add(table);
  std::string slopes = "Slope of the cost in log kappa where it lies between 1e-6 and 0.3:";
  for (const ChartLine& line : chart.lines) {
    std::vector<std::pair<double, double>> points;
    for (const auto& point : line.points)
      if (point.second > 1e-6 && point.second < 0.3) points.push_back(point);
    slopes += points.size() < 2 ? fmt::format(" {}: too few;", line.name)
                                : fmt::format(" {}: {:.2f} ({} points);", line.name, slope(points), points.size());
  }
  slopes.back() = '.';
  page.say(slopes);
  page.add(chart);
  page.finish(all);
}

}  // namespace eigenveil::bench
