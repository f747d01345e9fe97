// SPDX-License-Identifier: Apache-2.0
#include "gep_flags.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace eigenveil::app {
namespace {

Result<std::optional<double>> number_or_auto(const std::string& text, const char* option) {
  if (text == "auto") return std::optional<double>();
  const auto value = EIGENVEIL_TRY(number_from_text(text, option));
  return std::optional<double>(value);
}

}  // namespace

Result<double> number_from_text(const std::string& text, const char* option) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc() && end == text.data() + text.size() && std::isfinite(value)) return value;
  return usage_error(fmt::format("{} must be a number, but is '{}'", option, text));
}

Result<NumericColumn> range_from_text(const std::string& text, const char* option) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return usage_error(fmt::format("{} must be LO:HI, but is '{}'", option, text));
  const auto lower = EIGENVEIL_TRY(number_from_text(text.substr(0, colon), option));
  const auto upper = EIGENVEIL_TRY(number_from_text(text.substr(colon + 1), option));
  if (!(lower < upper)) return usage_error(fmt::format("{} {}: the lower bound must be below the upper", option, text));
  return NumericColumn{lower, upper};
}

std::vector<std::string> split_text(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos && !text.empty(); begin = end + 1) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

void GepFlags::add_to(CLI::App& app) {
  app.add_option("--components", components, "How many directions to release")->required()->check(from_one());
  app.add_option("--noise", noise,
                 "once: release the sums and solve exactly; each-step: products only, for many columns; auto")
      ->check(CLI::IsMember({"once", "each-step", "auto"}))
      ->capture_default_str()
      ->group("Method");
  app.add_option("--sparsity", sparsity, "How many columns may have a weight; default: all")->group("Method");
  app.add_option("--init", init, "Start of the flow: random, admm (a convex relaxation, once and sparse), or auto")
      ->check(CLI::IsMember({"random", "admm", "auto"}))
      ->capture_default_str()
      ->group("Method");
  app.add_option("--step", step, "Step of the flow, or auto")->capture_default_str()->group("Method");
  app.add_option("--rounds", rounds, "each-step: rounds, each a share of the budget")
      ->capture_default_str()
      ->group("Method");
  app.add_option("--ridge", ridge, "Added to the diagonal of B, or auto: what its noise asks for")
      ->capture_default_str()
      ->group("Method");
}

Result<GepChoices> GepFlags::choices() const {
  GepChoices choices{.components = components};
  if (noise != "auto") choices.noise = noise == "once" ? GepNoise::kOnce : GepNoise::kEachStep;
  choices.sparsity = sparsity;
  choices.start = init == "random" ? GepStart::kRandom : init == "admm" ? GepStart::kAdmm : GepStart::kAuto;
  choices.rounds = rounds;
  choices.step = EIGENVEIL_TRY(number_or_auto(step, "--step"));
  choices.ridge = EIGENVEIL_TRY(number_or_auto(ridge, "--ridge"));
  return choices;
}

void FitFlags::add_to(CLI::App& app) {
  rows.add_to(app);
  gep.add_to(app);
  privacy.add_to(app);
  output.add_to(app);
  run.add_to(app);
  run.add_engine_to(app);
}

}  // namespace eigenveil::app
