// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/regress.hpp"

#include <set>

#include "eigenveil/base/atomic_file.hpp"
#include "forecast_flags.hpp"
#include "gep_flags.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct RegressFlags {
  std::string target;
  std::string ridge = "auto";
  std::string from;
  RowFlags rows;
  PrivacyFlags privacy;
  OutputFlags output;
  RunFlags run;
};

Result<std::optional<double>> ridge_from(const std::string& text) {
  if (text == "auto") return std::optional<double>();
  return std::optional<double>(EIGENVEIL_TRY(number_from_text(text, "--ridge")));
}

Result<Study> study_from(const RegressFlags& flags) {
  auto fit = EIGENVEIL_TRY(fit_job(flags.rows, flags.privacy, flags.run, flags.output));
  const auto ridge = EIGENVEIL_TRY(ridge_from(flags.ridge));
  return study(RegressJob{std::move(fit), flags.target, ridge});
}

Result<Model> model_from(const RegressFlags& flags) {
  EIGENVEIL_TRY(check_writable(flags.output.out));
  if (!flags.output.report.empty()) EIGENVEIL_TRY(check_writable(flags.output.report));
  const auto covariance = EIGENVEIL_TRY(read_model(flags.from));
  auto model = EIGENVEIL_TRY(regress_from(covariance, flags.target, EIGENVEIL_TRY(ridge_from(flags.ridge))));
  EIGENVEIL_TRY(write_model(model, flags.output.out));
  if (!flags.output.report.empty()) EIGENVEIL_TRY(write_file(flags.output.report, html_report(model)));
  return model;
}

int run(const RegressFlags& flags, const CLI::App& app) {
  if (!flags.from.empty()) {
    auto model = model_from(flags);
    return model ? show_release({*std::move(model), {}, {}}, flags.output) : fail(model.error());
  }
  if (flags.rows.data.empty() && !elsewhere(app))
    return fail(usage_error("give DATA to fit, or --from with a covariance that was released before"));
  for (const char* needed : {"--epsilon", "--delta"})
    if (app.count(needed) == 0) return fail(usage_error(fmt::format("{} is required", needed)));
  const auto outcome = released(study_from(flags), flags.output);
  if (!outcome) return fail(outcome.error());
  return show_release(*outcome, flags.output);
}

// From a released covariance nothing is read and nothing is spent.
void add_from(CLI::App& app, RegressFlags& flags) {
  auto* from = app.add_option("--from", flags.from,
                              "Covariance that was released with a private mean, instead of DATA: any target, free");
  for (const char* option : {"DATA", "--epsilon", "--delta"}) app.get_option(option)->required(false);
  const std::set<std::string> kTogether = {"--help",   "--from", "--target", "--ridge", "--out",
                                           "--report", "--json", "--quiet",  "--yes"};
  for (CLI::Option* option : app.get_options())
    if (!kTogether.contains(option->get_name())) option->excludes(from);
}

}  // namespace

Command regress_plan_command(CLI::App& plan) {
  struct Flags {
    RegressModel model{0, 0};
    std::string ridge = "auto";
    ForecastFlags forecast;
  };
  auto flags = std::make_shared<Flags>();
  auto* app = plan.add_subcommand("regress", "The same for a linear regression");
  app->add_option("--rows", flags->model.rows, "Number of rows")->required();
  app->add_option("--columns", flags->model.columns, "Number of columns besides the target")->required();
  app->add_option("--explained", flags->model.explained, "A public guess: share of the target that the columns explain")
      ->capture_default_str();
  app->add_option("--spread", flags->model.spread, "A public guess: deviation of a column over half of its range")
      ->capture_default_str();
  app->add_option("--ridge", flags->ridge, "As for a fit")->capture_default_str();
  flags->forecast.add_budget_to(*app);
  app->add_option("--row-bound", flags->model.row_bound, "Bound on the norm of a whole row (default: none is needed)");
  flags->forecast.add_output_to(*app);
  app->footer(
      "\nThe regression itself is run on rows as you guess them, against the same rows without privacy "
      "noise.\nExample:\n"
      "  eigenveil plan regress --rows 50000 --columns 8 --epsilon 1 --delta 1e-6");
  return {app, [flags] {
            const auto budget = flags->forecast.budget(flags->model.rows);
            if (!budget) return fail(budget.error());
            const auto ridge = ridge_from(flags->ridge);
            if (!ridge) return fail(ridge.error());
            const auto words =
                fmt::format("Forecast for {} rows, {} columns, epsilon {:g}, delta {:g}; nothing was spent.",
                            with_commas(flags->model.rows), with_commas(flags->model.columns), flags->forecast.epsilon,
                            budget->delta.value());
            return show_forecast(regress_forecast(flags->model, *budget, *ridge), flags->forecast, words);
          }};
}

Command regress_command(CLI::App& program) {
  auto* app = program.add_subcommand("regress", "Private linear regression of one column on the others");
  auto flags = std::make_shared<RegressFlags>();
  flags->rows.add_to(*app);
  app->add_option("--target", flags->target, "Column to explain: a number with a public range")->required();
  app->add_option("--ridge", flags->ridge,
                  "Added to the mean squares of the scaled columns, or auto: coefficients shrink as noise and data ask")
      ->capture_default_str();
  flags->privacy.add_to(*app);
  flags->output.add_to(*app);
  flags->run.add_to(*app);
  flags->run.add_engine_to(*app);
  if (!elsewhere(*app)) add_from(*app, *flags);
  app->footer(
      "\nExamples:\n"
      "  eigenveil regress patients.csv --schema patients.toml --target systolic --epsilon 1 --delta 1e-6\n"
      "  eigenveil regress --from covariance.npz --target weight\n"
      "Intervals count privacy noise and sampling error: docs/regress.md.");
  return {app, [flags, app] { return run(*flags, *app); }};
}

}  // namespace eigenveil::app
