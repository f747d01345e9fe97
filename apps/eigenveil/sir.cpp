// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/classes.hpp"
#include "gep_flags.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct SirFlags {
  FitFlags fit;
  std::string response;
  std::string response_range;
  std::string slices = "10";
  std::string cuts;
};

Result<Slices> slices_from(const SirFlags& flags) {
  Slices slices;
  if (!flags.cuts.empty()) {
    for (const std::string& cut : split_text(flags.cuts, ',')) {
      const auto value = EIGENVEIL_TRY(number_from_text(cut, "--cuts"));
      slices.cuts.push_back(value);
    }
    return slices;
  }
  constexpr std::string_view kPrivate = "private:";
  slices.private_cuts = flags.slices.starts_with(kPrivate);
  const auto count =
      number_from_text(slices.private_cuts ? flags.slices.substr(kPrivate.size()) : flags.slices, "--slices");
  if (!count || *count != std::floor(*count) || *count < 0 || *count > 1e9)
    return usage_error(fmt::format("--slices must be a number such as 10, or private:10, but is '{}'", flags.slices));
  slices.count = static_cast<std::size_t>(*count);
  return slices;
}

Result<Study> study_from(const SirFlags& flags) {
  auto fit = EIGENVEIL_TRY(flags.fit.job());
  auto choices = EIGENVEIL_TRY(flags.fit.gep.choices());
  auto slices = EIGENVEIL_TRY(slices_from(flags));
  SirJob job{std::move(fit), std::move(choices), flags.response, std::move(slices), {}};
  if (!flags.response_range.empty())
    job.response_range = EIGENVEIL_TRY(range_from_text(flags.response_range, "--response-range"));
  return study(std::move(job));
}

}  // namespace

Command sir_command(CLI::App& program) {
  auto* app = program.add_subcommand("sir", "Private sliced inverse regression: directions that explain a response");
  auto flags = std::make_shared<SirFlags>();
  flags->fit.add_to(*app);
  app->add_option("--response", flags->response, "Column to explain; it is no feature")->required();
  auto* slices =
      app->add_option(
             "--slices", flags->slices,
             "Slices of equal width of the response's public range; private:10 makes ten of about equal counts")
          ->capture_default_str();
  app->add_option("--cuts", flags->cuts, "Public cut points of the response instead, ascending: 1,2,3")
      ->excludes(slices);
  app->add_option("--response-range", flags->response_range,
                  "Public range LO:HI of the response; default: the schema's");
  app->footer(
      "\nExample:\n  eigenveil sir examples/patients.csv --schema examples/patients.toml --response systolic \\\n"
      "      --slices 5 --components 1 --epsilon 1 --delta 1e-6");
  return {app, [flags] { return show_release(released(study_from(*flags), flags->fit.output), flags->fit.output); }};
}

}  // namespace eigenveil::app
