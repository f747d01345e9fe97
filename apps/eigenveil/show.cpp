#include <fmt/format.h>

#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

void show_json(const Model& model, const OutputFlags& output) {
  nlohmann::json object = {{"model", output.out}, {"components", model.array("components")->rows()}};
  for (const char* key :
       {"epsilon", "delta", "certified_epsilon", "adjacency", "method", "guarantee", "guarantee_kind", "private",
        "warnings", "rows", "noisy_rows", "events", "planner", "calibration", "error_rates", "assumed_sensitivity"})
    if (model.manifest.contains(key)) object[key] = model.manifest[key];
  if (const Matrix* variance = model.array("noise_variance")) object["noise_variance"] = (*variance)(0, 0);
  if (!output.report.empty()) object["report"] = output.report;
  say_json(object);
}

void show_choice(const nlohmann::json& planner) {
  tell("The planner chose {} from public facts alone. Forecasts on a public model:\n",
       planner["chosen"].get<std::string>());
  for (const auto& one : planner["forecasts"]) {
    if (one.contains("relative_error"))
      tell("  {:<40} relative error {:.3g}\n", one["method"].get<std::string>(), one["relative_error"].get<double>());
    else
      tell("  {:<40} {:.1f}% of the variance lost, sin^2 {:.3g}\n", one["method"].get<std::string>(),
           100 * one["lost_variance"].get<double>(), one["sin2"].get<double>());
  }
  tell("\n");
}

void show_eigenvalues(const Matrix& eigenvalues) {
  constexpr int kWidth = 40;
  constexpr Eigen::Index kMost = 30;
  const double largest = eigenvalues.size() > 0 ? std::max(1e-300, eigenvalues(0, 0)) : 1;
  tell("  PC  eigenvalue\n");
  for (Eigen::Index i = 0; i < std::min(kMost, eigenvalues.size()); ++i) {
    const double share = std::clamp(eigenvalues(i, 0) / largest, 0.0, 1.0);
    tell("{:4d}  {:10.4g}  {:#<{}}\n", i + 1, eigenvalues(i, 0), "", static_cast<int>(share * kWidth));
  }
  if (eigenvalues.size() > kMost) tell("  ... and {} more\n", eigenvalues.size() - kMost);
}

void show_words(const Model& model, const OutputFlags& output) {
  const auto& manifest = model.manifest;
  const Matrix& eigenvalues = *model.array("eigenvalues");
  const std::string rows =
      manifest.contains("rows")
          ? with_commas(manifest["rows"].get<std::size_t>()) + " rows"
          : "about " + with_commas(manifest["noisy_rows"].get<std::size_t>()) + " rows (noisy count)";
  say_stamp(model);
  const auto k = eigenvalues.size();
  const std::string what = manifest["model"] == "pca" ? fmt::format("{} principal component{}", k, k == 1 ? "" : "s")
                                                      : std::string("the covariance");
  tell("Released {} of {} and {} columns, by method {}.\n\n", what, rows, with_commas(manifest["features"].size()),
       manifest["method"].get<std::string>());
  if (manifest.contains("planner")) show_choice(manifest["planner"]);
  tell("Guarantee. {}\n\n", manifest["guarantee"].get<std::string>());
  show_eigenvalues(eigenvalues);
  tell("  Noise alone would give eigenvalues up to about {:.4g}.\n", manifest["noise_edge"].get<double>());
  if (const Matrix* variance = model.array("noise_variance"); variance != nullptr && manifest["method"] == "spiked")
    tell("  Every other direction has variance {:.4g}.\n", (*variance)(0, 0));
  if (manifest.contains("error_rates"))
    tell(
        "  Rate of the error of the covariance (up to a constant): {:.3g} spectral, {:.3g} Frobenius, {:.3g} "
        "nuclear.\n",
        manifest["error_rates"]["spectral"].get<double>(), manifest["error_rates"]["frobenius"].get<double>(),
        manifest["error_rates"]["nuclear"].get<double>());
  tell("\n");
  for (const auto& warning : manifest["warnings"]) tell("Note. {}\n\n", warning.get<std::string>());
  tell("Model:  {}\n", output.out);
  if (!output.report.empty()) tell("Report: {}\n", output.report);
}

}  // namespace

void say_stamp(const Model& model) {
  if (!is_private(model)) tell("NOT PRIVATE: treat this model like the data it was made from.\n\n");
}

int show_outcome(const Release& outcome, const OutputFlags& output) {
  if (output.diagnostics)
    complain(
        "diagnostics (not private: do not share): {} rows read, {} scaled down to the row bound, {} counted as "
        "zero for want of a value\n",
        outcome.diagnostics.rows, outcome.diagnostics.clipped, outcome.diagnostics.zeroed);
  if (output.json)
    show_json(outcome.model, output);
  else
    show_words(outcome.model, output);
  return 0;
}

}  // namespace eigenveil::app
