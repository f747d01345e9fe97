// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/model_based.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/linalg/eigen.hpp"

namespace eigenveil {
namespace {

constexpr double kProjectorUnit = 0x1p-40;  // entries of a projector are at most 1
constexpr double kRoundedUp = 1.0 + 0x1p-50;

Status check_model(Adjacency adjacency, double distance) {
  if (adjacency != Adjacency::kReplaceOne)
    return usage_error("a model-based guarantee is stated for replace-one neighbours: use `adjacency` replace-one");
  if (!(distance > 0) || !std::isfinite(distance))
    return internal_error("an assumed sensitivity must be positive and finite");
  return {};
}

// The lower triangle, packed by columns: trunc(P / unit)
std::vector<Int128> packed(const Matrix& P) {
  std::vector<Int128> values;
  for (Eigen::Index j = 0; j < P.cols(); ++j)
    for (Eigen::Index i = j; i < P.rows(); ++i) values.push_back(static_cast<std::int64_t>(P(i, j) / kProjectorUnit));
  return values;
}

}  // namespace

Status SpikedProjector::validate(std::size_t columns, Adjacency adjacency) const {
  EIGENVEIL_TRY(check_model(adjacency, distance_));
  if (rank_ < 1 || rank_ >= columns)
    return usage_error(fmt::format("`rank` must lie between 1 and {}, but is {}", columns - 1, rank_));
  return {};
}

SumQuery SpikedProjector::behind(const Lattice& /*lattice*/) const { return Gram{}; }

Sensitivity SpikedProjector::assumed(const Lattice& /*lattice*/) const {
  return Sensitivity(distance_ / kProjectorUnit * kRoundedUp);
}

Result<PrivateSum> SpikedProjector::value(PrivateSum gram, const Lattice& lattice) const {
  const Eigen::Index d = gram.rows;
  Matrix G(d, d);
  const Int128* entry = gram.values.data();
  for (Eigen::Index j = 0; j < d; ++j)
    for (Eigen::Index i = j; i < d; ++i) G(i, j) = G(j, i) = std::ldexp(static_cast<double>(*entry++), -40);
  const auto top = EIGENVEIL_TRY(top_eigenpairs(G, rank_));
  const Matrix P = top.vectors * top.vectors.transpose();
  return PrivateSum{PrivateSum::Layout::kSymmetric, gram.rows, gram.rows, assumed(lattice), kProjectorUnit, packed(P)};
}

Status SpikedBlock::validate(std::size_t columns, Adjacency adjacency) const {
  EIGENVEIL_TRY(check_model(adjacency, distance_));
  return X_.rows() == columns ? Status() : Status(internal_error("the directions do not fit the rows"));
}

SumQuery SpikedBlock::behind(const Lattice& lattice) const {
  return ProjectedGram{X_, 2 * lattice.radius};  // projections are at most 2 B long: this shortens none
}

Sensitivity SpikedBlock::assumed(const Lattice& lattice) const {
  return Sensitivity(distance_ / (lattice.unit() * lattice.unit()) * kRoundedUp);
}

Result<PrivateSum> SpikedBlock::value(PrivateSum sum, const Lattice& lattice) const {
  sum.moved = assumed(lattice);
  return sum;
}

}  // namespace eigenveil
