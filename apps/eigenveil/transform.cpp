// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/transform.hpp"

#include "eigenveil/release/kinds.hpp"
#include "first_line.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct TransformFlags {
  std::string model;
  std::string data;
  std::string out;
  SourceFlags source;
  bool predict = false;
  bool json = false;
  bool quiet = false;
};

/// What a model's named columns leave unstated about a file, a person has to say.
Status check_header(const TransformFlags& flags, const Model& model, SourceOptions source) {
  if (source.header == HeaderRule::kUnstated && source.columns.empty()) source.header = header_named_by_model(model);
  return header_stated(flags.data, source);
}

int run(const TransformFlags& flags) {
  const auto source = flags.source.options();
  if (!source) return fail(source.error());
  const auto model = read_model(flags.model);
  if (!model) return fail(model.error());
  if (const Status stated = check_header(flags, *model, *source); !stated) return fail(stated.error());
  const auto rows = [&] {
    Terminal terminal(flags.quiet);
    terminal.step(flags.predict ? "predicting" : "projecting rows");
    const auto shown = [&](double share) { terminal.progress(share); };
    return flags.predict ? predict(*model, flags.data, *source, flags.out, shown)
                         : transform(*model, flags.data, *source, flags.out, shown);
  }();
  if (!rows) return fail(rows.error());
  if (flags.json)
    say_json({{flags.predict ? "predictions" : "scores", flags.out},
              {"rows", *rows},
              {"private", false},
              {"model_private", is_private(*model)}});
  else
    tell("Wrote the {0} of {1} rows to {2}.\n{3} describe single rows: they are NOT private. {4}\n",
         flags.predict ? "predictions" : "scores", with_commas(*rows), flags.out,
         flags.predict ? "Predictions" : "Scores", privacy_in_words(*model));
  return 0;
}

}  // namespace

Command transform_command(CLI::App& program) {
  auto* app = program.add_subcommand("transform", "Project rows on the components of a model (scores are not private)");
  auto flags = std::make_shared<TransformFlags>();
  app->add_option("MODEL", flags->model, "Model file of the kind " + kinds_in_words([](const ModelKind& kind) {
                                           return !kind.scores.empty();
                                         }))
      ->required();
  app->add_option("DATA", flags->data, "Rows to project, with the columns the model was fitted on")->required();
  app->add_option("--out", flags->out, "Scores to write: .csv or .npy")->required();
  flags->source.add_to(*app);
  app->add_flag("--predict", flags->predict,
                kinds_in_words([](const ModelKind& kind) { return kind.prediction == Prediction::kClass; }) +
                    ": write the predicted class of each row instead, as .csv; " +
                    kinds_in_words([](const ModelKind& kind) { return kind.prediction == Prediction::kNumber; }) +
                    ": the predicted number, as without it");
  app->add_flag("--json", flags->json, "Print one JSON object on stdout and nothing else there");
  app->add_flag("--quiet", flags->quiet, "No progress on stderr");
  app->footer("\nExample:\n  eigenveil transform model.npz examples/patients.csv --out scores.csv");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace eigenveil::app
