// How to use the model.
#include <fmt/format.h>

#include "html.hpp"
#include "report_sections.hpp"

namespace eigenveil {
namespace {

std::string shape_of(const NamedArray& array) {
  return array.is_vector ? fmt::format("{} numbers", array.values.size())
                         : fmt::format("{} x {}", array.values.rows(), array.values.cols());
}

bool projects(const Model& model) {
  for (const char* name : {"components", "mean", "offset", "scale"}) {
    if (model.array(name) == nullptr) return false;
  }
  return true;
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
  for (const auto& array : model.arrays) {
    if (is_identifier(array.name)) {
      program += fmt::format("{0} = model[\"{0}\"]  # {1}\n", array.name, shape_of(array));
    }
  }
  if (projects(model)) {
    program +=
        "\n# rows: one column a feature, each value within its public range\n"
        "scores = ((rows - offset) * scale - mean) @ components.T\n";
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
