// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/gep/solve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "eigenveil/estimators/gep/flow.hpp"
#include "eigenveil/linalg/fantope.hpp"
#include "eigenveil/linalg/generalized.hpp"

namespace eigenveil {
namespace {

struct Ridged {
  Matrix B;
  double kept;  // of the entries off the diagonal
  double ridge;
  double smallest;  // eigenvalue before
  double edge;
};

// James and Stein: of `entries` numbers with noise of the given variance, the share that is not noise.
double signal_share(double squared_sum, double entries, double variance) {
  if (!(variance > 0) || entries < 3) return 1;
  return squared_sum > 0 ? std::max(0.0, 1 - (entries - 2) * variance / squared_sum) : 0.0;
}

// Entries off the diagonal shrink towards zero, those on it towards their mean, each by the share that noise has in
// them: covariances far above the noise stay, and a B of independent columns becomes diagonal.
Ridged shrink(const Matrix& B, double sigma) {
  Ridged result{B, 1, 0, 0, 0};
  const double d = static_cast<double>(B.rows());
  const Vector diagonal = B.diagonal();
  result.B.diagonal().setZero();
  const double entries = static_cast<double>((result.B.array() != 0).count()) / 2;  // views have none in common
  result.kept = signal_share(result.B.squaredNorm() / 2, entries, sigma * sigma);
  result.B *= result.kept;
  const double mean = diagonal.mean();
  const Vector spread = diagonal.array() - mean;
  const double kept = signal_share(spread.squaredNorm(), d - 1, 2 * sigma * sigma);
  result.B.diagonal() = (kept * spread).array() + mean;
  // A symmetric noise matrix has its spectrum within 2 sigma sqrt(d) (Wigner), a diagonal one within its largest entry.
  result.edge = 2 * sigma * std::max(result.kept * std::sqrt(d), kept * std::sqrt(std::log(d)));
  return result;
}

Result<Ridged> add_ridge(const Matrix& B, double sigma, std::optional<double> given) {
  Ridged result = shrink(B, sigma);
  const auto extremes = EIGENVEIL_TRY(extreme_eigenvalues(result.B));
  // Without noise B must still be invertible.
  const double least = std::max({result.edge, 1e-10 * std::max(extremes.largest, -extremes.smallest), 1e-300});
  result.smallest = extremes.smallest;
  const double needed = std::max(0.0, least - extremes.smallest);
  // It was paid for: where noise leaves B no inverse, a ridge that is too small gives way.
  result.ridge = given && extremes.smallest + *given > 0 ? *given : needed;
  result.B.diagonal().array() += result.ridge;
  return result;
}

std::vector<std::string> notes_of(const Ridged& ridged, std::optional<double> given) {
  std::vector<std::string> notes;
  if (ridged.kept < 0.5)
    notes.push_back(fmt::format("The entries of B off its diagonal are mostly noise: {:.0f}% of them was kept.",
                                100 * ridged.kept));
  if (!(ridged.ridge > 0)) return notes;
  if (given && ridged.ridge == *given)
    notes.push_back(fmt::format("A ridge of {:.3g} was added to the diagonal of B, as asked.", ridged.ridge));
  else if (given)
    notes.push_back(
        fmt::format("The ridge {:g} was too small: with its noise, B has the eigenvalue {:.3g}. {:.3g} was added "
                    "instead.",
                    *given, ridged.smallest, ridged.ridge));
  else if (ridged.edge > 0)
    notes.push_back(
        fmt::format("A ridge of {:.3g} was added to the diagonal of B: its smallest eigenvalue was {:.3g}, and noise "
                    "alone moves eigenvalues by up to {:.3g}.",
                    ridged.ridge, ridged.smallest, ridged.edge));
  else  // B is known without noise
    notes.push_back(fmt::format("A ridge of {:.3g} was added to the diagonal of B, which is singular.", ridged.ridge));
  return notes;
}

std::vector<Eigen::Index> support_of(const Matrix& V) {
  std::vector<Eigen::Index> support;
  for (Eigen::Index i = 0; i < V.rows(); ++i)
    if (V.row(i).squaredNorm() > 0) support.push_back(i);
  return support;
}

Matrix largest_rows(const Matrix& V, std::size_t s) {
  Matrix kept = V;
  std::vector<double> norms;
  for (Eigen::Index i = 0; i < V.rows(); ++i) norms.push_back(V.row(i).squaredNorm());
  std::vector<double> sorted = norms;
  std::nth_element(sorted.begin(), sorted.begin() + s - 1, sorted.end(), std::greater<>());
  for (Eigen::Index i = 0; i < V.rows(); ++i)
    if (norms[i] < sorted[s - 1]) kept.row(i).setZero();
  return kept;
}

Result<Matrix> start_of(const NoisyMatrices& matrices, const Matrix& B, const GepOptions& options) {
  if (options.start == GepStart::kRandom) return random_start(matrices.A.rows(), options.components);
  if (options.start == GepStart::kAdmm) return admm_start(matrices.A, B, matrices.sigma_a, options.components);
  const auto dense = EIGENVEIL_TRY(top_generalized_eigenpairs(matrices.A, B, options.components));
  return Matrix(dense.vectors.colwise().normalized());
}

Result<GepResult> solve_sparse(const NoisyMatrices& matrices, const Ridged& whole, const GepOptions& options) {
  const std::size_t s = *options.sparsity;
  const auto start = EIGENVEIL_TRY(start_of(matrices, whole.B, options));
  // Sparse vectors meet the noise of s columns, not of all of them: a smaller ridge will do from here on.
  const double few = whole.kept * 2 * matrices.sigma_b * std::sqrt(3.0 * static_cast<double>(s));
  Matrix B = whole.B;
  B.diagonal().array() +=
      std::min(0.0, options.ridge.value_or(std::max(few, 1e-10 * B.diagonal().maxCoeff())) - whole.ridge);
  const Multiply multiply = [&](const Matrix& V) -> Result<Products> {
    const auto support = support_of(V);
    const Matrix rows = V(support, Eigen::all);
    return Products{matrices.A(Eigen::all, support) * rows, B(Eigen::all, support) * rows};
  };
  FlowOptions flow{.rounds = 300, .step = options.step, .sparsity = s};
  flow.first_view = matrices.first_view;
  flow.semidefinite = matrices.semidefinite;
  flow.least_b = few;
  flow.average = false;
  flow.tolerance = 1e-10;
  Matrix first = start;
  if (options.start == GepStart::kAuto) first = largest_rows(first, s);
  const auto flowed = EIGENVEIL_TRY(rayleigh_flow(multiply, first, flow));

  const auto support = support_of(flowed.V);
  if (support.size() < options.components) return internal_error("the truncated flow kept too few columns");
  const auto ridged = EIGENVEIL_TRY(add_ridge(matrices.B(support, support), matrices.sigma_b, options.ridge));
  auto pairs = EIGENVEIL_TRY(top_generalized_eigenpairs(matrices.A(support, support), ridged.B, options.components));
  Matrix vectors = Matrix::Zero(matrices.A.rows(), pairs.vectors.cols());
  vectors(support, Eigen::all) = pairs.vectors;
  const double share = std::sqrt(static_cast<double>(support.size()) / static_cast<double>(matrices.A.rows()));
  const double spread = ridged.B.diagonal().cwiseInverse().mean();
  return GepResult{pairs.values, vectors, ridged.ridge, matrices.edge_a * share * spread,
                   notes_of(ridged, options.ridge)};
}

}  // namespace

Result<Matrix> admm_start(const Matrix& A, const Matrix& B, double sigma_a, std::size_t components) {
  constexpr Eigen::Index kMost = 300;
  if (A.rows() > kMost)
    return usage_error(
        fmt::format("`init` admm takes at most {} columns (each of its rounds costs their cube), but "
                    "there are {}: leave `init` out",
                    kMost, A.rows()));
  FantopeOptions options{.components = components};
  options.penalty = sigma_a * std::sqrt(2 * std::log(static_cast<double>(A.rows()) + 1));
  options.most_rounds = 5000;
  const auto relaxed = EIGENVEIL_TRY(solve_fantope(A, B, options));
  const auto leading = EIGENVEIL_TRY(top_eigenpairs(relaxed.P, components));
  return leading.vectors;
}

Result<GepResult> solve_matrices(const NoisyMatrices& matrices, const GepOptions& options) {
  EIGENVEIL_TRY(check(options));
  const std::size_t d = matrices.A.rows();
  if (options.components > d)
    return bad_input(fmt::format("`components` is {} but there are {} columns", options.components, d));
  if (options.sparsity && *options.sparsity > d)
    return usage_error(fmt::format("`sparsity` is {} but there are {} columns", *options.sparsity, d));
  const auto ridged = EIGENVEIL_TRY(add_ridge(matrices.B, matrices.sigma_b, options.ridge));
  if (options.sparsity && *options.sparsity < d) return solve_sparse(matrices, ridged, options);
  const auto pairs = EIGENVEIL_TRY(top_generalized_eigenpairs(matrices.A, ridged.B, options.components));
  // In a basis where B = I the noise of A is multiplied by about the mean of 1 / B's entries on the diagonal.
  const double spread = ridged.B.diagonal().cwiseInverse().mean();
  return GepResult{pairs.values, pairs.vectors, ridged.ridge, matrices.edge_a * spread,
                   notes_of(ridged, options.ridge)};
}

}  // namespace eigenveil
