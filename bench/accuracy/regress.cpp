// SPDX-License-Identifier: Apache-2.0
// Linear regression beside AdaSSP (Wang 2018, algorithm 2) at the same budget: the same rows, the same bounds.
#include "eigenveil/estimators/regress/regress.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <cmath>
#include <random>

#include "accuracy.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"

namespace eigenveil::bench {
namespace {

using Random = std::mt19937_64;

Matrix gaussian(Random& random, Eigen::Index rows, Eigen::Index columns) {
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, columns, [&] { return normal(random); });
}

/// Columns within [-1, 1].
Matrix columns_of(const std::string& design, Random& random, Eigen::Index n, Eigen::Index d) {
  std::uniform_real_distribution<double> even(0, 1);
  if (design == "even") return Matrix::NullaryExpr(n, d, [&] { return 2 * even(random) - 1; });
  if (design == "binary")
    return Matrix::NullaryExpr(n, d, [&](Eigen::Index, Eigen::Index k) {
      const double share = 0.2 + 0.6 * static_cast<double>(k) / static_cast<double>(d - 1);
      return even(random) < share ? 1.0 : -1.0;
    });
  Matrix x = gaussian(random, n, d);
  if (design == "correlated")  // 0.9^|i - j|
    for (Eigen::Index k = 1; k < d; ++k) x.col(k) = 0.9 * x.col(k - 1) + std::sqrt(1 - 0.81) * x.col(k);
  if (design == "offset") return (0.4 + x.array() / 5).cwiseMax(-1).cwiseMin(1);
  return (x.array() / 3).cwiseMax(-1).cwiseMin(1);
}

/// A true line of R^2 = 1/2, the public range of y, and the moments of x.
struct Truth {
  Vector beta;
  double intercept = 0.5;
  double range;
  Matrix covariance;
  Vector mean;
};

Truth truth_of(const std::string& design, Eigen::Index d, int seed) {
  Random random(static_cast<std::uint64_t>(1000 * seed + d));
  Truth truth;
  truth.beta = gaussian(random, d, 1);
  for (Eigen::Index k = 0; k < d; k += 4) truth.beta[k] = 0;
  const Matrix x = columns_of(design, random, 50000, d);
  truth.mean = x.colwise().mean();
  const Matrix centred = x.rowwise() - truth.mean.transpose();
  truth.covariance = centred.transpose() * centred / static_cast<double>(x.rows());
  truth.beta /= std::sqrt(truth.beta.dot(truth.covariance * truth.beta));
  truth.range = 5 * std::sqrt(2.0) + std::abs(truth.intercept + truth.beta.dot(truth.mean));
  return truth;
}

Matrix symmetric_noise(Random& random, Eigen::Index size, double sigma) {
  const Matrix N = gaussian(random, size, size);
  return sigma / std::sqrt(2.0) * (N + N.transpose());
}

/// The sums of z = (1, x, s y) and all that is public about them.
struct Sums {
  Matrix G;
  double A;  ///< largest squared length of (1, x)
  double s;
  double range;
  double n;
};

/// (intercept, slopes) by three answers of mu / sqrt 3 each: the least eigenvalue, X'X, X'y; rho = 0.05.
Vector adassp(const Sums& sums, double mu, double delta, Random& random) {
  const Eigen::Index p = sums.G.rows() - 1;
  const double part = mu / std::sqrt(3.0);
  const double noise_xx = sums.A / part;
  const double noise_xy = 2 * std::sqrt(sums.A) * sums.range / part;
  const Matrix XX = sums.G.topLeftCorner(p, p);
  const double least = Eigen::SelfAdjointEigenSolver<Matrix>(XX, Eigen::EigenvaluesOnly).eigenvalues()[0];
  const double told =
      std::max(0.0, least + noise_xx * gaussian(random, 1, 1)(0, 0) - noise_xx * std::sqrt(std::log(6 / delta)));
  const auto size = static_cast<double>(p);
  const double ridge = std::max(0.0, std::sqrt(size * std::log(2 * size * size / 0.05)) * noise_xx - told);
  Matrix R = XX + symmetric_noise(random, p, noise_xx);
  R.diagonal().array() += ridge;
  const Vector xy = sums.G.topRightCorner(p, 1) / sums.s + noise_xy * gaussian(random, p, 1);
  return R.partialPivLu().solve(xy);
}

Vector ours(const Sums& sums, double mu, Random& random) {
  const Eigen::Index p = sums.G.rows() - 1;
  const double sigma = 1.5 * sums.A / mu;
  NoisyMoments moments{sums.G + symmetric_noise(random, p + 1, sigma), sigma, sums.n, 1, true};
  moments.M(0, 0) = sums.n;
  const auto found = regression(moments, {Vector::Zero(p - 1), Vector::Ones(p - 1), 0, sums.s}, {});
  if (!found) throw std::runtime_error(found.error().message);
  Vector line(p);
  line[0] = found->intercept.value;
  for (Eigen::Index k = 1; k < p; ++k) line[k] = found->slopes[static_cast<std::size_t>(k - 1)].value;
  return line;
}

/// Excess squared error of predictions, in units of the variance that x explains.
double risk(const Truth& truth, const Vector& line) {
  const Vector slopes = line.tail(truth.beta.size()) - truth.beta;
  const double level = line[0] - truth.intercept + slopes.dot(truth.mean);
  return level * level + slopes.dot(truth.covariance * slopes);
}

struct Mean {
  double sum = 0;
  double squares = 0;
  int count = 0;
  void add(double value) { sum += value, squares += value * value, ++count; }
  double value() const { return sum / count; }
  double error() const { return std::sqrt(std::max(0.0, squares / count - value() * value()) / count); }
};

struct Line {
  Mean theirs;
  Mean ours;
  Mean difference;
};

constexpr double kDelta = 1e-6;
const std::vector<double> kEpsilons = {0.5, 1, 4};

void add_lines(const std::string& design, Eigen::Index n, Eigen::Index d, const Setting& setting, Table& table) {
  std::vector<Line> lines(kEpsilons.size());
  constexpr int kSetsPerSeed = 4;
  for (int seed = 0; seed < setting.seeds; ++seed) {
    const Truth truth = truth_of(design, d, seed);
    Random random(static_cast<std::uint64_t>(seed));
    for (int set = 0; set < kSetsPerSeed; ++set) {
      Sums sums{{}, static_cast<double>(d + 1), 0, truth.range, static_cast<double>(n)};
      sums.s = std::sqrt(sums.A / 2) / truth.range;
      Matrix z(n, d + 2);
      z.col(0).setOnes();
      z.middleCols(1, d) = columns_of(design, random, n, d);
      const Vector y = (z.middleCols(1, d) * truth.beta + gaussian(random, n, 1)).array() + truth.intercept;
      z.col(d + 1) = sums.s * y.cwiseMax(-truth.range).cwiseMin(truth.range);
      sums.G = z.transpose() * z;
      for (std::size_t e = 0; e < kEpsilons.size(); ++e) {
        const double mu = gaussian_mu(*Epsilon::of(kEpsilons[e]), *Delta::of(kDelta));
        const double theirs = risk(truth, adassp(sums, mu, kDelta, random));
        const double mine = risk(truth, ours(sums, mu, random));
        lines[e].theirs.add(theirs);
        lines[e].ours.add(mine);
        lines[e].difference.add(mine - theirs);
      }
    }
  }
  for (std::size_t e = 0; e < lines.size(); ++e)
    table.add({design, std::to_string(n), std::to_string(d), number(kEpsilons[e]), number(lines[e].theirs.value()),
               number(lines[e].ours.value()), number(lines[e].difference.value() / lines[e].difference.error())});
}

}  // namespace

void regress(const Setting& setting) {
  Table table(
      "regress",
      "Linear regression beside AdaSSP: excess squared error of predictions over the variance that x explains (1: as "
      "bad as the mean), R^2 = 0.5, delta = 1e-6, replace-one, bounds from ranges; z: the difference over its "
      "standard error",
      {"columns", "n", "d", "epsilon", "AdaSSP", "regress", "z"});
  for (const char* design : {"even", "correlated", "offset", "binary"})
    for (const auto& [n, d] : {std::pair{2000, 5}, std::pair{2000, 20}, std::pair{20000, 20}})
      add_lines(design, n, d, setting, table);
  table.finish(setting, {});
}

}  // namespace eigenveil::bench
