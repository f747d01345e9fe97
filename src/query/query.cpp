// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "details.hpp"
#include "softmax_gradient.hpp"

namespace eigenveil {
namespace {

// A query owns three functions, which lie together below: `fits` refuses one that does not fit the rows, `outline`
// states the layout of its sum, how far one row moves it and what its unit is worth, `sum_of` computes it. A query
// without one of them does not compile.

/// What an outline may depend on. All of it is public.
struct Asked {
  std::size_t columns;  ///< of the rows
  Lattice lattice;
  Adjacency adjacency;

  double L() const { return static_cast<double>(lattice.norm_bound()); }
  double step() const { return lattice.unit(); }
  double square() const { return lattice.unit() * lattice.unit(); }
  bool replace() const { return adjacency == Adjacency::kReplaceOne; }
};

PrivateSum plain(std::size_t rows, std::size_t columns, double moved, double unit) {
  return {PrivateSum::Layout::kPlain, rows, columns, Sensitivity(round_up(moved)), unit, {}};
}

PrivateSum symmetric(std::size_t rows, double moved, double unit) {
  return {PrivateSum::Layout::kSymmetric, rows, rows, Sensitivity(round_up(moved)), unit, {}};
}

// A length in lattice steps: floor, and never above what a projected row can reach (2 L).
std::int64_t lattice_length(double length, const Lattice& lattice) {
  const double most = 2.0 * static_cast<double>(lattice.norm_bound());
  if (!(length > 0)) return 0;  // NaN too
  return static_cast<std::int64_t>(std::clamp(std::floor(length / lattice.unit()), 0.0, most));
}

std::int64_t squared_norm_of(const double* t, std::size_t k) {
  double sum = 0;  // integers, and ||t||^2 <= 2^42: exact
  for (std::size_t j = 0; j < k; ++j) sum += t[j] * t[j];
  return static_cast<std::int64_t>(sum);
}

// t <- trunc(t radius / ||t||), with a hair less so that rounding cannot lengthen it; zero if it did all the same
void shorten(double* t, std::size_t k, std::int64_t radius) {
  const std::int64_t t2 = squared_norm_of(t, k);
  if (t2 <= radius * radius) return;
  const double factor = static_cast<double>(radius) / std::sqrt(static_cast<double>(t2)) * (1.0 - 0x1p-40);
  for (std::size_t j = 0; j < k; ++j) t[j] = std::trunc(t[j] * factor);
  if (squared_norm_of(t, k) > radius * radius) std::fill_n(t, k, 0.0);
}

// ---- Gram

Status fits(const Gram& /*query*/, const RowsFacts& /*rows*/, Adjacency /*adjacency*/) { return {}; }

PrivateSum outline(const Gram& /*query*/, const Asked& at) {
  return symmetric(at.columns, at.replace() ? std::sqrt(2.0) * at.L() * at.L() : at.L() * at.L(), at.square());
}

Result<std::vector<Int128>> sum_of(const Gram& /*query*/, const BoundedRows& rows) { return gram_sum(rows); }

// ---- Apply

Status fits(const Apply& query, const RowsFacts& rows, Adjacency /*adjacency*/) {
  return check_directions(query.X, rows.columns);
}

PrivateSum outline(const Apply& query, const Asked& at) {
  const double L = at.L();
  const auto k = static_cast<double>(query.X.columns());
  const double whole = L * L * query.X.norm_factor();
  const double moved = at.replace() ? std::min(std::sqrt(2.0), std::sqrt(k)) * whole + 2 * L * std::sqrt(k) : whole;
  return plain(at.columns, query.X.columns(), moved, at.square());
}

Result<std::vector<Int128>> sum_of(const Apply& query, const BoundedRows& rows) {
  const std::size_t k = query.X.columns();
  const double largest = static_cast<double>(rows.lattice().norm_bound()) * query.X.norm_factor();
  return outer_sum(rows, k, largest, [&](const RowBlock& block, double* t) { query.X.project(block, t); });
}

// ---- ClassSums

Status check_classes(std::size_t classes, const RowsFacts& rows) {
  if (classes == 0) return internal_error("a query needs at least one class");
  if (classes > 1 && !rows.classes) return internal_error("the rows have no classes");
  return {};
}

Status fits(const ClassSums& query, const RowsFacts& rows, Adjacency /*adjacency*/) {
  return check_classes(query.classes, rows);
}

PrivateSum outline(const ClassSums& query, const Asked& at) {
  return plain(at.columns, query.classes, at.replace() ? 2 * at.L() : at.L(), at.step());
}

Result<std::vector<Int128>> sum_of(const ClassSums& query, const BoundedRows& rows) {
  if (query.classes == 1)
    return count_sum(rows, rows.columns(), BlockValues::kOmit,
                     [](const RowBlock& block, std::vector<std::int64_t>& sum) {
                       constexpr std::size_t kFit = 1024;  // entries of at most 2^20 in 32 bits
                       std::vector<std::int32_t> part(block.columns);
                       for (std::size_t first = 0; first < block.rows; first += kFit) {
                         std::fill(part.begin(), part.end(), 0);
                         for (std::size_t i = first; i < std::min(first + kFit, block.rows); ++i)
                           for (std::size_t j = 0; j < block.columns; ++j)
                             part[j] += block.lattice[i * block.columns + j];
                         for (std::size_t j = 0; j < block.columns; ++j) sum[j] += part[j];
                       }
                     });
  return outer_sum(rows, query.classes, 1.0, [&](const RowBlock& block, double* t) {
    std::fill_n(t, block.rows * query.classes, 0.0);
    for (std::size_t i = 0; i < block.rows; ++i) {
      const auto c = static_cast<std::size_t>(rows.classes()[block.first + i]);
      if (c < query.classes) t[i * query.classes + c] = 1.0;
    }
  });
}

// ---- ClassCounts

Status fits(const ClassCounts& query, const RowsFacts& rows, Adjacency adjacency) {
  if (query.classes == 1 && adjacency == Adjacency::kReplaceOne && !rows.total_private)
    return internal_error("the number of rows is public under replace-one: do not ask for it");
  return check_classes(query.classes, rows);
}

PrivateSum outline(const ClassCounts& query, const Asked& at) {
  constexpr double kCountUnit = 1.0;  // a count of rows carries no lattice of its own
  return plain(query.classes, 1, at.replace() && query.classes > 1 ? std::sqrt(2.0) : 1.0, kCountUnit);
}

Result<std::vector<Int128>> sum_of(const ClassCounts& query, const BoundedRows& rows) {
  return count_sum(rows, query.classes, BlockValues::kOmit, [&](const RowBlock& block, std::vector<std::int64_t>& n) {
    for (std::size_t i = 0; i < block.rows; ++i) {
      const std::size_t c = query.classes == 1 ? 0 : rows.classes()[block.first + i];
      if (c < query.classes) ++n[c];
    }
  });
}

// ---- SquaredNorms

Status fits(const SquaredNorms& /*query*/, const RowsFacts& /*rows*/, Adjacency /*adjacency*/) { return {}; }

PrivateSum outline(const SquaredNorms& /*query*/, const Asked& at) { return plain(1, 1, at.L() * at.L(), at.square()); }

Result<std::vector<Int128>> sum_of(const SquaredNorms& /*query*/, const BoundedRows& rows) {
  return count_sum(rows, 1, BlockValues::kOmit, [](const RowBlock& block, std::vector<std::int64_t>& sum) {
    for (std::size_t i = 0; i < block.rows; ++i)
      sum[0] += squared_norm(block.lattice + i * block.columns, block.columns);
  });
}

// ---- ProjectedGram

Status fits(const ProjectedGram& query, const RowsFacts& rows, Adjacency /*adjacency*/) {
  if (lattice_length(query.radius, rows.lattice) < 1) return internal_error("the radius is below one lattice step");
  return check_directions(query.X, rows.columns);
}

PrivateSum outline(const ProjectedGram& query, const Asked& at) {
  const auto radius = static_cast<double>(lattice_length(query.radius, at.lattice));
  return symmetric(query.X.columns(), (at.replace() ? std::sqrt(2.0) : 1.0) * radius * radius, at.square());
}

// The lower triangle, packed by columns. A block's sums stay below 2^19 rows times 2^42.
Result<std::vector<Int128>> sum_of(const ProjectedGram& query, const BoundedRows& rows) {
  const std::size_t k = query.X.columns();
  const std::int64_t radius = lattice_length(query.radius, rows.lattice());
  return count_sum(rows, k * (k + 1) / 2, BlockValues::kFill,
                   [&](const RowBlock& block, std::vector<std::int64_t>& sum) {
                     std::vector<double> t(block.rows * k);
                     query.X.project(block, t.data());
                     for (std::size_t i = 0; i < block.rows; ++i) {
                       double* row = &t[i * k];
                       shorten(row, k, radius);
                       std::int64_t* to = sum.data();
                       for (std::size_t column = 0; column < k; ++column)
                         for (std::size_t r = column; r < k; ++r)
                           *to++ += static_cast<std::int64_t>(row[column] * row[r]);
                     }
                   });
}

// ---- SoftmaxGradient: softmax_gradient.cpp

Status fits(const SoftmaxGradient& query, const RowsFacts& rows, Adjacency /*adjacency*/) {
  return check_softmax(query, rows);
}

PrivateSum outline(const SoftmaxGradient& query, const Asked& at) {
  const auto clip = static_cast<double>(softmax_clip(query, at.lattice));
  return plain(at.columns, query.W.columns(), (at.replace() ? 2.0 : 1.0) * clip, softmax_unit(at.lattice));
}

Result<std::vector<Int128>> sum_of(const SoftmaxGradient& query, const BoundedRows& rows) {
  return softmax_sum(query, rows);
}

// ---- ScoreCounts

bool ascends(const std::vector<double>& cuts) {
  return !cuts.empty() && std::is_sorted(cuts.begin(), cuts.end()) && std::isfinite(cuts.front()) &&
         std::isfinite(cuts.back());
}

Status fits(const ScoreCounts& query, const RowsFacts& rows, Adjacency /*adjacency*/) {
  constexpr std::size_t kMostCells = 1000000;
  if (query.X.columns() != 2) return internal_error("scores are counted along two directions");
  if (!ascends(query.first) || !ascends(query.second)) return internal_error("cuts must be finite and ascend");
  if (query.classes > kMostCells || query.first.size() > kMostCells || query.second.size() > kMostCells ||
      query.cells() > kMostCells)
    return internal_error("there are too many cells");
  EIGENVEIL_TRY(check_directions(query.X, rows.columns));
  return check_classes(query.classes, rows);
}

PrivateSum outline(const ScoreCounts& query, const Asked& at) {
  return plain(query.cells(), 1, at.replace() ? std::sqrt(2.0) : 1.0, 1.0);
}

Result<std::vector<Int128>> sum_of(const ScoreCounts& query, const BoundedRows& rows) {
  const auto in_steps = [&](std::vector<double> cuts) {
    for (double& cut : cuts) cut /= rows.lattice().unit();
    return cuts;
  };
  const std::vector<double> first = in_steps(query.first), second = in_steps(query.second);
  const auto below = [](const std::vector<double>& cuts, double t) {
    return std::upper_bound(cuts.begin(), cuts.end(), t) - cuts.begin();
  };
  return count_sum(rows, query.cells(), BlockValues::kFill, [&](const RowBlock& block, std::vector<std::int64_t>& n) {
    std::vector<double> t(block.rows * 2);
    query.X.project(block, t.data());
    for (std::size_t i = 0; i < block.rows; ++i) {
      const std::size_t c = query.classes == 1 ? 0 : rows.classes()[block.first + i];
      if (c < query.classes)
        ++n[(c * (first.size() + 1) + below(first, t[2 * i])) * (second.size() + 1) + below(second, t[2 * i + 1])];
    }
  });
}

}  // namespace

Status validate(const SumQuery& query, const RowsFacts& rows, Adjacency adjacency) {
  return std::visit([&](const auto& q) { return fits(q, rows, adjacency); }, query);
}

PrivateSum empty_sum(const SumQuery& query, std::size_t columns, const Lattice& lattice, Adjacency adjacency) {
  PrivateSum sum =
      std::visit([at = Asked{columns, lattice, adjacency}](const auto& q) { return outline(q, at); }, query);
  sum.fraction = lattice.weight_bits;
  return sum;
}

Result<PrivateSum> exact_sum(const SumQuery& query, const BoundedRows& rows, Adjacency adjacency) {
  PrivateSum sum = empty_sum(query, rows.columns(), rows.lattice(), adjacency);
  sum.values = EIGENVEIL_TRY(std::visit([&](const auto& q) { return sum_of(q, rows); }, query));
  return sum;
}

Sensitivity sensitivity(const SumQuery& query, const Lattice& lattice, Adjacency adjacency) {
  return empty_sum(query, 1, lattice, adjacency).moved;
}

double deviation_of(const PrivateSum& sum, Mu mu) {
  const auto noise = GaussianMechanism::noise_for(sum, mu);
  if (!noise) return 0;
  const bool symmetric = sum.layout == PrivateSum::Layout::kSymmetric;
  return (symmetric ? noise->deviation_off() : noise->deviation()) * sum.unit;
}

Status validate(const NormExceedance& query, const RowsFacts& rows) {
  if (query.X) EIGENVEIL_TRY(check_directions(*query.X, rows.columns));
  return check_grid(query.grid);
}

Result<PrivateCounts> exact_counts(const NormExceedance& query, const BoundedRows& rows) {
  std::vector<std::int64_t> squares;
  for (const double g : query.grid) {
    const std::int64_t length = lattice_length(g, rows.lattice());
    squares.push_back(length * length);
  }
  const std::size_t k = query.X ? query.X->columns() : 0;
  const auto cells = EIGENVEIL_TRY(count_sum(
      rows, squares.size() + 1, query.X ? BlockValues::kFill : BlockValues::kOmit,
      [&](const RowBlock& block, std::vector<std::int64_t>& n) {
        std::vector<double> t(block.rows * k);
        if (query.X) query.X->project(block, t.data());
        for (std::size_t i = 0; i < block.rows; ++i) {
          const std::int64_t square =
              query.X ? squared_norm_of(&t[i * k], k) : squared_norm(block.lattice + i * block.columns, block.columns);
          const auto cell = std::lower_bound(squares.begin(), squares.end(), square);
          ++n[cell - squares.begin()];
        }
      },
      CountUnit::kCountWeight));
  return counts_above(std::vector<std::int64_t>(cells.begin(), cells.end()), rows.lattice());
}

}  // namespace eigenveil
