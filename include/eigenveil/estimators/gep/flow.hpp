// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// What a step of the flow needs of A and B: products with the current vectors, noisy or not.
struct Products {
  Matrix AV;
  Matrix BV;
};
using Multiply = std::function<Result<Products>(const Matrix& V)>;

struct FlowOptions {
  std::size_t rounds = 15;
  std::optional<double> step;              ///< eta; default: one over the largest ||B v|| (+ ||A v|| / rho) seen so far
  std::optional<std::size_t> sparsity;     ///< rows of V that are kept after each step
  std::optional<Eigen::Index> first_view;  ///< cca: how many rows of V belong to x
  bool semidefinite = false;               ///< A has no negative eigenvalues (fda, sir): longer steps are safe
  double least_b = 0;                      ///< v^T B v of a unit vector is not believed below this
  bool average = true;                     ///< noisy products: the mean of the second half's vectors
  double tolerance = 0;                    ///< exact products: stop when V moves less
  bool literal = false;  ///< the paper's step for one vector, eta / rho whatever rho's sign, no average
};

struct FlowResult {
  Matrix V;       ///< v_j^T B v_j = 1 as far as the products tell
  Vector values;  ///< Rayleigh quotients
  std::size_t rounds;
};

/// The Rayleigh flow v <- v + (eta / |rho|)(A v - rho B v), rho = v^T A v / v^T B v, for a block of vectors that are
/// rotated to solve the small problem (V^T A V, V^T B V) first. |rho| instead of the paper's rho: a step then climbs
/// the Rayleigh quotient even where it is negative.
/// The default step keeps I + eta (A / rho - B) positive: where A has eigenvalues far below zero a longer one would
/// swing to them. In cca, lambda and -lambda belong to (x, y) and (x, -y): the small problem is solved for each view by
/// itself, which leaves rho >= 0 and takes the other solution away.
Result<FlowResult> rayleigh_flow(const Multiply& multiply, Matrix V, const FlowOptions& options);

/// A fixed public start of unit columns.
Matrix random_start(std::size_t d, std::size_t k, std::uint64_t seed = 20230425);

}  // namespace eigenveil
