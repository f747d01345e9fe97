// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include "build_info.hpp"
#include "eigenveil/job/manifest.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

std::string built_in(bool wanted) {
  std::vector<std::string> names;
  if (kBuildInfo.mpi == wanted) names.emplace_back("mpi");
  if (kBuildInfo.federation == wanted) names.emplace_back("federation");
  if (kBuildInfo.modules == wanted) names.emplace_back("modules");
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string version_text() {
  return fmt::format("eigenveil {}\ncommit    {}\ncompiler  {}\nwith      {}\nwithout   {}\n", version(),
                     kBuildInfo.commit, kBuildInfo.compiler, built_in(true), built_in(false));
}

Command version_command(CLI::App& program) {
  auto* app = program.add_subcommand("version", "Print the version, and what this program was built with");
  auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "Print one JSON object on stdout and nothing else there");
  app->footer("\nExample:\n  eigenveil version --json");
  return {app, [json] {
            if (*json)
              say_json({{"version", version()},
                        {"commit", kBuildInfo.commit},
                        {"compiler", kBuildInfo.compiler},
                        {"mpi", kBuildInfo.mpi},
                        {"federation", kBuildInfo.federation},
                        {"modules", kBuildInfo.modules}});
            else
              say_lines(version_text());
            return 0;
          }};
}

}  // namespace eigenveil::app
