// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/generate.hpp"

#include <fmt/format.h>

#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

int run(GenerateOptions options, const std::string& population, bool quiet) {
  options.population = population == "gaussian" ? Population::kGaussian
                       : population == "spiked" ? Population::kSpiked
                                                : Population::kSparse;
  Status done;
  {
    Terminal terminal(quiet);
    done = generate(options, terminal);
  }
  if (!done) return fail(done.error());
  tell("Wrote {} rows of {} columns to {}.\n", with_commas(options.rows), with_commas(options.columns), options.out);
  if (!options.truth.empty()) tell("Wrote what is true of them to {}.\n", options.truth);
  return 0;
}

}  // namespace

Command generate_command(CLI::App& program) {
  auto* app = program.add_subcommand("generate", "Make rows with known principal components, to try things on");
  struct Flags {
    std::string population;
    GenerateOptions options;
    bool quiet = false;
  };
  auto flags = std::make_shared<Flags>();
  GenerateOptions& options = flags->options;
  app->add_option("POPULATION", flags->population, "gaussian (trace 1), spiked or sparse")
      ->required()
      ->check(CLI::IsMember({"gaussian", "spiked", "sparse"}));
  app->add_option("--rows", options.rows, "Number of rows")->required();
  app->add_option("--columns", options.columns, "Number of columns")->required();
  app->add_option("--components", options.components, "Number of true components")->capture_default_str();
  app->add_option("--gap", options.gap, "gaussian: top eigenvalues over the others")->capture_default_str();
  app->add_option("--spike", options.spike, "spiked, sparse: eigenvalue above the noise")->capture_default_str();
  app->add_option("--noise-variance", options.noise_variance, "spiked, sparse")->capture_default_str();
  app->add_option("--sparsity", options.sparsity, "sparse: columns with a loading")->capture_default_str();
  app->add_option("--seed", options.seed, "The same seed gives the same file")->capture_default_str();
  app->add_option("--out", options.out, "File to write: .npy")->required();
  app->add_option("--truth", options.truth, "True components and eigenvalues: .npz");
  app->add_flag("--quiet", flags->quiet, "No progress on stderr");
  app->footer(
      "\nExample:\n  eigenveil generate spiked --rows 10000 --columns 50 --components 3 --out rows.npy --truth "
      "truth.npz");
  return {app, [flags] { return run(flags->options, flags->population, flags->quiet); }};
}

}  // namespace eigenveil::app
