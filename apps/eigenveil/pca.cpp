// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "gep_flags.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct PcaFlags {
  std::size_t components = 0;
  std::string method = "auto";
  std::optional<std::size_t> sparsity;
  std::string scale = "range";
  std::optional<double> score_plot;
  std::string label;
  std::string classes;
  std::string unlisted = "error";
  std::string rounds;
  std::string start;
  std::string filter = "shrink";
  double grid_ratio = PowerOptions().grid_ratio;
  RowFlags rows;
  PrivacyFlags privacy;
  SpikedFlags spiked;
  GuessFlags guess;
  OutputFlags output;
  RunFlags run;
};

Status add_method(const PcaFlags& flags, PcaJob& job) {
  job.method.reset();
  if (flags.method != "auto") {
    const auto method = EIGENVEIL_TRY(pca_method_from_name(flags.method));
    job.method = method;
  }
  job.sparsity = flags.sparsity;
  if (flags.scale == "correlation") job.scale = Scale::kCorrelation;
  job.power.grid_ratio = flags.grid_ratio;
  job.power.filter = flags.filter == "off"    ? RowFilter::kOff
                     : flags.filter == "drop" ? RowFilter::kDrop
                                              : RowFilter::kShrink;
  job.choose_rounds = flags.rounds == "auto" || (flags.rounds.empty() && !job.method);
  if (!flags.rounds.empty() && flags.rounds != "auto") {
    const auto rounds = count_from_text(flags.rounds);
    if (!rounds)
      return usage_error(fmt::format("--rounds must be a whole number from 1, or auto, but is '{}'", flags.rounds));
    job.power.rounds = *rounds;
  }
  auto spiked = EIGENVEIL_TRY(flags.spiked.options());
  job.spiked = spiked;
  if (flags.spiked.rank.empty()) job.spiked.rank = flags.components;
  return {};
}

Result<Study> study_from(const PcaFlags& flags) {
  auto fit = EIGENVEIL_TRY(fit_job(flags.rows, flags.privacy, flags.run, flags.output, flags.guess.expected_rows));
  PcaJob job{.fit = std::move(fit), .components = flags.components, .guess = flags.guess.options()};
  EIGENVEIL_TRY(add_method(flags, job));
  if (!flags.start.empty()) job.start = EIGENVEIL_TRY(read_start(flags.start, job.fit.rows.person.has_value()));
  job.score_plot = flags.score_plot;
  if (!flags.label.empty())
    job.fit.rows.class_column = ClassColumn{flags.label, split_text(flags.classes, '|'), flags.unlisted == "drop", {}};
  return study(std::move(job));
}

}  // namespace

Command pca_command(CLI::App& program) {
  auto* app = program.add_subcommand("pca", "Private principal components of a table of rows");
  auto flags = std::make_shared<PcaFlags>();
  flags->rows.add_to(*app);
  app->add_option("--components", flags->components, "How many principal components to release")
      ->required()
      ->check(from_one());
  app->add_option(
         "--method", flags->method,
         "auto: pilot, or gram where there are few columns, or the best forecast where a spectrum or a sparsity is "
         "stated; gram: one noisy covariance matrix; pilot: a rough one, which tells whether the rest of the budget "
         "goes to gram, to sphere or to adaptive-power; sphere: gram of rows made of one length (long tails); "
         "adaptive-power: filtered power iteration (many columns); sparse-power: the same with few loadings; "
         "power: without a filter; spiked: a few components and one noise variance")
      ->capture_default_str()
      ->group("Method");
  add_scale(*app, flags->scale);
  app->add_option("--sparsity", flags->sparsity, "gram, sparse-power: how many columns may have a loading")
      ->group("Method");
  app->add_option("--rounds", flags->rounds,
                  "Power methods: rounds, each a share of the budget (default 8), or auto: the best forecast")
      ->group("Method");
  app->add_option("--start", flags->start,
                  "Power methods: a released model whose components the rounds begin with, of the same features")
      ->group("Method");
  app->add_option("--filter", flags->filter, "Contributions above a private threshold: shrink, drop, or off")
      ->check(CLI::IsMember({"shrink", "drop", "off"}))
      ->capture_default_str()
      ->group("Method");
  app->add_option("--grid-ratio", flags->grid_ratio, "Ratio of consecutive thresholds")
      ->capture_default_str()
      ->group("Method");
  add_score_plot(*app, flags->score_plot)->group("Picture of the rows");
  auto* label =
      app->add_option("--label", flags->label, "Column that holds a class; it is no feature. A picture for each");
  label->group("Picture of the rows");
  app->add_option("--classes", flags->classes, "Public list of the labels, A|B|C; default: the schema's")
      ->needs(label)
      ->group("Picture of the rows");
  app->add_option("--unlisted", flags->unlisted, "A row with another label: error, or drop (it counts as zero)")
      ->check(CLI::IsMember({"error", "drop"}))
      ->needs(label)
      ->capture_default_str()
      ->group("Picture of the rows");
  flags->spiked.add_to(*app);
  flags->guess.add_to(*app);
  flags->privacy.add_to(*app);
  flags->output.add_to(*app);
  flags->run.add_to(*app);
  flags->run.add_engine_to(*app);
  app->footer(
      "\nExample:\n  eigenveil pca examples/patients.csv --schema examples/patients.toml --components 2 --epsilon 1 "
      "\\\n"
      "      --delta 1e-6 --report report.html\n"
      "Bounds (--range, --schema, --row-bound) must be known without looking at the rows: they are published.");
  return {app, [flags] { return show_release(released(study_from(*flags), flags->output), flags->output); }};
}

}  // namespace eigenveil::app
