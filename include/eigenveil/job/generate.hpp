// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "eigenveil/base/observer.hpp"
#include "eigenveil/base/result.hpp"

namespace eigenveil {

enum class Population {
  kGaussian,  ///< covariance of trace 1: the top `components` eigenvalues are `gap` times the others
  kSpiked,    ///< U diag(spike) U^T + noise_variance I, U a random orthonormal d x components
  kSparse,    ///< as kSpiked, but only `sparsity` rows of U are not zero
};

struct GenerateOptions {
  Population population = Population::kGaussian;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t components = 1;
  double gap = 5;             ///< kGaussian
  double spike = 10;          ///< kSpiked, kSparse: eigenvalue above the noise
  double noise_variance = 1;  ///< kSpiked, kSparse
  std::size_t sparsity = 10;  ///< kSparse
  std::uint64_t seed = 0;
  std::string out;    ///< .npy of float64, rows x columns
  std::string truth;  ///< .npz with components, eigenvalues, noise_variance; empty: none
};

/// Draws independent Gaussian rows from a population with known principal components and writes them, streamed.
/// The same options give the same file.
Status generate(const GenerateOptions& options, Observer& observer);

}  // namespace eigenveil
