// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "eigenveil/job/covariance.hpp"
#include "eigenveil/job/pca.hpp"
#include "forecast_flags.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

enum class SpectrumTask { kPca, kCovariance };

struct PlanFlags {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t components = 0;  // 0: five, or all columns if there are fewer
  std::string spectrum;
  std::optional<double> gap;
  std::optional<double> decay;
  std::optional<double> row_bound;
  double signal_share = 1;
  std::optional<std::size_t> sparsity;
  std::optional<std::size_t> rank;
  std::optional<double> score_plot;
  ForecastFlags forecast;
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

Status check_sizes(const PlanFlags& flags, SpectrumTask task) {
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
  if (flags.score_plot && flags.components < 2)
    return usage_error("--score-plot draws rows along two components: ask for at least --components 2");
  if (task == SpectrumTask::kPca) return {};
  if (flags.columns < 2) return usage_error("a covariance needs at least two columns");
  constexpr std::size_t kMostColumns = 4096;
  if (flags.columns > kMostColumns)
    return usage_error(fmt::format("a covariance of more than {} columns is not forecast", kMostColumns));
  return {};
}

Result<SpectrumModel> spectrum_model_from(PlanFlags flags, SpectrumTask task) {
  constexpr std::size_t kComponents = 5;
  flags.columns = EIGENVEIL_TRY(flags.forecast.features(flags.columns));
  if (flags.components == 0) flags.components = task == SpectrumTask::kPca ? std::min(kComponents, flags.columns) : 1;
  EIGENVEIL_TRY(check_sizes(flags, task));
  auto spectrum = EIGENVEIL_TRY(spectrum_of(flags));
  const double typical = std::sqrt(spectrum.sum());
  const auto bound = EIGENVEIL_TRY(RowBound::of(flags.row_bound.value_or(kBoundOverTypicalRow * typical)));
  return SpectrumModel{.rows = flags.rows,
                       .spectrum = std::move(spectrum),
                       .row_bound = bound.value(),
                       .components = flags.rank.value_or(flags.components),
                       .signal_share = flags.signal_share,
                       .sparsity = flags.sparsity};
}

int run(const PlanFlags& flags, SpectrumTask task) {
  const auto budget = flags.forecast.budget(flags.rows);
  if (!budget) return fail(budget.error());
  const auto model = spectrum_model_from(flags, task);
  if (!model) return fail(model.error());
  const ForecastRequest request = task == SpectrumTask::kPca ? pca_forecast(*model, *budget, flags.score_plot)
                                                             : covariance_forecast(*model, flags.rank, *budget);
  return show_forecast(request, flags.forecast, opening_words(request, model->row_bound, flags.forecast));
}

void add_flags(CLI::App& app, PlanFlags& flags, SpectrumTask task) {
  const bool pca = task == SpectrumTask::kPca;
  flags.forecast.add_rows_to(app, flags.rows);
  app.add_option("--columns", flags.columns, "Number of columns")->check(CLI::PositiveNumber);
  flags.forecast.add_schema_to(app);
  if (pca)
    app.add_option("--components", flags.components, "Number of components (default: 5)")->check(CLI::PositiveNumber);
  flags.forecast.add_budget_to(app);
  app.add_option("--spectrum", flags.spectrum, "File with a public guess of the covariance's eigenvalues");
  app.add_option("--gap", flags.gap, "Instead: the top eigenvalues are this many times the others");
  app.add_option("--decay", flags.decay, "Instead: eigenvalue i in proportion to i^-DECAY (default 1)");
  app.add_option("--row-bound", flags.row_bound, "Bound on a row's norm (default: 1.5 times a typical row)");
  app.add_option("--signal-share", flags.signal_share, "Share of the rows that carry the top components")
      ->capture_default_str();
  if (pca) add_score_plot(app, flags.score_plot);
  if (pca)
    app.add_option("--sparsity", flags.sparsity, "How many columns may have a loading");
  else
    app.add_option("--rank", flags.rank, "Rank of the spiked model (default: found by the method)");
  flags.forecast.add_output_to(app);
}

constexpr const char* kSpectrumFooter =
    "\nThe methods themselves are run on Gaussian rows with the spectrum you guess and the noise that the budget asks "
    "for. A component counts as found if the released ones capture all of it but --target-error.\nExample:\n  "
    "eigenveil "
    "plan pca --rows 50000 --columns 500 --components 2 --epsilon 1 --delta 1e-6 --gap 5 --plot plan.svg\n  eigenveil "
    "plan --schema examples/patients.toml --rows 20000";

}  // namespace

std::vector<Command> plan_commands(CLI::App& program) {
  auto* app = program.add_subcommand("plan", "Forecast what you will get, and what it costs, before anything is spent");
  app->require_subcommand(0, 1);
  std::vector<Command> commands;
  const auto add = [&](const char* name, const char* words, SpectrumTask task) {
    auto flags = std::make_shared<PlanFlags>();
    auto* sub = app->add_subcommand(name, words);
    add_flags(*sub, *flags, task);
    sub->footer(kSpectrumFooter);
    commands.push_back({sub, [flags, task] { return run(*flags, task); }});
  };
  add("pca", "Which PCA method, how good, how long (plan alone does the same)", SpectrumTask::kPca);
  add("covariance", "The same for a covariance matrix", SpectrumTask::kCovariance);
  return commands;
}

Command bare_plan_command(CLI::App& program) {
  auto* app = program.get_subcommand("plan");
  auto flags = std::make_shared<PlanFlags>();
  add_flags(*app, *flags, SpectrumTask::kPca);
  app->footer(kSpectrumFooter);
  return {app, [flags] { return run(*flags, SpectrumTask::kPca); }};
}

}  // namespace eigenveil::app
