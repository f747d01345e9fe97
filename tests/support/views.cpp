// SPDX-License-Identifier: Apache-2.0
#include "tests/support/views.hpp"

namespace eigenveil::test {

TwoViews correlated_views(std::mt19937_64& random, Eigen::Index n, Eigen::Index d1, Eigen::Index d2,
                          double correlation) {
  const Vector u = normal_matrix(random, d1, 1).col(0).normalized();
  const Vector w = normal_matrix(random, d2, 1).col(0).normalized();
  TwoViews views{normal_matrix(random, n, d1 + d2), u, w};
  // y <- y + w (r u^T x + (sqrt(1 - r^2) - 1) w^T y): unit variance along w, correlation r with u^T x
  const Vector along = correlation * (views.rows.leftCols(d1) * u) +
                       (std::sqrt(1 - correlation * correlation) - 1) * (views.rows.rightCols(d2) * w);
  views.rows.rightCols(d2) += along * w.transpose();
  return views;
}

Matrix on_the_lattice(const RowMajorMatrix& rows, double radius) {
  const BoundedRows bounded = bound_matrix(rows, radius);
  std::vector<std::int32_t> buffer;
  Matrix values(rows.rows(), rows.cols());
  for (std::size_t chunk = 0, i = 0; chunk < bounded.store().chunks(); ++chunk) {
    const std::int32_t* u = *bounded.store().read(chunk, buffer);
    for (std::size_t r = 0; r < bounded.store().rows_in(chunk); ++r, ++i)
      for (Eigen::Index j = 0; j < rows.cols(); ++j)
        values(static_cast<Eigen::Index>(i), j) = *u++ * bounded.lattice().unit();
  }
  return values;
}

BoundedRows bound_classed(const RowMajorMatrix& rows, const std::vector<int>& classes, double radius, int threads) {
  RowMajorMatrix raw(rows.rows(), rows.cols() + 1);
  raw.leftCols(rows.cols()) = rows;
  for (Eigen::Index i = 0; i < rows.rows(); ++i) raw(i, rows.cols()) = classes[static_cast<std::size_t>(i)];
  MemorySource source(raw);
  std::vector<std::string> names(source.columns().begin(), source.columns().end() - 1);
  BoundingOptions options{.bound = *RowBound::of(radius)};
  options.threads = threads;
  options.class_column = names.size();
  return *BoundedRows::read(source, ColumnMap::identity(names), options);
}

}  // namespace eigenveil::test
