// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/classes.hpp"
#include "gep_flags.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct FdaFlags {
  FitFlags fit;
  std::string label;
  std::string classes;
  std::string unlisted = "error";
};

Result<Study> study_from(const FdaFlags& flags) {
  auto fit = EIGENVEIL_TRY(flags.fit.job());
  auto choices = EIGENVEIL_TRY(flags.fit.gep.choices());
  return study(FdaJob{std::move(fit), std::move(choices), flags.label, split_text(flags.classes, '|'),
                      flags.unlisted == "drop"});
}

}  // namespace

Command fda_command(CLI::App& program) {
  auto* app = program.add_subcommand("fda", "Private discriminant directions of labelled rows (alias: lda)");
  app->alias("lda");
  auto flags = std::make_shared<FdaFlags>();
  flags->fit.add_to(*app);
  app->add_option("--label", flags->label, "Column that holds the class; it is no feature")->required();
  app->add_option("--classes", flags->classes, "Public list of the labels, A|B|C; default: the schema's");
  app->add_option("--unlisted", flags->unlisted, "A row with another label: error, or drop (it counts as zero)")
      ->check(CLI::IsMember({"error", "drop"}))
      ->capture_default_str();
  app->footer(
      "\nExample:\n  eigenveil fda examples/patients.csv --schema examples/patients.toml --label sex --components 1 "
      "\\\n"
      "      --epsilon 1 --delta 1e-6\n"
      "  eigenveil transform model.npz examples/patients.csv --predict --out labels.csv");
  return {app, [flags] { return show_release(released(study_from(*flags), flags->fit.output), flags->fit.output); }};
}

}  // namespace eigenveil::app
