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

Status check_classes(std::size_t classes, const BoundedRows& rows) {
  if (classes == 0) return internal_error("a query needs at least one class");
  if (classes > 1 && rows.classes().size() != rows.rows()) return internal_error("the rows have no classes");
  return {};
}

// A length in lattice steps: floor, and never above what a projected row can reach (2 L).
std::int64_t lattice_length(double length, const Lattice& lattice) {
  const double most = 2.0 * static_cast<double>(lattice.norm_bound());
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
  const auto cells = count_sum(rows, squares.size() + 1, query.X ? BlockValues::kFill : BlockValues::kOmit,
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
                               });
  if (!cells) return cells.error();
  return counts_above(std::vector<std::int64_t>(cells->begin(), cells->end()));
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

Status validate(const SumQuery& query, const BoundedRows& rows, Adjacency adjacency) {
  return std::visit(Overloaded{
                        [](const Gram&) { return Status(); },
                        [](const SquaredNorms&) { return Status(); },
                        [&](const Apply& q) { return check_directions(q.X, rows); },
                        [&](const ProjectedGram& q) -> Status {
                          if (lattice_length(q.radius, rows.lattice()) < 1)
                            return internal_error("the radius is below one lattice step");
                          return check_directions(q.X, rows);
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

Status validate(const NormExceedance& query, const BoundedRows& rows) {
  if (query.X) EIGENVEIL_TRY(check_directions(*query.X, rows));
  return check_grid(query.grid);
}

Result<PrivateSum> exact_sum(const SumQuery& query, const BoundedRows& rows) {
  const std::size_t d = rows.columns();
  using Layout = PrivateSum::Layout;
  PrivateSum sum;
  auto values = std::visit(Overloaded{
                               [&](const Gram&) {
                                 return sum = {Layout::kSymmetric, d, d, {}}, gram_sum(rows);
                               },
                               [&](const Apply& q) {
                                 return sum = {Layout::kPlain, d, q.X.columns(), {}}, apply_sum(q, rows);
                               },
                               [&](const ClassSums& q) {
                                 return sum = {Layout::kPlain, d, q.classes, {}}, class_sum(q, rows);
                               },
                               [&](const ClassCounts& q) {
                                 return sum = {Layout::kPlain, q.classes, 1, {}}, class_counts(q, rows);
                               },
                               [&](const SquaredNorms&) {
                                 return sum = {Layout::kPlain, 1, 1, {}}, squared_norms(rows);
                               },
                               [&](const ProjectedGram& q) {
                                 const std::size_t k = q.X.columns();
                                 return sum = {Layout::kSymmetric, k, k, {}}, projected_gram(q, rows);
                               },
                               [&](const SoftmaxGradient& q) {
                                 return sum = {Layout::kPlain, d, q.W.columns(), {}}, softmax_sum(q, rows);
                               },
                           },
                           query);
  if (!values) return values.error();
  sum.values = *std::move(values);
  return sum;
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

bool symmetric(const SumQuery& query) {
  return std::holds_alternative<Gram>(query) || std::holds_alternative<ProjectedGram>(query);
}

double unit(const SumQuery& query, const Lattice& lattice) {
  const double step = lattice.unit();
  return std::visit(Overloaded{
                        [&](const Gram&) { return step * step; },
                        [&](const Apply&) { return step * step; },
                        [&](const ClassSums&) { return step; },
                        [&](const ClassCounts&) { return kCountUnit; },
                        [&](const SquaredNorms&) { return step * step; },
                        [&](const ProjectedGram&) { return step * step; },
                        [&](const SoftmaxGradient&) { return softmax_unit(lattice); },
                    },
                    query);
}

}  // namespace eigenveil
