// SPDX-License-Identifier: Apache-2.0
// How to use the model.
#include <fmt/format.h>

#include "directions.hpp"
#include "eigenveil/release/kinds.hpp"
#include "html.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

std::string size_of(const NamedArray& array) {
  return array.is_vector ? fmt::format("{} numbers", array.values.size())
                         : fmt::format("{} x {}", array.values.rows(), array.values.cols());
}

bool projects(const Model& model) { return directions_of(model, "").ok(); }

/// How the directions are spelled in a program, one per column.
std::string directions_in_python(const ModelKind& kind) {
  std::vector<std::string> parts;
  for (const Scores& scores : kind.scores)
    for (const ModelArray& shape : kind.arrays)
      if (shape.name == scores.directions)
        parts.push_back(fmt::format("{}{}", shape.name, shape.rows == Extent::kDirections ? ".T" : ""));
  return parts.size() == 1 ? parts[0] : fmt::format("scipy.linalg.block_diag({})", fmt::join(parts, ", "));
}

/// Array names come from a file as well: only plain identifiers are put into a program.
bool is_identifier(const std::string& name) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !name.empty() && name.find_first_not_of(kPlain) == std::string::npos && (name[0] < '0' || name[0] > '9');
}

std::string python(const Model& model) {
  std::string program =
      "import json, numpy\n\nmodel = numpy.load(\"model.npz\")\n"
      "manifest = json.loads(model[\"manifest.json\"])\n";
  const ModelKind& kind = kind_of(model.manifest);
  if (kind.scores.size() > 1) program = "import scipy.linalg\n" + program;
  for (const auto& array : model.arrays) {
    if (is_identifier(array.name)) {
      program += fmt::format("{0} = model[\"{0}\"]  # {1}\n", array.name, size_of(array));
    }
  }
  if (projects(model)) {
    program += "\n# rows: one column per feature, each value within its public range\n";
    program += kind.prediction == Prediction::kNumber
                   ? fmt::format("predictions = intercept + rows @ {}\n", kind.scores.front().directions)
                   : "scores = ((rows - offset) * scale - mean) @ " + directions_in_python(kind) + "\n";
  }
  return program;
}

}  // namespace

std::string use_section(const Model& model) {
  std::string page =
      fmt::format("<section>\n<h2>How to use it</h2>\n<p>In Python:</p>\n<pre>{}</pre>\n", html::escape(python(model)));
  if (projects(model)) {
    page +=
        "<p>On the command line, which also clamps values to their public ranges and spreads out categories:</p>\n"
        "<pre>eigenveil transform model.npz rows.csv --out scores.csv</pre>\n"
        "<p class=\"note\">Scores describe single rows. Scores of private rows are not private, whatever the "
        "model.</p>\n";
  }
  return page + "</section>\n";
}

}  // namespace eigenveil
