// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "eigenveil/base/types.hpp"
#include "eigenveil/verdict/standing.hpp"

namespace eigenveil {

// What released numbers are worth. The law of the noise is known and that of sampling nearly so, so the estimator can
// be run again and again on what was released, with fresh noise and fresh rows: post-processing, which costs no budget.
// The random stream is public and fixed, so that the same release always gets the same verdict.

/// A number with its 95% band.
struct Banded {
  double value;
  double low;
  double high;
};

/// K released directions, judged.
struct Verdict {
  Vector estimate;  ///< K values with the bias of noise and sampling taken out
  Vector low;       ///< of their 95% bands
  Vector high;
  Vector cos2;                 ///< K: expected squared cosine between a direction and the true one; 0 of noise
  std::vector<Judged> judged;  ///< K
  /// d x K: of a loading about cos . loading, cos^2 = cos2. A loading keeps its sign where cos |loading| is more than
  /// 1.96 deviations: that is a finding.
  Matrix deviation;
  double line = 0;         ///< values up to here are what noise alone would give
  std::size_t found = 0;   ///< directions above it
  Vector share = {};       ///< K: of the total variance that each explains; empty: unknown, or no such share
  Vector share_low = {};   ///< of its 95% band
  Vector share_high = {};  ///< likewise
  std::optional<Banded> explained = {};  ///< of the total variance, by all K together
  bool has_total = false;                ///< there is a total variance: without `explained` it is unknown
  bool drawn = true;                     ///< false: a formula took the place of draws
  bool open = false;                     ///< nothing but public bounds limits values from above
};

/// A verdict that is found when somebody asks for it. It keeps what it needs of the release.
using Judge = std::function<Result<Verdict>()>;

/// A released second moment about a mean: S = sample covariance + symmetric noise + r r^T - tau^2 I.
struct MomentMatrix {
  const Matrix& S;        ///< d x d, symmetric
  double deviation;       ///< of an entry of the noise off the diagonal; sqrt 2 times as much on it
  double rows;            ///< public, or a released count
  double mean_deviation;  ///< tau, of an entry of the mean's error r; 0: the mean is known
};

/// The most columns for which draws are made; above it a formula stands in for them.
inline constexpr Eigen::Index kMostDrawn = 256;

/// Of the top eigenvectors of S. docs/results/verdicts.md has the calibration.
Result<Verdict> judge_moments(const MomentMatrix& released, std::size_t components);

/// The same line from the top eigenvalues alone (descending) and the trace of S.
double noise_line(const MomentMatrix& released, const Vector& top);

/// The largest eigenvalue that noise, sampling and the mean's error typically give a matrix with `m` equal eigenvalues
/// of mean `level`, above that mean.
double noise_reach(double level, double m, double deviation, double rows, double mean_deviation);

}  // namespace eigenveil
