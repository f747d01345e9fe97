// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/matrices.hpp"
#include "gep_flags.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct MatricesFlags {
  std::string matrix_a;
  std::string matrix_b;
  double sensitivity_a = 0;
  double sensitivity_b = 0;
  std::size_t rows = 0;
  std::string person;
  GepFlags gep;
  PrivacyFlags privacy;
  OutputFlags output;
  RunFlags run;
};

Result<Release> released(const MatricesFlags& flags) {
  auto fit = EIGENVEIL_TRY(fit_job({}, flags.privacy, flags.run, flags.output));
  auto choices = EIGENVEIL_TRY(flags.gep.choices());
  const MatricesJob job{std::move(fit),      std::move(choices),  flags.matrix_a, flags.matrix_b,
                        flags.sensitivity_a, flags.sensitivity_b, flags.rows};
  const std::optional<PersonOptions> person =
      flags.person.empty() ? std::nullopt : std::optional(PersonOptions{.column = flags.person, .stated = true});
  Terminal terminal(flags.output.quiet, Bearings::of(job.fit.privacy));
  MatricesJob asked = job;
  asked.fit.confirm = confirm_by(flags.output);
  asked.fit.existing = flags.output.existing();
  asked.fit.rows.person = person;
  return release(asked, terminal);
}

}  // namespace

Command gep_command(CLI::App& program) {
  auto* app = program.add_subcommand("gep", "Private solutions of A v = lambda B v for two matrices of your own");
  auto flags = std::make_shared<MatricesFlags>();
  app->add_option("--matrix-a", flags->matrix_a, "Symmetric matrix A: NPY or CSV without a header")->required();
  app->add_option("--matrix-b", flags->matrix_b, "Symmetric matrix B, positive definite but for noise")->required();
  app->add_option("--sensitivity-a", flags->sensitivity_a,
                  "How far replacing one row can move A as it is given, in Frobenius norm")
      ->required();
  app->add_option("--sensitivity-b", flags->sensitivity_b, "The same of B")->required();
  app->add_option("--rows,--people", flags->rows,
                  "Public number of rows behind the matrices, or people, for the record")
      ->required();
  app->add_option(
      "--person", flags->person,
      "Column that said whose a row was: the sensitivities are then those of replacing one person, with all "
      "their rows, and what is protected is a person");
  flags->gep.add_to(*app);
  flags->privacy.add_to(*app);
  flags->output.add_to(*app);
  flags->run.add_to(*app);
  app->footer(
      "\nExample, A and B averages over 10,000 rows of norm at most 1:\n  eigenveil gep --matrix-a A.npy --matrix-b "
      "B.npy "
      "--sensitivity-a 1.42e-4 --sensitivity-b 1.42e-4 --rows 10000 --components 1 --epsilon 1 --delta 1e-6\n"
      "The guarantee is as good as the two sensitivities.");
  return {app, [flags] { return show_release(released(*flags), flags->output); }};
}

}  // namespace eigenveil::app
