// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/privacy/adjacency.hpp"
#include "eigenveil/privacy/gaussian_mechanism.hpp"
#include "eigenveil/privacy/sparse_vector.hpp"
#include "eigenveil/query/directions.hpp"

namespace eigenveil {

// What an estimator can ask. u is a bounded row, in the features' own units here (the lattice is the oracle's affair).
// Sensitivities and why they hold: the *.proof.md beside the sources.

/// sum u u^T (d x d)
struct Gram {};

/// sum u (X^T u)^T = G X (d x k)
struct Apply {
  Directions X;
};

/// sum u (x) e_class (d x K); K = 1 is the sum of all rows and needs no classes
struct ClassSums {
  std::size_t classes;
};

/// sum e_class (K x 1); K = 1 is the number of rows, a question for add-remove-one only
struct ClassCounts {
  std::size_t classes;
};

/// sum ||u||^2 (1 x 1)
struct SquaredNorms {};

/// sum t t^T (k x k), t = X^T u shortened to at most `radius`
struct ProjectedGram {
  Directions X;
  double radius;
};

/// sum u (softmax(W^T u) - e_class)^T (d x K), each row's term shrunk to a norm of at most `clip`, which is at most the
/// row bound: softmax_gradient.proof.md. Rows of no class add nothing.
struct SoftmaxGradient {
  LinearMap W;  ///< d x K
  double clip;
};

/// sum e_cell (cells x 1): where (t_1, t_2) = X^T u lies in a grid, in each class by itself. Its cell is number
/// (class (a + 1) + i) (b + 1) + j, where i of the a first cuts are at most t_1 and j of the b second ones at most t_2.
/// K = 1 needs no classes; rows of no class add nothing.
struct ScoreCounts {
  Directions X;                ///< d x 2
  std::vector<double> first;   ///< ascending
  std::vector<double> second;  ///< likewise
  std::size_t classes;

  std::size_t cells() const { return classes * (first.size() + 1) * (second.size() + 1); }
};

using SumQuery =
    std::variant<Gram, Apply, ClassSums, ClassCounts, SquaredNorms, ProjectedGram, SoftmaxGradient, ScoreCounts>;

/// For each point of an ascending grid: how many rows have a norm ||u||, or ||X^T u|| if directions are given, above it
struct NormExceedance {
  std::vector<double> grid;
  std::optional<Directions> X;
};

/// Refuses a query that does not fit the rows (dimensions, classes, grid), before anything is charged for it.
Status validate(const SumQuery& query, const RowsFacts& rows, Adjacency adjacency);
Status validate(const NormExceedance& query, const RowsFacts& rows);

/// The layout of the sum, how far one row can move it and what its unit is worth; without values.
PrivateSum empty_sum(const SumQuery& query, std::size_t columns, const Lattice& lattice, Adjacency adjacency);

/// The exact sum over all rows.
Result<PrivateSum> exact_sum(const SumQuery& query, const BoundedRows& rows, Adjacency adjacency);
Result<PrivateCounts> exact_counts(const NormExceedance& query, const BoundedRows& rows);

/// How far one row can move the exact sum, in lattice units, rounded up.
Sensitivity sensitivity(const SumQuery& query, const Lattice& lattice, Adjacency adjacency);

/// Standard deviation of the noise that an entry of such a sum gets (off the diagonal of a symmetric one), in the
/// features' units; 0 for noise that cannot be drawn, which every ask refuses in words.
double deviation_of(const PrivateSum& sum, Mu mu);

}  // namespace eigenveil
