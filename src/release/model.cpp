#include "eigenveil/release/model.hpp"

#include <fmt/format.h>

#include "directions.hpp"
#include "manifest_types.hpp"
#include "model_shape.hpp"

namespace eigenveil {
namespace {

using nlohmann::json;

constexpr const char* kManifest = "manifest.json";

std::string shape_of(const NamedArray& array) {
  return array.is_vector ? fmt::format("{} numbers", array.values.size())
                         : fmt::format("{} x {} numbers", array.values.rows(), array.values.cols());
}

const NamedArray* find_array(const Model& model, const std::string& name) {
  for (const auto& array : model.arrays) {
    if (array.name == name) return &array;
  }
  return nullptr;
}

Status expect_vector(const Model& model, const std::string& name, Eigen::Index length, const std::string& where) {
  const NamedArray* array = find_array(model, name);
  if (array == nullptr) return bad_input(fmt::format("{}: the array '{}' is missing.", where, name));
  if (!array->is_vector || array->values.size() != length) {
    return bad_input(fmt::format("{}: the array '{}' has {}, expected a vector of {} to fit the others.", where, name,
                                 shape_of(*array), length));
  }
  return {};
}

std::size_t features_of(const std::vector<ColumnSpec>& specs) {
  std::size_t features = 0;
  for (const auto& spec : specs) {
    const auto* categorical = std::get_if<CategoricalColumn>(&spec.kind);
    features += categorical != nullptr ? categorical->values.size() : 1;
  }
  return features;
}

Status validate_names(const json& manifest, Eigen::Index features, const std::string& where) {
  const auto d = static_cast<std::size_t>(features);
  const auto names = manifest.find("features");
  if (names == manifest.end() || !names->is_array() || names->size() != d) {
    return bad_input(fmt::format("{}: its manifest does not list the {} names of 'features'.", where, d));
  }
  for (const auto& name : *names) {
    if (!name.is_string()) return bad_input(fmt::format("{}: 'features' in its manifest holds no text.", where));
  }
  const auto columns = manifest.find("columns");
  if (columns == manifest.end()) return {};
  const auto specs = columns_from_json(*columns);
  if (!specs.ok()) return bad_input(fmt::format("{}: {}", where, specs.error().message));
  if (features_of(*specs) != d) {
    return bad_input(fmt::format("{}: 'columns' in its manifest makes {} features, but the components have {}.", where,
                                 features_of(*specs), d));
  }
  return {};
}

bool is_projection(const std::string& kind) { return kind == "cca" || kind == "fda" || kind == "sir" || kind == "gep"; }

// Whatever a model of a generalized eigenproblem has must fit its directions and its classes.
Status validate_fit(const Model& model, const std::string& where) {
  EIGENVEIL_TRY(validate_projection(model, where));
  const auto directions = directions_of(model, where);
  if (directions->values.size() == 0)
    return bad_input(fmt::format("{}: the values that go with its directions are missing, or not as many.", where));
  if (model.manifest["model"] != "fda") return {};
  const Matrix* means = model.array("class_means");
  const auto classes = model.manifest.find("classes");
  if (means == nullptr || classes == model.manifest.end() || !classes->is_array() || classes->empty() ||
      means->rows() != static_cast<Eigen::Index>(classes->size()) || means->cols() != directions->rows.cols())
    return bad_input(fmt::format("{}: 'class_means' and the manifest's 'classes' do not fit together.", where));
  for (const auto& label : *classes)
    if (!label.is_string()) return bad_input(fmt::format("{}: 'classes' in its manifest holds no text.", where));
  return expect_vector(model, "priors", means->rows(), where);
}

}  // namespace

Status validate_projection(const Model& model, const std::string& where) {
  const auto directions = directions_of(model, where);
  if (!directions.ok()) return directions.error();
  const Eigen::Index features = directions->rows.cols();
  for (const char* name : {"mean", "offset", "scale"}) EIGENVEIL_TRY(expect_vector(model, name, features, where));
  return validate_names(model.manifest, features, where);
}

const Matrix* Model::array(const std::string& name) const {
  const NamedArray* found = find_array(*this, name);
  return found != nullptr ? &found->values : nullptr;
}

Status validate(const Model& model, const std::string& where) {
  const auto kind = model.manifest.is_object() ? model.manifest.find("model") : model.manifest.end();
  if (!model.manifest.is_object() || kind == model.manifest.end() || !kind->is_string()) {
    return bad_input(fmt::format("{}: its manifest does not say which 'model' it is, e.g. \"pca\".", where));
  }
  for (const auto& array : model.arrays) {
    if (!array.values.allFinite()) {
      return bad_input(fmt::format("{}: the array '{}' holds a value that is not a finite number.", where, array.name));
    }
  }
  if (*kind == "pca" || *kind == "covariance") {
    EIGENVEIL_TRY(validate_projection(model, where));
    return expect_vector(model, "eigenvalues", model.array("components")->rows(), where);
  }
  return is_projection(*kind) ? validate_fit(model, where) : Status();
}

bool is_private(const Model& model) {
  const auto found = model.manifest.is_object() ? model.manifest.find("private") : model.manifest.end();
  return model.manifest.is_object() && found != model.manifest.end() && *found == true;
}

std::string privacy_in_words(const Model& model) {
  return is_private(model) ? "The model is."
                           : "Neither is the model: its manifest says NOT PRIVATE. Treat it like the data it was made "
                             "from.";
}

Status write_model(const Model& model, const std::string& path) {
  if (auto valid = validate(model, path); !valid.ok()) {
    return internal_error(fmt::format("{} It was not written; please report this.", valid.error().message));
  }
  // A column name that is not UTF-8 cannot be written as it is; the release must not be lost over it.
  const std::string manifest = model.manifest.dump(2, ' ', false, json::error_handler_t::replace);
  return write_npz(path, model.arrays, {{kManifest, manifest + "\n"}});
}

Result<Model> read_model(const std::string& path) {
  auto contents = read_npz(path);
  if (!contents.ok()) return contents.error();
  for (const auto& text : contents->texts) {
    if (text.name != kManifest) continue;
    auto manifest = manifest_from_text(text.text, path);
    if (!manifest.ok()) return manifest.error();
    Model model{std::move(contents->arrays), *std::move(manifest)};
    EIGENVEIL_TRY(validate(model, path));
    return model;
  }
  return bad_input(
      fmt::format("{}: holds no {}, so it is not a model. Give a file that eigenveil wrote.", path, kManifest));
}

}  // namespace eigenveil
