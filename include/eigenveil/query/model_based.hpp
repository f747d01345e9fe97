#pragma once

#include "eigenveil/query/query.hpp"

namespace eigenveil {

// Answers whose sensitivity is assumed, not proved: it holds with high probability if the rows are independent draws
// from a spiked Gaussian, and need not hold otherwise. Only a plan that says `model_based` may ask for them, and only a
// data set whose keeper allowed it will pay. What is assumed: model_based.proof.md.

/// P = V V^T (d x d) of the top `rank` eigenvectors V of the sum of u u^T
struct SpikedProjector {
  std::size_t rank;
  double assumed_sensitivity;  ///< Frobenius distance of P between neighbours
};

/// X^T G X (k x k), G the sum of u u^T
struct SpikedBlock {
  Directions X;
  double assumed_sensitivity;  ///< Frobenius distance, in the features' units
};

using ModelQuery = std::variant<SpikedProjector, SpikedBlock>;

Status validate(const ModelQuery& query, const BoundedRows& rows, Adjacency adjacency);

/// The exact sum that the value is a function of.
SumQuery sum_behind(const ModelQuery& query, const Lattice& lattice);

/// The exact value from that sum, on a lattice of its own (`unit`).
Result<PrivateSum> exact_value(const ModelQuery& query, PrivateSum sum);

/// The assumed sensitivity, in lattice units.
Sensitivity assumed_sensitivity(const ModelQuery& query, const Lattice& lattice);

double unit(const ModelQuery& query, const Lattice& lattice);

}  // namespace eigenveil
