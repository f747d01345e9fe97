// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/privacy/budget.hpp"
#include "eigenveil/privacy/event.hpp"
#include "eigenveil/query/oracle.hpp"

namespace eigenveil {

/// What several estimators call their second moments.
inline constexpr const char* kCovarianceLabel = "covariance";

/// How the mean of the rows is found and paid for: preparation.proof.md.
enum class MeanBy {
  kNone,     ///< zero is the centre
  kOnce,     ///< one sum, with 5% of the budget
  kRefined,  ///< a rough sum of whole rows, then one of rows that were shortened about it; shares follow public facts
};

/// Shares of the total mu^2 of a refined mean.
struct MeanShares {
  double rough = 0.02;
  double refined = 0.1;  ///< 0: one sum does it all
};

/// What an estimator may need to learn about the rows before its own work, and pays for.
struct PreparationOptions {
  MeanBy mean = MeanBy::kNone;    ///< release the mean, subtract it and bound the rows again
  std::optional<RowBound> bound;  ///< of the rows after the mean is subtracted; default: the bound before
  bool private_bound = false;     ///< then shorten the longest rows to a bound that is found privately
  double bound_quantile = 0.98;   ///< share of the rows that keep their length
  MeanShares shares = {};         ///< of a refined mean; `with_shares` fits them to the rows
  bool count_rows = false;        ///< what all rows weigh is private even under replace-one: a noisy count tells it
};

struct Preparation {
  double rows;                ///< public, or a released noisy count: at least 1
  Vector mean;                ///< zero unless one was released
  double mean_deviation = 0;  ///< tau: of the noise of an entry of it
};

/// The shares of a refined mean that suit rows of that shape: by their number where it is public.
PreparationOptions with_shares(PreparationOptions options, const RowsShape& shape, const Budget& budget);

/// The events of the preparation, with weights relative to `remaining_weight`, the root of the sum of squares of the
/// weights of the estimator's own Gaussian events.
std::vector<PrivacyEvent> plan_preparation(Adjacency adjacency, const PreparationOptions& options,
                                           double remaining_weight);

/// Asks the events of `plan_preparation`: the first ones of the oracle's plan.
Result<Preparation> prepare(Oracle& oracle, const PreparationOptions& options);

/// What keeps some of the noise away from directions.
struct LessHidden {
  bool filtered = false;                     ///< rows count by their scores: at best R / sqrt(lambda) times less noise
  std::optional<std::size_t> sparsity = {};  ///< s columns meet the noise of about s log d
};

/// For one noisy matrix of second moments: nothing if its noise may leave something to learn, and else why not. Noise
/// hides a direction of eigenvalue lambda below sigma sqrt(d) altogether (Baik, Ben Arous, Peche), and the error of the
/// mean one below tau^2 d. lambda is that of the first of eigenvalues in proportion to 1 / i, for rows of two thirds of
/// their bound.
std::optional<std::string> drowned_before(const RowsShape& shape, const Budget& budget,
                                          const PreparationOptions& options, const LessHidden& less = {});

/// The largest eigenvalue that noise alone typically gives to averages of d columns: a symmetric noise matrix with
/// entries of deviation sigma (Wigner: 2 sigma sqrt(d)) and r r^T - tau^2 I, r the error of the mean (Baik, Ben Arous,
/// Peche: theta + sigma^2 d / theta where theta = tau^2 d stands out).
double noise_edge(double sigma, double tau, double d);

/// The answers of an estimator that tells classes apart, and their shares of the total mu^2 but for the preparation.
struct ClassAnswers {
  std::size_t counted;  ///< classes that are counted
  std::size_t groups;   ///< that are compared: those, or what they are merged into
  double counts_share;  ///< 0: they are not counted
  double sums_share;
  double deviations = 4;  ///< of its noise that a count must have
  const char* word = "classes";
};

/// The same for class counts and class sums: noise hides a class of an even share of the rows, or class means as far
/// apart as typical rows are long.
std::optional<std::string> classes_drowned_before(const RowsShape& shape, const Budget& budget,
                                                  const PreparationOptions& options, const ClassAnswers& answers);

}  // namespace eigenveil
