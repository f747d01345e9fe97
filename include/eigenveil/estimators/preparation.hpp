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

/// How far a row may reach once it is about the mean: preparation.proof.md. A length is found by a private search, with
/// 3% of the budget, below what was stated or what the ranges allow.
enum class BoundBy {
  kStated,      ///< as far as was stated: no search
  kDirections,  ///< the more noise there is, the more rows are shortened: directions hardly mind
  kMoments,     ///< what is cut off the rows stays below the noise of their second moments
  kMiddle,      ///< half of the rows are longer
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
  BoundBy bound_by = BoundBy::kStated;
  std::size_t directions = 1;  ///< that are wanted of the rows
  MeanShares shares = {};      ///< of a refined mean; `with_shares` fits them to the rows
  bool count_rows = false;     ///< what all rows weigh is private even under replace-one: a noisy count tells it
};

/// What a search told of the rows' lengths.
struct FoundLength {
  double length;
  double longer;  ///< share of the rows, about
  double error;   ///< of that share
};

struct Preparation {
  double rows;                            ///< public, or a released noisy count: at least 1
  Vector mean;                            ///< zero unless one was released
  double mean_deviation = 0;              ///< tau: of the noise of an entry of it
  bool bound_found = false;               ///< the rows' bound was found by a search
  std::optional<FoundLength> far = {};    ///< found about a rough mean: few rows are longer
  std::optional<FoundLength> found = {};  ///< by the last search
  double widest = 0;                      ///< public: no row was longer before anything was searched
};

/// The shares of a refined mean that suit rows of that shape: by their number where it is public.
PreparationOptions with_shares(PreparationOptions options, const RowsShape& shape, const Budget& budget);

/// Lengths that a search tells apart, per factor of two.
inline constexpr int kBoundsPerOctave = 16;

/// Which share of the rows may be shortened, by the noise of one matrix of second moments of n rows, sigma = R^2 / (n
/// mu) for rows of length R.
///   directions  500 times the share of the variance that noise would lose of the first k directions, if eigenvalues
///               were in proportion to 1 / i: as n grows it vanishes like 1 / n^2
///   moments     a third of the length of the noise, d sigma, over that of the matrix, at most R^2
/// Never more than half.
double share_above(BoundBy by, std::size_t directions, std::size_t columns, double n_mu);

/// The longer the tail, the more of it is noise that all rows pay for. `share_above` takes a bound that is not much
/// longer than typical rows; noise loses (R / typical)^4 times as much, and so much more may be shortened. Known are
/// the length `far` that a share `a` of the rows exceeds and a typical one, exceeded by `b`; between them lengths are a
/// power of the share.
double bound_for_tail(double a, double far, double b, double typical);

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
