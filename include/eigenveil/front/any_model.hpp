// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/base/named_array.hpp"
#include "eigenveil/front/published.hpp"

namespace eigenveil {

/// A release of any kind, by the names of its arrays: for programs that show or pass on whatever a model has.
class AnyModel final : public Published {
 public:
  explicit AnyModel(const Published& published);
  static Result<AnyModel> load(const std::string& path);
  /// Of parts that a model gave once. They are checked as a file's are.
  static Result<AnyModel> from_parts(std::vector<NamedArray> arrays, const std::string& manifest);

  std::string kind() const;  ///< "pca", "covariance", "cca", "fda", "sir", "gep", "regress" or "clip"
  const std::vector<NamedArray>& arrays() const;
  std::vector<std::string> features() const;     ///< names; empty where views are vectors
  std::vector<std::string> columns() const;      ///< names of what rows must have
  std::vector<std::string> score_names() const;  ///< "pc1", "pc2", ...
  std::string report_html() const;

  /// What these say of single rows is not private.
  Result<Matrix> transform(const Rows& rows) const;
  Result<Matrix> inverse_transform(const Matrix& scores) const;
  Result<std::vector<std::string>> predict_classes(const Rows& rows) const;
  Result<Matrix> embed(const Rows& rows, bool second) const;
  /// For each row of X, the places of the k nearest rows of Y among the embeddings, the nearest first, from 0.
  Result<Matrix> retrieve(const Rows& X, const Rows& Y, Eigen::Index k) const;
  /// A regression of any column on the others, from a released covariance.
  Result<AnyModel> regress(const std::string& target, std::optional<double> ridge = {}) const;
};

}  // namespace eigenveil
