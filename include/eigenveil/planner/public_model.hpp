#pragma once

#include <optional>
#include <string>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// A guess of what the rows are like, from public knowledge alone: Gaussian rows with a given spectrum.
struct PublicModel {
  std::size_t rows;           ///< n
  Vector spectrum;            ///< d eigenvalues of the covariance, descending, not negative
  double row_bound;           ///< longer rows are scaled down to it
  std::size_t components;     ///< the top ones, which an estimator is asked for
  double signal_share = 1;    ///< share of the rows that carry the top components: small is high coherence
  std::optional<std::size_t> sparsity = {};  ///< how many columns the top components live on; default: all
};

/// The top k eigenvalues are `gap` times the others; trace 1.
Vector gap_spectrum(std::size_t columns, std::size_t components, double gap);
/// Eigenvalue i is proportional to i^-exponent; trace 1.
Vector decay_spectrum(std::size_t columns, double exponent);
/// Numbers from a text file, separated by blanks, commas or lines; sorted, and the last one repeated up to `columns`.
Result<Vector> read_spectrum(const std::string& path, std::size_t columns);

/// How much longer the bound is than a typical row, when nothing better is known.
inline constexpr double kBoundOverTypicalRow = 1.5;

/// Independent rows of the model.
RowMajorMatrix draw_rows(const PublicModel& model, std::size_t rows, std::uint64_t seed);
/// The basis of the top components of the rows that `draw_rows` makes with this seed.
Matrix true_components(const PublicModel& model, std::uint64_t seed);

}  // namespace eigenveil
