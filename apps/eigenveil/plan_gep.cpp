// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "eigenveil/job/gep.hpp"
#include "forecast_flags.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct GepPlanFlags {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t x_columns = 0;
  std::size_t y_columns = 0;
  std::string aside;  // the column of the classes, or the response
  std::size_t classes = 0;
  std::size_t slices = 10;
  double signal = 0;
  std::size_t components = 1;
  std::optional<std::size_t> sparsity;
  std::optional<double> row_bound;
  ForecastFlags forecast;
};

Result<GepModel> gep_model_from(const GepPlanFlags& flags, GepTask task) {
  const bool cca = task == GepTask::kCca;
  if (!cca && !flags.aside.empty() && flags.forecast.schema.empty())
    return usage_error("--label and --response name a column of --schema");
  const std::size_t d = EIGENVEIL_TRY(cca ? Result<std::size_t>(flags.x_columns + flags.y_columns)
                                          : flags.forecast.features(flags.columns, flags.aside));
  std::size_t classes = flags.classes > 0 ? flags.classes : 2;
  if (task == GepTask::kFda && flags.classes == 0 && !flags.aside.empty())
    classes = EIGENVEIL_TRY(categories_of(flags.forecast.schema, flags.aside));
  const auto bound =
      EIGENVEIL_TRY(RowBound::of(flags.row_bound.value_or(kBoundOverTypicalRow * std::sqrt(static_cast<double>(d)))));
  return GepModel{.task = task,
                  .rows = flags.rows,
                  .columns = d,
                  .x_columns = flags.x_columns,
                  .classes = task == GepTask::kSir ? flags.slices : classes,
                  .signal = flags.signal,
                  .row_bound = bound.value(),
                  .components = flags.components,
                  .sparsity = flags.sparsity};
}

int run_gep_plan(const GepPlanFlags& flags, GepTask task) {
  const auto budget = flags.forecast.budget(flags.rows);
  if (!budget) return fail(budget.error());
  const auto run = flags.forecast.run.options();
  if (!run) return fail(run.error());
  const auto model = gep_model_from(flags, task);
  if (!model) return fail(model.error());
  const ForecastRequest request = gep_forecast(*model, *budget, *run);
  return show_forecast(request, flags.forecast, opening_words(request, model->row_bound, flags.forecast));
}

void add_gep_plan_flags(CLI::App& app, GepPlanFlags& flags, GepTask task) {
  flags.forecast.add_rows_to(app, flags.rows);
  if (task == GepTask::kCca) {
    app.add_option("--x-columns", flags.x_columns, "Number of columns of the first view")->required();
    app.add_option("--y-columns", flags.y_columns, "Number of columns of the second view")->required();
    flags.signal = 0.5;
    app.add_option("--correlation", flags.signal, "A public guess of the correlation")->capture_default_str();
  } else {
    app.add_option("--columns", flags.columns, "Number of columns")->check(CLI::PositiveNumber);
    flags.forecast.add_schema_to(app);
    app.add_option(task == GepTask::kFda ? "--label" : "--response", flags.aside,
                   "With --schema: the column that is no feature");
  }
  if (task == GepTask::kFda) {
    flags.signal = 2;
    app.add_option("--classes", flags.classes, "Number of classes (default: those of --label in the schema, or 2)")
        ->check(CLI::PositiveNumber);
    app.add_option("--separation", flags.signal, "A public guess: deviations between the means of two classes")
        ->capture_default_str();
  }
  if (task == GepTask::kSir) {
    flags.signal = 0.5;
    app.add_option("--slices", flags.slices, "Number of slices")->capture_default_str();
    app.add_option("--explained", flags.signal, "A public guess: share of the response that its direction explains")
        ->capture_default_str();
  }
  app.add_option("--components", flags.components, "Number of directions")->capture_default_str();
  app.add_option("--sparsity", flags.sparsity, "How many columns may have a weight");
  flags.forecast.add_budget_to(app);
  app.add_option("--row-bound", flags.row_bound,
                 "Bound on a row's norm, columns of variance 1 (default: 1.5 sqrt(columns))");
  flags.forecast.add_output_to(app);
  const char* example = task == GepTask::kCca ? "plan cca --rows 20000 --x-columns 5 --y-columns 4"
                        : task == GepTask::kFda
                            ? "plan fda --schema examples/patients.toml --label sex --rows 20000"
                            : "plan sir --schema examples/patients.toml --response systolic --rows 20000";
  app.footer(
      fmt::format("\nThe fit itself is run on Gaussian rows as you guess them, with the noise that the budget asks "
                  "for.\nExample:\n  eigenveil {}",
                  example));
}

}  // namespace

std::vector<Command> gep_plan_commands(CLI::App& program) {
  CLI::App* plan = program.get_subcommand("plan");
  std::vector<Command> commands;
  for (const auto& [task, words] : {std::pair{GepTask::kCca, "Canonical correlations: how good, how long"},
                                    std::pair{GepTask::kFda, "The same for discriminant directions"},
                                    std::pair{GepTask::kSir, "The same for sliced inverse regression"}}) {
    auto flags = std::make_shared<GepPlanFlags>();
    auto* app = plan->add_subcommand(std::string(name(task)), words);
    add_gep_plan_flags(*app, *flags, task);
    commands.push_back({app, [flags, task = task] { return run_gep_plan(*flags, task); }});
  }
  return commands;
}

}  // namespace eigenveil::app
