// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct CovarianceFlags {
  std::string method = "gram";
  bool dense = false;
  std::string scale = "range";
  RowFlags rows;
  PrivacyFlags privacy;
  SpikedFlags spiked;
  GuessFlags guess;
  OutputFlags output;
  RunFlags run;
};

Result<Study> study_from(const CovarianceFlags& flags) {
  auto fit = EIGENVEIL_TRY(fit_job(flags.rows, flags.privacy, flags.run, flags.output, flags.guess.expected_rows));
  auto chosen_spiked = EIGENVEIL_TRY(flags.spiked.options());
  CovarianceJob job{
      .fit = std::move(fit), .spiked = std::move(chosen_spiked), .dense = flags.dense, .guess = flags.guess.options()};
  if (flags.scale == "correlation") job.scale = Scale::kCorrelation;
  if (flags.method == "auto")
    job.method.reset();
  else
    job.method = flags.method == "spiked" ? PcaMethod::kSpiked : PcaMethod::kGram;
  return study(std::move(job));
}

}  // namespace

Command covariance_command(CLI::App& program) {
  auto* app = program.add_subcommand("covariance", "Private covariance matrix of a table of rows");
  auto flags = std::make_shared<CovarianceFlags>();
  flags->rows.add_to(*app);
  app->add_option("--method", flags->method,
                  "gram: the whole matrix, made positive semidefinite; spiked: a few components and one variance for "
                  "all other directions; auto: the better forecast")
      ->check(CLI::IsMember({"auto", "gram", "spiked"}))
      ->capture_default_str()
      ->group("Method");
  add_scale(*app, flags->scale);
  app->add_flag("--dense", flags->dense, "spiked: write the d x d matrix too")->group("Method");
  flags->spiked.add_to(*app);
  flags->guess.add_to(*app);
  flags->privacy.add_to(*app);
  flags->output.add_to(*app);
  flags->run.add_to(*app);
  flags->run.add_engine_to(*app);
  app->footer(
      "\nThe model holds components U, eigenvalues l and noise_variance s2: Sigma = U (diag(l) - s2 I) U^T + s2 I.\n"
      "Example:\n  eigenveil covariance examples/patients.csv --schema examples/patients.toml --epsilon 1 --delta "
      "1e-6");
  return {app, [flags] { return show_release(released(study_from(*flags), flags->output), flags->output); }};
}

}  // namespace eigenveil::app
