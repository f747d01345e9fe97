// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/query/model_query.hpp"

namespace eigenveil {

// Answers whose sensitivity is assumed, not proved, under the spiked model. What is assumed: model_based.proof.md.

/// P = V V^T (d x d) of the top `rank` eigenvectors V of the sum of u u^T
class SpikedProjector final : public ModelQuery {
 public:
  /// The Frobenius distance of P between neighbours.
  SpikedProjector(std::size_t rank, double distance) : rank_(rank), distance_(distance) {}
  Status validate(std::size_t columns, Adjacency adjacency) const override;
  SumQuery behind(const Lattice& lattice) const override;
  Sensitivity assumed(const Lattice& lattice) const override;
  Result<PrivateSum> value(PrivateSum sum, const Lattice& lattice) const override;

 private:
  std::size_t rank_;
  double distance_;
};

/// X^T G X (k x k), G the sum of u u^T
class SpikedBlock final : public ModelQuery {
 public:
  /// The Frobenius distance between neighbours, in the features' units.
  SpikedBlock(Directions X, double distance) : X_(std::move(X)), distance_(distance) {}
  Status validate(std::size_t columns, Adjacency adjacency) const override;
  SumQuery behind(const Lattice& lattice) const override;
  Sensitivity assumed(const Lattice& lattice) const override;
  Result<PrivateSum> value(PrivateSum sum, const Lattice& lattice) const override;

 private:
  Directions X_;
  double distance_;
};

}  // namespace eigenveil
