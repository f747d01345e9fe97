// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/cca.hpp"

#include "gep_flags.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct CcaFlags {
  FitFlags fit;
  std::vector<std::string> x_columns;
  std::vector<std::string> y_columns;
};

Result<Study> study_from(const CcaFlags& flags) {
  auto fit = EIGENVEIL_TRY(flags.fit.job());
  auto choices = EIGENVEIL_TRY(flags.fit.gep.choices());
  return study(CcaJob{std::move(fit), std::move(choices), flags.x_columns, flags.y_columns});
}

}  // namespace

Command cca_command(CLI::App& program) {
  auto* app = program.add_subcommand("cca", "Private canonical correlations of two groups of columns");
  auto flags = std::make_shared<CcaFlags>();
  for (auto [option, list, view] :
       {std::tuple{"--x-columns", &flags->x_columns, "first"}, std::tuple{"--y-columns", &flags->y_columns, "second"}})
    app->add_option(option, *list,
                    fmt::format("Columns of the {} view, by name, position or range: a,b,c or 1-50", view))
        ->delimiter(',')
        ->allow_extra_args(false)
        ->required();
  flags->fit.add_to(*app);
  app->footer(
      "\nExample:\n  eigenveil cca examples/patients.csv --schema examples/patients.toml --x-columns age,weight \\\n"
      "      --y-columns systolic,diastolic --components 2 --epsilon 1 --delta 1e-6\n"
      "Bounds (--range, --schema, --row-bound) must be known without looking at the rows: they are published.");
  return {app, [flags] { return show_release(released(study_from(*flags), flags->fit.output), flags->fit.output); }};
}

}  // namespace eigenveil::app
