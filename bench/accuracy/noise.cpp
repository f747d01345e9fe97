// SPDX-License-Identifier: Apache-2.0
// Releases that are noise say so: rows without a direction, rows whose directions the noise drowns, and good releases,
// by every method that has verdicts, with default options.
#include <fmt/format.h>

#include "accuracy.hpp"
#include "verdict_counts.hpp"

namespace eigenveil::bench {

void noise(const Setting& setting) {
  const int sets = setting.seeds;
  Table table("noise",
              fmt::format("Releases that are noise and say so (docs/verdicts.md): share of releases all of whose "
                          "directions are called noise, of rows without any (noise: n 1,000 to 20,000, epsilon 0.5 to "
                          "4) and of rows whose directions are drowned (n 60 to 150, epsilon 0.1); and of directions "
                          "with cos^2 above 0.9 (n 5,000 to 20,000, epsilon 2 to 4) the share called noise. {} "
                          "releases each, a private mean and a found bound. `bench_accuracy noise --seeds {}`",
                          sets, sets),
              {"method", "k", "noise called noise", "drowned called noise", "good ones", "of them called noise"});
  const Sizes even{1000, 20000, 0.5, 4, 8, 16}, drowned{60, 150, 0.1, 0.1, 8, 16}, good{5000, 20000, 2, 4, 8, 16};
  const auto row = [&](const std::string& name, const std::string& k, const auto& counts) {
    if (!name.starts_with(setting.only)) return;
    const auto share = [](double part, double of) { return of > 0 ? fmt::format("{:.3f}", part / of) : "-"; };
    const Counts none = counts(true, even), under = counts(false, drowned), seen = counts(false, good);
    table.add({name, k, share(none.all_noise, none.sets), share(under.all_noise, under.sets),
               fmt::format("{:.0f}", seen.good), share(seen.good_noise, seen.good)});
  };
  const std::vector<std::pair<std::string, Way>> ways = {{"gram", {PcaMethod::kGram, true}},
                                                         {"sphere", {PcaMethod::kSphere, true}},
                                                         {"power", {PcaMethod::kPower, true}},
                                                         {"adaptive-power", {PcaMethod::kAdaptivePower, true}},
                                                         {"spiked", {PcaMethod::kSpiked, true}}};
  for (const auto& [name, way] : ways)
    for (const Index k : {1, 3})
      row(name, fmt::format("{}", k), [&, way = way](bool none, const Sizes& sizes) {
        Way asked = way;
        asked.components = k;
        return of_components(none ? "noise" : "gap 5", asked, sizes, sets);
      });
  row("cca", "1 to 3", [&](bool none, const Sizes& sizes) { return of_views(none, true, sizes, sets); });
  row("fda", "1 to 3", [&](bool none, const Sizes& sizes) { return of_classes(none, true, sizes, sets); });
  row("sir", "1 to 3", [&](bool none, const Sizes& sizes) { return of_slices(none, true, sizes, sets); });
  table.finish(setting, {});
}

}  // namespace eigenveil::bench
