// SPDX-License-Identifier: Apache-2.0
// Estimators that are run again on the released model.
#include "eigenveil/verdict/simulated.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "eigenveil/base/parallel.hpp"
#include "simulation.hpp"

namespace eigenveil {
namespace {

using Index = Eigen::Index;

constexpr int kNullDraws = 30;
constexpr int kFits = 6;  // rounds that fit values to the release
constexpr int kFitDraws = 8;
constexpr int kJudgeDraws = 60;
constexpr double kBand = 1.96;

/// Mean and deviation of the values that draws give.
struct Values {
  Vector mean;
  Vector deviation;
};

class Runs {
 public:
  explicit Runs(const Rerun& rerun) : rerun_(rerun), K_(rerun.released.values.size()) {
    // Whitened directions that are orthonormal: the first as it was released, the others as near as they may be.
    const Matrix W = whiten(rerun.released.directions);
    whitened_ = Eigen::HouseholderQR<Matrix>(W).householderQ() * Matrix::Identity(W.rows(), K_);
    for (Index i = 0; i < K_; ++i)
      if (whitened_.col(i).dot(W.col(i)) < 0) whitened_.col(i) *= -1;
    truth_ =
        rerun.root.size() == 0 ? whitened_ : Matrix(Eigen::ColPivHouseholderQR<Matrix>(rerun.root).solve(whitened_));
  }

  Matrix whiten(const Matrix& directions) const {
    return rerun_.root.size() == 0 ? directions : Matrix(rerun_.root * directions);
  }
  /// Of that many draws, as many as the effort allows.
  int some(int draws) const { return std::max(6, static_cast<int>(draws * rerun_.effort)); }

  Index size() const { return K_; }
  const Matrix& truth() const { return truth_; }

  Result<Found> draw(const Vector& values) {
    auto found = EIGENVEIL_TRY(rerun_.draw(values, truth_, stream_));
    if (found.values.size() != K_ || !found.values.allFinite() || !found.directions.allFinite())
      return internal_error("a draw gave no values");
    return found;
  }

  Result<Values> values(const Vector& truth, int draws) {
    Vector sum = Vector::Zero(K_), squares = Vector::Zero(K_);
    for (int i = 0; i < draws; ++i) {
      const auto found = EIGENVEIL_TRY(draw(truth));
      sum += found.values;
      squares += found.values.cwiseAbs2();
    }
    const Vector mean = sum / draws;
    const Vector variance = ((squares / draws - mean.cwiseAbs2()) * draws / (draws - 1)).cwiseMax(0.0);
    return Values{mean, variance.cwiseSqrt()};
  }

  /// Coordinates of found directions among the true ones, then what is left of their length: (K + 1) x K.
  Matrix coordinates(const Matrix& directions) const {
    const Matrix W = whiten(directions).colwise().normalized();
    Matrix all(K_ + 1, K_);
    all.topRows(K_) = whitened_.transpose() * W;
    all.row(K_) = (1 - all.topRows(K_).colwise().squaredNorm().array()).max(0.0).sqrt();
    return all;
  }

  PublicStream& stream() { return stream_; }

 private:
  const Rerun& rerun_;
  Index K_;
  Matrix whitened_;
  Matrix truth_;
  PublicStream stream_;
};

/// Descending, from 0 to what values can be.
Vector in_order(Vector values, Index p, double most) {
  for (Index i = 0; i < values.size(); ++i) values[i] = i < p ? std::clamp(values[i], 0.0, most) : 0.0;
  std::sort(values.begin(), values.begin() + p, std::greater<>());
  return values;
}

/// Moves the first p values until draws have on average what was released.
Result<Vector> fit_values(Runs& runs, const Rerun& rerun, Vector values, Index p, int rounds) {
  for (int round = 1; round <= rounds && p > 0; ++round) {
    const auto seen = EIGENVEIL_TRY(runs.values(values, runs.some(kFitDraws)));
    const double step = round <= 2 ? 1.0 : 2.0 / round;
    values.head(p) += step * (rerun.released.values - seen.mean).head(p);
    values = in_order(values, p, rerun.most);
  }
  return values;
}

Result<Verdict> rerun_here(const Rerun& rerun) {
  Runs runs(rerun);
  const Index K = runs.size(), d = rerun.released.directions.rows();
  const Vector& seen = rerun.released.values;

  // One after the other: is it more than a population with the values before it, and no more, would give?
  Vector values = Vector::Zero(K);
  Index p = 0;
  double line = 0;
  Values null{Vector::Zero(K), Vector::Zero(K)};
  for (; p < K; ++p) {
    null = EIGENVEIL_TRY(runs.values(values, runs.some(kNullDraws)));
    line = null.mean[p] + rerun.pass * null.deviation[p];
    if (!(seen[p] > line)) break;
    values[p] = std::min(seen[p], rerun.most);
    values = EIGENVEIL_TRY(fit_values(runs, rerun, values, p + 1, 2));
  }
  values = EIGENVEIL_TRY(fit_values(runs, rerun, values, p, kFits));

  const auto judged_ones = std::min(K, static_cast<Index>(rerun.components)), q = std::min(p, judged_ones);
  Verdict verdict;
  verdict.found = static_cast<std::size_t>(p);
  const double cap = rerun.most < 1 ? 1.0 : rerun.most;  // correlations are no larger
  line = std::min(line, cap);
  verdict.line = line;
  verdict.estimate = values.head(judged_ones);
  verdict.low = Vector::Zero(judged_ones);
  verdict.high = Vector::Constant(judged_ones, std::max(0.0, line));
  verdict.cos2 = Vector::Zero(judged_ones);  // of noise no angle is claimed
  verdict.judged.resize(static_cast<std::size_t>(judged_ones));
  verdict.deviation = rerun.released.directions.leftCols(judged_ones).cwiseAbs();  // of noise nothing is found
  if (q == 0) return verdict;

  const auto about = EIGENVEIL_TRY(runs.values(values, runs.some(kNullDraws)));
  // How much of a change of the truth a release shows, by differences
  const Vector moved = in_order(values + 2 * about.deviation, p, rerun.most);
  const auto after = EIGENVEIL_TRY(runs.values(moved, runs.some(kNullDraws)));
  Vector deviation = Vector::Zero(K);
  for (Index i = 0; i < p; ++i) {
    const double change = moved[i] - values[i];
    const double slope = change > 0 ? std::clamp((after.mean[i] - about.mean[i]) / change, 0.25, 1.0) : 1.0;
    deviation[i] = about.deviation[i] / slope;
  }
  for (Index i = 0; i < q; ++i) {
    verdict.low[i] = std::max(0.0, values[i] - kBand * deviation[i]);
    verdict.high[i] = std::min(rerun.most, values[i] + kBand * deviation[i]);
  }

  DrawnDirections directions(K + 1, q);
  std::vector<Matrix> found;
  for (int i = 0; i < runs.some(kJudgeDraws); ++i) {
    Vector l = values;
    for (Index j = 0; j < p; ++j) l[j] += deviation[j] * runs.stream().normal();
    const auto one = EIGENVEIL_TRY(runs.draw(in_order(l, p, rerun.most)));
    const Matrix coordinates = runs.coordinates(one.directions);
    directions.add(coordinates);
    // Unit length in the metric, and the sign of the truth
    Matrix V = one.directions.leftCols(q);
    for (Index j = 0; j < q; ++j)
      V.col(j) *= (coordinates(j, j) < 0 ? -1 : 1) / std::max(runs.whiten(V.col(j)).norm(), 1e-300);
    found.push_back(std::move(V));
  }
  verdict.cos2.head(q) = directions.cos2();
  if (rerun.lying != nullptr) *rerun.lying = {values, directions.squares()};
  std::vector<bool> apart;  // a value has the variance 2 v
  for (Index i = 0; i + 1 < p; ++i)
    apart.push_back(seen[i] - seen[i + 1] > kApart / 2 * std::hypot(about.deviation[i], about.deviation[i + 1]));
  const auto judged = directions.judge(apart);
  std::copy(judged.begin(), judged.end(), verdict.judged.begin());
  // About cos . weight: mean square of what is left of the truth, in the units of the released weights
  const Matrix truth = runs.truth().leftCols(q);
  Matrix error = Matrix::Zero(d, q);
  for (const Matrix& V : found)
    error +=
        (truth - V * verdict.cos2.head(q).cwiseSqrt().asDiagonal()).cwiseAbs2() / static_cast<double>(found.size());
  const Vector norm = runs.whiten(rerun.released.directions.leftCols(q)).colwise().norm();
  verdict.deviation.leftCols(q) = error.cwiseSqrt() * norm.asDiagonal();
  return verdict;
}

}  // namespace

Result<Verdict> judge_rerun(const Rerun& rerun) {
  return on_one_thread([&] { return rerun_here(rerun); });  // many small solves
}

}  // namespace eigenveil
