// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/lattice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

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

namespace {

// Compiled twice: divisions are slow, and newer machines do four at once. IEEE arithmetic has one quotient.
#if defined(__x86_64__)
#define EIGENVEIL_FOUR_AT_ONCE __attribute__((target("avx2")))
bool four_at_once() { return __builtin_cpu_supports("avx2") != 0; }
#else
#define EIGENVEIL_FOUR_AT_ONCE
bool four_at_once() { return true; }
#endif

// u_j = trunc(row_j / max(B, ||row||) * L)
[[gnu::always_inline]] inline void quantise_any(const double* row, std::size_t columns, double divisor, double factor,
                                                std::int32_t* out) {
  for (std::size_t j = 0; j < columns; ++j) out[j] = static_cast<std::int32_t>(row[j] / divisor * factor);
}
EIGENVEIL_FOUR_AT_ONCE void quantise_fours(const double* row, std::size_t columns, double divisor, double factor,
                                           std::int32_t* out) {
  quantise_any(row, columns, divisor, factor, out);
}
void quantise(const double* row, std::size_t columns, double divisor, double factor, std::int32_t* out) {
  static const bool wide = four_at_once();
  if (wide) return quantise_fours(row, columns, divisor, factor, out);
  quantise_any(row, columns, divisor, factor, out);
}

// Whether a row is finite and well within the bound, by more than the plain sum of its squares can err; false proves
// nothing. Squares that underflow are worth less than the margin where the bound is larger than 2^-400.
bool well_inside(const double* row, std::size_t columns, double radius) {
  constexpr std::size_t kLanes = 8;  // each sum waits for the one before it
  std::array<double, kLanes> squares = {};
  std::size_t seen = 0;
  for (; seen + kLanes <= columns; seen += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) squares[lane] += row[seen + lane] * row[seen + lane];
  for (; seen < columns; ++seen) squares[0] += row[seen] * row[seen];
  const double sum = std::accumulate(squares.begin(), squares.end(), 0.0);
  return radius > 0x1p-400 && radius < 0x1p400 && sum < radius * radius * (1 - 0x1p-20);  // false for NaN
}

}  // namespace

RowFate bound_row(const double* row, std::size_t columns, const Lattice& lattice, std::int32_t* out) {
  const auto L = static_cast<double>(lattice.norm_bound());
  // Most rows: what is below would find the same. Truncation only shortens, so they fit.
  if (well_inside(row, columns, lattice.radius)) {
    quantise(row, columns, lattice.radius, L, out);
    return RowFate::kKept;
  }

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

  quantise(row, columns, too_long ? largest : lattice.radius, too_long ? L / s : L, out);
  shrink_to_bound(out, columns, lattice.norm_bound());
  return too_long ? RowFate::kShortened : RowFate::kKept;
}

}  // namespace eigenveil
