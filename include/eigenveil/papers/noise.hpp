// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/privacy/accountant.hpp"

namespace eigenveil::papers {

// The papers' own noise, for comparison. A plan states the noise of an answer as mu = our sensitivity / sigma, so a
// paper's sigma has one mu, and our accountant can say what that really costs: it may be less than the paper claims, or
// more (noise.proof.md). Each function takes the plan of an estimator and replaces its noise; what prepares the rows of
// a PCA gets a tenth of the main answer's mu. Numbers of rounds are read off the plan.

/// Dwork, Talwar, Thakurta, Zhang 2014: sigma = B^2 sqrt(2 ln(1.25 / delta)) / epsilon on every entry.
PrivacyPlan gram(PrivacyPlan plan, Epsilon epsilon, Delta delta);

/// Distributed sparse PCA (000): T rounds of (epsilon / T, delta / T), sigma = 2 B^2 sqrt(2 ln(2 / delta)) / epsilon.
/// A product's sensitivity depends on the number of components.
PrivacyPlan sparse_power(PrivacyPlan plan, std::size_t components, Epsilon epsilon, Delta delta);

/// Adaptive power iteration (001, lemma 3.1): a round has a search of epsilon_0 and sigma = theta
/// sqrt(2 ln(2 / delta_0)) / epsilon_0, where epsilon = 2 (T epsilon_0^2 + sqrt(2 T ln(1 / delta_0)) epsilon_0) and
/// delta = (T + 1) delta_0.
PrivacyPlan adaptive_power(PrivacyPlan plan, Epsilon epsilon, Delta delta);
/// The number of rows above the threshold that the paper's search accepts: 6 ln(1 / beta) / epsilon_0, beta = 0.05.
double rows_above(std::size_t rounds, Epsilon epsilon, Delta delta);

/// The spiked model (002): sigma^2 = 8 Delta^2 ln(2.5 / delta) / epsilon^2 for the projector and for the block.
PrivacyPlan spiked(PrivacyPlan plan, Epsilon epsilon, Delta delta);

// Generalized eigenproblems (004): m rounds, sigma = C sqrt(m / rho) in units of B^2 (the average's 1/n left out), each
// step, replace-one, rows that need no preparation.

/// rho of lemma 1: (sqrt(eps + ln 1/delta) - sqrt(ln 1/delta))^2.
double rho(Epsilon epsilon, Delta delta);
/// C_1 = C_2 = 12.
PrivacyPlan cca(PrivacyPlan plan, Epsilon epsilon, Delta delta);
/// C = 4 between, 7 within classes.
PrivacyPlan fda(PrivacyPlan plan, Epsilon epsilon, Delta delta);
/// C = 13 and 6.
PrivacyPlan sir(PrivacyPlan plan, Epsilon epsilon, Delta delta);
/// Given matrices: C is their sensitivity.
PrivacyPlan matrices(PrivacyPlan plan, Epsilon epsilon, Delta delta);

/// Contrastive heads (003): the accountant takes sigma c for noise of a sum with sensitivity c; it is 2 c: half of the
/// noise that a plan calibrated for what the paper claims has.
Result<PrivacyPlan> batch(const PrivacyPlan& plan, Epsilon epsilon, Delta delta, Accounting accounting);

}  // namespace eigenveil::papers
