// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/model.hpp"

#include <fmt/format.h>

#include "eigenveil/data/npz.hpp"
#include "extents.hpp"
#include "manifest_types.hpp"

namespace eigenveil {
namespace {

using nlohmann::json;

constexpr const char* kManifest = "manifest.json";

const NamedArray* find_array(const Model& model, const std::string& name) {
  for (const auto& array : model.arrays) {
    if (array.name == name) return &array;
  }
  return nullptr;
}

std::size_t features_of(const std::vector<ColumnSpec>& specs) {
  std::size_t features = 0;
  for (const auto& spec : specs) {
    const auto* categorical = std::get_if<CategoricalColumn>(&spec.kind);
    features += categorical != nullptr ? categorical->values.size() : 1;
  }
  return features;
}

/// The manifest names everything that arrays count.
Status expect_names(const json& manifest, std::string_view key, Eigen::Index count, const std::string& where) {
  const auto names = manifest.find(std::string(key));
  if (names == manifest.end() || !names->is_array() || std::ssize(*names) != count)
    return bad_input(fmt::format("{}: its manifest does not list the {} names of '{}'.", where, count, key));
  for (const auto& name : *names)
    if (!name.is_string()) return bad_input(fmt::format("{}: '{}' in its manifest holds no text.", where, key));
  return {};
}

Status validate_features(const json& manifest, Eigen::Index features, const std::string& where) {
  EIGENVEIL_TRY(expect_names(manifest, "features", features, where));
  const auto columns = manifest.find("columns");
  if (columns == manifest.end()) return {};
  const auto specs = columns_from_json(*columns);
  if (!specs.ok()) return bad_input(fmt::format("{}: {}", where, specs.error().message));
  if (features_of(*specs) != static_cast<std::size_t>(features)) {
    return bad_input(fmt::format("{}: 'columns' in its manifest makes {} features, but the components have {}.", where,
                                 features_of(*specs), features));
  }
  return {};
}

}  // namespace

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
  const ModelKind& known = kind_of(model.manifest);
  const Extents extents = EIGENVEIL_TRY(extents_of(model, where));
  if (const auto groups = extents.of(Extent::kGroups))
    EIGENVEIL_TRY(expect_names(model.manifest, known.groups, *groups, where));
  return known.scores.empty() ? Status() : validate_features(model.manifest, *extents.of(Extent::kFeatures), where);
}

bool is_private(const Model& model) {
  const auto found = model.manifest.is_object() ? model.manifest.find("private") : model.manifest.end();
  return model.manifest.is_object() && found != model.manifest.end() && *found == true;
}

std::string released_in_words(const Model& model) {
  const ModelKind& kind = kind_of(model.manifest);
  const auto extents = extents_of(model, "");
  if (!extents.ok()) return "a model";
  const Eigen::Index count = extents->of(Extent::kDirections).value_or(1);
  return count == 1 ? std::string(kind.one) : fmt::format(fmt::runtime(kind.many), count);
}

std::string privacy_in_words(const Model& model) {
  return is_private(model) ? "The model is."
                           : "Neither is the model: its manifest says NOT PRIVATE. Treat it like the data it was made "
                             "from.";
}

Status write_model(const Model& model, const std::string& path, FileModes modes) {
  if (auto valid = validate(model, path); !valid.ok()) {
    return internal_error(fmt::format("{} It was not written; please report this.", valid.error().message));
  }
  // A column name that is not UTF-8 cannot be written as it is; the release must not be lost over it.
  const std::string manifest = model.manifest.dump(2, ' ', false, json::error_handler_t::replace);
  EIGENVEIL_TRY(write_npz(path, model.arrays, {{kManifest, manifest + "\n"}}, modes));
  if (model.written) model.written(path);
  return {};
}

Result<Model> model_from(std::vector<NamedArray> arrays, const std::string& manifest, const std::string& where) {
  auto said = EIGENVEIL_TRY(manifest_from_text(manifest, where));
  Model model{std::move(arrays), std::move(said)};
  EIGENVEIL_TRY(validate(model, where));
  return model;
}

Result<Model> read_model(const std::string& path) {
  auto contents = read_npz(path);
  if (!contents.ok()) return contents.error();
  for (const auto& text : contents->texts) {
    if (text.name != kManifest) continue;
    return model_from(std::move(contents->arrays), text.text, path);
  }
  return bad_input(
      fmt::format("{}: holds no {}, so it is not a model. Give a file that eigenveil wrote.", path, kManifest));
}

}  // namespace eigenveil
