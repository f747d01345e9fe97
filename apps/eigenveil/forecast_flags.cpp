// SPDX-License-Identifier: Apache-2.0
#include "forecast_flags.hpp"

#include <fmt/format.h>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/base/figures.hpp"
#include "eigenveil/data/column_map.hpp"
#include "flags.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

std::string in_units(std::size_t bytes) {
  return bytes >= (std::size_t{1} << 30) ? fmt::format("{:.1f} GB", static_cast<double>(bytes) / 0x1p30)
                                         : fmt::format("{:.3g} MB", static_cast<double>(bytes) / 0x1p20);
}

// Answers of one kind carry about the same noise: the first and the last tell the range.
void show_noise(const Forecast& forecast) {
  std::string sums;
  std::string searches;
  for (const AnswerNoise& noise : forecast.noise) {
    std::string& text = noise.search ? searches : sums;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {:.3g}", noise.label, noise.deviation);
  }
  tell("  {}\n    noise in an entry, over rows: {}\n", forecast.method, sums);
  if (!searches.empty()) tell("    noise of a search, in rows: {}\n", searches);
}

void show_table(const ForecastReport& report, double target, const char* unit) {
  const bool lost = report.winner().lost.has_value();
  tell("  {:<34} {:>9} {:>10} {:>9} {:>9} {:>14} {:>12}\n", "method", report.unit.title, lost ? "var. lost" : "",
       "time", "memory", fmt::format("{} for {:g}", unit, target), fmt::format("eps for {:g}", target));
  for (std::size_t i = 0; i < report.lines.size(); ++i) {
    const ForecastLine& line = report.lines[i];
    const Forecast& found = line.forecast;
    tell("{} {:<34} {:>9.3g} {:>10} {:>8.2g}s {:>9} {:>14} {:>12}\n", i == report.best ? "*" : " ", found.method,
         found.error, found.lost ? fmt::format("{:.1f}%", 100 * *found.lost) : "", found.seconds, in_units(found.bytes),
         line.rows_needed ? with_commas(*line.rows_needed) : "out of reach",
         line.epsilon_needed ? fmt::format("{:.3g}", *line.epsilon_needed) : "out of reach");
  }
  tell("\n* the best forecast\n\nNoise:\n");
  for (const ForecastLine& line : report.lines) show_noise(line.forecast);
  tell("\n");
  for (const std::string& warning : report.warnings) tell("Note. {}\n\n", with_flags(warning));
}

}  // namespace

void ForecastFlags::add_budget_to(CLI::App& app, const char* adjacencies) {
  app.add_option("--epsilon", epsilon, "Privacy loss")->capture_default_str();
  app.add_option("--delta", delta, "Probability that epsilon does not hold, or auto: rows^-1.1")->capture_default_str();
  app.add_option("--adjacency", adjacency, adjacencies)->capture_default_str();
}

void ForecastFlags::add_rows_to(CLI::App& app, std::size_t& rows, const char* what) {
  auto* some = app.add_option("--rows", rows, fmt::format("Number of {}", what));
  app.add_option_function<std::size_t>(
         "--people",
         [this, &rows](const std::size_t& number) {
           rows = number;
           people = true;
         },
         fmt::format("Instead, where a person may have several {}: number of people", what))
      ->excludes(some);
}

void ForecastFlags::add_output_to(CLI::App& app) {
  app.add_option("--rows-per-person", rows_per_person, "With --people: how many rows a person has, about")
      ->check(CLI::Range(1.0, 1e9));
  app.add_option("--target-error", target, "Tell the rows, or the epsilon, that bring the error below this")
      ->capture_default_str();
  app.add_option("--plot", plot, "Draw the error against rows and epsilon, as SVG");
  app.add_flag("--json", json, "Print one JSON object on stdout and nothing else there");
  app.add_flag("--quiet", quiet, "No progress");
  run.add_to(app);
}

void ForecastFlags::add_schema_to(CLI::App& app) {
  app.add_option("--schema", schema, "Instead of --columns: TOML file of the columns, whose features are counted");
}

namespace {

Result<Schema> schema_without(const std::string& path, const std::string& without) {
  Schema schema = EIGENVEIL_TRY(read_schema(path));
  if (without.empty()) return schema;
  const auto named = [&](const ColumnSpec& spec) { return spec.name == without; };
  if (std::erase_if(schema.columns, named) == 0)
    return usage_error(fmt::format("--schema {}: has no column '{}'", path, without));
  return schema;
}

}  // namespace

Result<std::size_t> ForecastFlags::features(std::size_t given, const std::string& without) const {
  if (schema.empty() && given == 0) return usage_error("--columns N or --schema FILE says how many columns there are");
  if (!schema.empty() && given > 0) return usage_error("--columns and --schema are two ways to say the same: use one");
  if (schema.empty()) return given;
  const Schema listed = EIGENVEIL_TRY(schema_without(schema, without));
  return EIGENVEIL_TRY(ColumnMap::from_schema(listed, Centering::kRange)).features();
}

Result<std::size_t> categories_of(const std::string& path, const std::string& column) {
  const Schema schema = EIGENVEIL_TRY(read_schema(path));
  for (const ColumnSpec& spec : schema.columns)
    if (const auto* listed = std::get_if<CategoricalColumn>(&spec.kind); spec.name == column && listed != nullptr)
      return listed->values.size();
  return usage_error(fmt::format("--schema {}: has no categorical column '{}'", path, column));
}

Result<Budget> ForecastFlags::budget(std::size_t rows) const {
  if (rows < 1) return usage_error("--rows N says how many rows there are, or --people N how many people; at least 1");
  if (!(target > 0 && target < 1))
    return usage_error(fmt::format("--target-error must lie in (0, 1), but is {}", target));
  const auto loss = EIGENVEIL_TRY(Epsilon::of(epsilon));
  const auto failure = EIGENVEIL_TRY(delta == "auto" ? Result<Delta>(delta_for(rows)) : delta_from_text(delta));
  const auto neighbours = EIGENVEIL_TRY(adjacency_from_name(adjacency));
  return Budget{loss, failure, neighbours};
}

std::string rows_in_words(std::size_t rows, const ForecastFlags& flags) {
  if (!flags.rows_per_person) return fmt::format("{} {}", with_commas(rows), flags.people ? "people" : "rows");
  return fmt::format("{} people with about {:g} rows each", with_commas(rows), *flags.rows_per_person);
}

std::string opening_words(const ForecastRequest& request, double row_bound, const ForecastFlags& flags) {
  const PublicModel& model = *request.model;
  return fmt::format("Forecast for {}, {} columns, epsilon {:g}, delta {}, row bound {:.3g}; nothing was spent.",
                     rows_in_words(model.rows(), flags), with_commas(model.columns()), request.budget.epsilon.value(),
                     plain(request.budget.delta.value()), row_bound);
}

int show_forecast(Result<ForecastRequest> request, const ForecastFlags& flags, const std::string& opening) {
  if (!request) return fail(request.error());
  const auto run = flags.run.options();
  if (!run) return fail(run.error());
  if (!flags.plot.empty())
    if (const auto writable = check_writable(flags.plot); !writable) return fail(writable.error());
  request->people = flags.people || flags.rows_per_person;
  if (flags.rows_per_person) {
    request->rows_each = *flags.rows_per_person;
    request->notes.push_back(fmt::format(
        "Errors are those of people whose rows are all alike. Noise is the same however many rows a person "
        "has, counted alike; what chance does to rows lies between that of so many people and of {:g} times "
        "as many, the less the rows of one person are alike.",
        *flags.rows_per_person));
  }
  request->target_error = flags.target;
  request->curves = !flags.plot.empty();
  request->threads = thread_count(*run);
  request->memory = run->memory;
  const auto report = [&] {
    Terminal terminal(flags.quiet);
    return make_forecast(*request, terminal);
  }();
  if (!report) return fail(report.error());
  if (!flags.plot.empty()) {
    const auto written = write_file(flags.plot, line_charts_svg(forecast_charts(*request, *report)));
    if (!written) return fail(written.error());
  }
  if (flags.json) {
    nlohmann::json object = to_json(*request, *report);
    if (!flags.plot.empty()) object["plot"] = flags.plot;
    say_json(object);
    return 0;
  }
  tell("{}\n\n{}\n\n", opening, with_flags(report->outcome.sentence));
  show_table(*report, flags.target, unit_of(*request));
  if (!flags.plot.empty()) tell("Plot:   {}\n", flags.plot);
  return 0;
}

}  // namespace eigenveil::app
