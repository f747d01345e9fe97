#pragma once

#include "eigenveil/estimators/pca/spiked.hpp"

namespace eigenveil {

// The papers' own noise, for comparison. A plan states the noise of an answer as mu = our sensitivity / sigma, so a
// paper's sigma has one mu, and our accountant can say what that really costs: it may be less than the paper claims, or
// more. Each function takes the plan of an estimator and replaces its noise; what prepares the rows gets a tenth of
// the main answer's mu.

/// Dwork, Talwar, Thakurta, Zhang 2014: sigma = B^2 sqrt(2 ln(1.25 / delta)) / epsilon on every entry.
PrivacyPlan paper_gram(PrivacyPlan plan, Adjacency adjacency, Epsilon epsilon, Delta delta);

/// Distributed sparse PCA (000): T rounds of (epsilon / T, delta / T), sigma = 2 B^2 sqrt(2 ln(2 / delta)) / epsilon.
PrivacyPlan paper_sparse_power(PrivacyPlan plan, Adjacency adjacency, std::size_t rounds, std::size_t components,
                               Epsilon epsilon, Delta delta);

/// Adaptive power iteration (001, lemma 3.1): a round has a search of epsilon_0 and sigma = theta
/// sqrt(2 ln(2 / delta_0)) / epsilon_0, where epsilon = 2 (T epsilon_0^2 + sqrt(2 T ln(1 / delta_0)) epsilon_0) and
/// delta = (T + 1) delta_0.
PrivacyPlan paper_adaptive_power(PrivacyPlan plan, Adjacency adjacency, std::size_t rounds, Epsilon epsilon,
                                 Delta delta);
/// The number of rows above the threshold that the paper's search accepts: 6 ln(1 / beta) / epsilon_0, beta = 0.05.
double paper_rows_above(std::size_t rounds, Epsilon epsilon, Delta delta);

/// The spiked model (002): sigma^2 = 8 Delta^2 ln(2.5 / delta) / epsilon^2 for the projector and for the block.
PrivacyPlan paper_spiked(PrivacyPlan plan, Epsilon epsilon, Delta delta);

}  // namespace eigenveil
