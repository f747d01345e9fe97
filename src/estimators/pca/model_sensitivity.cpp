// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/model_sensitivity.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <boost/random/normal_distribution.hpp>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/linalg/decompositions.hpp"

namespace eigenveil {
namespace {

using Eigen::Index;

constexpr std::size_t kFollowed =
    8;  // replacements of a data set that are followed exactly: the farthest to first order
constexpr std::uint64_t kSeed = 20240129;

// The model with noise variance 1. Its law does not change under rotations of the columns without a spike, so rows
// need only as many of them as there are rows: what a copy has outside is one more column, its length.
struct Scaled {
  Index n;
  Index p;
  Index r;
  Index outside;  // columns that no row has a part in
  Vector deviation;

  explicit Scaled(const SpikedModel& model) : n(model.rows), r(model.spikes.size()) {
    const Index all = model.columns;
    p = std::min(all, r + n + 1);
    outside = all - p + 1;
    deviation = (model.spikes / model.noise_variance).array() + 1;
    deviation = deviation.cwiseSqrt();
  }
  bool folded() const { return p == r + n + 1; }
};

RowMajorMatrix draw_rows(const Scaled& model, std::mt19937_64& random) {
  boost::random::normal_distribution<double> normal;  // by ziggurat: drawing is most of the work where n >> p
  RowMajorMatrix X(model.n, model.p);
  std::generate(X.data(), X.data() + X.size(), [&] { return normal(random); });
  X.leftCols(model.r) *= model.deviation.asDiagonal();
  return X;
}

// Z (n x q, q > n, normal) times a rotation is lower triangular, with chi-distributed diagonal (Bartlett 1933).
void triangular(const Scaled& model, RowMajorMatrix& X, std::mt19937_64& random) {
  const auto columns = static_cast<double>(model.n + model.outside);
  for (Index i = 0; i < model.n; ++i) {
    X.row(i).tail(model.p - model.r - i).setZero();
    std::gamma_distribution<double> half_square((columns - static_cast<double>(i)) / 2, 2);
    X(i, model.r + i) = std::sqrt(half_square(random));
  }
}

// G = V diag(values) V^T, descending; of G the lower half is read. By LAPACK: it is most of the work where p is large.
struct Spectrum {
  Vector values;
  Matrix vectors;

  explicit Spectrum(Matrix G) : values(G.rows()) {
    const auto p = static_cast<lapack_int>(G.rows());
    // Fails only for entries that are not finite; NaN then, which no comparison takes for a small distance.
    if (LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'L', p, G.data(), p, values.data()) != 0) G.setConstant(NAN);
    values.reverseInPlace();
    vectors = G.rowwise().reverse();
  }
};

double from_angles(const Matrix& sines) { return std::sqrt(2.0) * sines.norm(); }

constexpr Index kMostSolved = 256;  // columns for which eight dense solves a data set are quick enough

// ||P - P'||_F of the top r of diag(values) + e'e'^T - ee^T against the first r axes, by a dense solve
double by_dense_solve(const Vector& values, const Vector& e, const Vector& copy, Index r) {
  Matrix G = values.asDiagonal();
  G += copy * copy.transpose() - e * e.transpose();
  const Spectrum moved(G);
  return from_angles(moved.vectors.bottomLeftCorner(values.size() - r, r));
}

// The same by Riccati's equation. The invariant subspace near the first r axes is spanned by (I; Q) where
//   Q_kj (values_j - values_k) = (E21 + E22 Q - Q E11 - Q E12 Q)_kj,
// and E = e'e'^T - ee^T has rank two, so a step of the fixed point costs p r.
double by_riccati(const Vector& values, const Vector& e, const Vector& copy, Index r) {
  const Index rest = values.size() - r;
  const auto a = e.head(r), A = copy.head(r), w = e.tail(rest), W = copy.tail(rest);
  const Matrix gap = values.head(r).transpose().replicate(rest, 1) - values.tail(rest).replicate(1, r);
  const Matrix E11 = A * A.transpose() - a * a.transpose();
  Matrix Q = Matrix::Zero(rest, r);
  for (int step = 0; step < 100; ++step) {
    const Eigen::RowVectorXd in = w.transpose() * Q, In = W.transpose() * Q;
    const Matrix inner = E11 + A * In - a * in;  // E11 + E12 Q
    const Matrix next = (W * (A.transpose() + In) - w * (a.transpose() + in) - Q * inner).cwiseQuotient(gap);
    const double change = (next - Q).norm();
    Q = next;
    if (!(Q.norm() < 1)) break;
    if (change > 1e-12 * Q.norm()) continue;
    // These are the top r if the smallest eigenvalue they have lies above all others.
    const Matrix block = Matrix(values.head(r).asDiagonal()) + inner;
    const double least = smallest_real_eigenvalue(block);
    const double most = values[r] + W.squaredNorm() + Q.norm() * (A.norm() * W.norm() + a.norm() * w.norm());
    if (least <= most) break;
    // sin^2 = tan^2 / (1 + tan^2): ||P - P'||^2 = 2 tr(Q^T Q (I + Q^T Q)^-1)
    const Matrix S = Q.transpose() * Q;
    return std::sqrt(2 * (Matrix::Identity(r, r) + S).llt().solve(S).trace());
  }
  if (values.size() <= kMostSolved) return by_dense_solve(values, e, copy, r);
  return std::sqrt(2.0 * static_cast<double>(std::min(r, rest)));  // no two projectors are farther apart
}

// Which replacements turn the projector most, to first order, with one value for all of the bulk:
// ||dP||^2 = 2 sum_j ||A_j W - a_j w||^2 / (values_j - bulk)^2
std::vector<Index> farthest(const RowMajorMatrix& X, const RowMajorMatrix& copies, const Spectrum& G, Index r,
                            std::size_t count) {
  const Matrix U = G.vectors.leftCols(r);
  const Matrix a = X * U, A = copies * U;
  const double bulk = G.values.tail(G.values.size() - r).mean();
  const Eigen::ArrayXd weight = (G.values.head(r).array() - bulk).square().inverse();
  std::vector<double> score(X.rows());
  for (Index i = 0; i < X.rows(); ++i) {
    const auto ai = a.row(i).transpose().array(), Ai = A.row(i).transpose().array();
    const double ww = X.row(i).squaredNorm() - ai.square().sum();
    const double WW = copies.row(i).squaredNorm() - Ai.square().sum();
    const double w_W = X.row(i).dot(copies.row(i)) - (ai * Ai).sum();
    score[i] = ((Ai.square() * WW + ai.square() * ww - 2 * ai * Ai * w_W) * weight).sum();
  }
  std::vector<Index> order(score.size());
  std::iota(order.begin(), order.end(), 0);
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + count, order.end(),
                    [&](Index i, Index j) { return score[i] > score[j]; });
  order.resize(count);
  return order;
}

Status check(const SpikedModel& model, double failure, double confidence) {
  if (model.spikes.size() < 1 || static_cast<std::size_t>(model.spikes.size()) >= model.columns || model.rows < 2)
    return usage_error("a spiked model has at least two rows, and more columns than spikes");
  const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
  if (!positive(model.noise_variance) || !std::all_of(model.spikes.begin(), model.spikes.end(), positive))
    return usage_error("the spikes and the noise variance of a spiked model must be positive and finite");
  if (!(failure >= 1e-4 && failure <= 0.5 && confidence >= 0.5 && confidence <= 0.9999))
    return internal_error("a failure probability lies between 1e-4 and 0.5, a confidence between 0.5 and 0.9999");
  return {};
}

AssumedSensitivity find(const SpikedModel& model, double failure, double confidence) {
  AssumedSensitivity found{{0, 0}, failure, confidence, draws_needed(failure, confidence)};
  Tickets draws(found.draws);
  std::mutex joining;
  on_threads(omp_get_max_threads(), [&] {
    while (const auto draw = draws.next()) {
      std::seed_seq seed{kSeed, static_cast<std::uint64_t>(*draw)};
      std::mt19937_64 random(seed);
      const RowSensitivity one = draw_sensitivity(model, random);
      const std::lock_guard lock(joining);
      found.bound = {std::max(found.bound.projector, one.projector), std::max(found.bound.sum, one.sum)};
    }
  });
  return found;
}

}  // namespace

std::size_t draws_needed(double failure, double confidence) {
  for (std::size_t m = 2;; ++m) {
    const auto M = static_cast<double>(m);
    const double fewer_than_two = std::exp((M - 1) * std::log1p(-failure)) * (1 + (M - 1) * failure);
    if (fewer_than_two <= 1 - confidence) return m;
  }
}

RowSensitivity draw_sensitivity(const SpikedModel& assumed, std::mt19937_64& random) {
  const Scaled model(assumed);
  RowMajorMatrix X = draw_rows(model, random);
  RowMajorMatrix copies = draw_rows(model, random);
  if (model.folded()) {
    triangular(model, X, random);
    std::gamma_distribution<double> half_square(static_cast<double>(model.outside) / 2, 2);
    for (Index i = 0; i < model.n; ++i) copies(i, model.p - 1) = std::sqrt(half_square(random));
  }
  RowSensitivity most{0, 0};
  for (Index i = 0; i < model.n; ++i) {
    const double x = X.row(i).squaredNorm(), y = copies.row(i).squaredNorm(), xy = X.row(i).dot(copies.row(i));
    most.sum = std::max(most.sum, std::sqrt(std::max(0.0, x * x + y * y - 2 * xy * xy)));
  }
  // X^T X; row-major X is X^T column by column.
  Matrix lower = Matrix::Zero(model.p, model.p);
  const auto n = static_cast<int>(model.n), p = static_cast<int>(model.p);
  cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, p, n, 1.0, X.data(), p, 0.0, lower.data(), p);
  const Spectrum G(std::move(lower));
  for (const Index i : farthest(X, copies, G, model.r, kFollowed)) {
    const Vector e = G.vectors.transpose() * X.row(i).transpose();
    const Vector copy = G.vectors.transpose() * copies.row(i).transpose();
    most.projector = std::max(most.projector, by_riccati(G.values, e, copy, model.r));
  }
  most.sum *= assumed.noise_variance;
  return most;
}

Result<AssumedSensitivity> assumed_sensitivity(const SpikedModel& model, double failure, double confidence) {
  EIGENVEIL_TRY(check(model, failure, confidence));
  using Key = std::tuple<std::size_t, std::size_t, std::vector<double>, double, double, double>;
  static std::mutex lock;
  static std::map<Key, AssumedSensitivity> known;
  const std::lock_guard guard(lock);
  const Key key{model.rows,           model.columns, {model.spikes.begin(), model.spikes.end()},
                model.noise_variance, failure,       confidence};
  const auto before = known.find(key);
  if (before != known.end()) return before->second;
  return known.emplace(key, find(model, failure, confidence)).first->second;
}

}  // namespace eigenveil
