// SPDX-License-Identifier: Apache-2.0
// Principal components of a released second moment.
#include <algorithm>
#include <cmath>
#include <functional>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/verdict/moment_model.hpp"
#include "simulation.hpp"

namespace eigenveil {
namespace {

using Index = Eigen::Index;

constexpr double k95 = 1.96;
constexpr int kMatches = 8;  // rounds that fit the model to the released eigenvalues
constexpr int kDrawsPerMatch = 6;
constexpr int kDraws = 60;           // that judge directions
constexpr double kLeastCos2 = 0.15;  // a slope is not believed below this
constexpr double kFormulaHolds = 0.87;

/// The spectrum of what was released, as far as it is needed: all of it, or its top and the moments of the rest.
struct Spectrum {
  Vector w;  // descending, d or fewer
  Matrix U;  // d x w.size()
  double d;
  double trace;
  double squares;  // sum of all eigenvalues squared

  double size(Index p) const { return d - static_cast<double>(p); }
  /// Mean of the eigenvalues from the p-th on.
  double level(Index p) const { return (trace - w.head(p).sum()) / size(p); }
  /// Their variance.
  double variance(Index p) const {
    return std::max(0.0, (squares - w.head(p).squaredNorm()) / size(p) - std::pow(level(p), 2));
  }
};

/// The law of S about its population, and the population in the eigenbasis of what was released.
struct Law {
  double sigma;
  double n;
  double tau;
  double v(double li, double lj) const { return sigma * sigma + li * lj / n; }
};

struct Population {
  Index p = 0;      // spikes: eigenvalues that stand out
  double b = 0;     // level of the others
  double line = 0;  // what they reach
  Vector l;         // eigenvalues, d of them, or the spikes alone
};

Result<Spectrum> spectrum_of(const MomentMatrix& released, std::size_t components) {
  const Index d = released.S.rows();
  const Matrix& S = released.S;
  const bool all = d <= kMostDrawn;
  const auto pairs = EIGENVEIL_TRY(
      top_eigenpairs(S, all ? static_cast<std::size_t>(d) : std::min(static_cast<std::size_t>(d), components + 6)));
  return Spectrum{pairs.values, pairs.vectors, static_cast<double>(d), S.trace(), S.squaredNorm()};
}

/// How many eigenvalues stand out, one after the other, of what those after them would give by chance.
Population stand_out(const Spectrum& spectrum, const Law& law) {
  Population found;
  const Index most = spectrum.w.size();
  while (true) {
    found.b = std::max(0.0, spectrum.level(found.p));
    const double m = spectrum.size(found.p);
    // The last of all is orthogonal to the others: it need only be there.
    found.line = m > 1.5 ? spectrum.level(found.p) + noise_reach(found.b, m, law.sigma, law.n, law.tau)
                         : k95 * std::sqrt(2.0) * law.sigma + 2 * law.tau * law.tau;
    if (found.p == most || !(spectrum.w[found.p] > found.line)) return found;
    ++found.p;
    if (static_cast<double>(found.p) >= spectrum.d) {
      found.b = 0;
      return found;
    }
  }
}

/// sum_j v_ij / (x - w_j)^power over the eigenvalues that do not stand out. Where they are not known one by one they
/// are a semicircle of their variance (Wigner): G(z) = (z - sqrt(z^2 - 4 s^2)) / (2 s^2).
double pull(const Spectrum& spectrum, const Law& law, const Population& model, double x, double li, int power) {
  const Index p = model.p;
  const double least = 1e-9 * (std::abs(x) + 1e-300);
  if (static_cast<double>(spectrum.w.size()) == spectrum.d) {
    double sum = 0;
    for (Index j = p; j < spectrum.w.size(); ++j)
      sum += law.v(li, model.l[j]) / std::pow(std::max(x - spectrum.w[j], least), power);
    return sum;
  }
  const double m = spectrum.size(p), s2 = std::max(spectrum.variance(p), 1e-300);
  const double z = std::max(x - spectrum.level(p), 2.02 * std::sqrt(s2));
  const double root = std::sqrt(z * z - 4 * s2);
  const double G = (z - root) / (2 * s2);
  return m * law.v(li, model.b) * (power == 1 ? G : G / root);  // -G' = G / root
}

/// First guesses: the bulk shrunk by what chance spreads it, the spikes less what the bulk pushed them up by.
/// Returns the cosines squared that the bulk leaves to the spikes.
Vector guess(const Spectrum& spectrum, const Law& law, Population& model) {
  const Index p = model.p;
  const double m = spectrum.size(p), level = m > 0.5 ? spectrum.level(p) : 0.0;
  model.l = spectrum.w;
  if (m > 0.5) {
    const double chance = law.v(model.b, model.b) * (m + 1);
    const double seen = spectrum.variance(p) * (m > 1.5 ? m / (m - 1) : 1);
    const double kept = seen > chance ? std::sqrt(1 - chance / seen) : 0.0;
    for (Index j = p; j < model.l.size(); ++j) model.l[j] = std::max(0.0, model.b + kept * (spectrum.w[j] - level));
  }
  Vector cos2 = Vector::Ones(p);
  for (int pass = 0; pass < 3; ++pass)
    for (Index i = 0; i < p; ++i) {
      const double wi = spectrum.w[i];
      const double li = model.l[i];
      if (m > 0.5) model.l[i] = std::max(model.b, wi - pull(spectrum, law, model, wi, li, 1));
      if (m > 0.5) cos2[i] = 1 / (1 + pull(spectrum, law, model, wi, li, 2));
    }
  return cos2;
}

/// One release of a population with eigenvalues l, in its own eigenbasis.
Matrix draw(const Vector& l, const Law& law, PublicStream& stream) {
  const Index d = l.size();
  const Matrix A = l.cwiseSqrt().asDiagonal() * wishart_root(d, law.n, stream);
  Matrix S = Matrix::Zero(d, d);
  S.selfadjointView<Eigen::Lower>().rankUpdate(A);
  S.triangularView<Eigen::StrictlyUpper>() = S.transpose();
  add_noise(S, law.sigma, stream);
  if (law.tau > 0) {
    const Vector r = law.tau * stream.normals(d, 1);
    S += r * r.transpose();
    S.diagonal().array() -= law.tau * law.tau;
  }
  return S;
}

/// Moves the spikes until draws have, on average, the eigenvalues that were released.
Status match(const Spectrum& spectrum, const Law& law, Population& model, PublicStream& stream) {
  const Index p = model.p;
  for (int round = 1; round <= kMatches; ++round) {
    Vector mean = Vector::Zero(p);
    for (int i = 0; i < kDrawsPerMatch; ++i)
      mean += EIGENVEIL_TRY(eigenvalues(draw(model.l, law, stream))).head(p) / kDrawsPerMatch;
    const double step = round <= 3 ? 1.0 : 2.0 / round;
    model.l.head(p) += step * (spectrum.w.head(p) - mean);
    model.l.head(p) = model.l.head(p).cwiseMax(model.b);
    std::sort(model.l.begin(), model.l.begin() + p, std::greater<>());
  }
  return {};
}

/// Whether each spike is told from the next.
std::vector<bool> told_apart(const Spectrum& spectrum, const Law& law, const Population& model) {
  std::vector<bool> apart;
  for (Index i = 0; i + 1 < model.p; ++i)
    apart.push_back(spectrum.w[i] - spectrum.w[i + 1] > kApart * std::sqrt(law.v(model.l[i], model.l[i + 1])));
  return apart;
}

Result<DrawnDirections> redraw(const Law& law, const Population& model, const Vector& deviation, Index q,
                               PublicStream& stream) {
  DrawnDirections directions(model.l.size(), q);
  for (int i = 0; i < kDraws; ++i) {
    Vector l = model.l;
    for (Index j = 0; j < model.p; ++j) l[j] = std::max(0.0, l[j] + deviation[j] * stream.normal());
    std::sort(l.begin(), l.end(), std::greater<>());
    const auto pairs = EIGENVEIL_TRY(top_eigenpairs(draw(l, law, stream), q));
    directions.add(pairs.vectors);
  }
  return directions;
}

/// The same without draws: perturbation to the second order. Directions are judged by the cosine that is left when the
/// neighbours of their run are not counted.
struct Formula {
  Matrix spread;  // p spikes and one row for all others, x q
  Vector cos2;
  std::vector<Judged> judged;
};

Formula by_formula(const Spectrum& spectrum, const Law& law, const Population& model, Index q,
                   const std::vector<bool>& apart) {
  const Index p = model.p;
  const double m = spectrum.size(p);
  Matrix tangent = Matrix::Zero(p + 1, q);  // squared, of direction i towards j
  for (Index i = 0; i < q; ++i) {
    for (Index j = 0; j < p; ++j) {
      if (j == i) continue;
      const double v = law.v(model.l[i], model.l[j]), root = std::sqrt(v);
      tangent(j, i) = v / std::pow(std::max(std::abs(spectrum.w[i] - spectrum.w[j]) - 2 * root, root), 2);
    }
    if (m > 0.5) tangent(p, i) = pull(spectrum, law, model, spectrum.w[i], model.l[i], 2);
  }
  const Vector norm = 1 + tangent.colwise().sum().transpose().array();
  Formula formula{tangent * norm.cwiseInverse().asDiagonal(), norm.cwiseInverse(), {}};
  const auto left = [&](Index first, Index last) {  // the least cos^2 of a run
    double least = 1;
    for (Index i = first; i <= last; ++i)
      least = std::min(least, 1 / (norm[i] - tangent.col(i).segment(first, last - first + 1).sum()));
    return least;
  };
  for (Index i = 0; i < q; ++i) {
    Judged one{Standing::kWeak, 0, 0};
    for (Index size = 1; size <= std::min<Index>(6, q) && one.last == 0; ++size)
      for (Index first = std::max<Index>(0, i - size + 1); first <= std::min(i, q - size) && one.last == 0; ++first)
        if (ends_apart(apart, first, first + size - 1) && left(first, first + size - 1) >= kFormulaHolds)
          one = {size == 1 ? Standing::kHolds : Standing::kPlane, static_cast<std::size_t>(first + 1),
                 static_cast<std::size_t>(first + size)};
    formula.judged.push_back(one);
  }
  return formula;
}

/// Shares of the total variance: what a released direction has of it, over the trace.
void add_shares(Verdict& verdict, const Vector& captured, const Vector& deviation, const Spectrum& spectrum,
                const Law& law, const Population& model) {
  verdict.has_total = true;
  // Var tr = 2 d sigma^2 + 2 sum l^2 / n + Var |r|^2
  const double m = spectrum.size(model.p);
  const double squares = model.l.head(model.p).squaredNorm() + m * model.b * model.b;
  const double of_mean = 2 * spectrum.d * std::pow(law.tau, 4);
  const double spread = std::sqrt(2 * spectrum.d * law.sigma * law.sigma + 2 * squares / law.n + of_mean);
  const double trace = spectrum.trace;
  if (!(trace > 4 * spread)) return;
  const auto band = [&](double part, double of_part) {
    const double share = std::clamp(part / trace, 0.0, 1.0);
    const double wide = k95 * std::hypot(of_part / trace, share * spread / trace);
    return Banded{share, std::max(0.0, share - wide), std::min(1.0, share + wide)};
  };
  const Index k = captured.size();
  verdict.share.resize(k);
  verdict.share_low.resize(k);
  verdict.share_high.resize(k);
  for (Index i = 0; i < k; ++i) {
    const Banded one = band(captured[i], deviation[i]);
    verdict.share[i] = one.value;
    verdict.share_low[i] = one.low;
    verdict.share_high[i] = one.high;
  }
  verdict.explained = band(captured.sum(), deviation.norm());
}

}  // namespace

double noise_line(const MomentMatrix& released, const Vector& top) {
  const Spectrum spectrum{top, {}, static_cast<double>(released.S.rows()), released.S.trace(), 0};
  return stand_out(spectrum, {released.deviation, std::max(1.0, released.rows), released.mean_deviation}).line;
}

Result<Matrix> population_root(const MomentMatrix& released) {
  const auto spectrum = EIGENVEIL_TRY(spectrum_of(released, released.S.rows()));
  const Law law{released.deviation, std::max(1.0, released.rows), released.mean_deviation};
  Population model = stand_out(spectrum, law);
  guess(spectrum, law, model);
  const double least = std::max({0.02 * model.b, 1e-4 * model.l.maxCoeff(), 1e-12});
  return Matrix(spectrum.U * model.l.cwiseMax(least).cwiseSqrt().asDiagonal() * spectrum.U.transpose());
}

Result<UncertainPopulation> uncertain_population(const MomentMatrix& released) {
  const auto spectrum = EIGENVEIL_TRY(spectrum_of(released, released.S.rows()));
  const Law law{released.deviation, std::max(1.0, released.rows), released.mean_deviation};
  Population model = stand_out(spectrum, law);
  const Vector cos2 = guess(spectrum, law, model);
  const Index p = model.p, d = released.S.rows();
  // Of the differences within the bulk, entries of the variance s^2 with noise of the variance v, the share
  // kept = s^2 / (s^2 + v) of what is seen is expected, give or take sqrt(kept v). A direction that stands out keeps
  // cos^2 of its length, and may point towards any other by noise's deviation.
  const double m = spectrum.size(p), noise = law.v(model.b, model.b);
  const double seen = m > 1.5 ? spectrum.variance(p) * m / (m - 1) / (m + 1) : 0.0;
  const double kept = seen > noise ? 1 - noise / seen : 0.0;
  Vector values(d);
  for (Index i = 0; i < d; ++i)
    values[i] = i < p ? model.b + cos2[i] * (model.l[i] - model.b)
                      : std::max(0.0, model.b + kept * (spectrum.w[i] - spectrum.level(p)));
  Matrix deviation = Matrix::Constant(d, d, std::sqrt(kept * noise));
  for (Index i = 0; i < p; ++i)
    for (Index j = 0; j < d; ++j) deviation(i, j) = deviation(j, i) = std::sqrt(law.v(model.l[i], model.l[j]));
  const double least = std::max({0.02 * model.b, 1e-4 * values.maxCoeff(), 1e-12});
  Matrix root = spectrum.U * values.cwiseMax(least).cwiseSqrt().asDiagonal() * spectrum.U.transpose();
  return UncertainPopulation{std::move(root), spectrum.U, std::move(values), std::move(deviation), least};
}

Result<Matrix> UncertainPopulation::draw(PublicStream& stream) const {
  const Index d = values.size();
  Matrix S = Matrix::Zero(d, d);
  add_noise(S, 1, stream);
  S = S.cwiseProduct(deviation);
  S.diagonal() += values;
  const auto pairs = EIGENVEIL_TRY(top_eigenpairs(S, static_cast<std::size_t>(d)));
  const Matrix V = U * pairs.vectors;
  return Matrix(V * pairs.values.cwiseMax(least).cwiseSqrt().asDiagonal() * V.transpose());
}

double noise_reach(double level, double m, double deviation, double rows, double mean_deviation) {
  // Wigner's semicircle of the noise and Marchenko and Pastur's of sampling together, at about the 95% quantile of the
  // largest eigenvalue (Tracy, Widom).
  const double v = deviation * deviation + level * level / rows;
  const double line = 2 * std::sqrt(v * m) + 0.98 * std::sqrt(v) * std::pow(m, -1.0 / 6) + level * m / rows;
  // The mean's error is a spike of its own, r r^T, which the noise pushes further up (Baik, Ben Arous, Peche).
  const double spike = std::pow(mean_deviation * (std::sqrt(m) + 1.2), 2);
  if (!(spike > std::sqrt(v * m))) return line;
  return std::max(line, spike + v * m / spike + 1.65 * std::sqrt(2 * v));
}

namespace {

/// Deviations of the first `count` values.
Vector value_deviations(const Law& law, const Population& model, const Vector& left, Index count) {
  Vector deviation(count);
  for (Index i = 0; i < count; ++i) {
    const double l = i < model.p ? model.l[i] : model.b;
    deviation[i] = std::sqrt(2 * law.v(l, l)) / (i < model.p ? std::max(left[i], kLeastCos2) : 1.0);
  }
  return deviation;
}

/// What the verdict says of the first q directions, which stand out: drawn again, or by the formula. Returns the
/// variance that each captures. `spikes`: deviations of the values that stand out.
Result<Vector> judge_directions(const Spectrum& spectrum, const Law& law, const Population& model, const Vector& spikes,
                                Index q, PublicStream& stream, Verdict& verdict) {
  const Index p = model.p, d = spectrum.U.rows();
  const double m = spectrum.size(p);
  const std::vector<bool> apart = told_apart(spectrum, law, model);
  Matrix spread;
  if (verdict.drawn) {
    const auto directions = EIGENVEIL_TRY(redraw(law, model, spikes, q, stream));
    spread = directions.spread();
    verdict.cos2.head(q) = directions.cos2();
    const auto judged = directions.judge(apart);
    std::copy(judged.begin(), judged.end(), verdict.judged.begin());
  } else {
    const Formula formula = by_formula(spectrum, law, model, q, apart);
    spread = formula.spread;
    verdict.cos2.head(q) = formula.cos2;
    std::copy(formula.judged.begin(), formula.judged.end(), verdict.judged.begin());
  }
  Matrix others = spread;  // the p spikes, then all that is left
  others.conservativeResize(p + (m > 0.5 ? 1 : 0), q);
  if (m > 0.5 && verdict.drawn) others.row(p) = spread.bottomRows(d - p).colwise().sum();
  Matrix even = others;
  if (m > 0.5) even.row(p) /= m;
  verdict.deviation.leftCols(q) = loading_deviation(spectrum.U.leftCols(p), even);
  Vector captured(q);
  for (Index i = 0; i < q; ++i) {
    captured[i] = verdict.cos2[i] * model.l[i];
    for (Index j = 0; j < p; ++j)
      if (j != i) captured[i] += others(j, i) * model.l[j];
    if (m > 0.5) captured[i] += others(p, i) * model.b;
  }
  return captured;
}

/// Values with their bands; of what does not stand out, all that noise would give.
void add_values(Verdict& verdict, const Population& model, const Vector& deviation) {
  const Index K = deviation.size();
  const double reach = model.line - model.b;
  verdict.found = model.p;
  verdict.line = model.line;
  verdict.estimate = Vector(K);
  verdict.low = Vector(K);
  verdict.high = Vector(K);
  for (Index i = 0; i < K; ++i) {
    const bool above = i < model.p;
    verdict.estimate[i] = i < model.l.size() ? model.l[i] : model.b;
    const double wide = above ? k95 * deviation[i] : std::abs(reach);
    const double middle = above ? verdict.estimate[i] : model.b;
    verdict.low[i] = std::max(0.0, middle - wide);
    verdict.high[i] = middle + wide;
  }
}

Result<Verdict> judge_here(const MomentMatrix& released, std::size_t components, MomentModel& behind) {
  const Index K = components;
  const Index d = released.S.rows();
  const auto spectrum = EIGENVEIL_TRY(spectrum_of(released, components));
  const Law law{released.deviation, std::max(1.0, released.rows), released.mean_deviation};
  Population model = stand_out(spectrum, law);
  const Vector left = guess(spectrum, law, model);
  const Index p = model.p, q = std::min(p, K);
  PublicStream stream;
  Verdict verdict;
  verdict.drawn = d <= kMostDrawn;
  if (verdict.drawn && p > 0) EIGENVEIL_TRY(match(spectrum, law, model, stream));
  behind = {model.l.head(p), left.cwiseMax(kLeastCos2), model.b};

  const Vector deviation = value_deviations(law, model, left, K);
  const double m = spectrum.size(p);
  verdict.cos2 = Vector::Zero(K);  // of noise no angle is claimed
  verdict.judged.resize(components);
  verdict.deviation = Matrix::Zero(d, K);
  Vector captured = Vector::Constant(K, model.b), of_captured = deviation;
  // What does not stand out may still differ: by as much as chance does not explain.
  if (m > 1.5) {
    const double uneven = std::sqrt(std::max(0.0, spectrum.variance(p) - law.v(model.b, model.b) * (m + 1)));
    for (Index i = q; i < K; ++i) of_captured[i] = std::hypot(deviation[i], uneven);
  }
  if (q > 0) {
    const Vector spikes = value_deviations(law, model, left, p);
    captured.head(q) = EIGENVEIL_TRY(judge_directions(spectrum, law, model, spikes, q, stream, verdict));
  }
  // What does not stand out may point anywhere among itself.
  if (q < K) {
    const Vector rest = (1 - spectrum.U.leftCols(p).cwiseAbs2().rowwise().sum().array()).max(0.0);
    verdict.deviation.rightCols(K - q).colwise() = (rest / std::max(m, 1.0)).cwiseSqrt();
  }
  add_values(verdict, model, deviation);
  add_shares(verdict, captured, of_captured, spectrum, law, model);
  return verdict;
}

}  // namespace

Result<Verdict> judge_moments(const MomentMatrix& released, std::size_t components, MomentModel& model) {
  // Many small solves: threads that wait for each other would take longer.
  if (released.S.rows() > kMostDrawn) return judge_here(released, components, model);
  return on_one_thread([&] { return judge_here(released, components, model); });
}

Result<Verdict> judge_moments(const MomentMatrix& released, std::size_t components) {
  MomentModel model;
  return judge_moments(released, components, model);
}

}  // namespace eigenveil
