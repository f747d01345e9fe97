#include "eigenveil/job/plan.hpp"

#include <fmt/format.h>

#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct PlanFlags {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t components = 1;
  double epsilon = 0;
  double delta = 0;
  std::string adjacency = "replace-one";
  std::string spectrum;
  std::optional<double> gap;
  std::optional<double> decay;
  std::optional<double> row_bound;
  double signal_share = 1;
  std::optional<std::size_t> sparsity;
  std::optional<std::size_t> rank;
  double target = 0.1;
  std::string plot;
  bool json = false;
  bool quiet = false;
  RunFlags run;
};

Result<Vector> spectrum_of(const PlanFlags& flags) {
  const int given = (flags.spectrum.empty() ? 0 : 1) + (flags.gap ? 1 : 0) + (flags.decay ? 1 : 0);
  if (given > 1) return usage_error("--spectrum, --gap and --decay are three ways to say the same: use one");
  if (!flags.spectrum.empty()) return read_spectrum(flags.spectrum, flags.columns);
  if (flags.gap) {
    if (!(*flags.gap >= 1) || !std::isfinite(*flags.gap))
      return usage_error(fmt::format("--gap must be at least 1, but is {}", *flags.gap));
    return gap_spectrum(flags.columns, flags.components, *flags.gap);
  }
  const double decay = flags.decay.value_or(1);
  if (!(decay >= 0 && decay <= 10)) return usage_error(fmt::format("--decay must lie in 0 to 10, but is {}", decay));
  return decay_spectrum(flags.columns, decay);
}

Result<PlanRequest> request_from(const PlanFlags& flags, PlanRequest::Task task) {
  if (flags.rows < 1 || flags.columns < 1) return usage_error("--rows and --columns must be at least 1");
  if (flags.components < 1 || flags.components > flags.columns)
    return usage_error(
        fmt::format("--components must lie between 1 and --columns {}, but is {}", flags.columns, flags.components));
  if (flags.sparsity && (*flags.sparsity < flags.components || *flags.sparsity > flags.columns))
    return usage_error(fmt::format("--sparsity {} must lie between --components {} and --columns {}", *flags.sparsity,
                                   flags.components, flags.columns));
  if (flags.rank && (*flags.rank < 1 || *flags.rank >= flags.columns))
    return usage_error(fmt::format("--rank must lie between 1 and {}, but is {}", flags.columns - 1, *flags.rank));
  if (!(flags.signal_share > 0 && flags.signal_share <= 1))
    return usage_error(fmt::format("--signal-share must lie in (0, 1], but is {}", flags.signal_share));
  if (!(flags.target > 0 && flags.target < 1))
    return usage_error(fmt::format("--target-error must lie in (0, 1), but is {}", flags.target));
  if (task == PlanRequest::Task::kCovariance && flags.columns < 2)
    return usage_error("a covariance needs at least two columns");
  constexpr std::size_t kMostColumns = 4096;
  if (task == PlanRequest::Task::kCovariance && flags.columns > kMostColumns)
    return usage_error(fmt::format("a covariance of more than {} columns is not forecast", kMostColumns));
  const auto epsilon = EIGENVEIL_TRY(Epsilon::of(flags.epsilon));
  const auto delta = EIGENVEIL_TRY(Delta::of(flags.delta));
  const auto adjacency = EIGENVEIL_TRY(adjacency_from_name(flags.adjacency));
  auto spectrum = EIGENVEIL_TRY(spectrum_of(flags));
  const auto run = EIGENVEIL_TRY(flags.run.options());
  const double typical = std::sqrt(spectrum.sum());
  const auto bound = EIGENVEIL_TRY(RowBound::of(flags.row_bound.value_or(kBoundOverTypicalRow * typical)));
  PlanRequest request{.task = task,
                      .model = {.rows = flags.rows,
                                .spectrum = std::move(spectrum),
                                .row_bound = bound.value(),
                                .components = flags.rank.value_or(flags.components),
                                .signal_share = flags.signal_share,
                                .sparsity = flags.sparsity},
                      .budget = {epsilon, delta, adjacency},
                      .rank = flags.rank,
                      .target_error = flags.target,
                      .curves = !flags.plot.empty(),
                      .threads = thread_count(run)};
  return request;
}

std::string in_units(std::size_t bytes) {
  return bytes >= (std::size_t{1} << 30) ? fmt::format("{:.1f} GB", static_cast<double>(bytes) / 0x1p30)
                                         : fmt::format("{:.3g} MB", static_cast<double>(bytes) / 0x1p20);
}

// Answers of one kind carry about the same noise: the first and the last tell the range.
void show_noise(const PlanLine& line) {
  std::string sums;
  std::string searches;
  for (const AnswerNoise& noise : line.noise) {
    std::string& text = noise.search ? searches : sums;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {:.3g}", noise.label, noise.deviation);
  }
  tell("  {}\n    noise in an entry, over rows: {}\n", line.method, sums);
  if (!searches.empty()) tell("    noise of a search, in rows: {}\n", searches);
}

void show_words(const PlanRequest& request, const PlanReport& report) {
  const bool pca = request.task == PlanRequest::Task::kPca;
  tell("Forecast for {} rows, {} columns, epsilon {:g}, delta {:g}, row bound {:.3g}; nothing was spent.\n\n",
       with_commas(request.model.rows), with_commas(static_cast<std::size_t>(request.model.spectrum.size())),
       request.budget.epsilon.value(), request.budget.delta.value(), request.model.row_bound);
  show_plan(report, request.target_error, pca ? "sin^2" : "rel. err.");
}

int run(const PlanFlags& flags, PlanRequest::Task task) {
  const auto request = request_from(flags, task);
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
  } else {
    show_words(*request, *report);
    if (!flags.plot.empty()) tell("Plot:   {}\n", flags.plot);
  }
  return 0;
}

void add_flags(CLI::App& app, PlanFlags& flags, PlanRequest::Task task) {
  const bool pca = task == PlanRequest::Task::kPca;
  app.add_option("--rows", flags.rows, "Number of rows")->required();
  app.add_option("--columns", flags.columns, "Number of columns")->required();
  if (pca) app.add_option("--components", flags.components, "Number of components")->required();
  app.add_option("--epsilon", flags.epsilon, "Privacy loss")->required();
  app.add_option("--delta", flags.delta, "Probability that epsilon does not hold")->required();
  app.add_option("--adjacency", flags.adjacency, "replace-one or add-remove-one")->capture_default_str();
  app.add_option("--spectrum", flags.spectrum, "File with a public guess of the covariance's eigenvalues");
  app.add_option("--gap", flags.gap, "Instead: the top eigenvalues are this many times the others");
  app.add_option("--decay", flags.decay, "Instead: eigenvalue i in proportion to i^-DECAY (default 1)");
  app.add_option("--row-bound", flags.row_bound, "Bound on a row's norm (default: 1.5 times a typical row)");
  app.add_option("--signal-share", flags.signal_share, "Share of the rows that carry the top components")
      ->capture_default_str();
  if (pca)
    app.add_option("--sparsity", flags.sparsity, "How many columns may have a loading");
  else
    app.add_option("--rank", flags.rank, "Rank of the spiked model (default: found by the method)");
  app.add_option("--target-error", flags.target, "Tell the rows, or the epsilon, that bring the error below this")
      ->capture_default_str();
  app.add_option("--plot", flags.plot, "Draw the error against rows and epsilon, as SVG");
  app.add_flag("--json", flags.json, "Print one JSON object on stdout and nothing else there");
  app.add_flag("--quiet", flags.quiet, "No progress");
  flags.run.add_to(app);
}

}  // namespace

void show_plan(const PlanReport& report, double target, const char* error_name) {
  const bool lost = report.lines.front().lost.has_value();
  tell("  {:<34} {:>9} {:>10} {:>9} {:>9} {:>14} {:>12}\n", "method", error_name, lost ? "var. lost" : "", "time",
       "memory", fmt::format("rows for {:g}", target), fmt::format("eps for {:g}", target));
  for (std::size_t i = 0; i < report.lines.size(); ++i) {
    const PlanLine& line = report.lines[i];
    tell("{} {:<34} {:>9.3g} {:>10} {:>8.2g}s {:>9} {:>14} {:>12}\n", i == report.best ? "*" : " ", line.method,
         line.error, line.lost ? fmt::format("{:.1f}%", 100 * *line.lost) : "", line.seconds, in_units(line.bytes),
         line.rows_needed ? with_commas(*line.rows_needed) : "out of reach",
         line.epsilon_needed ? fmt::format("{:.3g}", *line.epsilon_needed) : "out of reach");
  }
  tell("\n* the best forecast\n\nNoise:\n");
  for (const PlanLine& line : report.lines) show_noise(line);
  tell("\n");
  for (const std::string& warning : report.warnings) tell("Note. {}\n\n", warning);
}

std::vector<Command> plan_commands(CLI::App& program) {
  auto* app = program.add_subcommand("plan", "Forecast error and cost before anything is spent");
  app->require_subcommand(1);
  std::vector<Command> commands;
  const auto add = [&](const char* name, const char* words, PlanRequest::Task task) {
    auto flags = std::make_shared<PlanFlags>();
    auto* sub = app->add_subcommand(name, words);
    add_flags(*sub, *flags, task);
    sub->footer(
        "\nThe methods themselves are run on Gaussian rows with the spectrum you guess and the noise that the budget "
        "asks for.\nExample:\n  eigenveil plan pca --rows 50000 --columns 500 --components 2 --epsilon 1 --delta 1e-6 "
        "--gap 5 --plot plan.svg");
    commands.push_back({sub, [flags, task] { return run(*flags, task); }});
  };
  add("pca", "Which PCA method, how good, how long", PlanRequest::Task::kPca);
  add("covariance", "The same for a covariance matrix", PlanRequest::Task::kCovariance);
  return commands;
}

}  // namespace eigenveil::app
