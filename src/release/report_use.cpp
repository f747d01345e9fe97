// How to use the model.
#include <fmt/format.h>

#include "html.hpp"
#include "model_shape.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

std::string size_of(const NamedArray& array) {
  return array.is_vector ? fmt::format("{} numbers", array.values.size())
                         : fmt::format("{} x {}", array.values.rows(), array.values.cols());
}

bool projects(const Model& model) { return model.manifest.is_object() && validate_projection(model, "").ok(); }

/// How the directions are spelled in a program, one a column.
std::string directions_in_python(const Model& model) {
  const std::string kind = html::text_at(model.manifest, "model").value_or("");
  if (kind == "cca") return "scipy.linalg.block_diag(x_weights, y_weights)";
  return kind == "fda" ? "scalings" : kind == "sir" ? "directions" : kind == "gep" ? "vectors" : "components.T";
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
  if (html::text_at(model.manifest, "model") == "cca") program = "import scipy.linalg\n" + program;
  for (const auto& array : model.arrays) {
    if (is_identifier(array.name)) {
      program += fmt::format("{0} = model[\"{0}\"]  # {1}\n", array.name, size_of(array));
    }
  }
  if (projects(model)) {
    program +=
        "\n# rows: one column a feature, each value within its public range\n"
        "scores = ((rows - offset) * scale - mean) @ " +
        directions_in_python(model) + "\n";
  }
  return program;
}

}  // namespace

std::string use_section(const Model& model) {
  std::string page = fmt::format("<section>\n<h2>How to use the model</h2>\n<p>In Python:</p>\n<pre>{}</pre>\n",
                                 html::escape(python(model)));
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
