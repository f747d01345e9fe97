// SPDX-License-Identifier: Apache-2.0
#include "softmax_gradient.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace eigenveil {
namespace {

// t <- softmax(t scale) - e_label. Returns ||t||^2.
double residual(double* t, std::size_t K, double scale, std::size_t label) {
  const double largest = *std::max_element(t, t + K);
  double sum = 0;
  for (std::size_t j = 0; j < K; ++j) sum += t[j] = std::exp((t[j] - largest) * scale);
  double square = 0;
  for (std::size_t j = 0; j < K; ++j) {
    t[j] = t[j] / sum - (j == label ? 1.0 : 0.0);
    square += t[j] * t[j];
  }
  return square;
}

// Steps 2 and 3 of the proof: integers w with ||w|| ||u|| <= clip.
void weigh(double* r, std::size_t K, double r_square, std::int64_t u_square, double L, std::int64_t clip) {
  const double length = std::sqrt(r_square * static_cast<double>(u_square));
  if (!std::isfinite(length) || length == 0) return static_cast<void>(std::fill_n(r, K, 0.0));
  const double factor = std::min(L, static_cast<double>(clip) / length) * (1.0 - 0x1p-40);
  UInt128 w_square = 0;
  for (std::size_t j = 0; j < K; ++j) {
    r[j] = std::trunc(r[j] * factor);
    const auto w = static_cast<std::int64_t>(r[j]);
    w_square += static_cast<UInt128>(w * w);
  }
  const auto most = static_cast<UInt128>(clip) * static_cast<UInt128>(clip);
  if (w_square * static_cast<UInt128>(u_square) > most) std::fill_n(r, K, 0.0);
}

}  // namespace

Status check_softmax(const SoftmaxGradient& query, const RowsFacts& rows) {
  if (query.W.rows() != rows.columns)
    return internal_error(
        fmt::format("the weights have {} rows but the data has {} columns", query.W.rows(), rows.columns));
  if (query.W.columns() < 2 || query.W.columns() > (std::size_t{1} << 20))
    return internal_error("a softmax needs 2 to 2^20 classes");
  if (!rows.classes) return internal_error("the rows have no classes");
  if (!(query.clip <= rows.lattice.radius) || softmax_clip(query, rows.lattice) < 1)
    return internal_error("the clip must be at most the row bound, and no less than the lattice can tell");
  return {};
}

std::int64_t softmax_clip(const SoftmaxGradient& query, const Lattice& lattice) {
  const auto L = static_cast<double>(lattice.norm_bound());
  return static_cast<std::int64_t>(std::clamp(std::floor(query.clip / lattice.unit() * L), 0.0, L * L));
}

double softmax_unit(const Lattice& lattice) { return lattice.unit() / static_cast<double>(lattice.norm_bound()); }

Result<std::vector<Int128>> softmax_sum(const SoftmaxGradient& query, const BoundedRows& rows) {
  const std::size_t K = query.W.columns();
  const auto L = static_cast<double>(rows.lattice().norm_bound());
  const double scale = query.W.step() * rows.lattice().unit();
  const std::int64_t clip = softmax_clip(query, rows.lattice());
  return outer_sum(rows, K, L, [&](const RowBlock& block, double* t) {
    query.W.product(block.values, block.rows, t);
    for (std::size_t i = 0; i < block.rows; ++i, t += K) {
      const std::size_t label = rows.classes()[block.first + i];  // none: far beyond K
      if (label >= K) {
        std::fill_n(t, K, 0.0);
        continue;
      }
      const double r_square = residual(t, K, scale, label);
      weigh(t, K, r_square, squared_norm(block.lattice + i * block.columns, block.columns), L, clip);
    }
  });
}

}  // namespace eigenveil
