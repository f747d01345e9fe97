// SPDX-License-Identifier: Apache-2.0
// Verdicts beside the truth: data sets of many shapes are made up and released again and again, and what the verdicts
// say about each release is compared with the population it came from.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "accuracy.hpp"
#include "eigenveil/estimators/gep/cca.hpp"
#include "eigenveil/estimators/gep/classes.hpp"
#include "eigenveil/estimators/gep/matrices.hpp"
#include "eigenveil/estimators/pca/method.hpp"
#include "eigenveil/forecast/forecast.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "tests/support/fit.hpp"
#include "tests/support/views.hpp"
#include "verdict_counts.hpp"

namespace eigenveil::bench {
namespace {

/// Rows of a release through the estimator itself, and its verdict.
struct Judgement {
  Fit fit;
  Verdict verdict;
};

Judgement judged(Result<Fit> fit, Counts& counts) {
  if (!fit) throw std::runtime_error(fit.error().message);
  const auto begin = std::chrono::steady_clock::now();
  auto verdict = fit->judge();
  counts.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!verdict) throw std::runtime_error(verdict.error().message);
  return {*std::move(fit), *std::move(verdict)};
}

Judgement released(const Estimator& estimator, BoundedRows rows, double epsilon, int seed, Counts& counts) {
  const Budget spent = budget(epsilon, 1e-6);
  const RowsShape shape{rows.columns(), rows.rows(), rows.lattice(), Adjacency::kReplaceOne};
  const auto plan = calibrate(*estimator.plan(shape, spent), spent.epsilon, spent.delta, spent.accounting);
  if (!plan) throw std::runtime_error(plan.error().message);
  LocalOracle oracle(std::move(rows), reserve_without_ledger(*plan),
                     SecureRandom::insecure(static_cast<std::uint64_t>(seed)));
  return judged(estimator.fit(oracle, spent), counts);
}

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
  counts.first_noise += verdict.judged[0].standing == Standing::kNoise ? 1 : 0;
  ++counts.sets;
}

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

/// Principal components of Gaussian rows through the estimator: power iteration, or those of correlations.
Counts of_components(const std::string& shape, bool correlations, int sets) {
  Counts counts;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 23));
    const auto d = static_cast<Index>(spaced(random, 10, 50)), n = static_cast<Index>(spaced(random, 1000, 20000));
    const double epsilon = spaced(random, 0.5, 4);
    const Index k = std::uniform_int_distribution<Index>(1, std::min<Index>(5, d / 3))(random);
    const Index K = std::uniform_int_distribution<Index>(1, 5)(random);
    Population truth = population_of(shape, d, k, random);
    RowMajorMatrix x = gaussian(random, n, d) * truth.l.cwiseSqrt().asDiagonal() * truth.U.transpose();
    const double bound = 2.5 * std::sqrt(truth.l.sum());  // hardly a row is shortened: the truth is that of the rows
    PcaProgram program{correlations ? PcaMethod::kGram : PcaMethod::kPower, {static_cast<std::size_t>(K), {}, {}}};
    if (correlations) {
      program.options.scale = Scale::kCorrelation;
      program.options.preparation.mean = MeanBy::kOnce;
    }
    Judgement one = released(*estimator(program), test::bound_matrix(x, bound, 1), epsilon, set, counts);
    Matrix V = array_of(one.fit, "components").transpose();
    if (correlations && !only_kept(one, truth, V)) continue;
    count(counts, one.verdict, V, truth.l, truth.U);
  }
  return counts;
}

/// A response that follows one direction, in five slices: what is left of its variance is that of their means.
Counts of_slices(bool noise, int sets) {
  Counts counts;
  const double cuts[] = {-0.8416, -0.2533, 0.2533, 0.8416};      // quintiles of the normal law
  const double means[] = {-1.3998, -0.5319, 0, 0.5319, 1.3998};  // between them
  double between = 0;
  for (const double mean : means) between += mean * mean / 5;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 37));
    const auto d = static_cast<Index>(spaced(random, 5, 25)), n = static_cast<Index>(spaced(random, 1000, 20000));
    const double epsilon = spaced(random, 0.5, 4), rho = noise ? 0.0 : uniform(random, 0.6, 0.95);
    const Matrix U = rotation(random, d);
    const Matrix R = U * Vector::LinSpaced(d, 1, 2).asDiagonal() * U.transpose();
    const Matrix z = gaussian(random, n, d);
    const Vector y = rho * z.col(0) + std::sqrt(1 - rho * rho) * gaussian(random, n, 1).col(0);
    std::vector<int> slices;
    for (Index i = 0; i < n; ++i)
      slices.push_back(static_cast<int>(std::upper_bound(std::begin(cuts), std::end(cuts), y[i]) - std::begin(cuts)));
    const Index K = std::uniform_int_distribution<Index>(1, 3)(random);
    const ClassOptions options{GepOptions{.components = static_cast<std::size_t>(K), .preparation = {}},
                               ClassProblem::kSliced, 5};
    const Judgement one =
        released(*estimator(options), test::bound_classed(z * R, slices, 2 * R.norm(), 1), epsilon, set, counts);
    const Matrix v = (R * array_of(one.fit, "directions")).colwise().normalized();
    count_directions(counts, one.verdict, v.topRows(1).cwiseAbs2(), Vector::Constant(1, rho * rho * between));
  }
  return counts;
}

/// A = R U diag(l) U^T R and B = R R, given with their sensitivities.
Counts of_matrices(bool noise, int sets) {
  Counts counts;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 41));
    const auto d = static_cast<Index>(spaced(random, 4, 30));
    const Index k = std::uniform_int_distribution<Index>(1, 3)(random), K = k;
    const double epsilon = spaced(random, 0.5, 4), sensitivity = spaced(random, 1e-4, 1e-2);
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

/// Two views with canonical correlations .9, .6 and .3, or none.
Counts of_views(bool noise, int sets) {
  Counts counts;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 29));
    const auto d1 = static_cast<Index>(spaced(random, 4, 20)), d2 = static_cast<Index>(spaced(random, 4, 20));
    const auto n = static_cast<Index>(spaced(random, 1000, 20000));
    const double epsilon = spaced(random, 0.5, 4);
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
    const auto cca = estimator(CcaOptions{GepOptions{.components = static_cast<std::size_t>(K), .preparation = {}},
                                          static_cast<std::size_t>(d1)});
    const Judgement one = released(*cca, test::bound_matrix(z, bound, 1), epsilon, set, counts);
    const Matrix a = (Rx * array_of(one.fit, "x_weights")).colwise().normalized();
    const Matrix b = (Ry * array_of(one.fit, "y_weights")).colwise().normalized();
    count_directions(counts, one.verdict, (a.topRows(3).cwiseAbs2() + b.topRows(3).cwiseAbs2()) / 2, rho);
  }
  return counts;
}

/// Four classes that lie apart along two directions, or nowhere.
Counts of_classes(bool noise, int sets) {
  Counts counts;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 31));
    const auto d = static_cast<Index>(spaced(random, 5, 25)), n = static_cast<Index>(spaced(random, 1000, 20000));
    const double epsilon = spaced(random, 0.5, 4);
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
    ClassOptions options{GepOptions{.components = static_cast<std::size_t>(K), .preparation = {}},
                         ClassProblem::kFisher, 4};
    const auto fda = estimator(options);
    const Judgement one = released(*fda, test::bound_classed(z * R, classes, bound, 1), epsilon, set, counts);
    const Matrix v = (R * array_of(one.fit, "scalings")).colwise().normalized();
    count_directions(counts, one.verdict, v.topRows(2).cwiseAbs2(), values);
  }
  return counts;
}

std::vector<std::string> cells(const std::string& what, const Counts& counts, bool noise) {
  const auto said = [](double part, double of) { return of > 0 ? fmt::format("{:.3f}", part / of) : std::string("-"); };
  return {what,
          said(counts.held, counts.bands),
          said(counts.loadings_held, counts.loadings),
          said(counts.shares_held, counts.shares),
          fmt::format("{:.0f}", counts.holds),
          said(counts.holds_wrong, counts.holds),
          said(counts.planes_wrong, counts.planes),
          said(counts.wrong_sign, counts.findings),
          said(counts.good_holds, counts.good),
          said(counts.good_noise, counts.good),
          noise ? said(counts.first_noise, counts.sets) : std::string("-"),
          fmt::format("{:.2f}", counts.seconds / counts.sets)};
}

}  // namespace

void verdicts(const Setting& setting) {
  const int sets = setting.seeds;
  Table table("verdicts",
              fmt::format("Verdicts beside the truth (docs/verdicts.md): shares of 95% bands that hold the true value, "
                          "the true loadings "
                          "and the true share of the total variance; directions said to hold, and how many of them "
                          "have cos^2 below 0.8; "
                          "directions with cos^2 above 0.9, and what is said of them. {} data sets a row. Matrices: d "
                          "10 to 50, n 500 to "
                          "50,000 (tiny n: 60 to 500), epsilon 0.2 to 4, K 1 to 10, spread evenly; others through the "
                          "estimator, epsilon "
                          "0.5 to 4, n 1,000 to 20,000. `bench_accuracy verdicts --seeds {}`",
                          sets, sets),
              {"shape", "eigenvalue bands", "loading bands", "share bands", "holds", "of them wrong", "planes wrong",
               "findings of wrong sign", "good that hold", "good called noise", "noise called noise", "seconds"});
  const auto row = [&](const std::string& name, const auto& counted, int of) {
    if (!name.starts_with(setting.only)) return;
    table.add(cells(name, counted(of), name.find("noise") != std::string::npos));
  };
  for (const char* shape : {"gap 5", "gap 2", "decay", "spikes", "t3", "one-hot", "tiny n", "private mean", "plane",
                            "noise", "noise, private mean"})
    row(
        fmt::format("matrix, {}", shape), [&](int of) { return of_moments(shape, of, 10, 50); }, sets);
  for (const char* shape : {"gap 5", "decay", "noise"})
    row(
        fmt::format("matrix, {}, 260 to 500 columns", shape), [&](int of) { return of_moments(shape, of, 260, 500); },
        std::max(1, sets / 4));
  for (const char* shape : {"gap 5", "decay", "spikes", "plane", "noise"})
    row(
        fmt::format("power, {}", shape), [&](int of) { return of_components(shape, false, of); }, sets);
  for (const char* shape : {"gap 5", "decay", "noise"})
    row(
        fmt::format("correlations, {}", shape), [&](int of) { return of_components(shape, true, of); }, sets);
  for (const bool noise : {false, true}) {
    const char* what = noise ? ", noise" : "";
    row(
        fmt::format("cca{}", what), [&](int of) { return of_views(noise, of); }, sets);
    row(
        fmt::format("fda{}", what), [&](int of) { return of_classes(noise, of); }, sets);
    row(
        fmt::format("sir{}", what), [&](int of) { return of_slices(noise, of); }, sets);
    row(
        fmt::format("gep{}", what), [&](int of) { return of_matrices(noise, of); }, sets);
  }
  table.finish(setting, {});
}

}  // namespace eigenveil::bench
