#include "eigenveil/job/gep.hpp"

#include <fmt/format.h>

namespace eigenveil {

std::string_view name(GepNoise noise) { return noise == GepNoise::kOnce ? "once" : "each-step"; }

std::string_view name(GepStart start) {
  return start == GepStart::kAuto ? "auto" : start == GepStart::kRandom ? "random" : "admm";
}

std::size_t gep_memory(const GepOptions& options, const RunOptions& run, std::size_t columns, std::size_t width) {
  // A sum a thread in doubles, exact totals of 16 bytes, the released matrix and what the solver copies.
  const auto threads = static_cast<std::size_t>(thread_count(run));
  const std::size_t widest =
      options.noise == GepNoise::kOnce ? std::max(columns, width) : std::max<std::size_t>(8, width);
  return columns * widest * sizeof(double) * (threads + 12);
}

GepOptions gep_options(const GepChoices& choices, const PrivacyOptions& privacy, const RunOptions& run,
                       std::size_t columns) {
  GepOptions options{.components = choices.components};
  options.sparsity = choices.sparsity;
  options.start = choices.start;
  options.step = choices.step;
  options.rounds = choices.rounds;
  options.ridge = choices.ridge;
  options.as_in_paper = privacy.calibration == Calibration::kPaper;
  if (choices.noise)
    options.noise = *choices.noise;
  else if (options.as_in_paper || gep_memory(options, run, columns, 1) > run.memory / 2)
    options.noise = GepNoise::kEachStep;
  return options;
}

Status check_job(const GepOptions& options, const PrivacyOptions& privacy, const std::string& out,
                 const std::string& report) {
  EIGENVEIL_TRY(check(options));
  if (options.as_in_paper && privacy.adjacency != Adjacency::kReplaceOne)
    return usage_error("--calibration paper divides by the number of rows, so it must be public: use replace-one");
  EIGENVEIL_TRY(check_writable(out));
  if (!report.empty()) EIGENVEIL_TRY(check_writable(report));
  return {};
}

void add_choices(nlohmann::json& options, const GepOptions& gep) {
  options["components"] = gep.components;
  if (gep.sparsity) options["sparsity"] = *gep.sparsity;
  if (gep.sparsity || gep.noise == GepNoise::kEachStep) {
    options["init"] = name(gep.start);
    options["step"] = gep.step ? nlohmann::json(*gep.step) : nlohmann::json("auto");
  }
  if (gep.noise == GepNoise::kEachStep) options["rounds"] = gep.rounds;
  options["ridge"] = gep.ridge ? nlohmann::json(*gep.ridge) : nlohmann::json("auto");
}

void add_solution(nlohmann::json& manifest, double ridge, double noise_edge, const Vector& values,
                  const std::vector<std::string>& notes) {
  manifest["ridge"] = ridge;
  if (noise_edge > 0) manifest["noise_edge"] = noise_edge;
  for (const std::string& note : notes) manifest["warnings"].push_back(note);
  const auto drowned = (values.array() <= noise_edge).count();
  if (noise_edge > 0 && drowned > 0)
    manifest["warnings"].push_back(
        fmt::format("{} of the {} directions have values no larger than noise alone would give: they say nothing about "
                    "the data. Ask for fewer components, or spend more budget.",
                    drowned, values.size()));
}

Status write_release(const Model& model, const std::string& out, const std::string& report,
                     const ReportOptions& report_options, Observer& observer) {
  observer.step("writing model");
  EIGENVEIL_TRY(write_model(model, out));
  if (!report.empty()) {
    observer.step("writing report");
    EIGENVEIL_TRY(write_text_file(report, html_report(model, report_options)));
  }
  observer.step("done");
  return {};
}

}  // namespace eigenveil
