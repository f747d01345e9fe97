// SPDX-License-Identifier: Apache-2.0
// 001's claim: on rows of low coherence adaptive-power gains on gram as the columns grow; where few heavy rows make the
// top component gram wins. Does a forecast know?
#include <fmt/format.h>

#include <cmath>

#include "accuracy.hpp"

namespace eigenveil::bench {
namespace {

struct Means {
  double gram = 0;
  double adaptive = 0;
};

Means measure(const SpectrumModel& model, double epsilon, std::size_t rounds, const Setting& setting) {
  Means means;
  const PcaOptions options{.components = 1};
  for (int seed = 0; seed < setting.seeds; ++seed) {
    const Drawn drawn = draw(model, seed, setting.threads);
    means.gram += error_of({PcaMethod::kGram, options}, budget(epsilon, 1e-6), drawn, seed) / setting.seeds;
    means.adaptive +=
        error_of({PcaMethod::kAdaptivePower, options, {.rounds = rounds}}, budget(epsilon, 1e-6), drawn, seed) /
        setting.seeds;
  }
  return means;
}

std::string chosen(const SpectrumModel& model, double epsilon, const Setting& setting) {
  const auto programs = candidates({.components = 1}, static_cast<std::size_t>(model.spectrum.size()));
  return describe(best_program(programs, *draw_sample(model, setting.threads, 1), budget(epsilon, 1e-6), model.rows));
}

}  // namespace

void coherence(const Setting& setting) {
  Table table(
      "coherence",
      fmt::format("adaptive-power against gram, mean sin^2 over {} seeds: low coherence (sigma_1^2 = 10 n / (d + "
                  "9), gap 10) as d grows; and few heavy rows",
                  setting.seeds),
      {"rows", "n, d, epsilon", "gram", "adaptive-power", "adaptive / gram", "best forecast"});
  ChartLine ratio{"adaptive / gram", {}};
  constexpr std::size_t kRows = 40000;
  constexpr std::size_t kRounds = 5;
  for (const std::size_t d : {100, 200, 500, 1000}) {
    const SpectrumModel model{kRows, gap_spectrum(d, 1, 10), 1.3, 1};
    const Means means = measure(model, 1, kRounds, setting);
    ratio.points.emplace_back(d, means.adaptive / means.gram);
    table.add({"low coherence", fmt::format("{}, {}, 1", kRows, d), number(means.gram), number(means.adaptive),
               number(means.adaptive / means.gram), chosen(model, 1, setting)});
  }
  // One row in two hundred carries the top component and is as long as the bound; all others are short.
  for (const std::size_t d : {100, 200}) {
    SpectrumModel model{kRows, Vector::Constant(static_cast<Eigen::Index>(d), 1e-4 / static_cast<double>(d)), 1, 1,
                        0.005};
    model.spectrum[0] = 0.005 * 0.25;
    const Means means = measure(model, 4, kRounds, setting);
    table.add({"few heavy rows", fmt::format("{}, {}, 4", kRows, d), number(means.gram), number(means.adaptive),
               number(means.adaptive / means.gram), chosen(model, 4, setting)});
  }
  table.finish(setting,
               {{"Low coherence: error of adaptive-power over that of gram", "columns", "ratio of sin^2", {ratio}}});
}

}  // namespace eigenveil::bench
