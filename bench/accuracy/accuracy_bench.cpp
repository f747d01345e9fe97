// SPDX-License-Identifier: Apache-2.0
// How accurate the PCA methods, contrastive heads and regression are, and how right the verdicts, beside their papers'
// own calibration and the rates that their theorems give.
//   bench_accuracy [EXPERIMENT...] [--out FOLDER] [--seeds N] [--only ROWS]
//   bench_accuracy papers --only 004: one paper's own figures
#include <fmt/format.h>

#include <cstring>
#include <thread>

#include "accuracy.hpp"

int main(int argc, char** argv) {
  using namespace eigenveil::bench;
  const std::vector<std::pair<std::string, void (*)(const Setting&)>> experiments = {
      {"adaptive", adaptive}, {"sparse", sparse},  {"slopes", slopes},       {"coherence", coherence},
      {"spiked", spiked},     {"real", real_data}, {"two_views", two_views}, {"regress", regress},
      {"verdicts", verdicts}, {"noise", noise},    {"people", people},       {"radius", radius},
      {"papers", papers}};
  Setting setting{"", 10, static_cast<int>(std::thread::hardware_concurrency())};
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--out") == 0 && i + 1 < argc)
      setting.out = argv[++i];
    else if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc)
      setting.seeds = std::stoi(argv[++i]);
    else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc)
      setting.only = argv[++i];
    else
      wanted.emplace_back(argv[i]);
  }
  for (const std::string& name : wanted)
    if (std::none_of(experiments.begin(), experiments.end(), [&](const auto& e) { return e.first == name; })) {
      fmt::print(stderr,
                 "no experiment '{}'; there are adaptive, sparse, slopes, coherence, spiked, real, two_views, regress, "
                 "verdicts, noise, people, radius and papers\n",
                 name);
      return 2;
    }
  try {
    for (const auto& [name, experiment] : experiments)
      if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) experiment(setting);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_accuracy: {}\n", error.what());
    return 5;
  }
  return 0;
}
