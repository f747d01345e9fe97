// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/report.hpp"

#include "eigenveil/base/atomic_file.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

struct ReportFlags {
  std::vector<std::string> models;
  std::string out = "report.html";
  OutputFlags shape;
  bool json = false;
};

Status write(const ReportFlags& flags) {
  EIGENVEIL_TRY(check_writable(flags.out));
  const auto options = EIGENVEIL_TRY(flags.shape.report_options());
  std::vector<Model> models;
  for (const std::string& path : flags.models) models.push_back(EIGENVEIL_TRY(read_model(path)));
  return write_file(flags.out, models.size() == 1 ? html_report(models.front(), options)
                                                  : html_dossier(models, flags.models, options));
}

int run(const ReportFlags& flags) {
  if (const Status written = write(flags); !written) return fail(written.error());
  if (flags.json)
    say_json({{"report", flags.out}, {"models", flags.models}});
  else
    tell("Report: {}\n", flags.out);
  return 0;
}

}  // namespace

Command report_command(CLI::App& program) {
  auto* app = program.add_subcommand("report", "Make the page about a released model again, or one about several");
  auto flags = std::make_shared<ReportFlags>();
  app->add_option("MODEL", flags->models, "Model files; several become one dossier")->required();
  app->add_option("--out", flags->out, "HTML page to write")->capture_default_str();
  app->add_option("--image-shape", flags->shape.image_shape, "Draw components as images: HEIGHTxWIDTH");
  app->add_flag("--json", flags->json, "Print one JSON object on stdout and nothing else there");
  app->footer("\nExample:\n  eigenveil report model.npz --out report.html\nNo data is read and nothing is spent.");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace eigenveil::app
