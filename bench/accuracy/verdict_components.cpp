// SPDX-License-Identifier: Apache-2.0
// Verdicts of principal components beside the truth, through the estimator.
#include <algorithm>

#include "eigenveil/forecast/forecast.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "src/estimators/pca/shortened.hpp"
#include "verdict_release.hpp"

namespace eigenveil::bench {
namespace {

/// Of correlations: the truth is that of the features that were kept. False if they are fewer than the components.
bool only_kept(Judgement& one, Population& truth, Matrix& V) {
  std::vector<Index> kept;
  const auto left_out = one.fit.facts.value("left_out", std::vector<Index>{});
  for (Index i = 0; i < V.rows(); ++i)
    if (std::find(left_out.begin(), left_out.end(), i + 1) == left_out.end()) kept.push_back(i);
  const auto m = static_cast<Index>(kept.size());
  if (m < V.cols() || m < 2) return false;
  const Matrix S = (truth.U * truth.l.asDiagonal() * truth.U.transpose())(kept, kept);
  const Vector inverse = S.diagonal().cwiseSqrt().cwiseInverse();
  const auto pairs = top_eigenpairs(inverse.asDiagonal() * S * inverse.asDiagonal(), static_cast<std::size_t>(m));
  truth.l = pairs->values;
  truth.U = pairs->vectors;
  V = Matrix(V(kept, Eigen::all));
  one.verdict.deviation = Matrix(one.verdict.deviation(kept, Eigen::all));
  return true;
}

/// What eigenvalues mean where rows were shortened to a found radius: those that Gaussian rows had which were shortened
/// to the same.
Vector as_gaussian(const Population& population, double radius) {
  Matrix x = population.rows(100000);
  for (auto row : x.rowwise()) row *= std::min(1.0, radius / row.norm());
  const Matrix S = x.transpose() * x / static_cast<double>(x.rows());
  const Vector seen = top_eigenpairs(S, static_cast<std::size_t>(S.cols()))->values;
  return unshortened({seen, 1e-9, 0}, radius).top;
}

PcaProgram program_of(const Way& way, Index K) {
  const auto components = static_cast<std::size_t>(K);
  PcaProgram program{way.method, {components, prepared(way.found, BoundBy::kDirections, K), {}}};
  if (way.correlations) {
    program.options.scale = Scale::kCorrelation;
    program.options.preparation.mean = MeanBy::kOnce;
  }
  if (way.method == PcaMethod::kSpiked) {
    program.spiked.rank = components;
    if (way.found) program.options.preparation.bound_by = BoundBy::kMoments;
  }
  return program;
}

}  // namespace

Counts of_components(const std::string& shape, const Way& way, const Sizes& sizes, int sets) {
  Counts counts;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 23));
    const auto d = static_cast<Index>(spaced(random, sizes.least_columns, sizes.most_columns));
    const auto n = static_cast<Index>(spaced(random, sizes.least_rows, sizes.most_rows));
    const double epsilon = spaced(random, sizes.least_epsilon, sizes.most_epsilon);
    const Index k = std::uniform_int_distribution<Index>(1, std::min<Index>(5, d / 3))(random);
    const Index K = way.components > 0 ? way.components : std::uniform_int_distribution<Index>(1, 5)(random);
    Population truth = population_of(shape, d, way.components > 0 ? K : k, random);
    const Index columns = truth.l.size();
    RowMajorMatrix x = truth.rows(n);
    const double typical = std::sqrt(truth.l.sum());
    if (way.found)
      x.rowwise() +=
          typical / std::sqrt(static_cast<double>(columns)) * gaussian(random, columns, 1).col(0).transpose();
    // Stated: hardly a row is shortened, so the truth is that of the rows. Found: below what is far too long.
    const double bound = (way.found ? 10 : 2.5) * typical;
    Judgement one = released(*estimator(program_of(way, K)), test::bound_matrix(x, bound, 1), epsilon, set, counts);
    Matrix V = array_of(one.fit, "components").transpose();
    if (way.correlations && !only_kept(one, truth, V)) continue;
    if (way.found && shape == "t3") truth.l = as_gaussian(truth, one.radius);
    count(counts, one.verdict, V, truth.l, truth.U);
  }
  return counts;
}

}  // namespace eigenveil::bench
