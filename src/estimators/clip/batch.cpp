// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "eigenveil/estimators/clip/training.hpp"

namespace eigenveil {
namespace {

// Rows of Z W^T and their lengths; rows of length zero stay zero and get no gradient.
struct UnitRows {
  RowMajorMatrix unit;
  Vector inverse_length;
};

UnitRows unit_rows(const RowMajorMatrix& Z, const Matrix& W) {
  UnitRows e{Z * W.transpose(), Vector::Zero(Z.rows())};
  for (Eigen::Index i = 0; i < Z.rows(); ++i) {
    const double length = e.unit.row(i).stableNorm();
    if (!(length > 1e-150)) {
      e.unit.row(i).setZero();
      continue;
    }
    e.inverse_length[i] = 1 / length;
    e.unit.row(i) /= length;
  }
  return e;
}

// e^(s - largest of the row), divided by the row's sum
RowMajorMatrix softmax_rows(RowMajorMatrix scores) {
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    scores.row(i) = (scores.row(i).array() - scores.row(i).maxCoeff()).exp();
    scores.row(i) /= scores.row(i).sum();
  }
  return scores;
}

// Through f = z / |z|: dz = (v - f <f, v>) / |z|; then dW = dz^T Z
Matrix through_length(const UnitRows& e, RowMajorMatrix v, const RowMajorMatrix& Z) {
  for (Eigen::Index i = 0; i < v.rows(); ++i)
    v.row(i) = (v.row(i) - e.unit.row(i).dot(v.row(i)) * e.unit.row(i)) * e.inverse_length[i];
  return v.transpose() * Z;
}

}  // namespace

PairViews pair_views(const Batch& batch, std::size_t x_columns, const Matrix& texts) {
  if (texts.rows() == 0) {
    const Eigen::Index d1 = x_columns;
    return {batch.rows.leftCols(d1), batch.rows.rightCols(batch.rows.cols() - d1)};
  }
  PairViews pairs{batch.rows, RowMajorMatrix(batch.rows.rows(), texts.cols())};
  for (Eigen::Index i = 0; i < batch.rows.rows(); ++i) {
    const Eigen::Index class_of = batch.classes[i];
    // A label that could not be read is no class: its text is zero, as its image is.
    if (class_of >= 0 && class_of < texts.rows())
      pairs.y.row(i) = texts.row(class_of);
    else
      pairs.y.row(i).setZero();
  }
  return pairs;
}

double contrastive_loss(const LinearHeads& heads, const PairViews& pairs, double temperature) {
  if (pairs.x.rows() == 0) return 0;
  const RowMajorMatrix scores =
      unit_rows(pairs.x, heads.G1).unit * unit_rows(pairs.y, heads.G2).unit.transpose() / temperature;
  const RowMajorMatrix transposed = scores.transpose();
  return -(softmax_rows(scores).diagonal().array().log().mean() +
           softmax_rows(transposed).diagonal().array().log().mean());
}

LinearHeads contrastive_gradient(const LinearHeads& heads, const PairViews& pairs, double temperature) {
  const Eigen::Index m = pairs.x.rows();
  if (m == 0) return {Matrix::Zero(heads.G1.rows(), heads.G1.cols()), Matrix::Zero(heads.G2.rows(), heads.G2.cols())};
  const UnitRows f = unit_rows(pairs.x, heads.G1), g = unit_rows(pairs.y, heads.G2);
  const RowMajorMatrix scores = f.unit * g.unit.transpose() / temperature;
  const RowMajorMatrix transposed = scores.transpose();
  // dL/ds = (P + Q - 2 I) / (m tau)
  RowMajorMatrix D = softmax_rows(scores) + RowMajorMatrix(softmax_rows(transposed).transpose());
  D.diagonal().array() -= 2;
  D /= static_cast<double>(m) * temperature;
  return {through_length(f, D * g.unit, pairs.x), through_length(g, D.transpose() * f.unit, pairs.y)};
}

LinearHeads linear_batch_gradient(const LinearHeads& heads, const PairViews& pairs, double alpha) {
  const Eigen::Index m = pairs.x.rows();
  Matrix S = Matrix::Zero(pairs.x.cols(), pairs.y.cols());
  // sum_i x_i y_i^T / m - sum_{i != j} x_i y_j^T / (m (m - 1)) = sum_i (x_i - mean) (y_i - mean)^T / (m - 1)
  if (m >= 2)
    S = (pairs.x.rowwise() - pairs.x.colwise().mean()).transpose() * (pairs.y.rowwise() - pairs.y.colwise().mean()) /
        static_cast<double>(m - 1);
  return linear_gradient(heads, S, alpha);
}

}  // namespace eigenveil
