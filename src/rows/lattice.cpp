#include "eigenveil/rows/lattice.hpp"

#include <algorithm>
#include <cmath>

namespace eigenveil {

double Lattice::unit() const { return std::ldexp(radius, -bits); }

std::int64_t squared_norm(const std::int32_t* row, std::size_t columns) {
  std::int64_t sum = 0;
  for (std::size_t j = 0; j < columns; ++j) sum += std::int64_t{row[j]} * row[j];
  return sum;
}

RowFate bound_row(const double* row, std::size_t columns, const Lattice& lattice, std::int32_t* out) {
  double largest = 0;
  bool finite = true;
  for (std::size_t j = 0; j < columns; ++j) {
    const double magnitude = std::fabs(row[j]);
    finite &= magnitude <= 0x1.fffffffffffffp1023;  // false for NaN and infinity
    largest = std::max(largest, magnitude);
  }
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
  const bool clipped = largest > lattice.radius / s;

  // u_j = trunc(row_j / max(B, ||row||) * L)
  const auto L = static_cast<double>(lattice.norm_bound());
  const double divisor = clipped ? largest : lattice.radius;
  const double factor = clipped ? L / s : L;
  for (std::size_t j = 0; j < columns; ++j) out[j] = static_cast<std::int32_t>(row[j] / divisor * factor);

  // Rounding may have left the row a hair too long: the integers decide.
  const std::int64_t most = lattice.norm_bound() * lattice.norm_bound();
  while (squared_norm(out, columns) > most)
    for (std::size_t j = 0; j < columns; ++j)
      out[j] = static_cast<std::int32_t>(static_cast<double>(out[j]) * (1.0 - 0x1p-24));
  return clipped ? RowFate::kClipped : RowFate::kKept;
}

}  // namespace eigenveil
