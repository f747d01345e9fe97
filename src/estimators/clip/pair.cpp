// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "eigenveil/estimators/clip/training.hpp"

namespace eigenveil {
namespace {

constexpr double kRoundedUp = 1 + 0x1p-50;
constexpr double kPairSlack = 1 + 0x1p-18;  // rounding of the sums and of the lattice: pair.proof.md

// One side of a batch. Every row is embedded by itself, in the same order of operations wherever it stands.
struct PairSide {
  Matrix unit;             // r x m
  Vector inverse_length;   // 1 / |W z|, 0 for a view without embedding
  Vector squared_stretch;  // |z|^2 / |W z|^2
};

PairSide embed_side(const RowMajorMatrix& Z, const Matrix& W) {
  PairSide side{Matrix::Zero(W.rows(), Z.rows()), Vector::Zero(Z.rows()), Vector::Zero(Z.rows())};
  for (Eigen::Index i = 0; i < Z.rows(); ++i) {
    double squares = 0;
    for (Eigen::Index k = 0; k < Z.cols(); ++k) {
      for (Eigen::Index row = 0; row < W.rows(); ++row) side.unit(row, i) += Z(i, k) * W(row, k);
      squares += Z(i, k) * Z(i, k);
    }
    double length = 0;
    for (Eigen::Index k = 0; k < W.rows(); ++k) length += side.unit(k, i) * side.unit(k, i);
    length = std::sqrt(length);
    if (!(length > 1e-100) || !std::isfinite(length)) {
      side.unit.col(i).setZero();
      continue;
    }
    side.inverse_length[i] = 1 / length;
    side.unit.col(i) /= length;
    side.squared_stretch[i] = squares / length / length;
  }
  return side;
}

double pair_dot(const double* f, const double* g, Eigen::Index r) {
  double s = 0;
  for (Eigen::Index k = 0; k < r; ++k) s += f[k] * g[k];
  return s;
}

}  // namespace

PairGradient::PairGradient(LinearHeads heads, double temperature, double clip, std::size_t x_columns, Matrix texts)
    : heads_(std::move(heads)),
      temperature_(temperature),
      clip_(clip),
      x_columns_(x_columns),
      texts_(std::move(texts)) {}

double PairGradient::spread(double temperature) { return 1 / std::exp(-2 / temperature) * kRoundedUp; }

double PairGradient::bound(std::size_t m, double temperature, double clip) {
  const double E = spread(temperature), size = static_cast<double>(m);
  // 2 C (m E / (1 + m E) + m E / (m + E))
  return 2 * clip * (size * E / (1 + size * E) + size * E / (size + E));
}

double PairGradient::bound(double temperature, double clip) {
  return 2 * clip * (1 + spread(temperature)) * kRoundedUp;
}

LinearHeads PairGradient::sum(const PairViews& pairs) const {
  const Eigen::Index m = pairs.x.rows(), r = heads_.G1.rows();
  const PairSide f = embed_side(pairs.x, heads_.G1), g = embed_side(pairs.y, heads_.G2);
  const double least = std::exp(-2 / temperature_);
  // e_ij = exp((s_ij - 1) / tau) in [1 / E, 1]
  Matrix e(m, m);
  Vector row_sums = Vector::Zero(m), column_sums = Vector::Zero(m);
  for (Eigen::Index j = 0; j < m; ++j)
    for (Eigen::Index i = 0; i < m; ++i) {
      const double s = pair_dot(&f.unit(0, i), &g.unit(0, j), r);
      e(i, j) = std::clamp(std::exp((s - 1) / temperature_), least, 1.0);
      row_sums[i] += e(i, j);
      column_sums[j] += e(i, j);
    }
  Matrix of_x = Matrix::Zero(r, m), of_y = Matrix::Zero(r, m);
  std::vector<double> a(r), b(a);
  for (Eigen::Index j = 0; j < m; ++j)
    for (Eigen::Index i = 0; i < m; ++i) {
      const double* fi = &f.unit(0, i);
      const double* gj = &g.unit(0, j);
      // a = g_j - s f_i, b = f_i - s g_j; |ds/dW|^2 = |a|^2 |x|^2 / |W_1 x|^2 + |b|^2 |y|^2 / |W_2 y|^2
      const double s = pair_dot(fi, gj, r);
      double aa = 0, bb = 0;
      for (Eigen::Index k = 0; k < r; ++k) {
        const std::size_t at = k;
        a[at] = gj[k] - s * fi[k];
        b[at] = fi[k] - s * gj[k];
        aa += a[at] * a[at];
        bb += b[at] * b[at];
      }
      const double norm = std::sqrt(aa * f.squared_stretch[i] + bb * g.squared_stretch[j]);
      const double shrink = norm > clip_ ? clip_ / norm : 1.0;
      const double R = (e(i, j) / row_sums[i] + e(i, j) / column_sums[j]) / 2 - (i == j ? 1.0 : 0.0);
      for (Eigen::Index k = 0; k < r; ++k) {
        of_x(k, i) += R * shrink * a[k];
        of_y(k, j) += R * shrink * b[k];
      }
    }
  return {of_x * f.inverse_length.asDiagonal() * pairs.x, of_y * g.inverse_length.asDiagonal() * pairs.y};
}

Result<PrivateSum> PairGradient::exact(const Batch& batch) const {
  if (static_cast<std::size_t>(batch.rows.rows()) > kLargestBatch)
    return bad_input(
        fmt::format("a batch has more than {} pairs, which is more than `method` pair takes; lower the sampling rate. "
                    "What was charged stays charged",
                    kLargestBatch));
  const Vector v = flat(sum(pair_views(batch, x_columns_, texts_)));
  if (!v.allFinite()) return internal_error("a clipped gradient of pairs is not finite");
  const double step = std::ldexp(bound(temperature_, clip_), -40);
  PrivateSum result{PrivateSum::Layout::kPlain, static_cast<std::size_t>(v.size()), 1, sensitivity(), step, {}};
  result.values.reserve(result.rows);
  for (const double x : v) result.values.push_back(static_cast<std::int64_t>(x / step));
  return result;
}

Sensitivity PairGradient::sensitivity() const { return Sensitivity(0x1p40 * kPairSlack); }

}  // namespace eigenveil
