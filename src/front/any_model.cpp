// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/any_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "call.hpp"
#include "eigenveil/front/clip.hpp"
#include "eigenveil/front/covariance.hpp"
#include "eigenveil/front/pca.hpp"
#include "eigenveil/release/kinds.hpp"
#include "eigenveil/release/report.hpp"
#include "eigenveil/release/transform.hpp"

namespace eigenveil {
namespace {

std::shared_ptr<const Model> kept(Model model) { return std::make_shared<const Model>(std::move(model)); }

/// A type that makes something of any model.
class Anything final : public Published {
 public:
  explicit Anything(std::shared_ptr<const Model> model, bool per_row) : Published(std::move(model), per_row) {}
};

AnyModel any(Model model) {
  const bool per_row = kind_of(model.manifest).of_rows;
  return AnyModel(Anything(kept(std::move(model)), per_row));
}

std::vector<std::string> texts(const nlohmann::json& manifest, const char* key) {
  std::vector<std::string> found;
  if (const auto list = manifest.find(key); list != manifest.end() && list->is_array())
    for (const auto& one : *list) found.push_back(one.is_string() ? one.get<std::string>() : one.value("name", ""));
  return found;
}

}  // namespace

AnyModel::AnyModel(const Published& published) : Published(published) {}

Result<AnyModel> AnyModel::load(const std::string& path) { return any(EIGENVEIL_TRY(read_model(path))); }

Result<AnyModel> AnyModel::from_parts(std::vector<NamedArray> arrays, const std::string& manifest) {
  return any(EIGENVEIL_TRY(model_from(std::move(arrays), manifest, "the parts of a model")));
}

std::string AnyModel::kind() const { return std::string(kind_of(model().manifest).name); }
const std::vector<NamedArray>& AnyModel::arrays() const { return model().arrays; }
std::vector<std::string> AnyModel::features() const { return texts(model().manifest, "features"); }
std::vector<std::string> AnyModel::columns() const { return texts(model().manifest, "columns"); }

std::vector<std::string> AnyModel::score_names() const {
  std::vector<std::string> names;
  for (const Scores& scores : kind_of(model().manifest).scores) {
    const Matrix* directions = model().array(std::string(scores.directions));
    if (directions == nullptr) continue;
    // Components lie in rows, whatever else there is in columns; coefficients are one direction.
    const bool components = scores.directions == "components";
    const Eigen::Index count = scores.directions == "coefficients" ? 1
                               : components                        ? directions->rows()
                                                                   : directions->cols();
    for (Eigen::Index i = 1; i <= count; ++i)
      names.push_back(count == 1 && scores.directions == "coefficients" ? std::string(scores.name)
                                                                        : fmt::format("{}{}", scores.name, i));
  }
  return names;
}

std::string AnyModel::report_html() const { return html_report(model()); }

Result<Matrix> AnyModel::transform(const Rows& rows) const {
  return Matrix(
      EIGENVEIL_TRY(rows.given() ? scores(model(), *rows.given()) : scores(model(), rows.path(), SourceOptions{})));
}

Result<Matrix> AnyModel::inverse_transform(const Matrix& scores) const {
  if (model().array("components") == nullptr)
    return usage_error(fmt::format("rows cannot be rebuilt from the scores of a model '{}'", kind()));
  return Pca(kept(model())).inverse_transform(scores);
}

Result<std::vector<std::string>> AnyModel::predict_classes(const Rows& rows) const {
  return rows.given() ? predictions(model(), *rows.given()) : predictions(model(), rows.path(), SourceOptions{});
}

Result<Matrix> AnyModel::embed(const Rows& rows, bool second) const {
  if (!kind_of(model().manifest).heads)
    return usage_error(fmt::format("a model '{}' has no heads to embed a view with", kind()));
  const Clip heads(kept(model()));
  return second ? heads.embed_y(rows) : heads.embed_x(rows);
}

Result<Matrix> AnyModel::retrieve(const Rows& X, const Rows& Y, Eigen::Index k) const {
  const auto x = EIGENVEIL_TRY(embed(X, false));
  const auto y = EIGENVEIL_TRY(embed(Y, true));
  if (k < 1 || k > y.rows())
    return usage_error(
        fmt::format("the number to retrieve must lie between 1 and the {} rows to be found, but is {}", y.rows(), k));
  Matrix found(x.rows(), k);
  std::vector<Eigen::Index> order(y.rows());
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const Vector similarity = y * x.row(i).transpose();
    std::iota(order.begin(), order.end(), Eigen::Index{0});
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](Eigen::Index a, Eigen::Index b) {
      return similarity[a] > similarity[b] || (similarity[a] == similarity[b] && a < b);
    });
    for (Eigen::Index j = 0; j < k; ++j) found(i, j) = static_cast<double>(order[j]);
  }
  return found;
}

}  // namespace eigenveil
