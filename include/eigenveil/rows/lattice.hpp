// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace eigenveil {

/// The lattice that bounded rows live on: a row's features are integers u with ||u|| <= L = 2^bits, each step
/// worth `unit` = radius / L. lattice.proof.md.
struct Lattice {
  double radius;        ///< B: the public bound on a row's Euclidean norm
  int bits;             ///< b, from 4 to 20: entries fit 32 bits and products of blocks stay exact in doubles
  int weight_bits = 0;  ///< rows count in 2^-weight_bits; 0 unless they share the weight of a person: people.proof.md

  std::int64_t norm_bound() const { return std::int64_t{1} << bits; }
  double unit() const;
};

/// What happened to a row on its way to the lattice. Private: for the operator's eyes only.
enum class RowFate { kKept, kShortened, kNotFinite };

/// Scales a row to norm <= radius, truncates toward zero, and shrinks until ||u||^2 <= 2^(2 bits) holds in integers,
/// for every input a file can hold. A row with a NaN or an infinity becomes the zero row.
RowFate bound_row(const double* row, std::size_t columns, const Lattice& lattice, std::int32_t* out);

/// Shortens integers until ||u|| <= L, whatever rounding had left: the last word on a row's length.
void shrink_to_bound(std::int32_t* row, std::size_t columns, std::int64_t L);

/// ||u||^2, exactly.
std::int64_t squared_norm(const std::int32_t* row, std::size_t columns);

}  // namespace eigenveil
