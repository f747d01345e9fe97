// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <stdexcept>

#include "accuracy.hpp"
#include "eigenveil/query/local_oracle.hpp"
#include "tests/support/fit.hpp"
#include "verdict_counts.hpp"

namespace eigenveil::bench {

/// Rows of a release through the estimator itself, and its verdict.
struct Judgement {
  Fit fit;
  Verdict verdict;
  double radius = 0;  // that rows were shortened to
};

inline Judgement judged(Result<Fit> fit, Counts& counts) {
  if (!fit) throw std::runtime_error(fit.error().message);
  const auto begin = std::chrono::steady_clock::now();
  auto verdict = fit->judge();
  counts.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!verdict) throw std::runtime_error(verdict.error().message);
  return {*std::move(fit), *std::move(verdict)};
}

inline Judgement released(const Estimator& estimator, BoundedRows rows, double epsilon, int seed, Counts& counts) {
  const Budget spent = budget(epsilon, 1e-6);
  const RowsShape shape{rows.columns(), rows.rows(), rows.lattice(), Adjacency::kReplaceOne};
  const auto plan = calibrate(*estimator.plan(shape, spent), spent.epsilon, spent.delta, spent.accounting);
  if (!plan) throw std::runtime_error(plan.error().message);
  LocalOracle oracle(std::move(rows), reserve_without_ledger(*plan),
                     SecureRandom::insecure(static_cast<std::uint64_t>(seed)));
  Judgement one = judged(estimator.fit(oracle, spent), counts);
  one.radius = oracle.shape().lattice.radius;
  return one;
}

/// As fits are by default: a private mean, and a bound that is found.
inline PreparationOptions prepared(bool found, BoundBy by, Index directions) {
  if (!found) return {};
  return {.mean = MeanBy::kRefined, .bound_by = by, .directions = static_cast<std::size_t>(directions)};
}

}  // namespace eigenveil::bench
