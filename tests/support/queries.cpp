// SPDX-License-Identifier: Apache-2.0
#include "tests/support/queries.hpp"

#include "eigenveil/linalg/subspace.hpp"

namespace eigenveil::test {

Matrix random_directions(std::mt19937_64& random, std::size_t d, std::size_t k) {
  std::normal_distribution<double> normal;
  Matrix A(static_cast<Eigen::Index>(d), static_cast<Eigen::Index>(k));
  for (Eigen::Index i = 0; i < A.size(); ++i) A.data()[i] = normal(random);
  return orthonormal(A);
}

SumQuery random_query(std::mt19937_64& random, std::size_t kind, const Matrix& X, int bits) {
  const double L = std::ldexp(1.0, bits);
  const double radius = std::max(1.0, L * std::exp(-3 * std::uniform_real_distribution<>()(random)));
  switch (kind) {
    case 0:
      return Gram{};
    case 1:
      return Apply{*Directions::quantise(X)};
    case 2:
      return ProjectedGram{*Directions::quantise(X), radius};
    case 3:
      return ClassSums{kClasses};
    case 4:
      return ClassSums{1};
    case 5:
      return ClassCounts{kClasses};
    case 6:
      return ClassCounts{1};
    case 7:
      return SquaredNorms{};
    case 8: {
      // Along two directions that lean on each other, with cuts that rows lie on, too.
      Matrix Y(X.rows(), 2);
      Y << 0.7 * X.col(0), 0.7 * X.col(X.cols() - 1);
      std::vector<double> cuts = {-std::ldexp(1.0, bits - 2), 0, std::ldexp(1.0, bits - 1)};
      return ScoreCounts{*Directions::quantise(Y),
                         cuts,
                         {static_cast<double>(random() % 8)},
                         random() % 2 == 0 ? std::size_t{kClasses} : std::size_t{1}};
    }
    case 9: {
      // From residuals of all classes alike to one class that is certain.
      std::normal_distribution<double> normal(0, std::exp(8 * std::uniform_real_distribution<>(-1, 0.2)(random)));
      const Matrix W = Matrix::NullaryExpr(X.rows(), kClasses, [&] { return normal(random); });
      return SoftmaxGradient{*LinearMap::quantise(W), radius};
    }
    default:
      ADD_FAILURE() << "there is no kind " << kind;
      return Gram{};
  }
}

}  // namespace eigenveil::test
