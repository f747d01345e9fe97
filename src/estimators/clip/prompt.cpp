// SPDX-License-Identifier: Apache-2.0
#include "prompt.hpp"

#include <cmath>

#include "eigenveil/linalg/decompositions.hpp"

namespace eigenveil {

Result<TextSide> simplex_of(const Matrix& captions, std::size_t r) {
  const Eigen::Index rank = r;
  TextSide side;
  side.mean = captions.colwise().mean();
  const Svd svd = thin_svd(captions.rowwise() - side.mean.transpose());
  if (rank > svd.values.size() || !(svd.values[rank - 1] > 1e-6 * svd.values[0]))
    return bad_input("the captions of the classes do not differ enough: two of them say the same");
  side.weights = svd.values.head(rank).cwiseInverse().asDiagonal() * svd.V.leftCols(rank).transpose();

  // Corners of unit length; the scores that they can give, up to a constant
  const Matrix corners = svd.U.leftCols(rank).rowwise().normalized();
  const Matrix centred = corners.rowwise() - corners.colwise().mean();
  side.solve = pseudo_inverse(centred);
  side.allowed = centred * side.solve;
  return side;
}

Result<Matrix> descend(Oracle& oracle, const std::string& label, double rows, const Matrix& allowed,
                       const ClipOptions& options) {
  const Eigen::Index d = oracle.shape().columns;
  Matrix theta = Matrix::Zero(d, allowed.rows());
  Matrix velocity = theta, total = theta;
  const auto kept = std::max<std::size_t>(
      1, static_cast<std::size_t>(std::lround(options.average * static_cast<double>(options.sweeps))));
  for (std::size_t sweep = 0; sweep < options.sweeps; ++sweep) {
    auto W = EIGENVEIL_TRY(LinearMap::quantise(theta));
    const auto sum = EIGENVEIL_TRY(oracle.ask(label, SoftmaxGradient{std::move(W), options.clip}));
    // v <- beta v + g,  theta <- theta - eta v
    velocity = options.momentum * velocity + sum.value() / rows * allowed;
    theta -= options.step * velocity;
    if (sweep + kept >= options.sweeps) total += theta;
  }
  return Matrix(total / static_cast<double>(kept));
}

}  // namespace eigenveil
