// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/gram.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "eigenveil/estimators/pca/correlation.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "eigenveil/verdict/moment_model.hpp"
#include "shortened.hpp"

namespace eigenveil {
namespace {

// Truncated subspace iteration on the released matrix, Q <- qr(truncate(S Q)), then Rayleigh and Ritz.
Result<EigenPairs> sparse_eigenpairs(const Matrix& S, Matrix Q, std::size_t sparsity) {
  constexpr int kRounds = 60;
  Q = truncate_rows(Q, sparsity);
  for (int round = 0; round < kRounds; ++round) Q = truncate_rows(orthonormal(S * Q), sparsity);
  auto pairs = EIGENVEIL_TRY(top_eigenpairs(Q.transpose() * S * Q, Q.cols()));
  return EigenPairs{pairs.values, Q * pairs.vectors};
}

}  // namespace

PrivacyPlan plan_gram(Adjacency adjacency, const PcaOptions& options) {
  PrivacyPlan plan(adjacency, plan_preparation(adjacency, options.preparation, 1.0));
  plan.events.push_back({kCovarianceLabel, GaussianEvent{1.0}});
  return plan;
}

ReleasedCovariance covariance_of(const Answer& gram, const Preparation& prepared) {
  // S~ = G / n - tau^2 I: the error r of the mean adds r r^T, tau^2 I on average.
  Matrix covariance = gram.value() / prepared.rows;
  covariance.diagonal().array() -= prepared.mean_deviation * prepared.mean_deviation;
  return {std::move(covariance), prepared, gram.deviation() / prepared.rows};
}

Result<ReleasedCovariance> release_covariance(Oracle& oracle, const PreparationOptions& preparation) {
  const auto prepared = EIGENVEIL_TRY(prepare(oracle, preparation));
  const auto gram = EIGENVEIL_TRY(oracle.ask(kCovarianceLabel, Gram{}));
  return covariance_of(gram, prepared);
}

double ReleasedCovariance::edge() const {
  return noise_edge(noise, prepared.mean_deviation, static_cast<double>(covariance.cols()));
}

MomentMatrix moments_of(const ReleasedCovariance& released) {
  return {released.covariance, released.noise, released.prepared.rows, released.prepared.mean_deviation};
}

Judge judge_of(ReleasedCovariance released, std::size_t components) {
  return [released = std::move(released), components] { return judge_moments(moments_of(released), components); };
}

namespace {

// What rows were before they were shortened, from the spectrum of what is left of them. Both are about the released
// mean, whose error adds tau^2 to every eigenvalue: to rows before they were shortened.
struct Whole {
  std::function<RowSpectrum(const RowSpectrum& seen)> of = {};
  std::function<RowSpectrum(const RowSpectrum& seen)> loosely = {};  // as far as searches may be off at worst
  std::optional<double> radius = {};  // that rows were shortened to; none: made of length 1
  double seen_tau2 = 0;               // tau^2 in units of what is seen,
  double tau2 = 0;                    // and of whole rows
  double most = 0;                    // the most that an eigenvalue of whole rows can be, by public bounds
  double unseen = 1;  // by how much eigenvalues grow where noise left none above zero, so that nothing can be told
  // Deviation of the logarithm of all eigenvalues together, where `of` rests on more than what is seen
  std::function<double(const RowSpectrum& found)> scale_deviation = {};
};

double sum_of(const RowSpectrum& one) { return one.top.sum() + one.rest * one.others; }

// `seen` without, and the result without what the mean's error adds.
RowSpectrum grown(const Whole& whole, RowSpectrum seen, bool loosely = false) {
  seen.top.array() += whole.seen_tau2;
  seen.rest += whole.seen_tau2;
  RowSpectrum found = loosely ? whole.loosely(seen) : whole.of(seen);
  const double least = 1e-6 * sum_of(found);
  found.top = (found.top.array() - whole.tau2).max(least);
  found.rest = std::max(found.rest - whole.tau2, least);
  return found;
}

// By what factor each top eigenvalue grows, and the others.
struct Growth {
  Vector top;
  double rest;
  double total;
};

Growth growth_of(const RowSpectrum& given, const Whole& whole) {
  // Of what noise alone gives, which may be below zero, next to nothing is left; `unshortened` keeps more than that.
  const double sum = sum_of(given), sum_of_top = given.top.cwiseMax(0.0).sum();
  if (!(std::max(sum, sum_of_top) > 0))
    return {Vector::Constant(given.top.size(), whole.unseen), whole.unseen, whole.unseen};
  const double least = 1e-6 * std::max(sum, sum_of_top);
  const RowSpectrum seen{given.top.cwiseMax(least), std::max(given.rest, least), given.others};
  const RowSpectrum found = grown(whole, seen);
  return {found.top.cwiseQuotient(seen.top), found.rest / seen.rest, sum_of(found) / sum_of(seen)};
}

// The spectrum with eigenvalues as one vector, the level of all others last.
Vector flat(const RowSpectrum& spectrum) {
  Vector all(spectrum.top.size() + 1);
  all << spectrum.top, spectrum.rest;
  return all;
}
RowSpectrum spectrum_of(const Vector& flat, double others) {
  const Vector all = flat.cwiseMax(1e-6 * flat.maxCoeff());
  return {all.head(all.size() - 1), all[all.size() - 1], others};
}

// The spectrum behind a release, and the covariance of its error: the noise, and the rows, which are so many and were
// shortened.
struct Error {
  RowSpectrum seen;
  Matrix covariance;
};

Error error_of(const ReleasedCovariance& released, const MomentModel& model, std::size_t components,
               const Whole& whole) {
  constexpr Eigen::Index kMore = 8;  // than are asked for: those after them count as others, at their mean
  const Eigen::Index P = std::min(model.top.size(), static_cast<Eigen::Index>(components) + kMore);
  const auto d = static_cast<double>(released.covariance.cols()), others = d - static_cast<double>(P);
  // What noise pushed the top up by it took from all others: the trace has no bias.
  const double left = std::max(0.0, released.covariance.trace() - model.top.head(P).sum());
  const RowSpectrum seen{model.top.head(P), others > 0.5 ? left / others : 0.0, others};
  RowSpectrum about = seen;
  about.top.array() += whole.seen_tau2;
  about.rest += whole.seen_tau2;
  Matrix covariance = covariance_of_squares(whole.of(spectrum_of(flat(about), others)), whole.radius) /
                      std::max(1.0, released.prepared.rows);
  const double noise = 2 * (released.noise * released.noise + whole.seen_tau2 * whole.seen_tau2);
  covariance.diagonal().array() += noise;
  if (others > 0.5)
    covariance(P, P) += noise / others - noise;
  else
    covariance.row(P).setZero(), covariance.col(P).setZero();
  Vector response = Vector::Ones(P + 1);
  response.head(P) = model.response.head(P);
  const Vector by = response.cwiseInverse();
  return {seen, by.asDiagonal() * covariance * by.asDiagonal()};
}

// d found_i / d seen_j
Matrix slopes(const Whole& whole, const RowSpectrum& seen, const Vector& found) {
  const Vector at = flat(seen);
  Matrix J(found.size(), found.size());
  for (Eigen::Index j = 0; j < at.size(); ++j) {
    Vector moved = at;
    const double step = 1e-3 * std::max(at[j], 1e-3 * at.maxCoeff());
    moved[j] += step;
    J.col(j) = (flat(grown(whole, spectrum_of(moved, seen.others))) - found) / step;
  }
  return J;
}

// The verdict on what was seen, in terms of whole rows. An eigenvalue of whole rows depends on all that are seen: those
// of long rows, of which little is left, on small errors of the others. Its band is what it becomes where what is seen
// moves by 1.96 deviations in the direction that moves it most, given how the errors go together.
Result<Verdict> judge_whole(const ReleasedCovariance& released, std::size_t components, const Whole& whole) {
  MomentModel model;
  Verdict verdict = EIGENVEIL_TRY(judge_moments(moments_of(released), components, model));
  const Error error = error_of(released, model, components, whole);
  const Growth by = growth_of(error.seen, whole);
  const Eigen::Index K = verdict.estimate.size(), q = std::min(K, error.seen.top.size());
  Vector factor = Vector::Constant(K, by.rest);
  factor.head(q) = by.top.head(q);
  for (Vector* values : {&verdict.estimate, &verdict.low, &verdict.high}) *values = values->cwiseProduct(factor);
  bool limited = false;
  // Where noise left nothing above zero there is nothing to make whole.
  if (q > 0 && flat(error.seen).maxCoeff() > 0) {
    const RowSpectrum seen = spectrum_of(flat(error.seen), error.seen.others);
    const RowSpectrum whole_rows = grown(whole, seen);
    const Vector found = flat(whole_rows), at = flat(seen);
    limited = whole_rows.limited;
    const Matrix J = slopes(whole, seen, found);
    const double scale = whole.scale_deviation ? whole.scale_deviation(whole_rows) : 0.0;
    // All of them larger by 1.96 deviations of their sum
    Vector many = Vector::Ones(at.size());
    many[at.size() - 1] = error.seen.others;
    const double sum = many.dot(at), wide = 1.96 * std::sqrt(std::max(0.0, many.dot(error.covariance * many)));
    std::optional<RowSpectrum> worst;
    if (whole.loosely) worst = grown(whole, spectrum_of((1 + wide / sum) * at, seen.others), true);
    verdict.open = worst && worst->open;
    for (Eigen::Index i = 0; i < q; ++i) {
      const Vector towards = error.covariance * J.row(i).transpose();
      const double deviation = std::sqrt(std::max(J.row(i).dot(towards), 1e-300));
      const auto end = [&](double reach) {
        const Vector moved = at + reach / deviation * towards;
        const double there = grown(whole, spectrum_of(moved, seen.others)).top[i];
        return std::hypot(there - found[i], 1.96 * scale * found[i]);
      };
      verdict.estimate[i] = found[i];
      verdict.low[i] = std::max(0.0, found[i] - end(-1.96));
      verdict.high[i] = found[i] + end(1.96);
      if (worst) verdict.high[i] = std::max(verdict.high[i], worst->top[i]);
      if (!whole_rows.limited && !verdict.open) continue;
      // Lengths vary less, as those of categories do: at the least rows are what is seen of them, and as far above.
      const double most = found[i] / at[i], reach = 1.96 * std::sqrt(error.covariance(i, i)) / at[i];
      verdict.low[i] = std::min(verdict.low[i], std::max(0.0, at[i] * (1 - reach)));
      verdict.high[i] = std::max(verdict.high[i], verdict.open ? whole.most : found[i] * most * (1 + reach));
    }
  }
  const Verdict of_seen = verdict;
  for (Vector* shares : {&verdict.share, &verdict.share_low, &verdict.share_high})
    if (shares->size() > 0) *shares = (shares->cwiseProduct(factor) / by.total).cwiseMin(1.0);
  if (verdict.explained) {
    const double more = verdict.share.sum() / std::max(verdict.explained->value, 1e-300);
    verdict.explained =
        Banded{std::min(1.0, verdict.explained->value * more), std::min(1.0, verdict.explained->low * more),
               std::min(1.0, verdict.explained->high * more)};
  }
  if (limited && verdict.explained) {  // somewhere between what is seen and what Gaussian rows would have had
    verdict.share_low = verdict.share_low.cwiseMin(of_seen.share_low);
    verdict.share_high = verdict.share_high.cwiseMax(of_seen.share_high);
    verdict.explained->low = std::min(verdict.explained->low, of_seen.explained->low);
    verdict.explained->high = std::max(verdict.explained->high, of_seen.explained->high);
  }
  verdict.line *= by.rest;
  return verdict;
}

Result<PcaResult> components_by(ReleasedCovariance released, const PcaOptions& options, const Whole& whole) {
  std::optional<ReleasedCorrelation> correlation;
  if (options.scale == Scale::kCorrelation) correlation = correlation_of(released);
  const Matrix& S = correlation ? correlation->correlation : released.covariance;
  auto pairs = top_eigenpairs(S, options.components);
  if (!pairs) return pairs.error();
  if (options.sparsity) pairs = sparse_eigenpairs(S, pairs->vectors, *options.sparsity);
  if (!pairs) return pairs.error();
  fix_signs(pairs->vectors);
  const double edge =
      correlation ? noise_line(*correlation, pairs->values) : noise_line(moments_of(released), pairs->values);
  PcaResult result{pairs->vectors,         pairs->values, released.prepared.mean,
                   released.prepared.rows, edge,          released.prepared.mean_deviation};
  const bool shortened = whole.of && !correlation;
  if (shortened) {
    const auto others = static_cast<double>(S.cols() - pairs->values.size());
    const double rest = S.trace() - pairs->values.cwiseMax(0.0).sum();
    const Growth by = growth_of({pairs->values, others > 0 ? rest / others : 0.0, others}, whole);
    result.eigenvalues = result.eigenvalues.cwiseProduct(by.top);
    result.noise_edge *= by.rest;
  }
  if (correlation) {
    result.spread = correlation->spread;
    result.left_out = correlation->left_out;
    if (!options.sparsity) result.judge = judge_of(*std::move(correlation), options.components);
  } else if (!options.sparsity && shortened) {
    result.judge = [released = std::move(released), components = options.components, whole] {
      return judge_whole(released, components, whole);
    };
  } else if (!options.sparsity) {
    result.judge = judge_of(std::move(released), options.components);
  }
  return result;
}

// How many rows may be longer than the lengths that searches found: so many as were wanted, and those by which the
// search and as many rows may be off.
std::vector<LengthLimit> limits_of(const Preparation& prepared, double deviations) {
  constexpr double kNearlyAll = 0.9;  // a search that may be off by that much limits nothing
  std::vector<LengthLimit> limits;
  for (const auto& found : {prepared.far, prepared.found}) {
    if (!found) continue;
    const double of_rows = std::sqrt(found->longer * (1 - found->longer) / std::max(prepared.rows, 1.0));
    const double longer = found->longer + deviations * (found->error + of_rows);
    if (longer < kNearlyAll) limits.push_back({found->length, longer});
  }
  return limits;
}

}  // namespace

Result<PcaResult> components_of(ReleasedCovariance released, const PcaOptions& options, double radius) {
  Whole whole;
  if (released.prepared.bound_found) {
    const auto within = [&](double deviations) {
      return [radius, limits = limits_of(released.prepared, deviations)](const RowSpectrum& seen) {
        return unshortened(seen, radius, limits);
      };
    };
    // Of many steps a search ends at one that noise made look good: it errs exponentially.
    whole.of = within(2);
    whole.loosely = within(5);
    whole.radius = radius;
    whole.most = std::pow(released.prepared.widest, 2);
    whole.tau2 = whole.seen_tau2 = std::pow(released.prepared.mean_deviation, 2);
  }
  return components_by(std::move(released), options, whole);
}

Result<PcaResult> fit_gram(Oracle& oracle, const PcaOptions& options) {
  EIGENVEIL_TRY(check(oracle.shape(), options));
  auto released = EIGENVEIL_TRY(release_covariance(oracle, options.preparation));
  return components_of(std::move(released), options, oracle.shape().lattice.radius);
}

PrivacyPlan plan_sphere(Adjacency adjacency, PcaOptions options) {
  options.preparation.bound_by = BoundBy::kMiddle;
  return plan_gram(adjacency, options);
}

Result<PcaResult> fit_sphere(Oracle& oracle, PcaOptions options) {
  EIGENVEIL_TRY(check(oracle.shape(), options));
  options.preparation.bound_by = BoundBy::kMiddle;
  auto prepared = EIGENVEIL_TRY(prepare(oracle, options.preparation));
  return components_on_sphere(oracle, std::move(prepared), options,
                              [&] { return oracle.ask(kCovarianceLabel, Gram{}); });
}

Result<PcaResult> components_on_sphere(Oracle& oracle, Preparation prepared, const PcaOptions& options,
                                       const std::function<Result<Answer>()>& ask) {
  if (!prepared.found) return internal_error("rows are made of one length, and no search told how long they are");
  // Many rows are as long as R already. A bound that next to no row is shorter than makes the others as long.
  constexpr double kNextToNothing = 0x1p-10;
  const double R = prepared.found->length, longer = prepared.found->longer;
  const auto unit = EIGENVEIL_TRY(RowBound::of(R * kNextToNothing));
  EIGENVEIL_TRY(oracle.recenter(Vector::Zero(prepared.mean.size()), unit));
  const auto gram = EIGENVEIL_TRY(ask());
  const double per_row = 1 / (prepared.rows * unit.value() * unit.value());
  // Rows of length 1 are about 1 / R as long as they were, and so is the error of the mean.
  const double tau = prepared.mean_deviation;
  Matrix S = gram.value() * per_row;
  S.diagonal().array() -= tau * tau / (R * R);
  ReleasedCovariance released{std::move(S), std::move(prepared), gram.deviation() * per_row};
  released.prepared.mean_deviation = tau / R;
  // The length that so many rows exceed lies within a step of the grid below R: in its middle, with the deviation of a
  // number that is anywhere in it, of its square. So many rows have one of their own, and the search is off by some
  // rows.
  const double step = std::exp2(1.0 / kBoundsPerOctave);
  const double square = R * R / step, of_step = 2 * std::log(step) / std::sqrt(12.0);
  Whole whole;
  whole.of = [square, longer](const RowSpectrum& seen) {
    RowSpectrum found = unshortened(seen, {});
    const double scale = square / std::max(squared_length(found, longer), 1e-300);
    found.top *= scale;
    found.rest *= scale;
    return found;
  };
  whole.seen_tau2 = tau * tau / (R * R);
  whole.tau2 = tau * tau;
  whole.unseen = square;
  whole.scale_deviation = [of_step, longer, rows = released.prepared.rows,
                           off = 2 * released.prepared.found->error](const RowSpectrum& found) {
    return std::hypot(of_step, deviation_of_length(found, longer, rows, off));
  };
  auto result = components_by(std::move(released), options, whole);
  if (!result) return result;
  result->mean_deviation = tau;
  result->length = R;
  return result;
}

}  // namespace eigenveil
