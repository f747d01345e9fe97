#include <fmt/format.h>

#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct PcaFlags {
  std::size_t components = 0;
  std::string method = "gram";
  std::optional<std::size_t> sparsity;
  std::size_t rounds = PowerOptions().rounds;
  std::string filter = "shrink";
  double grid_ratio = PowerOptions().grid_ratio;
  RowFlags rows;
  PrivacyFlags privacy;
  OutputFlags output;
  RunFlags run;
};

Result<PcaJob> job_from(const PcaFlags& flags) {
  auto privacy = flags.privacy.options();
  if (!privacy) return privacy.error();
  auto rows = flags.rows.options();
  if (!rows) return rows.error();
  auto run = flags.run.options();
  if (!run) return run.error();
  auto report = flags.output.report_options();
  if (!report) return report.error();
  const auto method = pca_method_from_name(flags.method);
  if (!method) return method.error();
  PowerOptions power{.rounds = flags.rounds, .grid_ratio = flags.grid_ratio};
  power.filter = flags.filter == "off"    ? RowFilter::kOff
                 : flags.filter == "drop" ? RowFilter::kDrop
                                          : RowFilter::kShrink;
  if (!(power.grid_ratio >= 1.01 && power.grid_ratio <= 16))
    return usage_error(fmt::format("--grid-ratio must lie between 1.01 and 16, but is {}", power.grid_ratio));
  return PcaJob{.rows = *std::move(rows),
                .privacy = *privacy,
                .run = *run,
                .components = flags.components,
                .method = *method,
                .sparsity = flags.sparsity,
                .power = power,
                .out = flags.output.out,
                .report = flags.output.report,
                .report_options = *report};
}

int run(const PcaFlags& flags) {
  const auto job = job_from(flags);
  if (!job) return fail(job.error());
  auto outcome = [&] {
    Terminal terminal(flags.output.quiet);
    return run_pca(*job, terminal);
  }();
  if (!outcome) return fail(outcome.error());
  return show_pca(*job, *outcome, flags.output);
}

void show_json(const PcaJob& job, const Model& model) {
  nlohmann::json object = {{"model", job.out}, {"components", job.components}};
  for (const char* key : {"epsilon", "delta", "certified_epsilon", "adjacency", "method", "guarantee", "private",
                          "warnings", "rows", "noisy_rows", "events"})
    if (model.manifest.contains(key)) object[key] = model.manifest[key];
  if (!job.report.empty()) object["report"] = job.report;
  fmt::print("{}\n", object.dump());
}

void show_words(const PcaJob& job, const Model& model) {
  const auto& manifest = model.manifest;
  const Matrix& eigenvalues = *model.array("eigenvalues");
  const std::string rows =
      manifest.contains("rows")
          ? with_commas(manifest["rows"].get<std::size_t>()) + " rows"
          : "about " + with_commas(manifest["noisy_rows"].get<std::size_t>()) + " rows (noisy count)";
  fmt::print("Released {} principal component{} of {} and {} columns, by method {}.\n\n", job.components,
             job.components == 1 ? "" : "s", rows, with_commas(manifest["features"].size()),
             manifest["method"].get<std::string>());
  fmt::print("Guarantee. {}\n\n", manifest["guarantee"].get<std::string>());
  constexpr int kWidth = 40;
  const double largest = eigenvalues.size() > 0 ? std::max(1e-300, eigenvalues(0, 0)) : 1;
  fmt::print("  PC  eigenvalue\n");
  for (Eigen::Index i = 0; i < eigenvalues.size(); ++i) {
    const double share = std::clamp(eigenvalues(i, 0) / largest, 0.0, 1.0);
    fmt::print("{:4d}  {:10.4g}  {:#<{}}\n", i + 1, eigenvalues(i, 0), "", static_cast<int>(share * kWidth));
  }
  fmt::print("  Noise alone would give eigenvalues up to about {:.4g}.\n\n", manifest["noise_edge"].get<double>());
  for (const auto& warning : manifest["warnings"]) fmt::print("Note. {}\n\n", warning.get<std::string>());
  fmt::print("Model:  {}\n", job.out);
  if (!job.report.empty()) fmt::print("Report: {}\n", job.report);
}

}  // namespace

int show_pca(const PcaJob& job, const PcaOutcome& outcome, const OutputFlags& output) {
  if (output.diagnostics)
    fmt::print(stderr,
               "diagnostics (not private: do not share): {} rows read, {} scaled down to the row bound, {} counted as "
               "zero for want of a value\n",
               outcome.diagnostics.rows, outcome.diagnostics.clipped, outcome.diagnostics.zeroed);
  if (output.json)
    show_json(job, outcome.model);
  else
    show_words(job, outcome.model);
  return 0;
}

Command pca_command(CLI::App& program) {
  auto* app = program.add_subcommand("pca", "Private principal components of a table of rows");
  auto flags = std::make_shared<PcaFlags>();
  flags->rows.add_to(*app);
  app->add_option("--components", flags->components, "How many principal components to release")
      ->required()
      ->check(CLI::PositiveNumber);
  app->add_option("--method", flags->method,
                  "gram: one noisy covariance matrix (up to a few hundred columns); adaptive-power: filtered power "
                  "iteration (many columns); sparse-power: the same with few loadings; power: without a filter")
      ->capture_default_str()
      ->group("Method");
  app->add_option("--sparsity", flags->sparsity, "gram, sparse-power: how many columns may have a loading")
      ->group("Method");
  app->add_option("--rounds", flags->rounds, "Power methods: rounds, each a share of the budget")
      ->capture_default_str()
      ->group("Method");
  app->add_option("--filter", flags->filter, "Contributions above a private threshold: shrink, drop, or off")
      ->check(CLI::IsMember({"shrink", "drop", "off"}))
      ->capture_default_str()
      ->group("Method");
  app->add_option("--grid-ratio", flags->grid_ratio, "Ratio of consecutive thresholds")
      ->capture_default_str()
      ->group("Method");
  flags->privacy.add_to(*app);
  flags->output.add_to(*app);
  flags->run.add_to(*app);
  app->footer(
      "\nExample:\n  eigenveil pca images.idx.gz --range 0:255 --components 10 --epsilon 1 --delta 1e-6 --center "
      "private "
      "\\\n      --report report.html --image-shape 28x28\n"
      "Bounds (--range, --schema, --row-bound) must be known without looking at the rows: they are published.");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace eigenveil::app
