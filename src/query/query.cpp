#include "eigenveil/query/query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

Status check_directions(const Directions& X, const BoundedRows& rows) {
  if (X.rows() == rows.columns()) return {};
  return internal_error(fmt::format("directions have {} rows but the data has {} columns", X.rows(), rows.columns()));
}

Status check_grid(const std::vector<double>& grid) {
  const bool good = !grid.empty() && std::all_of(grid.begin(), grid.end(), [](double g) { return g >= 0; }) &&
                    std::is_sorted(grid.begin(), grid.end());
  return good ? Status() : internal_error("a grid must be ascending, not negative and not empty");
}

// theta in units of (lattice step)^2, as an integer: floor, and never above what a row can reach (4 L^2).
std::int64_t lattice_threshold(double theta, const Lattice& lattice) {
  const double steps = std::floor(theta / (lattice.unit() * lattice.unit()));
  const double most = 4.0 * static_cast<double>(lattice.norm_bound() * lattice.norm_bound());
  return static_cast<std::int64_t>(std::clamp(steps, 0.0, most));
}

std::int64_t squared_norm_of(const double* t, std::size_t k) {
  double sum = 0;  // k integers of at most 2^21: exact
  for (std::size_t j = 0; j < k; ++j) sum += t[j] * t[j];
  return static_cast<std::int64_t>(sum);
}

// ||u||^2 ||t||^2 <= theta^2, in 128-bit integers
bool within(std::int64_t u2, std::int64_t t2, std::int64_t theta) {
  return UInt128{static_cast<std::uint64_t>(u2)} * static_cast<std::uint64_t>(t2) <=
         UInt128{static_cast<std::uint64_t>(theta)} * static_cast<std::uint64_t>(theta);
}

void filter_row(double* t, std::size_t k, std::int64_t u2, std::int64_t theta, FilterMode mode) {
  const std::int64_t t2 = squared_norm_of(t, k);
  if (within(u2, t2, theta)) return;
  if (mode == FilterMode::kShrink) {
    // t <- trunc(t theta / (||u|| ||t||)), with a hair less so that rounding cannot lengthen it
    const double length = std::sqrt(static_cast<double>(u2) * static_cast<double>(t2));
    const double factor = static_cast<double>(theta) / length * (1.0 - 0x1p-40);
    for (std::size_t j = 0; j < k; ++j) t[j] = std::trunc(t[j] * factor);
    if (within(u2, squared_norm_of(t, k), theta)) return;
  }
  std::fill_n(t, k, 0.0);
}

Result<std::vector<Int128>> apply_sum(const Apply& query, const BoundedRows& rows) {
  const std::size_t k = query.X.columns();
  const double largest = static_cast<double>(rows.lattice().norm_bound()) * query.X.norm_factor();
  return outer_sum(rows, k, largest, [&](const RowBlock& block, double* t) {
    query.X.project(block, t);
    if (!query.filter) return;
    const std::int64_t theta = lattice_threshold(query.filter->theta, rows.lattice());
    for (std::size_t i = 0; i < block.rows; ++i)
      filter_row(t + i * k, k, squared_norm(block.lattice + i * block.columns, block.columns), theta,
                 query.filter->mode);
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

// counts[j] = number of rows whose statistic is above grid[j]: a row in cell c is above exactly the points before c
PrivateCounts counts_from_cells(const std::vector<Int128>& cells) {
  PrivateCounts counts{std::vector<std::int64_t>(cells.size() - 1)};
  std::int64_t above = 0;
  for (std::size_t j = counts.values.size(); j-- > 0;) {
    above += static_cast<std::int64_t>(cells[j + 1]);
    counts.values[j] = above;
  }
  return counts;
}

Result<PrivateCounts> count_exceedance(const Exceedance& query, const BoundedRows& rows) {
  std::vector<std::int64_t> grid;
  for (const double g : query.grid) grid.push_back(lattice_threshold(g, rows.lattice()));
  const std::size_t k = query.X.columns();
  auto cells =
      count_sum(rows, grid.size() + 1, BlockValues::kFill, [&](const RowBlock& block, std::vector<std::int64_t>& n) {
        std::vector<double> t(block.rows * k);
        query.X.project(block, t.data());
        for (std::size_t i = 0; i < block.rows; ++i) {
          const std::int64_t u2 = squared_norm(block.lattice + i * block.columns, block.columns);
          const std::int64_t t2 = squared_norm_of(&t[i * k], k);
          const auto cell = std::partition_point(grid.begin(), grid.end(),
                                                 [&](std::int64_t theta) { return !within(u2, t2, theta); });
          ++n[static_cast<std::size_t>(cell - grid.begin())];
        }
      });
  if (!cells) return cells.error();
  return counts_from_cells(*cells);
}

PrivateCounts count_raw_norms(const RawNormExceedance& query, const BoundedRows& rows) {
  std::vector<Int128> cells(query.grid.size() + 1);
  for (const double norm : rows.raw_norms())
    ++cells[static_cast<std::size_t>(std::lower_bound(query.grid.begin(), query.grid.end(), norm) -
                                     query.grid.begin())];
  return counts_from_cells(cells);
}

double round_up(double value) { return value * (1.0 + 0x1p-50); }

double apply_sensitivity(const Apply& query, const Lattice& lattice, Adjacency adjacency) {
  const auto L = static_cast<double>(lattice.norm_bound());
  const auto k = static_cast<double>(query.X.columns());
  const double whole = L * L * query.X.norm_factor();
  const bool replace = adjacency == Adjacency::kReplaceOne;
  if (!query.filter) return replace ? std::min(std::sqrt(2.0), std::sqrt(k)) * whole + 2 * L * std::sqrt(k) : whole;
  const auto theta = static_cast<double>(lattice_threshold(query.filter->theta, lattice));
  if (!replace) return std::min(theta, whole);
  return std::min(2 * theta, std::min(std::sqrt(2.0), std::sqrt(k)) * whole + 4 * L * std::sqrt(k));
}

}  // namespace

Status validate(const SumQuery& query, const BoundedRows& rows, Adjacency adjacency) {
  return std::visit(Overloaded{
                        [](const Gram&) { return Status(); },
                        [](const SquaredNorms&) { return Status(); },
                        [&](const Apply& q) -> Status {
                          if (q.filter && lattice_threshold(q.filter->theta, rows.lattice()) < 1)
                            return internal_error("the filter's theta is below one lattice step");
                          return check_directions(q.X, rows);
                        },
                        [&](const ClassSums& q) { return check_classes(q.classes, rows); },
                        [&](const ClassCounts& q) -> Status {
                          if (q.classes == 1 && adjacency == Adjacency::kReplaceOne)
                            return internal_error("the number of rows is public under replace-one: do not ask for it");
                          return check_classes(q.classes, rows);
                        },
                    },
                    query);
}

Status validate(const CountQuery& query, const BoundedRows& rows) {
  return std::visit(Overloaded{
                        [&](const Exceedance& q) -> Status {
                          EIGENVEIL_TRY(check_directions(q.X, rows));
                          return check_grid(q.grid);
                        },
                        [&](const RawNormExceedance& q) -> Status {
                          if (rows.raw_norms().size() != rows.rows())
                            return internal_error("the rows were read without their raw norms");
                          return check_grid(q.grid);
                        },
                    },
                    query);
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
                           },
                           query);
  if (!values) return values.error();
  sum.values = *std::move(values);
  return sum;
}

Result<PrivateCounts> exact_counts(const CountQuery& query, const BoundedRows& rows) {
  if (const auto* exceedance = std::get_if<Exceedance>(&query)) return count_exceedance(*exceedance, rows);
  return count_raw_norms(std::get<RawNormExceedance>(query), rows);
}

Sensitivity sensitivity(const SumQuery& query, const Lattice& lattice, Adjacency adjacency) {
  const auto L = static_cast<double>(lattice.norm_bound());
  const bool replace = adjacency == Adjacency::kReplaceOne;
  return Sensitivity(round_up(std::visit(Overloaded{
                                             [&](const Gram&) { return replace ? std::sqrt(2.0) * L * L : L * L; },
                                             [&](const Apply& q) { return apply_sensitivity(q, lattice, adjacency); },
                                             [&](const ClassSums&) { return replace ? 2 * L : L; },
                                             [&](const ClassCounts&) { return replace ? std::sqrt(2.0) : 1.0; },
                                             [&](const SquaredNorms&) { return L * L; },
                                         },
                                         query)));
}

double unit(const SumQuery& query, const Lattice& lattice) {
  const double step = lattice.unit();
  return std::visit(Overloaded{
                        [&](const Gram&) { return step * step; },
                        [&](const Apply&) { return step * step; },
                        [&](const ClassSums&) { return step; },
                        [&](const ClassCounts&) { return kCountUnit; },
                        [&](const SquaredNorms&) { return step * step; },
                    },
                    query);
}

}  // namespace eigenveil
