// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/gep/gep.hpp"

#include <fmt/format.h>

#include <cmath>

namespace eigenveil {

std::string_view name(GepNoise noise) { return noise == GepNoise::kOnce ? "once" : "each-step"; }

std::string_view name(GepStart start) {
  return start == GepStart::kAuto ? "auto" : start == GepStart::kRandom ? "random" : "admm";
}

std::size_t sums_bytes(const GepOptions& options, std::size_t columns, std::size_t width, int threads) {
  // A sum per thread in doubles, exact totals of 16 bytes, the released matrix and what the solver copies.
  const std::size_t widest =
      options.noise == GepNoise::kOnce ? std::max(columns, width) : std::max<std::size_t>(8, width);
  return columns * widest * sizeof(double) * (threads + 12);
}

nlohmann::json options_json(const GepOptions& options) {
  nlohmann::json json = {{"components", options.components}};
  if (options.sparsity) json["sparsity"] = *options.sparsity;
  if (options.sparsity || options.noise == GepNoise::kEachStep) {
    json["init"] = name(options.start);
    json["step"] = options.step ? nlohmann::json(*options.step) : nlohmann::json("auto");
  }
  if (options.noise == GepNoise::kEachStep) json["rounds"] = options.rounds;
  json["ridge"] = options.ridge ? nlohmann::json(*options.ridge) : nlohmann::json("auto");
  return json;
}

void add_solution(Fit& fit, double ridge, double noise_edge, const Vector& values,
                  const std::vector<std::string>& notes) {
  fit.facts["ridge"] = ridge;
  fit.warnings.insert(fit.warnings.end(), notes.begin(), notes.end());
  if (!(noise_edge > 0)) return;
  fit.facts["noise_edge"] = noise_edge;
  warn_if_drowned(fit, values, noise_edge);
}

Status check(const GepOptions& options) {
  if (options.components < 1) return usage_error("`components` must be at least 1");
  if (options.rounds < 1) return usage_error("`rounds` must be at least 1");
  if (options.sparsity && *options.sparsity < options.components)
    return usage_error(
        fmt::format("`sparsity` {} must be at least `components` {}", *options.sparsity, options.components));
  if (options.step && !(*options.step > 0 && std::isfinite(*options.step)))
    return usage_error(fmt::format("`step` must be positive, but is {}", *options.step));
  if (options.ridge && !(*options.ridge >= 0 && std::isfinite(*options.ridge)))
    return usage_error(fmt::format("`ridge` must not be negative, but is {}", *options.ridge));
  if (options.start == GepStart::kAdmm && options.noise == GepNoise::kEachStep)
    return usage_error("`init` admm works on released matrices, which `noise` each-step never has: use `noise` once");
  if (options.start != GepStart::kAuto && options.noise == GepNoise::kOnce && !options.sparsity)
    return usage_error("`noise` once without `sparsity` is solved exactly and has no start: leave `init` out");
  return {};
}

}  // namespace eigenveil
