// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/correlation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/verdict/simulated.hpp"

namespace eigenveil {
namespace {

using Index = Eigen::Index;

/// A variance is known if it is this many deviations of its noise.
constexpr double kKnown = 3;

/// Deviation of the diagonal of S: noise sqrt 2 sigma, and the error of the mean, r_i^2 - tau^2.
double diagonal_deviation(double sigma, double tau) { return std::sqrt(2.0) * std::hypot(sigma, tau * tau); }

std::vector<Index> kept_of(const ReleasedCorrelation& released) {
  std::vector<Index> kept;
  for (Index i = 0; i < released.spread.size(); ++i)
    if (!std::binary_search(released.left_out.begin(), released.left_out.end(), static_cast<std::size_t>(i)))
      kept.push_back(i);
  return kept;
}

/// Fresh releases of a population of m features with unit spread, as far as the released one shows it.
struct CorrelationModel {
  Vector w;       // m eigenvalues, descending
  Matrix U;       // m x m
  Vector spread;  // m, of the features that are kept
  double sigma;
  double tau;
  double n;
  Index K;  // directions whose values are varied

  double level(const Vector& values, Index p) const {
    const auto m = static_cast<double>(w.size());
    return m > static_cast<double>(p) ? std::max(0.0, (m - values.head(p).sum()) / (m - static_cast<double>(p))) : 0.0;
  }

  /// Eigenvalues of the population: the given ones, and for all others a level on which the trace is m. Beyond the
  /// first K they differ by as much as chance does not explain.
  Vector population(const Vector& values) const {
    const Index m = w.size();
    const Index p = (values.array() > 0).count();
    const double b = level(values, p);
    Vector l = Vector::Constant(m, b);
    l.head(p) = values.head(p);
    const Index rest = m - K;
    if (rest < 2) return l;
    const double mean = w.tail(rest).mean();
    const double seen = (w.tail(rest).array() - mean).square().sum() / static_cast<double>(rest - 1);
    const double noise = sigma * spread.cwiseAbs2().cwiseInverse().mean();
    const double chance = (noise * noise + b * b / n) * (static_cast<double>(rest) + 1);
    const double kept = seen > chance ? std::sqrt(1 - chance / seen) : 0.0;
    l.tail(rest) = (b + kept * (w.tail(rest).array() - mean)).max(0.0);
    return l;
  }

  Result<Found> draw(const Vector& values, const Matrix& truth, PublicStream& stream) const {
    const Index m = w.size();
    Matrix basis = U;
    basis.leftCols(K) = truth;
    const Matrix root = basis * population(values).cwiseSqrt().asDiagonal();
    const Vector before = root.rowwise().squaredNorm();
    const Matrix A = root * wishart_root(m, n, stream);
    Matrix S = Matrix::Zero(m, m);
    S.selfadjointView<Eigen::Lower>().rankUpdate(A);
    S.triangularView<Eigen::StrictlyUpper>() = S.transpose();
    Matrix noise = Matrix::Zero(m, m);
    add_noise(noise, sigma, stream);
    const Vector inverse = spread.cwiseInverse();
    S += inverse.asDiagonal() * noise * inverse.asDiagonal();
    if (tau > 0) {
      const Vector r = tau * inverse.cwiseProduct(stream.normals(m, 1).col(0));
      S += r * r.transpose();
      S.diagonal() -= (tau * inverse).cwiseAbs2();
    }
    // C: each feature divided by the deviation that was drawn, or left out
    Vector factor(m);
    for (Index i = 0; i < m; ++i) {
      const double least = kKnown * diagonal_deviation(sigma, tau) * inverse[i] * inverse[i];
      factor[i] = S(i, i) > least ? std::sqrt(before[i] / S(i, i)) : 0.0;
    }
    S = factor.asDiagonal() * S * factor.asDiagonal();
    const auto pairs = EIGENVEIL_TRY(top_eigenpairs(S, K));
    return Found{pairs.values, pairs.vectors};
  }
};

/// Bands are as much wider as the spread of the features, which is released too, makes them: measured
/// (docs/results/verdicts.md).
constexpr double kWider = 1.25;

void widen(Verdict& verdict, double most) {
  const auto found = std::min<Index>(verdict.found, verdict.estimate.size());
  for (Index i = 0; i < found; ++i) {
    const double middle = verdict.estimate[i];
    verdict.low[i] = std::max(0.0, middle - kWider * (middle - verdict.low[i]));
    verdict.high[i] = std::min(most, middle + kWider * (verdict.high[i] - middle));
  }
}

/// Shares of the total variance, which is the number of features that are kept.
void add_shares(Verdict& verdict, const Lying& lying, double m) {
  verdict.has_total = true;
  const Index K = verdict.estimate.size();
  const auto found = std::min<Index>(verdict.found, K);
  const double rest =
      std::max(0.0, m - verdict.estimate.head(found).sum()) / std::max(1.0, m - static_cast<double>(found));
  verdict.share = verdict.share_low = verdict.share_high = Vector::Zero(K);
  double all = 0, squares = 0;
  for (Index i = 0; i < K; ++i) {
    // A direction has some of each true one, and of all others.
    double captured = i < found ? 0 : std::min(rest, verdict.high[i]);
    for (Index j = 0; i < found && j < lying.squares.rows(); ++j)
      captured += lying.squares(j, i) * (j < lying.values.size() && lying.values[j] > 0 ? lying.values[j] : rest);
    const double half = i < found ? (verdict.high[i] - verdict.low[i]) / 2 : std::max(0.0, verdict.high[i] - captured);
    if (i >= found) verdict.estimate[i] = captured;
    verdict.share[i] = captured / m;
    verdict.share_low[i] = std::max(0.0, captured - half) / m;
    verdict.share_high[i] = std::min(1.0, (captured + half) / m);
    all += captured / m;
    squares += half * half / (m * m);
  }
  const double wide = std::sqrt(squares);
  verdict.explained = Banded{std::min(1.0, all), std::max(0.0, all - wide), std::min(1.0, all + wide)};
}

Result<Verdict> judge(const ReleasedCorrelation& released, std::size_t components) {
  const std::vector<Index> kept = kept_of(released);
  const Index m = kept.size(), all = components;
  const Index d = released.spread.size();
  Verdict verdict;
  const Index judged = std::min(all, m);
  if (m > 1) {
    const Matrix C = released.correlation(kept, kept);
    const auto pairs = EIGENVEIL_TRY(top_eigenpairs(C, m));
    // Two more than are judged, if there are: the last one has a neighbour too.
    const Index K = std::min(m, judged + 2);
    const CorrelationModel model{pairs.values,
                                 pairs.vectors,
                                 released.spread(kept),
                                 released.noise,
                                 released.mean_deviation,
                                 std::max(1.0, released.rows),
                                 K};
    Rerun rerun{.released = {pairs.values.head(K), pairs.vectors.leftCols(K)},
                .components = static_cast<std::size_t>(judged),
                .root = {},
                .draw = {}};
    rerun.most = static_cast<double>(m);
    rerun.pass = 3;
    Lying lying;
    rerun.lying = &lying;
    constexpr double kManyFeatures = 96;
    rerun.effort = std::min(1.0, kManyFeatures / static_cast<double>(m));
    rerun.draw = [&](const Vector& values, const Matrix& truth, PublicStream& stream) {
      return model.draw(values, truth, stream);
    };
    verdict = EIGENVEIL_TRY(judge_rerun(rerun));
    widen(verdict, rerun.most);
    add_shares(verdict, lying, static_cast<double>(m));
  }
  // Features that were left out have no loadings, and directions beyond those that are kept say nothing.
  Matrix deviation = Matrix::Zero(d, all);
  for (std::size_t i = 0; i < kept.size() && m > 1; ++i) deviation.row(kept[i]).head(judged) = verdict.deviation.row(i);
  verdict.deviation = std::move(deviation);
  const Index known = verdict.estimate.size();
  for (Vector* one : {&verdict.estimate, &verdict.low, &verdict.high, &verdict.cos2}) {
    one->conservativeResize(all);
    one->tail(all - known).setZero();
  }
  for (Vector* one : {&verdict.share, &verdict.share_low, &verdict.share_high})
    if (one->size() > 0) {
      one->conservativeResize(all);
      one->tail(all - known).setZero();
    }
  verdict.judged.resize(components);
  return verdict;
}

}  // namespace

ReleasedCorrelation correlation_of(const ReleasedCovariance& released) {
  const Matrix& S = released.covariance;
  const Index d = S.rows();
  const double tau = released.prepared.mean_deviation;
  const double least = kKnown * diagonal_deviation(released.noise, tau);
  ReleasedCorrelation result{Matrix::Zero(d, d), Vector::Ones(d), {}, released.noise, tau, released.prepared.rows};
  Vector factor = Vector::Zero(d);
  for (Index i = 0; i < d; ++i) {
    if (S(i, i) > least && std::isfinite(1 / std::sqrt(S(i, i)))) {
      result.spread[i] = std::sqrt(S(i, i));
      factor[i] = 1 / result.spread[i];
    } else {
      result.left_out.push_back(i);
    }
  }
  result.correlation = factor.asDiagonal() * S * factor.asDiagonal();
  for (Index i = 0; i < d; ++i)
    if (factor[i] > 0) result.correlation(i, i) = 1;
  return result;
}

// A symmetric noise matrix whose entry ij has deviation g_i g_j has norm at most about 2 sqrt(max_i sum_j g_i^2 g_j^2):
// as if every entry had the deviation that makes this 2 deviation sqrt(m).
double noise_line(const ReleasedCorrelation& released, const Vector& top) {
  const std::vector<Index> kept = kept_of(released);
  if (kept.size() < 2) return 0;
  const Vector spread = released.spread(kept);
  const Vector inverse = spread.cwiseAbs2().cwiseInverse();
  const Matrix C = released.correlation(kept, kept);
  const MomentMatrix even{C, released.noise * std::sqrt(inverse.maxCoeff() * inverse.mean()), released.rows,
                          released.mean_deviation * std::sqrt(inverse.mean())};
  return noise_line(even, top.head(std::min<Index>(top.size(), C.rows())));
}

Judge judge_of(ReleasedCorrelation released, std::size_t components) {
  if (released.spread.size() > kMostRerun) return {};
  return [released = std::move(released), components] { return judge(released, components); };
}

void add_left_out(Fit& fit, const std::vector<std::size_t>& left_out, std::size_t features) {
  if (left_out.empty()) return;
  nlohmann::json& list = fit.facts["left_out"] = nlohmann::json::array();
  for (const std::size_t i : left_out) list.push_back(i + 1);
  fit.warnings.push_back(
      fmt::format("{} of the {} features vary too little to be told from noise: they have no correlations and were "
                  "left out, with loadings of zero.",
                  left_out.size(), features));
}

}  // namespace eigenveil
