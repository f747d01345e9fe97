// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eigenveil/privacy/event.hpp"

/// Everything by which what runs, and what is computed, differs from the mechanisms that the curves are proved for: the
/// one table, with the proof of every line, is slack.md.
namespace eigenveil::slack {

inline constexpr double kLargestEpsilon = 1000;  ///< beyond it no guarantee is stated

inline constexpr double kLatticeEpsilon = 0x1p-36;   ///< integers instead of real numbers: in epsilon,
inline constexpr double kLatticeLogDelta = 0x1p-46;  ///< and in ln delta
inline constexpr double kLogCut = -1755;             ///< noise ends at 64 deviations: e^(epsilon + this) in delta

inline constexpr double kComputed = 3e-11;    ///< rounding of a computed ln delta
inline constexpr double kIds = 1.4e-11;       ///< ids of people that collide, in ln delta
inline constexpr double kCurve = 1e-10;       ///< what every plan and history pays for these two
inline constexpr double kEpsilon = 1e-12;     ///< rounding of a computed epsilon, relative
inline constexpr double kSums = 0x1p-27;      ///< sums over the grid of a composition, in ln delta
inline constexpr double kAnswer = 4e-12;      ///< masses of one answer on that grid, in ln delta
inline constexpr double kWindow = 0.01;       ///< moments that choose its window, in their logarithm
inline constexpr double kMuOfPure = 0x1p-40;  ///< mu of a pure answer, relative
static_assert(kComputed + kIds <= kCurve);

/// Of a transform of N numbers: ||error|| <= transform(N) ||result||, in Euclidean norms.
double transform(double points);

/// What a whole computation pays.
struct Slack {
  double epsilon = 0;     ///< added to epsilon
  double log_factor = 0;  ///< delta grows by e^log_factor
  double log_cut;         ///< and by e^(epsilon + log_cut) then
};

/// Of a plan. Every kind of answer has its lines here, so none can be forgotten.
Slack of_plan(const std::vector<PrivacyEvent>& events);
/// Of a history in a Renyi filter, whose divergences are those of the discrete law itself.
Slack of_history();

/// ln of the delta that is left to the ideal mechanisms where the computation may spend `log_delta`, at an epsilon up
/// to kLargestEpsilon; -infinity if nothing is left.
double log_delta_left(const Slack& slack, double log_delta);
/// The inverse: ln of the delta of the computation where the ideal mechanisms have `log_delta` at max(0, epsilon -
/// slack.epsilon).
double log_delta_with(const Slack& slack, double log_delta, double epsilon);
/// The epsilon of the computation where the ideal mechanisms have `epsilon`; infinity above kLargestEpsilon.
double epsilon_with(const Slack& slack, double epsilon);

}  // namespace eigenveil::slack
