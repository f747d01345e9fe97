// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include "eigenveil/estimators/clip/clip.hpp"
#include "eigenveil/papers/noise.hpp"
#include "eigenveil/query/gradient_oracle.hpp"
#include "tests/support/fit.hpp"

/// Tries to falsify what batches are certified for: runs on data with and without one canary pair, scores each run by
/// how likely the canary makes what was released, and bounds epsilon from below by how often a threshold is right.
namespace eigenveil::audit {

/// I_x(a, b), the regularised incomplete beta function, by its continued fraction (Lentz).
inline double incomplete_beta(double a, double b, double x) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  constexpr double kTiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1), value;
  d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
  value = d;
  for (int m = 1; m < 10000; ++m) {
    for (const double term : {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                              -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))}) {
      d = 1 + term * d;
      c = 1 + term / c;
      d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
      if (std::fabs(c) < kTiny) c = kTiny;
      value *= c * d;
    }
    if (std::fabs(c * d - 1) < 1e-14) break;
  }
  return value / a *
         std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
}

/// Clopper and Pearson 1934: above the probability of what was seen `hits` times in `trials`, but for a chance of
/// alpha.
inline double upper_bound(std::size_t hits, std::size_t trials, double alpha) {
  if (hits >= trials) return 1;
  const auto k = static_cast<double>(hits), n = static_cast<double>(trials);
  double low = 0, high = 1;
  for (int i = 0; i < 100; ++i) {  // P(at most k hits) = 1 - I_p(k + 1, n - k) = alpha
    const double p = (low + high) / 2;
    (1 - incomplete_beta(k + 1, n - k, p) > alpha ? low : high) = p;
  }
  return high;
}
inline double lower_bound(std::size_t hits, std::size_t trials, double alpha) {
  return 1 - upper_bound(trials - hits, trials, alpha);
}

/// Scores of runs: the larger, the more likely the canary was there.
struct Scores {
  std::vector<double> absent, present;
};

/// Below epsilon at this delta, but for a chance of alpha. The threshold is chosen on the first half of the runs; on
/// the second half both probabilities have alpha / 2.
inline double epsilon_below(const Scores& scores, double delta, double alpha = 0.001) {
  const auto half = [](const std::vector<double>& all, bool second) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::vector<double> part(second ? middle : all.begin(), second ? all.end() : middle);
    std::sort(part.begin(), part.end());
    return part;
  };
  const auto bound_at = [&](const Scores& part, double t, bool above) {
    const auto share = [&](const std::vector<double>& sorted) {
      const auto below = std::lower_bound(sorted.begin(), sorted.end(), t) - sorted.begin();
      return above ? sorted.size() - static_cast<std::size_t>(below) : static_cast<std::size_t>(below);
    };
    const auto& often = above ? part.present : part.absent;
    const auto& seldom = above ? part.absent : part.present;
    const double p = lower_bound(share(often), often.size(), alpha / 2);
    const double q = upper_bound(share(seldom), seldom.size(), alpha / 2);
    return p > delta ? std::log((p - delta) / q) : 0.0;
  };
  const Scores first{half(scores.absent, false), half(scores.present, false)};
  const Scores second{half(scores.absent, true), half(scores.present, true)};
  double best = 0, chosen = 0;
  bool chosen_above = true;
  const auto consider = [&](double t) {
    for (const bool above : {true, false})
      if (const double bound = bound_at(first, t, above); bound > best) {
        best = bound;
        chosen = t;
        chosen_above = above;
      }
  };
  // Quantiles of both, closer together towards the ends.
  for (const auto* sorted : {&first.absent, &first.present})
    for (int i = 1; i < 60; ++i)
      for (const double share : {std::pow(0.85, i), 1 - std::pow(0.85, i)})
        consider((*sorted)[static_cast<std::size_t>(share * static_cast<double>(sorted->size() - 1))]);
  return std::max(0.0, bound_at(second, chosen, chosen_above));
}

/// ln of how much likelier x is with a canary that is drawn with probability q and moves the answer by 1: noise sigma.
inline double log_ratio(double x, double q, double sigma) {
  const double moved = (x - 0.5) / (sigma * sigma);
  return moved < 500 ? std::log1p(q * std::expm1(moved)) : moved + std::log(q);
}

/// The plan for (epsilon, delta): with the noise that our accountant finds, or with the paper's.
inline PrivacyPlan noisy(const PrivacyPlan& draft, double epsilon, double delta, Calibration calibration) {
  const auto plan = calibration == Calibration::kTight
                        ? calibrate(draft, *Epsilon::of(epsilon), *Delta::of(delta))
                        : papers::batch(draft, *Epsilon::of(epsilon), *Delta::of(delta), Accounting::kTight);
  return *plan;
}

/// Remembers what was released.
class Witness final : public Oracle {
 public:
  explicit Witness(Oracle& oracle) : oracle_(oracle) {}
  const std::vector<Vector>& seen() const { return seen_; }

  RowsShape shape() const override { return oracle_.shape(); }
  const PrivacyPlan& plan() const override { return oracle_.plan(); }
  Result<Answer> ask(const std::string& label, const SumQuery& query) override { return oracle_.ask(label, query); }
  Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                              std::int64_t target) override {
    return oracle_.first_at_most(label, query, target);
  }
  Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product, const FilteredApply& query,
                                      std::int64_t target) override {
    return oracle_.ask_filtered(search, product, query, target);
  }
  Result<Answer> ask_batch(const std::string& label, const BatchQuery& query) override {
    auto answer = oracle_.ask_batch(label, query);
    if (answer) seen_.push_back(answer->value().col(0));
    return answer;
  }
  Status recenter(const Vector& mean, RowBound radius) override { return oracle_.recenter(mean, radius); }
  Status remap(const LinearMap& M, RowBound radius) override { return oracle_.remap(M, radius); }
  bool complete() const override { return oracle_.complete(); }

 private:
  Oracle& oracle_;
  std::vector<Vector> seen_;
};

/// `clip fit --method batch` on `pairs` ordinary pairs, x = y no two alike and at most a hundredth long, and a canary
/// with x = -y = 1: the gradient of a whole batch turns round for it.
class BatchFit {
 public:
  BatchFit(double q, std::size_t steps, double epsilon, double delta, Calibration calibration, Eigen::Index pairs)
      : options_{.method = ClipMethod::kBatch, .dim = 1}, plan_(Adjacency::kAddRemoveOne), rows_(pairs + 1, 2) {
    options_.x_columns = 1;
    options_.training.linear = true;
    options_.training.clip = kClip;
    options_.training.sample_rate = q;
    options_.training.steps = steps;
    options_.training.optimizer = Optimizer::kSgd;
    options_.training.rate = 1e-12;  // the heads stay where they are: answers are what is scored
    options_.start.G1 = options_.start.G2 = Matrix::Constant(1, 1, std::sqrt(0.5));
    plan_ = noisy(plan_clip(Adjacency::kAddRemoveOne, options_), epsilon, delta, calibration);
    for (Eigen::Index i = 0; i < pairs; ++i)
      rows_.row(i).setConstant(0.01 * static_cast<double>(2 * i - pairs) / static_cast<double>(pairs));
    rows_.row(pairs) << 1, -1;
  }

  const PrivacyPlan& plan() const { return plan_; }

  double score(bool canary, std::uint64_t seed) const {
    auto oracle = test::oracle_over(rows_.topRows(rows_.rows() - (canary ? 0 : 1)), 2, plan_, seed, 1);
    Witness witness(oracle);
    if (!fit_clip(witness, options_).ok()) return std::nan("");
    const auto event = std::get<PoissonGaussianEvent>(plan_.events.front().mechanism);
    // Without the canary the gradient is -c (1, 1) / sqrt(2), with it the other way: 2 c further
    double sum = 0;
    for (const Vector& g : witness.seen())
      sum += log_ratio((g.sum() / std::sqrt(2.0) + kClip) / (2 * kClip), event.q, event.sigma);
    return sum;
  }

 private:
  static constexpr double kClip = 1e-12;
  ClipOptions options_;
  PrivacyPlan plan_;
  RowMajorMatrix rows_;
};

/// Scores of so many runs on each side.
inline Scores run(std::size_t runs, const std::function<double(bool canary, std::uint64_t seed)>& score) {
  Scores scores;
  for (std::size_t i = 0; i < runs; ++i) {
    scores.absent.push_back(score(false, 2 * i + 1));
    scores.present.push_back(score(true, 2 * i + 2));
  }
  return scores;
}

}  // namespace eigenveil::audit
