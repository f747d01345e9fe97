#include "directions.hpp"

#include <fmt/format.h>

namespace eigenveil {
namespace {

struct Kind {
  const char* model;
  const char* array;
  const char* score;
  bool transposed;  // stored d x K
};

constexpr Kind kKinds[] = {
    {"fda", "scalings", "ld", true}, {"sir", "directions", "sir", true}, {"gep", "vectors", "v", true}};
constexpr Kind kComponents = {"pca", "components", "pc", false};

// A report is made of any manifest, also of one that says nothing.
std::string model_of(const Model& model) {
  const auto found = model.manifest.find("model");
  return found != model.manifest.end() && found->is_string() ? found->get<std::string>() : "";
}

Kind kind_of(const Model& model) {
  for (const Kind& kind : kKinds)
    if (model_of(model) == kind.model) return kind;
  return kComponents;
}

Result<Matrix> matrix_of(const Model& model, const char* name, const std::string& where) {
  const Matrix* found = model.array(name);
  if (found == nullptr) return bad_input(fmt::format("{}: the array '{}' is missing.", where, name));
  for (const NamedArray& array : model.arrays)
    if (array.name == name && (array.is_vector || array.values.size() == 0))
      return bad_input(fmt::format("{}: the array '{}' has {}, expected at least one row and one column.", where, name,
                                   array.is_vector
                                       ? fmt::format("{} numbers", array.values.size())
                                       : fmt::format("{} x {} numbers", array.values.rows(), array.values.cols())));
  return *found;
}

void add_names(DirectionSet& set, const char* score, Eigen::Index count) {
  for (Eigen::Index k = 1; k <= count; ++k) set.names.push_back(fmt::format("{}{}", score, k));
}

// Scores of x, then scores of y.
Result<DirectionSet> of_two_views(const Model& model, const std::string& where) {
  const auto x = EIGENVEIL_TRY(matrix_of(model, "x_weights", where));
  const auto y = EIGENVEIL_TRY(matrix_of(model, "y_weights", where));
  const Eigen::Index K = x.cols();
  if (y.cols() != K)
    return bad_input(fmt::format("{}: 'x_weights' has {} columns but 'y_weights' has {}.", where, K, y.cols()));
  DirectionSet set{Matrix::Zero(2 * K, x.rows() + y.rows()), {}, {}, true};
  set.rows.topLeftCorner(K, x.rows()) = x.transpose();
  set.rows.bottomRightCorner(K, y.rows()) = y.transpose();
  add_names(set, "x", K);
  add_names(set, "y", K);
  if (const Matrix* values = model.array("correlations"); values != nullptr && values->size() == K)
    set.values = values->reshaped().replicate(2, 1);
  return set;
}

}  // namespace

Result<DirectionSet> directions_of(const Model& model, const std::string& where) {
  if (model_of(model) == "cca") return of_two_views(model, where);
  const Kind kind = kind_of(model);
  const auto array = EIGENVEIL_TRY(matrix_of(model, kind.array, where));
  DirectionSet set{kind.transposed ? Matrix(array.transpose()) : array, {}, {}, false};
  add_names(set, kind.score, set.rows.rows());
  if (const Matrix* values = model.array("eigenvalues"); values != nullptr && values->size() == set.rows.rows())
    set.values = values->reshaped();
  return set;
}

}  // namespace eigenveil
