// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <random>

#include "eigenveil/verdict/verdict.hpp"

namespace eigenveil {

/// The public random stream of verdicts.
class PublicStream {
 public:
  explicit PublicStream(std::uint64_t seed = 20261117) : random_(seed) {}
  double normal() { return normal_(random_); }
  /// A square root of a chi-squared of `degrees`, which need not be whole.
  double chi(double degrees);
  Matrix normals(Eigen::Index rows, Eigen::Index columns);

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

/// A with A A^T ~ Wishart(I, n) / n: lower triangular (Bartlett 1933), or d x n where there are fewer rows than
/// columns.
Matrix wishart_root(Eigen::Index d, double n, PublicStream& stream);

/// Adds symmetric noise of that deviation off the diagonal, sqrt 2 times as much on it.
void add_noise(Matrix& S, double deviation, PublicStream& stream);

/// R with R R the population behind a released matrix, as far as it shows: eigenvalues without what noise, sampling and
/// the mean's error added, none of them so small that R could not be inverted.
Result<Matrix> population_root(const MomentMatrix& released);

/// A population of which a noisy second moment tells only so much. Entries that noise hides are as they are expected to
/// be, given what is seen: two roots of the same mean, `root`, tell how far that goes.
struct UncertainPopulation {
  Matrix root;       ///< of the mean
  Matrix U;          ///< eigenvectors of the mean
  Vector values;     ///< its eigenvalues
  Matrix deviation;  ///< of entries between them; sqrt 2 times as much on the diagonal
  double least;      ///< eigenvalues are no smaller

  /// A root of one population that it may be.
  Result<Matrix> draw(PublicStream& stream) const;
};
Result<UncertainPopulation> uncertain_population(const MomentMatrix& released);

/// What an estimator finds: values, descending, and directions, one per column.
struct Found {
  Vector values;
  Matrix directions;
};

/// Where draws of the judged directions lie.
struct Lying {
  Vector values;   ///< of the truth that was drawn from: all that are known, 0 where there is none
  Matrix squares;  ///< of each direction's coordinates among the true ones, then of all that is left, as expected
  Matrix spread;   ///< the same; in place of the i-th of the i-th, the variance of its cosine
};

/// An estimator that can be run again on made-up populations: those with the released directions and other values.
struct Rerun {
  /// Those that are judged, and two more if there are: the last one has a neighbour too.
  Found released;
  std::size_t components;  ///< K: how many are judged
  /// d x d, symmetric, of full rank: angles are those between root . directions. Empty: I.
  Matrix root;
  /// One release of a population whose directions are `truth` (root . truth is orthonormal) and whose values are given.
  std::function<Result<Found>(const Vector& values, const Matrix& truth, PublicStream& stream)> draw;
  double most = std::numeric_limits<double>::infinity();  ///< values are below this
  /// A value is more than noise if it lies this many deviations above what a population without it gives. Values that
  /// are squares have longer tails: 3.
  double pass = 2.4;
  bool ratios = false;     ///< values are ratios, which noise in what they are divided by moves by factors
  double effort = 1;       ///< share of the usual number of draws
  Lying* lying = nullptr;  ///< if not null: filled where anything is more than noise
};

/// The most columns for which estimators are run again.
inline constexpr Eigen::Index kMostRerun = 256;

/// Whether each value is more than a population without it would give, one after the other; values for which draws give
/// what was released; how far the directions of draws are from those that they came from.
Result<Verdict> judge_rerun(const Rerun& rerun);

}  // namespace eigenveil
