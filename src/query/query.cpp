#include "eigenveil/query/query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "details.hpp"
#include "softmax_gradient.hpp"

namespace eigenveil {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

// A count of rows carries no lattice of its own; any integer works, and 1 is it.
constexpr double kCountUnit = 1.0;

Status check_classes(std::size_t classes, const RowsFacts& rows) {
  if (classes == 0) return internal_error("a query needs at least one class");
  if (classes > 1 && !rows.classes) return internal_error("the rows have no classes");
  return {};
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

Result<std::vector<Int128>> apply_sum(const Apply& query, const BoundedRows& rows) {
  const std::size_t k = query.X.columns();
  const double largest = static_cast<double>(rows.lattice().norm_bound()) * query.X.norm_factor();
  return outer_sum(rows, k, largest, [&](const RowBlock& block, double* t) { query.X.project(block, t); });
}

// The lower triangle, packed by columns. A block's sums stay below 2^19 rows times 2^42.
Result<std::vector<Int128>> projected_gram(const ProjectedGram& query, const BoundedRows& rows) {
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

Result<std::vector<Int128>> class_sum(const ClassSums& query, const BoundedRows& rows) {
  return outer_sum(rows, query.classes, 1.0, [&](const RowBlock& block, double* t) {
    std::fill_n(t, block.rows * query.classes, 0.0);
    for (std::size_t i = 0; i < block.rows; ++i) {
      const std::size_t c = query.classes == 1 ? 0 : static_cast<std::size_t>(rows.classes()[block.first + i]);
      if (c < query.classes) t[i * query.classes + c] = 1.0;
    }
  });
}

Result<std::vector<Int128>> class_counts(const ClassCounts& query, const BoundedRows& rows) {
  return count_sum(rows, query.classes, BlockValues::kOmit, [&](const RowBlock& block, std::vector<std::int64_t>& n) {
    for (std::size_t i = 0; i < block.rows; ++i) {
      const std::size_t c = query.classes == 1 ? 0 : static_cast<std::size_t>(rows.classes()[block.first + i]);
      if (c < query.classes) ++n[c];
    }
  });
}

Result<std::vector<Int128>> squared_norms(const BoundedRows& rows) {
  return count_sum(rows, 1, BlockValues::kOmit, [](const RowBlock& block, std::vector<std::int64_t>& sum) {
    for (std::size_t i = 0; i < block.rows; ++i)
      sum[0] += squared_norm(block.lattice + i * block.columns, block.columns);
  });
}

Result<PrivateCounts> count_norms(const NormExceedance& query, const BoundedRows& rows) {
  std::vector<std::int64_t> squares;
  for (const double g : query.grid) {
    const std::int64_t length = lattice_length(g, rows.lattice());
    squares.push_back(length * length);
  }
  const std::size_t k = query.X ? query.X->columns() : 0;
  const auto cells =
      EIGENVEIL_TRY(count_sum(rows, squares.size() + 1, query.X ? BlockValues::kFill : BlockValues::kOmit,
                              [&](const RowBlock& block, std::vector<std::int64_t>& n) {
                                std::vector<double> t(block.rows * k);
                                if (query.X) query.X->project(block, t.data());
                                for (std::size_t i = 0; i < block.rows; ++i) {
                                  const std::int64_t square =
                                      query.X ? squared_norm_of(&t[i * k], k)
                                              : squared_norm(block.lattice + i * block.columns, block.columns);
                                  const auto cell = std::lower_bound(squares.begin(), squares.end(), square);
                                  ++n[static_cast<std::size_t>(cell - squares.begin())];
                                }
                              }));
  return counts_above(std::vector<std::int64_t>(cells.begin(), cells.end()));
}

double apply_sensitivity(const Apply& query, const Lattice& lattice, Adjacency adjacency) {
  const auto L = static_cast<double>(lattice.norm_bound());
  const auto k = static_cast<double>(query.X.columns());
  const double whole = L * L * query.X.norm_factor();
  return adjacency == Adjacency::kReplaceOne ? std::min(std::sqrt(2.0), std::sqrt(k)) * whole + 2 * L * std::sqrt(k)
                                             : whole;
}

double projected_sensitivity(const ProjectedGram& query, const Lattice& lattice, Adjacency adjacency) {
  const auto radius = static_cast<double>(lattice_length(query.radius, lattice));
  return (adjacency == Adjacency::kReplaceOne ? std::sqrt(2.0) : 1.0) * radius * radius;
}

}  // namespace

Status validate(const SumQuery& query, const RowsFacts& rows, Adjacency adjacency) {
  return std::visit(Overloaded{
                        [](const Gram&) { return Status(); },
                        [](const SquaredNorms&) { return Status(); },
                        [&](const Apply& q) { return check_directions(q.X, rows.columns); },
                        [&](const ProjectedGram& q) -> Status {
                          if (lattice_length(q.radius, rows.lattice) < 1)
                            return internal_error("the radius is below one lattice step");
                          return check_directions(q.X, rows.columns);
                        },
                        [&](const SoftmaxGradient& q) { return check_softmax(q, rows); },
                        [&](const ClassSums& q) { return check_classes(q.classes, rows); },
                        [&](const ClassCounts& q) -> Status {
                          if (q.classes == 1 && adjacency == Adjacency::kReplaceOne)
                            return internal_error("the number of rows is public under replace-one: do not ask for it");
                          return check_classes(q.classes, rows);
                        },
                    },
                    query);
}

Status validate(const NormExceedance& query, const RowsFacts& rows) {
  if (query.X) EIGENVEIL_TRY(check_directions(*query.X, rows.columns));
  return check_grid(query.grid);
}

PrivateSum empty_sum(const SumQuery& query, std::size_t columns, const Lattice& lattice, Adjacency adjacency) {
  const double step = lattice.unit();
  const auto plain = [&](std::size_t rows, std::size_t width, double unit) {
    return PrivateSum{PrivateSum::Layout::kPlain, rows, width, sensitivity(query, lattice, adjacency), unit, {}};
  };
  const auto symmetric = [&](std::size_t rows) {
    return PrivateSum{PrivateSum::Layout::kSymmetric,         rows,        rows,
                      sensitivity(query, lattice, adjacency), step * step, {}};
  };
  return std::visit(Overloaded{
                        [&](const Gram&) { return symmetric(columns); },
                        [&](const Apply& q) { return plain(columns, q.X.columns(), step * step); },
                        [&](const ClassSums& q) { return plain(columns, q.classes, step); },
                        [&](const ClassCounts& q) { return plain(q.classes, 1, kCountUnit); },
                        [&](const SquaredNorms&) { return plain(1, 1, step * step); },
                        [&](const ProjectedGram& q) { return symmetric(q.X.columns()); },
                        [&](const SoftmaxGradient& q) { return plain(columns, q.W.columns(), softmax_unit(lattice)); },
                    },
                    query);
}

Result<PrivateSum> exact_sum(const SumQuery& query, const BoundedRows& rows, Adjacency adjacency) {
  auto values = EIGENVEIL_TRY(std::visit(Overloaded{
                                             [&](const Gram&) { return gram_sum(rows); },
                                             [&](const Apply& q) { return apply_sum(q, rows); },
                                             [&](const ClassSums& q) { return class_sum(q, rows); },
                                             [&](const ClassCounts& q) { return class_counts(q, rows); },
                                             [&](const SquaredNorms&) { return squared_norms(rows); },
                                             [&](const ProjectedGram& q) { return projected_gram(q, rows); },
                                             [&](const SoftmaxGradient& q) { return softmax_sum(q, rows); },
                                         },
                                         query));
  PrivateSum sum = empty_sum(query, rows.columns(), rows.lattice(), adjacency);
  sum.values = std::move(values);
  return sum;
}

double deviation_of(const PrivateSum& sum, Mu mu) {
  const auto noise = GaussianMechanism::noise_for(sum.moved, mu);
  if (!noise) return 0;
  const bool symmetric = sum.layout == PrivateSum::Layout::kSymmetric;
  return (symmetric ? noise->deviation_off() : noise->deviation()) * sum.unit;
}

Result<PrivateCounts> exact_counts(const NormExceedance& query, const BoundedRows& rows) {
  return count_norms(query, rows);
}

Sensitivity sensitivity(const SumQuery& query, const Lattice& lattice, Adjacency adjacency) {
  const auto L = static_cast<double>(lattice.norm_bound());
  const bool replace = adjacency == Adjacency::kReplaceOne;
  return Sensitivity(
      round_up(std::visit(Overloaded{
                              [&](const Gram&) { return replace ? std::sqrt(2.0) * L * L : L * L; },
                              [&](const Apply& q) { return apply_sensitivity(q, lattice, adjacency); },
                              [&](const ClassSums&) { return replace ? 2 * L : L; },
                              [&](const ClassCounts&) { return replace ? std::sqrt(2.0) : 1.0; },
                              [&](const SquaredNorms&) { return L * L; },
                              [&](const ProjectedGram& q) { return projected_sensitivity(q, lattice, adjacency); },
                              [&](const SoftmaxGradient& q) {
                                return (replace ? 2.0 : 1.0) * static_cast<double>(softmax_clip(q, lattice));
                              },
                          },
                          query)));
}

}  // namespace eigenveil
