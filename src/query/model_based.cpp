#include "eigenveil/query/model_based.hpp"

#include <fmt/format.h>

#include <cmath>

#include "details.hpp"
#include "eigenveil/linalg/eigen.hpp"

namespace eigenveil {
namespace {

constexpr double kProjectorUnit = 0x1p-40;  // entries of a projector are at most 1

// The lower triangle, packed by columns: trunc(P / unit)
std::vector<Int128> packed(const Matrix& P) {
  std::vector<Int128> values;
  for (Eigen::Index j = 0; j < P.cols(); ++j)
    for (Eigen::Index i = j; i < P.rows(); ++i) values.push_back(static_cast<std::int64_t>(P(i, j) / kProjectorUnit));
  return values;
}

Result<PrivateSum> projector(const SpikedProjector& query, const PrivateSum& gram) {
  const auto d = static_cast<Eigen::Index>(gram.rows);
  Matrix G(d, d);
  const Int128* value = gram.values.data();
  for (Eigen::Index j = 0; j < d; ++j)
    for (Eigen::Index i = j; i < d; ++i) G(i, j) = G(j, i) = std::ldexp(static_cast<double>(*value++), -40);
  const auto top = top_eigenpairs(G, query.rank);
  if (!top) return top.error();
  const Matrix P = top->vectors * top->vectors.transpose();
  return PrivateSum{PrivateSum::Layout::kSymmetric, gram.rows, gram.rows, packed(P)};
}

double assumed(const ModelQuery& query) {
  return std::visit([](const auto& q) { return q.assumed_sensitivity; }, query);
}

}  // namespace

Status validate(const ModelQuery& query, const BoundedRows& rows, Adjacency adjacency) {
  if (adjacency != Adjacency::kReplaceOne)
    return usage_error("a model-based guarantee is stated for replace-one neighbours: use --adjacency replace-one");
  if (!(assumed(query) > 0) || !std::isfinite(assumed(query)))
    return internal_error("an assumed sensitivity must be positive and finite");
  if (const auto* q = std::get_if<SpikedProjector>(&query)) {
    if (q->rank < 1 || q->rank >= rows.columns())
      return usage_error(fmt::format("--rank must lie between 1 and {}, but is {}", rows.columns() - 1, q->rank));
    return {};
  }
  return check_directions(std::get<SpikedBlock>(query).X, rows);
}

SumQuery sum_behind(const ModelQuery& query, const Lattice& lattice) {
  if (std::holds_alternative<SpikedProjector>(query)) return Gram{};
  // Projections are at most 2 B long, so this radius shortens none.
  return ProjectedGram{std::get<SpikedBlock>(query).X, 2 * lattice.radius};
}

Result<PrivateSum> exact_value(const ModelQuery& query, PrivateSum sum) {
  if (const auto* q = std::get_if<SpikedProjector>(&query)) return projector(*q, sum);
  return sum;
}

double unit(const ModelQuery& query, const Lattice& lattice) {
  return std::holds_alternative<SpikedProjector>(query) ? kProjectorUnit : lattice.unit() * lattice.unit();
}

Sensitivity assumed_sensitivity(const ModelQuery& query, const Lattice& lattice) {
  return Sensitivity(round_up(assumed(query) / unit(query, lattice)));
}

}  // namespace eigenveil
