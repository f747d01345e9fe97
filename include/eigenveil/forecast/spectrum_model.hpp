// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/QR>

#include "eigenveil/forecast/public_model.hpp"

namespace eigenveil {

/// A guess of what the rows are like, from public knowledge alone: Gaussian rows with a given spectrum.
struct SpectrumModel {
  std::size_t rows;         ///< n
  Vector spectrum;          ///< d eigenvalues of the covariance, descending, not negative
  double row_bound;         ///< longer rows are scaled down to it
  std::size_t components;   ///< the top ones, which an estimator is asked for
  double signal_share = 1;  ///< share of the rows that carry the top components: small is high coherence
  std::optional<std::size_t> sparsity = {};  ///< how many columns the top components live on; default: all
};

/// The top k eigenvalues are `gap` times the others; trace 1.
Vector gap_spectrum(std::size_t columns, std::size_t components, double gap);
/// Eigenvalue i is proportional to i^-exponent; trace 1.
Vector decay_spectrum(std::size_t columns, double exponent);
/// Numbers from a text file, separated by blanks, commas or lines; sorted, and the last one repeated up to `columns`.
Result<Vector> read_spectrum(const std::string& path, std::size_t columns);

/// The eigenvectors of the model's covariance: the axes, turned so that the first k point at random among the columns
/// that the top components live on.
class Eigenbasis {
 public:
  Eigenbasis(const SpectrumModel& model, std::uint64_t seed);
  Matrix top() const;                           ///< d x k: the top components
  Matrix coordinates(const Matrix& V) const;    ///< E^T V
  void to_columns(RowMajorMatrix& rows) const;  ///< rows of coordinates become rows of columns: Z E^T
  Matrix covariance(const Vector& spectrum) const;

 private:
  Eigen::Index d_;
  Eigen::Index k_;
  Eigen::HouseholderQR<Matrix> turn_;  // of the first w columns: k reflections
};

/// Rows of the model. With as many rows as the model has, they are independent draws. With fewer, but at least as many
/// as columns, their second moment has the law that the model's own number of rows would give it: a small sample that
/// errs no more than the large one.
RowMajorMatrix draw_rows(const SpectrumModel& model, const Eigenbasis& basis, std::size_t rows, std::uint64_t seed);

/// Rows of the model on the lattice. They know its components and its covariance.
Result<Sample> draw_sample(const SpectrumModel& model, int threads, std::uint64_t seed, std::size_t draws = 3);

/// Three draws at its own number of rows, a single one at any other.
std::unique_ptr<PublicModel> public_model(SpectrumModel model);

}  // namespace eigenveil
