// SPDX-License-Identifier: Apache-2.0
// The commands of a fit that is described (job/described.hpp).
#include "described.hpp"

#include <set>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/base/figures.hpp"
#include "flags.hpp"
#include "forecast_flags.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

/// Options that are stated as text, whatever they are.
struct StatedFlags {
  std::map<std::string, std::string> texts;

  /// `texts` stays where it is from here on.
  void add_to(CLI::App& app, const std::vector<StatedOption>& options) {
    for (const StatedOption& option : options) {
      std::string flag = fmt::format("--{}", option.name);
      std::replace(flag.begin(), flag.end(), '_', '-');
      auto* added = app.add_option(flag, texts[option.name] = option.usual.value_or(""), option.meaning);
      if (!option.usual) added->required();
      if (option.usual && !option.usual->empty()) added->capture_default_str();
    }
  }
  Stated stated() const { return Stated(texts); }
};

struct DescribedFlags {
  StatedFlags own;
  std::string from;
  RowFlags rows;
  PrivacyFlags privacy;
  OutputFlags output;
  RunFlags run;
};

Result<Model> model_from(const DescribedFit& fit, const DescribedFlags& flags) {
  EIGENVEIL_TRY(check_writable(flags.output.out));
  if (!flags.output.report.empty()) EIGENVEIL_TRY(check_writable(flags.output.report));
  auto model = EIGENVEIL_TRY(fit.from(EIGENVEIL_TRY(read_model(flags.from)), flags.own.stated()));
  EIGENVEIL_TRY(write_model(model, flags.output.out));
  if (!flags.output.report.empty()) EIGENVEIL_TRY(write_file(flags.output.report, html_report(model)));
  return model;
}

Result<Study> study_from(const DescribedFit& fit, const DescribedFlags& flags) {
  auto job = EIGENVEIL_TRY(fit_job(flags.rows, flags.privacy, flags.run, flags.output));
  return fit.study(std::move(job), flags.own.stated());
}

int run(const DescribedFit& fit, const DescribedFlags& flags, const CLI::App& app) {
  if (!flags.from.empty()) {
    auto model = model_from(fit, flags);
    return model ? show_release(Release{*std::move(model), {}, {}}, flags.output) : fail(model.error());
  }
  if (flags.rows.data.empty() && !elsewhere(app))
    return fail(usage_error("give DATA to fit, or --from with a model that was released before"));
  for (const char* needed : {"--epsilon", "--delta"})
    if (app.count(needed) == 0) return fail(usage_error(fmt::format("{} is required", needed)));
  return show_release(released(study_from(fit, flags), flags.output), flags.output);
}

// From a released model nothing is read and nothing is spent.
void add_from(CLI::App& app, const DescribedFit& fit, DescribedFlags& flags) {
  std::set<std::string> together = {"--help", "--from", "--out", "--report", "--json", "--quiet", "--yes", "--force"};
  for (const auto& [name, text] : flags.own.texts) together.insert("--" + name);
  auto* from = app.add_option("--from", flags.from, fit.from_meaning);
  for (const char* option : {"DATA", "--epsilon", "--delta"}) app.get_option(option)->required(false);
  for (CLI::Option* option : app.get_options())
    if (!together.contains(option->get_name())) option->excludes(from);
}

void add_examples(CLI::App& app, const std::string& text) {
  remember_flags(app);
  app.footer("\n" + with_flags(text));
}

}  // namespace

Command described_command(CLI::App& program, const DescribedFit& fit) {
  auto* app = program.add_subcommand(fit.name, fit.title);
  auto flags = std::make_shared<DescribedFlags>();
  flags->rows.add_to(*app);
  flags->own.add_to(*app, fit.options);
  flags->privacy.add_to(*app);
  flags->output.add_to(*app);
  flags->run.add_to(*app);
  flags->run.add_engine_to(*app);
  if (!elsewhere(*app)) add_from(*app, fit, *flags);
  add_examples(*app, fit.examples);
  return {app, [fit, flags, app] { return run(fit, *flags, *app); }};
}

Command described_plan_command(CLI::App& plan, const DescribedFit& fit) {
  struct Flags {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::string no_feature;
    StatedFlags own;
    ForecastFlags forecast;
  };
  auto flags = std::make_shared<Flags>();
  auto* app = plan.add_subcommand(fit.name, fit.plan_title);
  flags->forecast.add_rows_to(*app, flags->rows);
  app->add_option("--columns", flags->columns, fmt::format("Number of columns besides the {}", fit.no_feature))
      ->check(CLI::PositiveNumber);
  flags->forecast.add_schema_to(*app);
  app->add_option(fmt::format("--{}", fit.no_feature), flags->no_feature,
                  "With --schema: the column that is explained, which is no feature");
  flags->own.add_to(*app, fit.guesses);
  flags->forecast.add_budget_to(*app);
  flags->forecast.add_output_to(*app);
  add_examples(*app, fit.plan_examples);
  return {app, [fit, flags] {
            if (flags->no_feature.empty() != flags->forecast.schema.empty())
              return fail(usage_error(fmt::format("--schema FILE and --{} COLUMN go together", fit.no_feature)));
            const auto columns = flags->forecast.features(flags->columns, flags->no_feature);
            if (!columns) return fail(columns.error());
            const auto budget = flags->forecast.budget(flags->rows);
            if (!budget) return fail(budget.error());
            const auto words = fmt::format("Forecast for {}, {} columns, epsilon {:g}, delta {}; nothing was spent.",
                                           rows_in_words(flags->rows, flags->forecast), with_commas(*columns),
                                           flags->forecast.epsilon, plain(budget->delta.value()));
            return show_forecast(fit.forecast(flags->rows, *columns, *budget, flags->own.stated()), flags->forecast,
                                 words);
          }};
}

}  // namespace eigenveil::app
