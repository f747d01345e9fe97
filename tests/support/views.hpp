#pragma once

#include "tests/support/fit.hpp"

namespace eigenveil::test {

/// Two views with one canonical pair (u, w) of a given correlation; everything else is independent and of variance 1.
struct TwoViews {
  RowMajorMatrix rows;  ///< n x (d1 + d2)
  Vector u;
  Vector w;
};

inline TwoViews correlated_views(std::mt19937_64& random, Eigen::Index n, Eigen::Index d1, Eigen::Index d2,
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

/// 1 - |cos| of two vectors.
inline double misalignment(const Vector& a, const Vector& b) {
  return 1 - std::fabs(a.dot(b)) / std::max(a.norm() * b.norm(), 1e-300);
}

inline Vector stacked(const Vector& a, const Vector& b) {
  Vector both(a.size() + b.size());
  both << a, b;
  return both;
}

}  // namespace eigenveil::test
