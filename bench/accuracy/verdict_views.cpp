// SPDX-License-Identifier: Apache-2.0
// Verdicts of canonical correlations, classes, slices and given matrices beside the truth.
#include <algorithm>

#include "eigenveil/estimators/gep/cca.hpp"
#include "eigenveil/estimators/gep/classes.hpp"
#include "eigenveil/estimators/gep/matrices.hpp"
#include "eigenveil/forecast/forecast.hpp"
#include "tests/support/views.hpp"
#include "verdict_release.hpp"

namespace eigenveil::bench {
namespace {

/// `squares`: cos^2 between true directions (rows) and released ones.
void count_directions(Counts& counts, const Verdict& verdict, const Matrix& squares, const Vector& values) {
  for (Index i = 0; i < squares.cols(); ++i) {
    const Judged& one = verdict.judged[static_cast<std::size_t>(i)];
    const bool real = i < squares.rows() && values[i] > 0;
    const double cos2 = real ? squares(i, i) : 0.0;
    if (cos2 > 0.9) {
      ++counts.good;
      counts.good_noise += one.standing == Standing::kNoise ? 1 : 0;
      counts.good_holds += one.standing == Standing::kHolds ? 1 : 0;
    }
    if (one.standing == Standing::kHolds) {
      ++counts.holds;
      counts.holds_wrong += cos2 < 0.8 ? 1 : 0;
    }
    if (one.standing == Standing::kNoise) continue;
    ++counts.bands;
    const double truth = real ? values[i] : 0.0;
    counts.held += verdict.low[i] <= truth && truth <= verdict.high[i] ? 1 : 0;
  }
  count_noise(counts, verdict);
}

}  // namespace

/// What is left of the response's variance is that of the slices' means.
Counts of_slices(bool noise, bool found, const Sizes& sizes, int sets) {
  Counts counts;
  const double cuts[] = {-0.8416, -0.2533, 0.2533, 0.8416};      // quintiles of the normal law
  const double means[] = {-1.3998, -0.5319, 0, 0.5319, 1.3998};  // between them
  double between = 0;
  for (const double mean : means) between += mean * mean / 5;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 37));
    const auto d = static_cast<Index>(spaced(random, 5, 25)),
               n = static_cast<Index>(spaced(random, sizes.least_rows, sizes.most_rows));
    const double epsilon = spaced(random, sizes.least_epsilon, sizes.most_epsilon),
                 rho = noise ? 0.0 : uniform(random, 0.6, 0.95);
    const Matrix U = rotation(random, d);
    const Matrix R = U * Vector::LinSpaced(d, 1, 2).asDiagonal() * U.transpose();
    const Matrix z = gaussian(random, n, d);
    const Vector y = rho * z.col(0) + std::sqrt(1 - rho * rho) * gaussian(random, n, 1).col(0);
    std::vector<int> slices;
    for (Index i = 0; i < n; ++i)
      slices.push_back(static_cast<int>(std::upper_bound(std::begin(cuts), std::end(cuts), y[i]) - std::begin(cuts)));
    const Index K = std::uniform_int_distribution<Index>(1, 3)(random);
    const ClassOptions options{
        GepOptions{.components = static_cast<std::size_t>(K), .preparation = prepared(found, BoundBy::kMoments, K)},
        ClassProblem::kSliced, 5};
    const Judgement one =
        released(*estimator(options), test::bound_classed(z * R, slices, 2 * R.norm(), 1), epsilon, set, counts);
    const Matrix v = (R * array_of(one.fit, "directions")).colwise().normalized();
    count_directions(counts, one.verdict, v.topRows(1).cwiseAbs2(), Vector::Constant(1, rho * rho * between));
  }
  return counts;
}

/// A = R U diag(l) U^T R and B = R R, given with their sensitivities.
Counts of_matrices(bool noise, const Sizes& sizes, int sets) {
  Counts counts;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 41));
    const auto d = static_cast<Index>(spaced(random, 4, 30));
    const Index k = std::uniform_int_distribution<Index>(1, 3)(random), K = k;
    const double epsilon = spaced(random, sizes.least_epsilon, sizes.most_epsilon),
                 sensitivity = spaced(random, 1e-4, 1e-2);
    const Matrix U = rotation(random, d), W = rotation(random, d);
    const Matrix R = W * Vector::LinSpaced(d, 1, 2).asDiagonal() * W.transpose();
    Vector l = Vector::Zero(d);
    for (Index i = 0; i < k && !noise; ++i) l[i] = std::pow(0.6, static_cast<double>(i));
    const Matrix half = R * U * l.cwiseSqrt().asDiagonal();
    const Matrix A = half * half.transpose(), B = R * R;
    const PrivateMatrices given{(A + A.transpose()) / 2, (B + B.transpose()) / 2, sensitivity, sensitivity};
    const auto gep =
        estimator(GepOptions{.components = static_cast<std::size_t>(K), .preparation = {}}, sensitivity, sensitivity);
    const Budget spent = budget(epsilon, 1e-6);
    const RowsShape shape{static_cast<std::size_t>(d), 5000, {1, 20}, Adjacency::kReplaceOne};
    const auto plan = calibrate(*gep->plan(shape, spent), spent.epsilon, spent.delta, spent.accounting);
    const auto oracle = MatrixOracle::make(given, 5000, reserve_without_ledger(*plan),
                                           SecureRandom::insecure(static_cast<std::uint64_t>(set)));
    if (!oracle) throw std::runtime_error(oracle.error().message);
    const Judgement one = judged(gep->fit(**oracle, spent), counts);
    const Matrix v = (R * array_of(one.fit, "vectors")).colwise().normalized();
    count_directions(counts, one.verdict, (U.leftCols(k).transpose() * v).cwiseAbs2(), l);
  }
  return counts;
}

Counts of_views(bool noise, bool found, const Sizes& sizes, int sets) {
  Counts counts;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 29));
    const auto d1 = static_cast<Index>(spaced(random, 4, 20)), d2 = static_cast<Index>(spaced(random, 4, 20));
    const auto n = static_cast<Index>(spaced(random, sizes.least_rows, sizes.most_rows));
    const double epsilon = spaced(random, sizes.least_epsilon, sizes.most_epsilon);
    Vector rho = Vector::Zero(3);
    if (!noise) rho << 0.9, 0.6, 0.3;
    const auto root = [&](Index d) {  // of a covariance with eigenvalues from 1 to 4
      const Matrix U = rotation(random, d);
      return Matrix(U * Vector::LinSpaced(d, 1, 2).asDiagonal() * U.transpose());
    };
    const Matrix Rx = root(d1), Ry = root(d2);
    const Matrix zx = gaussian(random, n, d1);
    Matrix zy = gaussian(random, n, d2);
    for (Index i = 0; i < 3; ++i) zy.col(i) = rho[i] * zx.col(i) + std::sqrt(1 - rho[i] * rho[i]) * zy.col(i);
    Matrix z(n, d1 + d2);
    z << zx * Rx, zy * Ry;
    const double bound = 2 * std::sqrt(Rx.squaredNorm() + Ry.squaredNorm());
    const Index K = std::uniform_int_distribution<Index>(1, 3)(random);
    const auto cca = estimator(CcaOptions{
        GepOptions{.components = static_cast<std::size_t>(K), .preparation = prepared(found, BoundBy::kMoments, K)},
        static_cast<std::size_t>(d1)});
    const Judgement one = released(*cca, test::bound_matrix(z, bound, 1), epsilon, set, counts);
    const Matrix a = (Rx * array_of(one.fit, "x_weights")).colwise().normalized();
    const Matrix b = (Ry * array_of(one.fit, "y_weights")).colwise().normalized();
    count_directions(counts, one.verdict, (a.topRows(3).cwiseAbs2() + b.topRows(3).cwiseAbs2()) / 2, rho);
  }
  return counts;
}

Counts of_classes(bool noise, bool found, const Sizes& sizes, int sets) {
  Counts counts;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 31));
    const auto d = static_cast<Index>(spaced(random, 5, 25)),
               n = static_cast<Index>(spaced(random, sizes.least_rows, sizes.most_rows));
    const double epsilon = spaced(random, sizes.least_epsilon, sizes.most_epsilon);
    const Matrix U = rotation(random, d);
    const Matrix R = U * Vector::LinSpaced(d, 1, 2).asDiagonal() * U.transpose();
    // Whitened means: +-a along the first axis, +-b along the second
    Vector values = Vector::Zero(2);
    if (!noise) values << 2, 0.5;
    Matrix means = Matrix::Zero(4, d);
    means.col(0) << 1, 1, -1, -1;
    means.col(1) << 1, -1, 1, -1;
    means.col(0) *= std::sqrt(values[0]);
    means.col(1) *= std::sqrt(values[1]);
    Matrix z = gaussian(random, n, d);
    std::vector<int> classes;
    for (Index i = 0; i < n; ++i) {
      classes.push_back(static_cast<int>(i % 4));
      z.row(i) += means.row(i % 4);
    }
    const double bound = 2 * std::sqrt(R.squaredNorm() + 4 * values.sum());
    const Index K = std::uniform_int_distribution<Index>(1, 3)(random);
    ClassOptions options{
        GepOptions{.components = static_cast<std::size_t>(K), .preparation = prepared(found, BoundBy::kDirections, K)},
        ClassProblem::kFisher, 4};
    const auto fda = estimator(options);
    const Judgement one = released(*fda, test::bound_classed(z * R, classes, bound, 1), epsilon, set, counts);
    const Matrix v = (R * array_of(one.fit, "scalings")).colwise().normalized();
    count_directions(counts, one.verdict, v.topRows(2).cwiseAbs2(), values);
  }
  return counts;
}

}  // namespace eigenveil::bench
