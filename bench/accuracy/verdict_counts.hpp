// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/QR>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "eigenveil/estimators/pca/method.hpp"
#include "eigenveil/verdict/verdict.hpp"

namespace eigenveil::bench {

using Index = Eigen::Index;
using Random = std::mt19937_64;

inline double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
/// Evenly on a logarithmic scale.
inline double spaced(Random& random, double low, double high) {
  return std::exp(uniform(random, std::log(low), std::log(high)));
}

inline Matrix gaussian(Random& random, Index rows, Index columns) {
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, columns, [&] { return normal(random); });
}

inline Matrix rotation(Random& random, Index d) {
  return Eigen::HouseholderQR<Matrix>(gaussian(random, d, d)).householderQ();
}

/// Counts of one shape.
struct Counts {
  double bands = 0, held = 0;  // eigenvalues of what is more than noise
  double loadings = 0, loadings_held = 0;
  double findings = 0, wrong_sign = 0;
  double holds = 0, holds_wrong = 0;
  double planes = 0, planes_wrong = 0;
  double good = 0, good_noise = 0, good_holds = 0;  // cos^2 above 0.9
  double shares = 0, shares_held = 0;
  double first_noise = 0, all_noise = 0, sets = 0;
  double seconds = 0;
};

/// A population: eigenvalues and eigenvectors, and rows of it.
struct Population {
  Vector l;
  Matrix U;
  std::function<Matrix(Index n)> sample;     ///< covariance of n of its rows, as a stated bound leaves them
  std::function<Matrix(Index n)> rows = {};  ///< about their mean, whole
};

Population population_of(const std::string& shape, Index d, Index k, Random& random);

/// One more release, and whether all of it was called noise.
void count_noise(Counts& counts, const Verdict& verdict);

/// What a verdict says of the released directions V, beside the truth.
void count(Counts& counts, const Verdict& verdict, const Matrix& V, const Vector& l, const Matrix& U);

/// Where data sets are drawn from, evenly on logarithmic scales.
struct Sizes {
  double least_rows = 1000, most_rows = 20000;
  double least_epsilon = 0.5, most_epsilon = 4;
  double least_columns = 10, most_columns = 50;  // of principal components
};

/// How principal components are found.
struct Way {
  PcaMethod method = PcaMethod::kGram;
  bool found = false;  ///< private mean and found bound, as by default; else about zero, with a bound that cuts nothing
  bool correlations = false;
  Index components = 0;  ///< 0: 1 to 5
};

// Through the estimator.
/// Principal components of rows of that shape.
Counts of_components(const std::string& shape, const Way& way, const Sizes& sizes, int sets);
/// Two views with canonical correlations .9, .6 and .3, or none.
Counts of_views(bool noise, bool found, const Sizes& sizes, int sets);
/// Four classes that lie apart along two directions, or nowhere.
Counts of_classes(bool noise, bool found, const Sizes& sizes, int sets);
/// A response that follows one direction, in five slices.
Counts of_slices(bool noise, bool found, const Sizes& sizes, int sets);
/// Matrices that are given with their sensitivities.
Counts of_matrices(bool noise, const Sizes& sizes, int sets);

/// Releases of second moments of that many columns, made directly (rows or a Wishart matrix, then noise).
Counts of_moments(const std::string& shape, int sets, Index least, Index most);

}  // namespace eigenveil::bench
