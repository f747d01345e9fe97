// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/lattice.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace eigenveil {

double Lattice::unit() const { return std::ldexp(radius, -bits); }

std::int64_t squared_norm(const std::int32_t* row, std::size_t columns) {
  std::int64_t sum = 0;
  for (std::size_t j = 0; j < columns; ++j) sum += std::int64_t{row[j]} * row[j];
  return sum;
}

void shrink_to_bound(std::int32_t* row, std::size_t columns, std::int64_t L) {
  while (squared_norm(row, columns) > L * L)
    for (std::size_t j = 0; j < columns; ++j)
      row[j] = static_cast<std::int32_t>(static_cast<double>(row[j]) * (1.0 - 0x1p-24));
}

RowFate bound_row(const double* row, std::size_t columns, const Lattice& lattice, std::int32_t* out) {
  // Several maxima side by side: each waits for the one before it.
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> most = {};
  bool finite = true;
  const auto see = [&](std::size_t j, double& so_far) {
    const double magnitude = std::fabs(row[j]);
    finite &= magnitude <= 0x1.fffffffffffffp1023;  // false for NaN and infinity
    so_far = std::max(so_far, magnitude);
  };
  std::size_t seen = 0;
  for (; seen + kLanes <= columns; seen += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) see(seen + lane, most[lane]);
  for (; seen < columns; ++seen) see(seen, most[0]);
  const double largest = *std::max_element(most.begin(), most.end());
  if (!finite || largest == 0) {
    std::fill_n(out, columns, 0);
    return finite ? RowFate::kKept : RowFate::kNotFinite;
  }

  // ||row|| = largest * s with s^2 = sum (row_j / largest)^2 in [1, columns]: neither overflows nor underflows.
  double squares = 0;
  for (std::size_t j = 0; j < columns; ++j) {
    const double ratio = row[j] / largest;
    squares += ratio * ratio;
  }
  const double s = std::sqrt(squares);
  const bool too_long = largest > lattice.radius / s;

  // u_j = trunc(row_j / max(B, ||row||) * L)
  const auto L = static_cast<double>(lattice.norm_bound());
  const double divisor = too_long ? largest : lattice.radius;
  const double factor = too_long ? L / s : L;
  for (std::size_t j = 0; j < columns; ++j) out[j] = static_cast<std::int32_t>(row[j] / divisor * factor);

  shrink_to_bound(out, columns, lattice.norm_bound());
  return too_long ? RowFate::kShortened : RowFate::kKept;
}

}  // namespace eigenveil
