// SPDX-License-Identifier: Apache-2.0
// Verdicts beside the truth: data sets of many shapes are made up and released again and again, and what the verdicts
// say about each release is compared with the population it came from.
#include <fmt/format.h>

#include <algorithm>

#include "accuracy.hpp"
#include "verdict_counts.hpp"

namespace eigenveil::bench {
namespace {

std::vector<std::string> cells(const std::string& what, const Counts& counts, bool noise) {
  const auto said = [](double part, double of) { return of > 0 ? fmt::format("{:.3f}", part / of) : std::string("-"); };
  return {what,
          said(counts.held, counts.bands),
          said(counts.loadings_held, counts.loadings),
          said(counts.shares_held, counts.shares),
          fmt::format("{:.0f}", counts.holds),
          said(counts.holds_wrong, counts.holds),
          said(counts.planes_wrong, counts.planes),
          said(counts.wrong_sign, counts.findings),
          said(counts.good_holds, counts.good),
          said(counts.good_noise, counts.good),
          noise ? said(counts.first_noise, counts.sets) : std::string("-"),
          fmt::format("{:.2f}", counts.seconds / counts.sets)};
}

}  // namespace

void verdicts(const Setting& setting) {
  const int sets = setting.seeds;
  Table table(
      "verdicts",
      fmt::format("Verdicts beside the truth (docs/verdicts.md): shares of 95% bands that hold the true value, "
                  "the true loadings "
                  "and the true share of the total variance; directions said to hold, and how many of them "
                  "have cos^2 below 0.8; "
                  "directions with cos^2 above 0.9, and what is said of them. {} data sets a row. Matrices: d "
                  "10 to 50, n 500 to "
                  "50,000 (tiny n: 60 to 500), epsilon 0.2 to 4, K 1 to 10, spread evenly; others through the "
                  "estimator, epsilon "
                  "0.5 to 4, n 1,000 to 20,000 (tiny n as above). Found: about a private mean and with a bound "
                  "that a search finds below ten typical rows, as by default. `bench_accuracy verdicts --seeds {}`",
                  sets, sets),
      {"shape", "eigenvalue bands", "loading bands", "share bands", "holds", "of them wrong", "planes wrong",
       "findings of wrong sign", "good that hold", "good called noise", "noise called noise", "seconds"});
  const auto row = [&](const std::string& name, const auto& counted, int of) {
    if (!name.starts_with(setting.only)) return;
    table.add(cells(name, counted(of), name.find("noise") != std::string::npos));
  };
  for (const char* shape : {"gap 5", "gap 2", "decay", "spikes", "t3", "one-hot", "tiny n", "private mean", "plane",
                            "noise", "noise, private mean"})
    row(
        fmt::format("matrix, {}", shape), [&](int of) { return of_moments(shape, of, 10, 50); }, sets);
  for (const char* shape : {"gap 5", "decay", "noise"})
    row(
        fmt::format("matrix, {}, 260 to 500 columns", shape), [&](int of) { return of_moments(shape, of, 260, 500); },
        std::max(1, sets / 4));
  const auto components = [&](const std::string& way_name, const Way& way, std::vector<const char*> shapes) {
    for (const char* shape : shapes) {
      const bool tiny = std::string(shape) == "tiny n";
      const Sizes sizes = tiny ? Sizes{60, 500, 1, 8} : Sizes{};
      row(
          fmt::format("{}, {}", way_name, shape), [&](int of) { return of_components(shape, way, sizes, of); }, sets);
    }
  };
  components("gram, found", {.found = true}, {"gap 5", "gap 2", "decay", "spikes", "t3", "one-hot", "tiny n", "noise"});
  components("sphere, found", {PcaMethod::kSphere, true}, {"gap 5", "decay", "t3", "noise"});
  components("adaptive-power, found", {PcaMethod::kAdaptivePower, true}, {"gap 5", "decay", "t3", "noise"});
  components("power", {PcaMethod::kPower}, {"gap 5", "decay", "spikes", "plane", "noise"});
  components("correlations", {.correlations = true}, {"gap 5", "decay", "noise"});
  for (const bool noise : {false, true})
    for (const bool found : {false, true}) {
      const std::string what = fmt::format("{}{}", found ? ", found" : "", noise ? ", noise" : "");
      row(
          "cca" + what, [&](int of) { return of_views(noise, found, {}, of); }, sets);
      row(
          "fda" + what, [&](int of) { return of_classes(noise, found, {}, of); }, sets);
      row(
          "sir" + what, [&](int of) { return of_slices(noise, found, {}, of); }, sets);
      if (!found)
        row(
            "gep" + what, [&](int of) { return of_matrices(noise, {}, of); }, sets);
    }
  table.finish(setting, {});
}

}  // namespace eigenveil::bench
