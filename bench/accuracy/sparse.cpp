// SPDX-License-Identifier: Apache-2.0
// The second table of the design: covariance lambda Q Q^T + I, Q on 10 columns, twice as many loadings kept.
#include <fmt/format.h>

#include <cmath>

#include "accuracy.hpp"

namespace eigenveil::bench {
namespace {

struct Case {
  std::size_t n;
  std::size_t d;
  std::size_t k;
  double lambda;
  double gram_truncated;  // the design's figures; 0: too large there
  double sparse_filtered;
};

constexpr std::size_t kSupport = 10;

// Statistical part of 000's theorem with constant 1: (sqrt(l1 l2) / (l1 - l2))^2 s (k + ln d) / n, squared sine.
double rate(const Case& c) {
  return (c.lambda + 1) / (c.lambda * c.lambda) * 2 * kSupport *
         (static_cast<double>(c.k) + std::log(static_cast<double>(c.d))) / static_cast<double>(c.n);
}

}  // namespace

void sparse(const Setting& setting) {
  const std::vector<Case> cases = {
      {20000, 500, 1, 10, 0.014, 0.035}, {50000, 1000, 2, 20, 0.002, 0.004}, {50000, 2000, 1, 40, 0, 0.004}};
  Table table("sparse",
              fmt::format("Sparse PCA: mean sin^2 over {} seeds, epsilon = 1, delta = 1e-6, 10 true loadings, 20 kept",
                          setting.seeds),
              {"n, d, k, lambda", "non-private", "gram", "gram + truncation", "design", "sparse-power, 6 rounds",
               "sparse-power, best rounds", "design", "sparse-power, paper", "rate of 000"});
  LineChart chart{"sin^2, the three cases of the table", "case", "sin^2", {}, false, true};
  std::map<std::string, ChartLine> lines;
  for (std::size_t index = 0; index < cases.size(); ++index) {
    const Case& c = cases[index];
    Vector spectrum = Vector::Ones(static_cast<Eigen::Index>(c.d));
    spectrum.head(static_cast<Eigen::Index>(c.k)).array() += c.lambda;
    // A public bound: 1.1 times the length of a typical row.
    const SpectrumModel model{c.n, spectrum, 1.1 * std::sqrt(spectrum.sum()), c.k, 1, kSupport};
    const PcaOptions dense{.components = c.k};
    const PcaOptions truncated{.components = c.k, .sparsity = 2 * kSupport};
    const auto tight = budget(1, 1e-6);
    const std::vector<std::size_t> rounds = {2, 3, 4, 6, 8};
    std::map<std::string, double> mean;
    std::vector<double> by_rounds(rounds.size());
    for (int seed = 0; seed < setting.seeds; ++seed) {
      const Drawn drawn = draw(model, seed, setting.threads);
      const auto add = [&](const std::string& name, const PcaProgram& program, const std::optional<Budget>& spent,
                           Calibration calibration = Calibration::kTight) {
        mean[name] += error_of(program, spent, drawn, seed, calibration) / setting.seeds;
      };
      add("non-private", {PcaMethod::kGram, truncated}, {});
      add("gram", {PcaMethod::kGram, dense}, tight);
      add("gram + truncation", {PcaMethod::kGram, truncated}, tight);
      add("sparse-power, paper", {PcaMethod::kSparsePower, truncated, {.rounds = 6}}, tight, Calibration::kPaper);
      for (std::size_t t = 0; t < rounds.size(); ++t)
        by_rounds[t] +=
            error_of({PcaMethod::kSparsePower, truncated, {.rounds = rounds[t]}}, tight, drawn, seed) / setting.seeds;
    }
    const auto best = std::min_element(by_rounds.begin(), by_rounds.end()) - by_rounds.begin();
    mean["sparse-power"] = by_rounds[static_cast<std::size_t>(best)];
    table.add({fmt::format("{}, {}, {}, {}", c.n, c.d, c.k, c.lambda), number(mean["non-private"]),
               number(mean["gram"]), number(mean["gram + truncation"]),
               c.gram_truncated > 0 ? number(c.gram_truncated) : "-", number(by_rounds[3]),
               fmt::format("{} ({})", number(mean["sparse-power"]), rounds[static_cast<std::size_t>(best)]),
               number(c.sparse_filtered), number(mean["sparse-power, paper"]), number(rate(c))});
    for (const auto& [name, value] : mean) {
      lines[name].name = name;
      lines[name].reference = name == "non-private";
      lines[name].points.emplace_back(index + 1, value);
    }
    lines["rate"].name = "rate of 000 (constant 1)";
    lines["rate"].reference = true;
    lines["rate"].points.emplace_back(index + 1, std::min(1.0, rate(c)));
  }
  for (auto& [name, line] : lines) chart.lines.push_back(line);
  table.finish(setting, {chart});
}

}  // namespace eigenveil::bench
