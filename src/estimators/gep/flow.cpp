// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/gep/flow.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "eigenveil/linalg/decompositions.hpp"

namespace eigenveil {
namespace {

struct Block {
  Matrix V;
  Matrix AV;
  Matrix BV;
  Vector rho;
};

Matrix symmetric(const Matrix& S) { return (S + S.transpose()) / 2; }

// W with W^T b W = I, eigenvalues of b no smaller than `least`
Matrix whitener(const Matrix& b, double least) {
  const SymmetricEigen eigen = symmetric_eigen(symmetric(b));
  const double floor = std::max({least, 1e-9 * eigen.values.cwiseAbs().maxCoeff(), 1e-300});
  return eigen.vectors * eigen.values.cwiseMax(floor).cwiseSqrt().cwiseInverse().asDiagonal();
}

// C^T (V^T B V) C = I, C^T (V^T A V) C = diag(rho)
void solve_small(Block& block, double least_b) {
  const Matrix W = whitener(block.V.transpose() * block.BV, least_b);
  const SymmetricEigen eigen = symmetric_eigen(W.transpose() * symmetric(block.V.transpose() * block.AV) * W);
  const Matrix C = W * eigen.vectors.rowwise().reverse();
  block.rho = eigen.values.reverse();
  block.V *= C;
  block.AV *= C;
  block.BV *= C;
}

// The same for two views, each rotated by its own C: (V_x^T B_x V_x) and (V_y^T B_y V_y) become I / 2.
void solve_small_views(Block& block, Eigen::Index dx, double least_b) {
  const Eigen::Index dy = block.V.rows() - dx;
  const auto x = [dx](Matrix& M) { return M.topRows(dx); };
  const auto y = [dy](Matrix& M) { return M.bottomRows(dy); };
  const Matrix Wx = whitener(x(block.V).transpose() * x(block.BV), least_b);
  const Matrix Wy = whitener(y(block.V).transpose() * y(block.BV), least_b);
  // V_x^T S_xy V_y: the products of both views give it, each with its own noise; their mean has less
  const Matrix cross = (x(block.V).transpose() * x(block.AV) + (y(block.V).transpose() * y(block.AV)).transpose()) / 2;
  const Svd svd = full_svd(Wx.transpose() * cross * Wy);
  const Matrix Cx = Wx * svd.U / std::sqrt(2.0);
  const Matrix Cy = Wy * svd.V / std::sqrt(2.0);
  block.rho = svd.values;
  for (Matrix* M : {&block.V, &block.BV}) {
    x(*M) *= Cx;
    y(*M) *= Cy;
  }
  x(block.AV) *= Cy;
  y(block.AV) *= Cx;
}

// The norm of the `count` largest entries.
double leading_norm(const Vector& v, std::size_t count) {
  if (count >= static_cast<std::size_t>(v.size())) return v.norm();
  std::vector<double> squares(v.data(), v.data() + v.size());
  for (double& x : squares) x *= x;
  const auto middle = squares.begin() + count;
  std::nth_element(squares.begin(), middle, squares.end(), std::greater<>());
  return std::sqrt(std::accumulate(squares.begin(), middle, 0.0));
}

// Keeps the s rows of V of largest norm.
void keep_rows(Matrix& V, std::optional<std::size_t> s) {
  if (!s || *s >= static_cast<std::size_t>(V.rows())) return;
  std::vector<double> norms(V.rows());
  for (std::size_t i = 0; i < norms.size(); ++i) norms[i] = V.row(i).squaredNorm();
  std::vector<Eigen::Index> order(norms.size());
  std::iota(order.begin(), order.end(), 0);
  std::nth_element(order.begin(), order.begin() + *s, order.end(),
                   [&](Eigen::Index a, Eigen::Index b) { return norms[a] > norms[b]; });
  for (std::size_t i = *s; i < order.size(); ++i) V.row(order[i]).setZero();
}

void normalise(Matrix& V) {
  for (Eigen::Index j = 0; j < V.cols(); ++j)
    if (const double norm = V.col(j).norm(); norm > 0) V.col(j) /= norm;
}

// v <- v + (eta / rho)(A v - rho B v), the paper's algorithms 1 and 3
Result<FlowResult> literal_flow(const Multiply& multiply, Matrix V, const FlowOptions& options) {
  double rho = 0;
  double b = 1;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    const auto products = EIGENVEIL_TRY(multiply(V));
    const double a = V.col(0).dot(products.AV.col(0));
    b = V.col(0).dot(products.BV.col(0));
    rho = a / b;
    const Matrix step = products.AV / rho - products.BV;
    if (!step.allFinite()) continue;
    V += options.step.value_or(1.0) * step;
    normalise(V);
    keep_rows(V, options.sparsity);
    normalise(V);
  }
  return FlowResult{V / std::sqrt(std::max(std::fabs(b), 1e-300)), Vector::Constant(1, rho), options.rounds};
}

// The mean of vectors whose signs and order may change from round to round.
class Average {
 public:
  void add(const Block& block, const Vector& b) {
    Matrix aligned = block.V;
    Vector rho = block.rho;
    if (count_ > 0) {
      const Svd svd = full_svd(block.V.transpose() * sum_);
      aligned = block.V * (svd.U * svd.V.transpose());
    }
    sum_ = count_ == 0 ? aligned : Matrix(sum_ + aligned);
    rho_ = count_ == 0 ? rho : Vector(rho_ + rho);
    b_ = count_ == 0 ? b : Vector(b_ + b);
    ++count_;
  }
  FlowResult result(const FlowOptions& options, std::size_t rounds) const {
    Matrix V = sum_;
    keep_rows(V, options.sparsity);
    normalise(V);
    const auto count = static_cast<double>(count_);
    // b is v^T B v of unit vectors
    for (Eigen::Index j = 0; j < V.cols(); ++j)
      V.col(j) /= std::sqrt(std::max({b_[j] / count, options.least_b, 1e-300}));
    return {V, rho_ / count, rounds};
  }

 private:
  Matrix sum_;
  Vector rho_;
  Vector b_;
  std::size_t count_ = 0;
};

}  // namespace

Matrix random_start(std::size_t d, std::size_t k, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Matrix V = Matrix::NullaryExpr(d, k, [&] { return normal(random); });
  normalise(V);
  return V;
}

Result<FlowResult> rayleigh_flow(const Multiply& multiply, Matrix V, const FlowOptions& options) {
  if (options.literal) return literal_flow(multiply, std::move(V), options);
  Average average;
  double largest_a = 0;
  double largest_b = 0;
  double largest_rho = 0;
  std::size_t round = 0;
  while (round < options.rounds) {
    ++round;
    auto products = EIGENVEIL_TRY(multiply(V));
    Block block{V, std::move(products.AV), std::move(products.BV), {}};
    if (options.first_view)
      solve_small_views(block, *options.first_view, options.least_b);
    else
      solve_small(block, options.least_b);

    const std::size_t d = V.rows();
    const std::size_t kept = 2 * options.sparsity.value_or(d);
    Vector b(block.V.cols());
    Matrix next(block.V.rows(), block.V.cols());
    largest_rho = std::max(largest_rho, block.rho.cwiseAbs().maxCoeff());
    for (Eigen::Index j = 0; j < next.cols(); ++j) {
      const double norm = std::max(block.V.col(j).norm(), 1e-300);
      block.V.col(j) /= norm;
      block.AV.col(j) /= norm;
      block.BV.col(j) /= norm;
      b[j] = 1 / (norm * norm);
      largest_b = std::max(largest_b, leading_norm(block.BV.col(j), kept));
      largest_a = std::max(largest_a, leading_norm(block.AV.col(j), kept));
    }
    for (Eigen::Index j = 0; j < next.cols(); ++j) {
      // v + eta (A v - rho B v) / |rho|
      const double rho = block.rho[j];
      const double scale = std::max({std::fabs(rho), 0.05 * largest_rho, 1e-300});
      const double swing = options.semidefinite || options.first_view ? 0 : largest_a / scale;
      const double eta = options.step.value_or(1 / std::max(largest_b + swing, 1e-300));
      next.col(j) = block.V.col(j) + eta * (block.AV.col(j) - rho * block.BV.col(j)) / scale;
    }
    keep_rows(next, options.sparsity);
    normalise(next);
    const double moved = (next - block.V).norm();
    V = next;
    Block after{V, {}, {}, block.rho};
    if (!options.average) average = Average();
    if (!options.average || 2 * round > options.rounds) average.add(after, b);
    if (moved < options.tolerance) break;
  }
  return average.result(options, round);
}

}  // namespace eigenveil
