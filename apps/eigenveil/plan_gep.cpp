#include <fmt/format.h>

#include "eigenveil/job/gep_plan.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct GepPlanFlags {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t x_columns = 0;
  std::size_t y_columns = 0;
  std::size_t classes = 2;
  std::size_t slices = 10;
  double signal = 0;
  std::size_t components = 1;
  std::optional<std::size_t> sparsity;
  double epsilon = 0;
  double delta = 0;
  std::string adjacency = "replace-one";
  std::optional<double> row_bound;
  double target = 0.1;
  std::string plot;
  bool json = false;
  bool quiet = false;
  RunFlags run;
};

Result<GepPlanRequest> gep_request_from(const GepPlanFlags& flags, GepTask task) {
  const auto epsilon = EIGENVEIL_TRY(Epsilon::of(flags.epsilon));
  const auto delta = EIGENVEIL_TRY(Delta::of(flags.delta));
  const auto adjacency = EIGENVEIL_TRY(adjacency_from_name(flags.adjacency));
  const auto run = EIGENVEIL_TRY(flags.run.options());
  if (!(flags.target > 0 && flags.target < 1))
    return usage_error(fmt::format("--target-error must lie in (0, 1), but is {}", flags.target));
  const bool cca = task == GepTask::kCca;
  const std::size_t d = cca ? flags.x_columns + flags.y_columns : flags.columns;
  const auto bound =
      EIGENVEIL_TRY(RowBound::of(flags.row_bound.value_or(kBoundOverTypicalRow * std::sqrt(static_cast<double>(d)))));
  const GepModel model{.task = task,
                       .rows = flags.rows,
                       .columns = d,
                       .x_columns = flags.x_columns,
                       .classes = task == GepTask::kSir ? flags.slices : flags.classes,
                       .signal = flags.signal,
                       .row_bound = bound.value(),
                       .components = flags.components,
                       .sparsity = flags.sparsity};
  if (const auto checked = check(model); !checked) return checked.error();
  return GepPlanRequest{model, {epsilon, delta, adjacency}, flags.target, !flags.plot.empty(), run};
}

int run_gep_plan(const GepPlanFlags& flags, GepTask task) {
  const auto request = gep_request_from(flags, task);
  if (!request) return fail(request.error());
  if (!flags.plot.empty())
    if (const auto writable = check_writable(flags.plot); !writable) return fail(writable.error());
  const auto report = [&] {
    Terminal terminal(flags.quiet);
    return make_plan(*request, terminal);
  }();
  if (!report) return fail(report.error());
  if (!flags.plot.empty()) {
    const auto written = write_text_file(flags.plot, line_charts_svg(plan_charts(*request, *report)));
    if (!written) return fail(written.error());
  }
  if (flags.json) {
    nlohmann::json object = to_json(*request, *report);
    if (!flags.plot.empty()) object["plot"] = flags.plot;
    say_json(object);
    return 0;
  }
  tell("Forecast for {} rows, {} columns, epsilon {:g}, delta {:g}, row bound {:.3g}; nothing was spent.\n\n",
       with_commas(request->model.rows), with_commas(request->model.columns), request->budget.epsilon.value(),
       request->budget.delta.value(), request->model.row_bound);
  show_plan(*report, request->target_error, "sin^2");
  if (!flags.plot.empty()) tell("Plot:   {}\n", flags.plot);
  return 0;
}

void add_gep_plan_flags(CLI::App& app, GepPlanFlags& flags, GepTask task) {
  app.add_option("--rows", flags.rows, "Number of rows")->required();
  if (task == GepTask::kCca) {
    app.add_option("--x-columns", flags.x_columns, "Number of columns of the first view")->required();
    app.add_option("--y-columns", flags.y_columns, "Number of columns of the second view")->required();
    flags.signal = 0.5;
    app.add_option("--correlation", flags.signal, "A public guess of the correlation")->capture_default_str();
  } else {
    app.add_option("--columns", flags.columns, "Number of columns")->required();
  }
  if (task == GepTask::kFda) {
    flags.signal = 2;
    app.add_option("--classes", flags.classes, "Number of classes")->capture_default_str();
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
  app.add_option("--epsilon", flags.epsilon, "Privacy loss")->required();
  app.add_option("--delta", flags.delta, "Probability that epsilon does not hold")->required();
  app.add_option("--adjacency", flags.adjacency, "replace-one or add-remove-one")->capture_default_str();
  app.add_option("--row-bound", flags.row_bound,
                 "Bound on a row's norm, columns of variance 1 (default: 1.5 sqrt(columns))");
  app.add_option("--target-error", flags.target, "Tell the rows, or the epsilon, that bring the error below this")
      ->capture_default_str();
  app.add_option("--plot", flags.plot, "Draw the error against rows and epsilon, as SVG");
  app.add_flag("--json", flags.json, "Print one JSON object on stdout and nothing else there");
  app.add_flag("--quiet", flags.quiet, "No progress");
  flags.run.add_to(app);
  app.footer("\nThe fit itself is run on Gaussian rows as you guess them, with the noise that the budget asks for.");
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
