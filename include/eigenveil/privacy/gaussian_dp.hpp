// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// ln delta(epsilon) of one Gaussian answer with mu = sensitivity / sigma (Balle and Wang 2018, theorem 8):
/// delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu). Accurate down to delta = 1e-300 and below.
double gaussian_log_delta(double mu, double epsilon);

/// The smallest epsilon >= 0, rounded up, with gaussian delta(epsilon) <= delta.
double gaussian_epsilon(double mu, Delta delta);
double gaussian_epsilon(double mu, double log_delta);

/// The largest mu, rounded down, whose answer is (epsilon, delta)-DP.
double gaussian_mu(Epsilon epsilon, Delta delta);
double gaussian_mu(double epsilon, double log_delta);

/// The smallest mu such that every epsilon-DP mechanism is mu-GDP: mu = -2 Phi^-1(1 / (1 + e^eps)), rounded up.
double mu_of_pure(double epsilon);

}  // namespace eigenveil
