#include <fmt/format.h>

#include "eigenveil/job/clip_plan.hpp"
#include "options.hpp"
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
  double epsilon = 0;
  double delta = 0;
  std::string adjacency = "replace-one";
  double target = 0.1;
  std::string plot;
  bool json = false;
  bool quiet = false;
  RunFlags run;
};

Result<ClipPlanRequest> clip_request_from(const ClipPlanFlags& flags) {
  const auto epsilon = EIGENVEIL_TRY(Epsilon::of(flags.epsilon));
  const auto delta = EIGENVEIL_TRY(Delta::of(flags.delta));
  const auto adjacency = EIGENVEIL_TRY(adjacency_from_name(flags.adjacency));
  const auto run = EIGENVEIL_TRY(flags.run.options());
  if (!(flags.target > 0 && flags.target < 1))
    return usage_error(fmt::format("--target-error must lie in (0, 1), but is {}", flags.target));
  ClipPlanRequest request{.rows = flags.rows,
                          .x_columns = flags.x_columns,
                          .y_columns = flags.y_columns,
                          .dim = flags.dim,
                          .correlation = flags.correlation,
                          .batch = flags.batch,
                          .budget = {epsilon, delta, adjacency},
                          .target_error = flags.target,
                          .curves = !flags.plot.empty(),
                          .threads = thread_count(run)};
  request.training.steps = flags.steps;
  request.training.clip = flags.clip;
  request.training.temperature = flags.temperature;
  if (flags.start != "random") request.start = flags.start == "cross" ? ClipMethod::kCross : ClipMethod::kWhitened;
  if (const auto checked = check(request); !checked) return checked.error();
  return request;
}

int run_clip_plan(const ClipPlanFlags& flags) {
  const auto request = clip_request_from(flags);
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
  tell(
      "Forecast for {} pairs of {} and {} columns, epsilon {:g}, delta {:g}; batches of about {:g} (--sample-rate "
      "{:.3g}); "
      "nothing was spent.\n\n",
      with_commas(flags.rows), flags.x_columns, flags.y_columns, flags.epsilon, flags.delta, flags.batch,
      std::min(1.0, flags.batch / static_cast<double>(flags.rows)));
  show_plan(*report, flags.target, "sin^2");
  if (!flags.plot.empty()) tell("Plot:   {}\n", flags.plot);
  return 0;
}

}  // namespace

Command clip_plan_command(CLI::App& program) {
  auto* app =
      program.get_subcommand("plan")->add_subcommand("clip", "Joint embeddings of two views: which method, how good");
  auto flags = std::make_shared<ClipPlanFlags>();
  app->add_option("--rows", flags->rows, "Number of pairs")->required();
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
  app->add_option("--epsilon", flags->epsilon, "Privacy loss")->required();
  app->add_option("--delta", flags->delta, "Probability that epsilon does not hold")->required();
  app->add_option("--adjacency", flags->adjacency,
                  "replace-one or add-remove-one; batch and pair always have the latter")
      ->capture_default_str();
  app->add_option("--target-error", flags->target, "Tell the rows, or the epsilon, that bring the error below this")
      ->capture_default_str();
  app->add_option("--plot", flags->plot, "Draw the error against rows and epsilon, as SVG");
  app->add_flag("--json", flags->json, "Print one JSON object on stdout and nothing else there");
  app->add_flag("--quiet", flags->quiet, "No progress");
  flags->run.add_to(*app);
  app->footer(
      "\nThe fits themselves are run on Gaussian views as you guess them, with the noise that the budget asks for.");
  return {app, [flags] { return run_clip_plan(*flags); }};
}

}  // namespace eigenveil::app
