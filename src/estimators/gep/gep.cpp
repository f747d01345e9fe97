#include "eigenveil/estimators/gep/gep.hpp"

#include <fmt/format.h>

#include <cmath>

namespace eigenveil {

Status check(const GepOptions& options) {
  if (options.components < 1) return usage_error("--components must be at least 1");
  if (options.rounds < 1) return usage_error("--rounds must be at least 1");
  if (options.sparsity && *options.sparsity < options.components)
    return usage_error(
        fmt::format("--sparsity {} must be at least --components {}", *options.sparsity, options.components));
  if (options.step && !(*options.step > 0 && std::isfinite(*options.step)))
    return usage_error(fmt::format("--step must be positive, but is {}", *options.step));
  if (options.ridge && !(*options.ridge >= 0 && std::isfinite(*options.ridge)))
    return usage_error(fmt::format("--ridge must not be negative, but is {}", *options.ridge));
  if (options.start == GepStart::kAdmm && options.noise == GepNoise::kEachStep)
    return usage_error("--init admm works on released matrices, which --noise each-step never has: use --noise once");
  if (options.start != GepStart::kAuto && options.noise == GepNoise::kOnce && !options.sparsity)
    return usage_error("--noise once without --sparsity is solved exactly and has no start: leave --init away");
  if (options.as_in_paper && options.noise != GepNoise::kEachStep)
    return usage_error("--calibration paper is the paper's flow: use it with --noise each-step");
  if (options.as_in_paper && options.components != 1)
    return usage_error("--calibration paper finds one vector, as the paper does: use --components 1");
  if (options.as_in_paper && (options.preparation.private_mean || options.preparation.private_bound))
    return usage_error("--calibration paper has no budget for a mean or a row bound: give public ones");
  return {};
}

double paper_rho(Epsilon epsilon, Delta delta) {
  const double tail = -std::log(delta.value());
  const double root = std::sqrt(epsilon.value() + tail) - std::sqrt(tail);
  return root * root;
}

double paper_mu(double sensitivity, double C, std::size_t rounds, Epsilon epsilon, Delta delta) {
  return sensitivity / (C * std::sqrt(static_cast<double>(rounds) / paper_rho(epsilon, delta)));
}

}  // namespace eigenveil
