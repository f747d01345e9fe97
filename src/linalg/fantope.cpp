// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/linalg/fantope.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

namespace eigenveil {
namespace {

double capped_sum(const Vector& w, double gamma) { return (w.array() - gamma).max(0.0).min(1.0).sum(); }

Matrix soft(const Matrix& P, double threshold) {
  return P.unaryExpr([threshold](double x) { return std::copysign(std::max(std::fabs(x) - threshold, 0.0), x); });
}

Matrix project_fantope(const Matrix& S, double K) {
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(S);
  return eigen.eigenvectors() * project_capped_simplex(eigen.eigenvalues(), K).asDiagonal() *
         eigen.eigenvectors().transpose();
}

}  // namespace

Vector project_capped_simplex(const Vector& w, double K) {
  double low = 0;
  if (capped_sum(w, low) <= K) return w.array().max(0.0).min(1.0);
  double high = w.maxCoeff();
  for (int i = 0; i < 200 && high - low > 1e-16 * high; ++i) {
    const double middle = (low + high) / 2;
    (capped_sum(w, middle) > K ? low : high) = middle;
  }
  return (w.array() - high).max(0.0).min(1.0);
}

Result<FantopeSolution> solve_fantope(const Matrix& A, const Matrix& B, const FantopeOptions& options) {
  const Eigen::SelfAdjointEigenSolver<Matrix> of_b(B);
  const double b = of_b.eigenvalues().maxCoeff();
  if (!(of_b.eigenvalues().minCoeff() > 0))
    return internal_error("the matrix B of a generalized eigenproblem is not positive definite");
  // Scaled so that ||A|| = ||B|| = 1; P scales by b.
  const double a =
      std::max(A.cwiseAbs().maxCoeff(),
               Eigen::SelfAdjointEigenSolver<Matrix>(A, Eigen::EigenvaluesOnly).eigenvalues().cwiseAbs().maxCoeff());
  if (!(a > 0)) return internal_error("the matrix A of a generalized eigenproblem is zero");
  const Matrix M = (of_b.operatorSqrt() / std::sqrt(b)).eval();
  const Matrix A1 = A / a;
  const double phi = options.penalty / a;
  const auto K = static_cast<double>(options.components);
  const double tolerance = options.tolerance;

  double nu = 1;
  Matrix P = Matrix::Zero(A.rows(), A.cols());
  Matrix H = P;
  Matrix Gamma = P;
  Matrix image = P;  // M P M
  FantopeSolution result{P, 0, 0, 0, false};
  for (result.rounds = 1; result.rounds <= options.most_rounds; ++result.rounds) {
    // P <- soft(P - (nu M (M P M - H + Gamma) M - A) / tau, phi / tau), tau = nu ||M||^4 = nu
    const Matrix before = P;
    P = soft(P - M * (image - H + Gamma) * M + A1 / nu, phi / nu);
    const Matrix moved = M * (P - before) * M;
    image += moved;
    // H <- projection of M P M + Gamma;  Gamma <- Gamma + M P M - H
    const Matrix last = H;
    H = project_fantope(image + Gamma, K);
    Gamma += image - H;
    result.primal_residual = (image - H).norm();
    // What the next step's gradient will differ by: nu M (H_last - H) M and the linearisation nu (dP - M dP~ M)
    result.dual_residual = nu * (M * (last - H) * M + (P - before) - M * moved * M).norm();
    if (result.primal_residual < tolerance && result.dual_residual < tolerance) {
      result.converged = true;
      break;
    }
    // Residual balancing, ever more rarely, so that it ends.
    if (result.rounds < 2000 && result.rounds % (20 + result.rounds / 5) == 0) {
      const double ratio = result.primal_residual / std::max(result.dual_residual, 1e-300);
      const double factor = ratio > 5 ? 2 : ratio < 0.2 ? 0.5 : 1;
      nu *= factor;
      Gamma /= factor;
    }
    if (result.rounds % 50 == 0) image = M * P * M;
  }
  result.P = P / b;
  return result;
}

}  // namespace eigenveil
