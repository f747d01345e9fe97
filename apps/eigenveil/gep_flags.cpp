#include "gep_flags.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "terminal.hpp"

namespace eigenveil::app {
namespace {

Result<std::optional<double>> number_or_auto(const std::string& text, const char* option) {
  if (text == "auto") return std::optional<double>();
  const auto value = EIGENVEIL_TRY(number_from_text(text, option));
  return std::optional<double>(value);
}

std::string rows_in_words(const nlohmann::json& manifest) {
  if (manifest.contains("rows")) return with_commas(manifest["rows"].get<std::size_t>()) + " rows";
  return "about " + with_commas(manifest["noisy_rows"].get<std::size_t>()) + " rows (noisy count)";
}

const char* title_of(const std::string& kind) {
  if (kind == "cca") return "canonical pair";
  if (kind == "fda") return "discriminant direction";
  if (kind == "sir") return "regression direction";
  return "generalized eigenvector";
}

void show_fit_words(const Model& model, const std::string& out, const std::string& report) {
  const auto& manifest = model.manifest;
  const Matrix* correlations = model.array("correlations");
  const Matrix& values = correlations != nullptr ? *correlations : *model.array("eigenvalues");
  const std::string kind = manifest["model"];
  say_stamp(model);
  tell("Released {} {}{} of {} and {} columns, noise {}.\n\n", values.size(), title_of(kind),
       values.size() == 1 ? "" : "s", rows_in_words(manifest), with_commas(manifest["features"].size()),
       manifest["method"].get<std::string>());
  tell("Guarantee. {}\n\n", manifest["guarantee"].get<std::string>());
  tell("   #  {}\n", correlations != nullptr ? "correlation" : "eigenvalue");
  for (Eigen::Index i = 0; i < values.size(); ++i) tell("{:4d}  {:10.4g}\n", i + 1, values(i, 0));
  if (manifest.contains("noise_edge"))
    tell("  Noise alone would give values up to about {:.4g}.\n", manifest["noise_edge"].get<double>());
  tell("  Ridge on B: {:.4g}.\n\n", manifest["ridge"].get<double>());
  for (const auto& warning : manifest["warnings"]) tell("Note. {}\n\n", warning.get<std::string>());
  tell("Model:  {}\n", out);
  if (!report.empty()) tell("Report: {}\n", report);
}

void show_fit_json(const Model& model, const std::string& out, const std::string& report) {
  nlohmann::json object = {{"model", out}};
  for (const char* key :
       {"epsilon", "delta", "certified_epsilon", "calibration", "adjacency", "method", "guarantee", "private",
        "warnings", "rows", "noisy_rows", "events", "ridge", "noise_edge", "classes", "slices"})
    if (model.manifest.contains(key)) object[key] = model.manifest[key];
  object["components"] = model.manifest["options"]["components"];
  for (const char* name : {"correlations", "eigenvalues"})
    if (const Matrix* values = model.array(name))
      object[name] = std::vector<double>(values->data(), values->data() + values->size());
  if (!report.empty()) object["report"] = report;
  say_json(object);
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
  app.add_option("--components", components, "How many directions to release")->required()->check(CLI::PositiveNumber);
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

int show_fit(const Release& outcome, const OutputFlags& output) {
  if (output.diagnostics)
    complain(
        "diagnostics (not private: do not share): {} rows read, {} scaled down to the row bound, {} counted as "
        "zero\n",
        outcome.diagnostics.rows, outcome.diagnostics.clipped, outcome.diagnostics.zeroed);
  if (output.json)
    show_fit_json(outcome.model, output.out, output.report);
  else
    show_fit_words(outcome.model, output.out, output.report);
  return 0;
}

}  // namespace eigenveil::app
