// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "eigenveil/base/figures.hpp"
#include "eigenveil/job/clip.hpp"
#include "forecast_flags.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct ClipPlanFlags {
  std::size_t rows = 0;
  std::size_t x_columns = 0;
  std::size_t y_columns = 0;
  std::size_t dim = 2;
  double correlation = 0.8;
  double batch = 64;
  std::size_t steps = 300;
  double clip = 1;
  double temperature = 1;
  std::string start = "random";
  ForecastFlags forecast;
};

Result<ForecastRequest> clip_forecast_from(const ClipPlanFlags& flags) {
  const auto budget = EIGENVEIL_TRY(flags.forecast.budget(flags.rows));
  ClipTrial trial{.batch = flags.batch};
  trial.training.steps = flags.steps;
  trial.training.clip = flags.clip;
  trial.training.temperature = flags.temperature;
  if (flags.start != "random") trial.start = flags.start == "cross" ? ClipMethod::kCross : ClipMethod::kWhitened;
  return clip_forecast({flags.rows, flags.x_columns, flags.y_columns, flags.dim, flags.correlation}, trial, budget);
}

int run_clip_plan(const ClipPlanFlags& flags) {
  const auto request = clip_forecast_from(flags);
  if (!request) return fail(request.error());
  return show_forecast(
      request, flags.forecast,
      fmt::format("Forecast for {} of {} and {} columns, epsilon {:g}, delta {}; batches of about {:g} "
                  "(--sample-rate {:.3g}); nothing was spent.",
                  flags.forecast.rows_per_person || flags.forecast.people ? rows_in_words(flags.rows, flags.forecast)
                                                                          : with_commas(flags.rows) + " pairs",
                  flags.x_columns, flags.y_columns, flags.forecast.epsilon, plain(request->budget.delta.value()),
                  flags.batch, std::min(1.0, flags.batch / static_cast<double>(flags.rows))));
}

}  // namespace

Command clip_plan_command(CLI::App& program) {
  auto* app =
      program.get_subcommand("plan")->add_subcommand("clip", "Joint embeddings of two views: which method, how good");
  auto flags = std::make_shared<ClipPlanFlags>();
  flags->forecast.add_rows_to(*app, flags->rows, "pairs");
  app->add_option("--x-columns", flags->x_columns, "Number of columns of the first view")->required();
  app->add_option("--y-columns", flags->y_columns, "Number of columns of the second view")->required();
  app->add_option("--dim", flags->dim, "Dimensions of the embedding")->capture_default_str();
  app->add_option("--correlation", flags->correlation, "A public guess: how strongly the shared coordinates agree")
      ->capture_default_str();
  app->add_option("--batch", flags->batch, "batch, pair: expected pairs in a batch")->capture_default_str();
  app->add_option("--steps", flags->steps, "batch, pair: batches in all")->capture_default_str();
  app->add_option("--clip", flags->clip, "batch, pair: as of clip fit")->capture_default_str();
  app->add_option("--temperature", flags->temperature, "batch, pair: of the loss")->capture_default_str();
  app->add_option("--start", flags->start, "batch, pair: random, cross or whitened, as of clip fit")
      ->check(CLI::IsMember({"random", "cross", "whitened"}))
      ->capture_default_str();
  flags->forecast.add_budget_to(*app, "replace-one or add-remove-one; batch and pair always have the latter");
  flags->forecast.add_output_to(*app);
  app->footer(
      "\nThe fits themselves are run on Gaussian views as you guess them, with the noise that the budget asks for.\n"
      "Example:\n  eigenveil plan clip --rows 20000 --x-columns 16 --y-columns 8 --dim 2");
  return {app, [flags] { return run_clip_plan(*flags); }};
}

}  // namespace eigenveil::app
