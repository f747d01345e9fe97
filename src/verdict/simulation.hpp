// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
  /// `apart`: for each direction, whether its value was told from that of the next; a run that could swap with its
  /// neighbours is not determined. Beyond its end all are apart.
  std::vector<Judged> judge(const std::vector<bool>& apart) const;
  /// d x q: expected squares of the coordinates of the released directions
  Matrix squares() const { return square_ / static_cast<double>(std::max<std::size_t>(1, blocks_.size())); }
  /// The same; in place of the i-th of the i-th, the
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

/// Two equal values whose entries have variance v come out further apart than x sqrt(v) with probability exp(-x^2 / 8):
/// the eigenvalues of a 2 x 2 block of noise. They are told apart beyond this x, one time in two hundred by mistake.
inline constexpr double kApart = 6.5;

/// Whether directions first..last end where values were told apart.
bool ends_apart(const std::vector<bool>& apart, Eigen::Index first, Eigen::Index last);

/// Deviation of loadings, d x q: dev_ai^2 = sum_j U_aj^2 spread_ji, where the coordinates beyond the columns of U share
/// what is left of each row evenly.
Matrix loading_deviation(const Matrix& U, const Matrix& spread);

}  // namespace eigenveil
