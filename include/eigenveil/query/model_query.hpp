// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/query/query.hpp"

namespace eigenveil {

/// A function of an exact sum whose sensitivity is assumed, not proved. Only a plan that says `model_based` may ask for
/// it, and only a data set whose keeper allowed it will pay.
class ModelQuery {
 public:
  virtual ~ModelQuery() = default;
  virtual Status validate(std::size_t columns, Adjacency adjacency) const = 0;
  /// The exact sum that the value is a function of.
  virtual SumQuery behind(const Lattice& lattice) const = 0;
  /// How far one row is assumed to move the value, in its own units.
  virtual Sensitivity assumed(const Lattice& lattice) const = 0;
  /// The value from that sum, with the assumed sensitivity and a unit of its own.
  virtual Result<PrivateSum> value(PrivateSum sum, const Lattice& lattice) const = 0;
};

}  // namespace eigenveil
