// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "eigenveil/release/kinds.hpp"
#include "eigenveil/verdict/standing.hpp"
#include "flags.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

using nlohmann::json;

/// The verdict on direction i is noise: nothing is claimed about it.
bool is_noise(const Model& model, Eigen::Index i) {
  const Matrix* standing = model.array("verdict");
  return standing != nullptr && i < standing->size() && (*standing)(i, 0) == static_cast<double>(Standing::kNoise);
}

/// A list, or the number that it holds where the kind has one there.
json json_of(const Model& model, const Matrix& array, const ModelKind& kind, std::string_view name) {
  for (const ModelArray& shape : kind.arrays)
    if (shape.name == name && shape.rows == Extent::kOne) return array(0, 0);
  json list = std::vector<double>(array.data(), array.data() + array.size());
  for (Eigen::Index i = 0; name == "angle" && i < array.size(); ++i)
    if (is_noise(model, i)) list[i] = nullptr;
  return list;
}

void show_json(const Model& model, const OutputFlags& output) {
  const ModelKind& kind = kind_of(model.manifest);
  json object = {{"model", output.out}};
  const auto repeat = [&](std::string_view key) {
    const auto found = model.manifest.find(std::string(key));
    if (found != model.manifest.end()) object[std::string(key)] = *found;
  };
  for (const char* key : {"epsilon", "delta", "certified_epsilon", "adjacency", "method", "guarantee", "private",
                          "warnings", "start", "rows", "noisy_rows", "people", "noisy_people", "person", "events"})
    repeat(key);
  for (const std::string_view key : kind.json_keys) repeat(key);
  for (const std::string_view name : kind.json_arrays)
    if (const Matrix* array = model.array(std::string(name)))
      object[std::string(name)] = json_of(model, *array, kind, name);
  if (const Matrix* values = model.array(std::string(kind.values))) object["components"] = values->size();
  if (!output.report.empty()) object["report"] = output.report;
  say_json(object);
}

void show_choice(const json& choice) {
  tell("{} was chosen from public facts alone. Forecasts on a public model:\n", choice["chosen"].get<std::string>());
  for (const auto& one : choice["forecasts"]) {
    if (one.contains("relative_error"))
      tell("  {:<40} relative error {:.3g}\n", one["method"].get<std::string>(), one["relative_error"].get<double>());
    else
      tell("  {:<40} {:.1f}% of the variance lost, sin^2 {:.3g}\n", one["method"].get<std::string>(),
           100 * one["lost_variance"].get<double>(), one["sin2"].get<double>());
  }
  tell("\n");
}

/// " of 3,000 rows and 12 columns", where rows have columns.
std::string data_in_words(const json& manifest) {
  if (!manifest.contains("features")) return "";
  // A manifest may come from a file (`regress` from a covariance): what it lacks is not said.
  const std::string what = manifest.contains("person") ? "people" : "rows";
  const bool counted = manifest.contains(what);
  const auto number = manifest.find(counted ? what : "noisy_" + what);
  if (number == manifest.end() || !number->is_number_integer() || *number < 0) return "";
  const std::string rows = with_commas(number->get<std::size_t>());
  return fmt::format(" of {} and {} columns",
                     counted ? rows + " " + what : "about " + rows + " " + what + " (noisy count)",
                     with_commas(manifest["features"].size()));
}

/// "holds", "plane 4-5"
Painted standing_text(const Model& model, Eigen::Index i) {
  const Matrix& standing = *model.array("verdict");
  const Matrix *first = model.array("verdict_first"), *last = model.array("verdict_last");
  const auto one = static_cast<Standing>(std::clamp(standing(i, 0), 0.0, 3.0));
  const Colour colour = one == Standing::kNoise  ? Colour::kRed
                        : one == Standing::kWeak ? Colour::kYellow
                                                 : Colour::kGreen;
  if (one != Standing::kPlane || first == nullptr || last == nullptr) return painted(name(one), colour);
  return painted(fmt::format("plane {:.0f}-{:.0f}", (*first)(i, 0), (*last)(i, 0)), colour);
}

/// Values with the noise taken out, their bands, how far directions are off, and what to think of them.
void show_judged(const Model& model, const ModelKind& kind) {
  constexpr Eigen::Index kMost = 30;
  const auto of_values = [&](const char* what) { return model.array(fmt::format("{}_{}", kind.values, what)); };
  const Matrix &values = *model.array(std::string(kind.values)), &angle = *model.array("angle");
  const Matrix *estimate = of_values("estimate"), *low = of_values("low"), *high = of_values("high");
  const Matrix* share = model.array("variance_share");
  tell("{:>4}  {:>11}  {:>11}  {:<23}  {:>6}{}  verdict\n", kind.number, kind.value, "noise out", "95% band", "off by",
       share != nullptr ? "   share" : "");
  const Eigen::Index shown = std::min(kMost, values.size());
  for (Eigen::Index i = 0; i < shown; ++i) {
    tell("{:4d}  {:11.4g}  {:11.4g}  {:<23}  {:>6}", i + 1, values(i, 0), (*estimate)(i, 0),
         fmt::format("{:.4g} to {:.4g}", (*low)(i, 0), (*high)(i, 0)),
         is_noise(model, i) ? "-" : fmt::format("{:.0f}d", angle(i, 0)));
    if (share != nullptr) tell("  {:5.1f}%", 100 * (*share)(i, 0));
    tell("  {}\n", standing_text(model, i));
  }
  if (values.size() > shown) tell("  ... and {} more\n", values.size() - shown);
  tell("  off by: degrees between a direction and the true one, as expected; of noise there is none.\n");
}

bool is_judged(const Model& model, const ModelKind& kind) {
  for (const char* what : {"estimate", "low", "high"})
    if (model.array(fmt::format("{}_{}", kind.values, what)) == nullptr) return false;
  return model.array("verdict") != nullptr && model.array("angle") != nullptr;
}

/// "Verdict. PC1-3 hold, the rest is noise." and how much of all variation that is.
void show_sentence(const json& verdicts) {
  if (!verdicts.is_object() || !verdicts.contains("sentence")) return;
  tell("Verdict. {}", verdicts["sentence"].get<std::string>());
  if (const auto found = verdicts.find("explained"); found != verdicts.end()) {
    if ((*found)["value"].is_number())
      tell(" Together they have {:.0f}% of the total variance (95% band {:.0f} to {:.0f}%).",
           100 * (*found)["value"].get<double>(), 100 * (*found)["lower"].get<double>(),
           100 * (*found)["upper"].get<double>());
    else
      tell(" Their share of the total variance is unknown: the noise is too large.");
  }
  tell("\n\n");
}

void show_values(const Matrix& values, const ModelKind& kind) {
  constexpr int kWidth = 40;
  constexpr Eigen::Index kMost = 30;
  const Eigen::Index shown = kind.bars ? std::min(kMost, values.size()) : values.size();
  const double largest = values.size() > 0 ? std::max(1e-300, values(0, 0)) : 1;
  tell("{:>4}  {}\n", kind.number, kind.value);
  for (Eigen::Index i = 0; i < shown; ++i) {
    tell("{:4d}  {:10.4g}", i + 1, values(i, 0));
    if (kind.bars) tell("  {:#<{}}", "", static_cast<int>(std::clamp(values(i, 0) / largest, 0.0, 1.0) * kWidth));
    tell("\n");
  }
  if (values.size() > shown) tell("  ... and {} more\n", values.size() - shown);
}

std::string interval_text(const json& estimated) {
  if (!estimated["lower"].is_number() || !estimated["upper"].is_number()) return "no interval";
  return fmt::format("{:.4g} to {:.4g}", estimated["lower"].get<double>(), estimated["upper"].get<double>());
}

void show_estimates(const json& found, std::string_view title) {
  if (found.is_array()) {
    tell("  {:<24} {:>12}   95% interval\n", title, "value");
    for (const json& one : found) {
      const std::string interval = interval_text(one);
      const bool nothing = one["lower"].is_number() && one["lower"] <= 0 && one["upper"] >= 0;
      tell("  {:<24} {:>12.4g}   {}{}\n", one["name"].get<std::string>(), one["value"].get<double>(), interval,
           nothing ? "  compatible with no effect" : "");
    }
  } else if (found["value"].is_number()) {
    tell("  {}: {:.4g} (95% interval {}).\n", title, found["value"].get<double>(), interval_text(found));
  } else {
    tell("  {}: unknown, the noise is too large.\n", title);
  }
}

/// What was found, and what to think of it.
void show_figures(const Model& model, const ModelKind& kind) {
  const json& manifest = model.manifest;
  const Matrix* values = model.array(std::string(kind.values));
  if (values == nullptr && kind.estimates.empty()) {
    if (kind.heads) tell("  {}\n\n", kNoVerdict);
    return;
  }
  if (const auto found = manifest.find("verdicts"); found != manifest.end()) show_sentence(*found);
  if (values != nullptr && is_judged(model, kind))
    show_judged(model, kind);
  else if (values != nullptr) {
    show_values(*values, kind);
    tell("  {}\n", kNoVerdict);
  }
  for (const Estimates& estimates : kind.estimates) {
    const json& found = manifest[std::string(estimates.key)];
    const bool named = found.is_array() && !kind.subject.empty();
    const std::string subject = named ? " for " + manifest[std::string(kind.subject)].get<std::string>() : "";
    show_estimates(found, fmt::format("{}{}", estimates.title, subject));
  }
  for (const Figure& figure : kind.figures)
    if (const auto found = manifest.find(std::string(figure.key)); found != manifest.end() && found->is_number())
      tell("  {}\n", fmt::format(fmt::runtime(figure.sentence), found->get<double>()));
  if (const auto found = manifest.find("score_plot"); found != manifest.end() && found->contains("sentence"))
    tell("  Picture of the rows: {}\n", (*found)["sentence"].get<std::string>());
  if (const Matrix* variance = model.array("noise_variance"); variance != nullptr && manifest["method"] == "spiked")
    tell("  Every other direction has variance {:.4g}.\n", (*variance)(0, 0));
  if (manifest.contains("error_rates"))
    tell(
        "  Rate of the error of the covariance (up to a constant): {:.3g} spectral, {:.3g} Frobenius, {:.3g} "
        "nuclear.\n",
        manifest["error_rates"]["spectral"].get<double>(), manifest["error_rates"]["frobenius"].get<double>(),
        manifest["error_rates"]["nuclear"].get<double>());
  tell("\n");
}

void show_words(const Model& model, const OutputFlags& output) {
  const json& manifest = model.manifest;
  const ModelKind& kind = kind_of(manifest);
  if (!is_private(model))
    tell("{} treat this model like the data it was made from.\n\n", painted("NOT PRIVATE:", Colour::kRed));
  tell("Released {}{}, {} {}.\n\n", released_in_words(model), data_in_words(manifest), kind.method,
       manifest["method"].get<std::string>());
  if (manifest.contains("planner")) show_choice(manifest["planner"]);
  if (manifest.contains("pilot")) tell("{}\n\n", manifest["pilot"]["sentence"].get<std::string>());
  tell("Guarantee. {}\n\n", manifest.value("guarantee", "none is stated"));
  if (manifest.contains("person")) tell("What it is about. {}\n\n", manifest["person"].value("estimand", ""));
  show_figures(model, kind);
  for (const auto& warning : manifest.value("warnings", json::array()))
    tell("{} {}\n\n", painted("Note.", Colour::kYellow), with_flags(warning.get<std::string>()));
  tell("Model:  {}\n", output.out);
  if (!output.report.empty()) tell("Report: {}\n", output.report);
}

void show_diagnostics(const Release& release) {
  complain("diagnostics (not private: do not share): {} {} read, {} scaled down to the row bound, {} counted as zero\n",
           release.diagnostics.rows,
           release.model.manifest.contains("person") ? "people" : kind_of(release.model.manifest).rows,
           release.diagnostics.shortened, release.diagnostics.zeroed);
  if (release.diagnostics.one_row_each)
    complain("diagnostics (not private: do not share): every row is its own person; is this the right column?\n");
  for (const std::string& note : release.notes)
    complain("diagnostics (not private: do not share): {}\n", with_flags(note));
}

}  // namespace

int show_release(const Result<Release>& outcome, OutputFlags output) {
  if (!outcome) return fail(outcome.error());
  const Release& release = *outcome;
  if (!release.unrecorded.empty())
    complain("eigenveil: the model was written, but the ledger did not take note of its file: {}\n",
             with_flags(release.unrecorded));
  for (const auto& [asked, made] : {std::pair(&output.out, &release.out), std::pair(&output.report, &release.report)}) {
    if (made->empty() || *made == *asked) continue;
    complain("eigenveil: {} was taken meanwhile, and is not overwritten: {}\n", *asked, *made);
    *asked = *made;
  }
  if (output.diagnostics) show_diagnostics(release);
  if (output.json)
    show_json(release.model, output);
  else
    show_words(release.model, output);
  return 0;
}

}  // namespace eigenveil::app
