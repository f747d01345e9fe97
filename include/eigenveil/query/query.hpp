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

enum class FilterMode { kShrink, kDrop };

/// Rows with ||u|| ||X^T u|| > theta are shrunk to theta, or dropped.
struct Filter {
  double theta;
  FilterMode mode = FilterMode::kShrink;
};

/// sum u (X^T u)^T = G X (d x k)
struct Apply {
  Directions X;
  std::optional<Filter> filter;
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

using SumQuery = std::variant<Gram, Apply, ClassSums, ClassCounts, SquaredNorms>;

/// For each point of an ascending grid: how many rows have ||u|| ||X^T u|| above it
struct Exceedance {
  Directions X;
  std::vector<double> grid;
};

/// For each point of an ascending grid: how many rows had a norm above it before they were bounded
struct RawNormExceedance {
  std::vector<double> grid;
};

using CountQuery = std::variant<Exceedance, RawNormExceedance>;

/// Refuses a query that does not fit the rows (dimensions, classes, grid), before anything is charged for it.
Status validate(const SumQuery& query, const BoundedRows& rows, Adjacency adjacency);
Status validate(const CountQuery& query, const BoundedRows& rows);

/// The exact sum over all rows, in lattice units.
Result<PrivateSum> exact_sum(const SumQuery& query, const BoundedRows& rows);
Result<PrivateCounts> exact_counts(const CountQuery& query, const BoundedRows& rows);

/// How far one row can move the exact sum, in lattice units, rounded up.
Sensitivity sensitivity(const SumQuery& query, const Lattice& lattice, Adjacency adjacency);

/// What one lattice unit of the sum is worth in the features' own units.
double unit(const SumQuery& query, const Lattice& lattice);

}  // namespace eigenveil
