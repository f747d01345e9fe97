#include "eigenveil/release/transform.hpp"

#include <fmt/format.h>

#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct TransformFlags {
  std::string model;
  std::string data;
  std::string out;
  SourceFlags source;
  bool json = false;
  bool quiet = false;
};

int run(const TransformFlags& flags) {
  const auto source = flags.source.options();
  if (!source) return fail(source.error());
  const auto model = read_model(flags.model);
  if (!model) return fail(model.error());
  const auto rows = [&] {
    Terminal terminal(flags.quiet);
    terminal.step("projecting rows");
    return transform(*model, flags.data, *source, flags.out, [&](double share) { terminal.progress(share); });
  }();
  if (!rows) return fail(rows.error());
  if (flags.json)
    fmt::print("{}\n", nlohmann::json({{"scores", flags.out}, {"rows", *rows}, {"private", false}}).dump());
  else
    fmt::print("Wrote the scores of {} rows to {}.\nScores describe single rows: they are NOT private. The model is.\n",
               with_commas(*rows), flags.out);
  return 0;
}

}  // namespace

Command transform_command(CLI::App& program) {
  auto* app = program.add_subcommand("transform", "Project rows on the components of a model (scores are not private)");
  auto flags = std::make_shared<TransformFlags>();
  app->add_option("MODEL", flags->model, "Model file, as written by 'eigenveil pca'")->required();
  app->add_option("DATA", flags->data, "Rows to project, with the columns the model was fitted on")->required();
  app->add_option("--out", flags->out, "Scores to write: .csv or .npy")->required();
  flags->source.add_to(*app);
  app->add_flag("--json", flags->json, "Print one JSON object on stdout and nothing else there");
  app->add_flag("--quiet", flags->quiet, "No progress on stderr");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace eigenveil::app
