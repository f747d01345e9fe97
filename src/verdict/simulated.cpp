// SPDX-License-Identifier: Apache-2.0
// Estimators that are run again on the released model.
#include "eigenveil/verdict/simulated.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/linalg/decompositions.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "simulation.hpp"

namespace eigenveil {
namespace {

using Index = Eigen::Index;

constexpr int kNullDraws = 30;
constexpr int kFits = 6;  // rounds that fit values to the release
constexpr int kFitDraws = 8;
constexpr int kJudgeDraws = 60;
constexpr int kEnds = 3;         // rounds that look for the end of a band of ratios
constexpr double kFarthest = 5;  // a logarithm
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
    whitened_ = orthonormal(W);
    for (Index i = 0; i < K_; ++i)
      if (whitened_.col(i).dot(W.col(i)) < 0) whitened_.col(i) *= -1;
    truth_ = rerun.root.size() == 0 ? whitened_ : least_squares(rerun.root, whitened_);
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

  Result<Values> values(const Vector& truth, int draws) { return values(truth, draws, std::identity()); }
  /// Of their logarithms, which are not believed far below what was released.
  Result<Values> logarithms(const Vector& truth, int draws) {
    const Vector least = 0.02 * rerun_.released.values.cwiseMax(1e-300);
    return values(truth, draws, [&](const Vector& values) { return Vector(values.cwiseMax(least).array().log()); });
  }

  Result<Values> values(const Vector& truth, int draws, const auto& scale) {
    Vector sum = Vector::Zero(K_), squares = Vector::Zero(K_);
    for (int i = 0; i < draws; ++i) {
      const Vector found = scale(EIGENVEIL_TRY(draw(truth)).values);
      sum += found;
      squares += found.cwiseAbs2();
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

/// What stands out, one value after the other: is it more than a population with the values before it, and no more,
/// would give?
struct StandingOut {
  Index p = 0;    // how many
  Vector values;  // what they are in the population; of the others 0
  double line = 0;
};

Result<StandingOut> values_standing_out(Runs& runs, const Rerun& rerun) {
  const Index K = runs.size();
  const Vector& seen = rerun.released.values;
  StandingOut out{0, Vector::Zero(K), 0};
  for (; out.p < K; ++out.p) {
    const Index p = out.p;
    const auto null = EIGENVEIL_TRY(runs.values(out.values, runs.some(kNullDraws)));
    out.line = null.mean[p] + rerun.pass * null.deviation[p];
    if (!(seen[p] > out.line)) break;
    out.values[p] = std::min(seen[p], rerun.most);
    out.values = EIGENVEIL_TRY(fit_values(runs, rerun, out.values, p + 1, 2));
  }
  out.values = EIGENVEIL_TRY(fit_values(runs, rerun, out.values, out.p, kFits));
  return out;
}

/// Deviations of the first p values: of what is released about the truth, by how much of a change of the truth a
/// release shows, by differences.
Result<Vector> deviations_of_truth(Runs& runs, const Rerun& rerun, const StandingOut& out, const Values& about) {
  const Vector moved = in_order(out.values + 2 * about.deviation, out.p, rerun.most);
  const auto after = EIGENVEIL_TRY(runs.values(moved, runs.some(kNullDraws)));
  Vector deviation = Vector::Zero(runs.size());
  for (Index i = 0; i < out.p; ++i) {
    const double change = moved[i] - out.values[i];
    const double slope = change > 0 ? std::clamp((after.mean[i] - about.mean[i]) / change, 0.25, 1.0) : 1.0;
    deviation[i] = about.deviation[i] / slope;
  }
  return deviation;
}

struct Band {
  Vector low;
  Vector high;
};

/// By as much below as above.
Result<Band> even_band(Runs& runs, const Rerun& rerun, const StandingOut& out, const Values& about) {
  const Vector wide = kBand * EIGENVEIL_TRY(deviations_of_truth(runs, rerun, out, about));
  return Band{(out.values - wide).cwiseMax(0.0), (out.values + wide).cwiseMin(rerun.most)};
}

/// One end of the bands of ratios: the population whose releases, by their logarithms, are as far from what was
/// released only one time in forty. `side`: 1 upwards, -1 downwards. Every draw has the random numbers of the one
/// before, so that differences are those of the populations.
Result<Vector> end_of_ratios(Runs& runs, const Rerun& rerun, const StandingOut& out, double side) {
  const Index p = out.p;
  const Vector seen = rerun.released.values.head(p).array().log();
  const PublicStream same = runs.stream();
  const Vector begin = out.values.head(p).cwiseMax(1e-3 * rerun.released.values.head(p)).array().log();
  Vector at = begin, last, last_beyond;
  for (int round = 0; round <= kEnds; ++round) {
    runs.stream() = same;
    Vector truth = Vector::Zero(runs.size());
    truth.head(p) = at.array().exp();
    const auto law = EIGENVEIL_TRY(runs.logarithms(in_order(truth, p, rerun.most), runs.some(kNullDraws)));
    const Vector beyond = side * (law.mean.head(p) - seen) - kBand * law.deviation.head(p);  // 0: that is the end
    Vector next = at;
    for (Index i = 0; i < p; ++i) {
      const double moved = round > 0 ? side * (at[i] - last[i]) : 0;
      const double slope = std::abs(moved) > 1e-9 ? std::clamp((beyond[i] - last_beyond[i]) / moved, 0.4, 1.5) : 1.0;
      next[i] = at[i] - side * beyond[i] / slope;
      next[i] = begin[i] + side * std::clamp(side * (next[i] - begin[i]), 0.0, kFarthest);
    }
    last = at;
    last_beyond = beyond;
    at = next;
  }
  Vector end = Vector::Zero(runs.size());
  end.head(p) = at.array().exp();
  return in_order(end, p, rerun.most);
}

Result<Band> band_of(Runs& runs, const Rerun& rerun, const StandingOut& out, const Values& about) {
  auto band = EIGENVEIL_TRY(even_band(runs, rerun, out, about));
  if (!rerun.ratios) return band;
  // Releases of ratios are spread wider than draws say, upwards by their own size and downwards not: whichever end lies
  // further out.
  band.low = band.low.cwiseMin(EIGENVEIL_TRY(end_of_ratios(runs, rerun, out, -1)));
  band.high = band.high.cwiseMax(EIGENVEIL_TRY(end_of_ratios(runs, rerun, out, 1)));
  return band;
}

/// What the verdict says of the first q directions. `apart`: whether each value is told from the next.
Status judge_drawn(Runs& runs, const Rerun& rerun, const StandingOut& out, const Band& band,
                   const std::vector<bool>& apart, Index q, Verdict& verdict) {
  DrawnDirections directions(runs.size() + 1, q);
  std::vector<Matrix> found;
  for (int i = 0; i < runs.some(kJudgeDraws); ++i) {
    Vector l = out.values;
    for (Index j = 0; j < out.p; ++j) {
      const double z = runs.stream().normal() / kBand;
      l[j] += z * (z > 0 ? band.high[j] - l[j] : l[j] - band.low[j]);
    }
    const auto one = EIGENVEIL_TRY(runs.draw(in_order(l, out.p, rerun.most)));
    const Matrix coordinates = runs.coordinates(one.directions);
    directions.add(coordinates);
    // Unit length in the metric, and the sign of the truth
    Matrix V = one.directions.leftCols(q);
    for (Index j = 0; j < q; ++j)
      V.col(j) *= (coordinates(j, j) < 0 ? -1 : 1) / std::max(runs.whiten(V.col(j)).norm(), 1e-300);
    found.push_back(std::move(V));
  }
  verdict.cos2.head(q) = directions.cos2();
  if (rerun.lying != nullptr) *rerun.lying = {out.values, directions.squares(), directions.spread()};
  const auto judged = directions.judge(apart);
  std::copy(judged.begin(), judged.end(), verdict.judged.begin());
  // About cos . weight: mean square of what is left of the truth, in the units of the released weights
  const Matrix truth = runs.truth().leftCols(q);
  Matrix error = Matrix::Zero(truth.rows(), q);
  for (const Matrix& V : found)
    error +=
        (truth - V * verdict.cos2.head(q).cwiseSqrt().asDiagonal()).cwiseAbs2() / static_cast<double>(found.size());
  const Vector norm = runs.whiten(rerun.released.directions.leftCols(q)).colwise().norm();
  verdict.deviation.leftCols(q) = error.cwiseSqrt() * norm.asDiagonal();
  return {};
}

Result<Verdict> rerun_here(const Rerun& rerun) {
  Runs runs(rerun);
  const auto out = EIGENVEIL_TRY(values_standing_out(runs, rerun));
  const Index judged = std::min<Index>(runs.size(), rerun.components), q = std::min(out.p, judged);
  Verdict verdict;
  verdict.found = out.p;
  const double cap = rerun.most < 1 ? 1.0 : rerun.most;  // correlations are no larger
  verdict.line = std::min(out.line, cap);
  verdict.estimate = out.values.head(judged);
  verdict.low = Vector::Zero(judged);
  verdict.high = Vector::Constant(judged, std::max(0.0, verdict.line));
  verdict.cos2 = Vector::Zero(judged);  // of noise no angle is claimed
  verdict.judged.resize(judged);
  verdict.deviation = rerun.released.directions.leftCols(judged).cwiseAbs();  // of noise nothing is found
  if (q == 0) return verdict;

  const auto about = EIGENVEIL_TRY(runs.values(out.values, runs.some(kNullDraws)));
  const Band band = EIGENVEIL_TRY(band_of(runs, rerun, out, about));
  verdict.low.head(q) = band.low.head(q);
  verdict.high.head(q) = band.high.head(q);
  const Vector& seen = rerun.released.values;
  std::vector<bool> apart;  // a value has the variance 2 v
  for (Index i = 0; i + 1 < out.p; ++i)
    apart.push_back(seen[i] - seen[i + 1] > kApart / 2 * std::hypot(about.deviation[i], about.deviation[i + 1]));
  EIGENVEIL_TRY(judge_drawn(runs, rerun, out, band, apart, q, verdict));
  return verdict;
}

}  // namespace

Result<Verdict> judge_rerun(const Rerun& rerun) {
  return on_one_thread([&] { return rerun_here(rerun); });  // many small solves
}

}  // namespace eigenveil
