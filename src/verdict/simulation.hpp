// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eigenveil/verdict/simulated.hpp"

namespace eigenveil {

/// Directions that the estimator found in draws, in a basis in which the i-th true direction is the i-th unit vector.
class DrawnDirections {
 public:
  /// `d` coordinates, of which the first `q` directions are judged.
  DrawnDirections(Eigen::Index d, Eigen::Index q) : square_(Matrix::Zero(d, q)), cos_(Vector::Zero(q)), q_(q) {}

  /// Unit columns: d x q.
  void add(const Matrix& V);

  /// E cos^2 of each direction, and what is said of them.
  Vector cos2() const;
  std::vector<Judged> judge() const;
  /// d x q: expected squares of the coordinates of the released directions; in place of the i-th of the i-th, the
  /// variance of its cosine.
  Matrix spread() const;

 private:
  /// How much of each of the directions first..last lies in the space of the true ones, the least of them: in each
  /// draw.
  std::vector<double> group(Eigen::Index first, Eigen::Index last) const;

  Matrix square_;               // sum over draws of V o V
  Vector cos_;                  // sum over draws of |V_ii|
  std::vector<Matrix> blocks_;  // (V o V) of the first q coordinates, in each draw
  Eigen::Index q_;
};

/// Deviation of loadings, d x q: dev_ai^2 = sum_j U_aj^2 spread_ji, where the coordinates beyond the columns of U share
/// what is left of each row evenly.
Matrix loading_deviation(const Matrix& U, const Matrix& spread);

}  // namespace eigenveil
