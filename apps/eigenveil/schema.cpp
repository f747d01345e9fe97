// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/schema.hpp"

#include "eigenveil/base/atomic_file.hpp"
#include "first_line.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {

Command schema_command(CLI::App& program) {
  struct Flags {
    std::string data;
    std::string out;
    SourceFlags source;
  };
  auto* app = program.add_subcommand("schema", "Schemas: the public bounds of columns");
  app->require_subcommand(1);
  auto* init = app->add_subcommand("init", "Write the columns of a file, bounds left for a person to fill in");
  auto flags = std::make_shared<Flags>();
  init->add_option("DATA", flags->data, "Data file")->required();
  init->add_option("--out", flags->out, "File to write; default: standard output");
  flags->source.add_to(*init);
  init->footer("\nExample:\n  eigenveil schema init examples/patients.csv --header yes --out patients.toml");
  return {init, [flags] {
            auto source = flags->source.options();
            if (!source) return fail(source.error());
            if (const Status stated = state_header(flags->data, *source); !stated) return fail(stated.error());
            const auto text = schema_template(flags->data, *source);
            if (!text) return fail(text.error());
            if (flags->out.empty()) {
              say_lines(*text);
              return 0;
            }
            const Status written = write_file(flags->out, *text);
            if (!written) return fail(written.error());
            tell("Wrote {}. Fill in kinds and bounds: they are published, so take them from public knowledge.\n",
                 flags->out);
            return 0;
          }};
}

}  // namespace eigenveil::app
