// SPDX-License-Identifier: Apache-2.0
// Discriminant directions and sliced inverse regression.
#include "eigenveil/estimators/gep/classes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/QR>
#include <set>

#include "eigenveil/data/npz.hpp"
#include "eigenveil/estimators/gep/cca.hpp"
#include "eigenveil/linalg/generalized.hpp"
#include "tests/release/python.hpp"
#include "tests/support/views.hpp"

namespace eigenveil {
namespace {

using test::misalignment;
using test::without_noise;

struct Labelled {
  RowMajorMatrix rows;
  std::vector<int> classes;
};

// Gaussian classes of covariance I with given means.
Labelled labelled_rows(std::mt19937_64& random, Eigen::Index n, const Matrix& means) {
  Labelled data{test::normal_matrix(random, n, means.cols()), {}};
  for (Eigen::Index i = 0; i < n; ++i) {
    data.classes.push_back(static_cast<int>(i % means.rows()));
    data.rows.row(i) += means.row(i % means.rows());
  }
  return data;
}

LocalOracle oracle_for(const Labelled& data, double radius, const PrivacyPlan& plan, std::uint64_t seed,
                       int threads = 2) {
  return {test::bound_classed(data.rows, data.classes, radius, threads), reserve_without_ledger(plan),
          SecureRandom::insecure(seed)};
}

ClassResult fit_without_noise(const Labelled& data, double radius, const ClassOptions& options) {
  const PrivacyPlan plan = without_noise(plan_classes(Adjacency::kReplaceOne, options));
  auto oracle = oracle_for(data, radius, plan, 1);
  auto fit = fit_classes(oracle, options);
  EXPECT_TRUE(fit.ok()) << (fit.ok() ? "" : fit.error().message);
  EXPECT_TRUE(oracle.complete());
  return *fit;
}

// A and B by their definitions, row by row.
struct Matrices {
  Matrix A;
  Matrix B;
};
Matrices direct_matrices(const Matrix& rows, const std::vector<int>& classes, std::size_t count, ClassProblem problem) {
  const auto n = static_cast<double>(rows.rows());
  const Vector mean = rows.colwise().mean();
  Matrix means = Matrix::Zero(rows.cols(), static_cast<Eigen::Index>(count));
  Vector counts = Vector::Zero(static_cast<Eigen::Index>(count));
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    means.col(classes[static_cast<std::size_t>(i)]) += rows.row(i).transpose();
    counts[classes[static_cast<std::size_t>(i)]] += 1;
  }
  Matrices matrices{Matrix::Zero(rows.cols(), rows.cols()), Matrix::Zero(rows.cols(), rows.cols())};
  for (Eigen::Index c = 0; c < counts.size(); ++c) {
    if (counts[c] == 0) continue;
    means.col(c) /= counts[c];
    matrices.A += counts[c] / n * (means.col(c) - mean) * (means.col(c) - mean).transpose();
  }
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    const Vector about =
        problem == ClassProblem::kSliced ? mean : Vector(means.col(classes[static_cast<std::size_t>(i)]));
    const Vector row = rows.row(i).transpose() - about;
    matrices.B += row * row.transpose() / n;
  }
  return matrices;
}

TEST(Classes, WithoutNoiseTheyAgreeWithADenseSolve) {
  std::mt19937_64 random(1);
  for (const ClassProblem problem : {ClassProblem::kFisher, ClassProblem::kSliced}) {
    const Labelled data = labelled_rows(random, 1200, test::normal_matrix(random, 4, 6));
    const ClassOptions options{{.components = 3}, problem, 4};
    const ClassResult fit = fit_without_noise(data, 20, options);
    const Matrices matrices = direct_matrices(test::on_the_lattice(data.rows, 20), data.classes, 4, problem);
    const auto dense = top_generalized_eigenpairs(matrices.A, matrices.B, 3);
    const Matrix& V = fit.solution.vectors;
    EXPECT_LT((fit.solution.values - dense->values).cwiseAbs().maxCoeff(), 1e-6);
    EXPECT_LT((matrices.A * V - matrices.B * V * fit.solution.values.asDiagonal()).norm(), 1e-6);
    EXPECT_LT((V.transpose() * matrices.B * V - Matrix::Identity(3, 3)).norm(), 1e-6);
    EXPECT_NEAR(fit.priors.sum(), 1, 1e-8);
    EXPECT_NEAR(fit.priors[1], 0.25, 1e-8);
  }
}

TEST(Classes, TheFlowWithoutNoiseEndsAtTheSameDirection) {
  std::mt19937_64 random(2);
  const Labelled data = labelled_rows(random, 2000, 1.5 * test::normal_matrix(random, 2, 6));
  for (const ClassProblem problem : {ClassProblem::kFisher, ClassProblem::kSliced}) {
    ClassOptions options{{.components = 1}, problem, 2};
    const ClassResult once = fit_without_noise(data, 20, options);
    options.gep.noise = GepNoise::kEachStep;
    options.gep.rounds = 100;
    const ClassResult flow = fit_without_noise(data, 20, options);
    EXPECT_LT(misalignment(flow.solution.vectors.col(0), once.solution.vectors.col(0)), 1e-6);
    EXPECT_NEAR(flow.solution.values[0], once.solution.values[0], 0.01 * once.solution.values[0]);
  }
}

TEST(Classes, ReachTheirErrorAtEpsilonOneUnderBothAdjacencies) {
  for (const Adjacency adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne})
    for (const GepNoise noise : {GepNoise::kOnce, GepNoise::kEachStep}) {
      ClassOptions options{{.components = 1}, ClassProblem::kFisher, 2};
      options.gep.noise = noise;
      const auto plan = calibrate(plan_classes(adjacency, options), *Epsilon::of(1), *Delta::of(1e-6));
      ASSERT_TRUE(plan.ok());
      double mean = 0;
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        std::mt19937_64 random(seed);
        const Matrix means = test::normal_matrix(random, 2, 10) / std::sqrt(5.0);
        const Labelled data = labelled_rows(random, 20000, means);
        auto oracle = oracle_for(data, 3.5, *plan, seed);
        const auto fit = fit_classes(oracle, options);
        ASSERT_TRUE(fit.ok());
        EXPECT_TRUE(oracle.complete());
        // within-class covariance is I: the direction is the difference of the means
        mean += misalignment(fit->solution.vectors.col(0), (means.row(0) - means.row(1)).transpose()) / 4;
      }
      EXPECT_LE(mean, noise == GepNoise::kOnce ? 0.005 : 0.02);
    }
}

TEST(Classes, AClassWithoutRowsTakesNoPart) {
  std::mt19937_64 random(3);
  const Labelled data = labelled_rows(random, 3000, 2 * test::normal_matrix(random, 3, 4));
  const ClassOptions three{{.components = 2}, ClassProblem::kFisher, 3};
  const ClassOptions four{{.components = 2}, ClassProblem::kFisher, 4};
  const ClassResult expected = fit_without_noise(data, 20, three);
  const ClassResult fit = fit_without_noise(data, 20, four);
  EXPECT_EQ(fit.empty, std::vector<std::size_t>{3});
  EXPECT_EQ(fit.priors[3], 0);
  EXPECT_LT((fit.solution.vectors - expected.solution.vectors).norm(), 1e-9);

  const auto plan = calibrate(plan_classes(Adjacency::kReplaceOne, four), *Epsilon::of(1), *Delta::of(1e-6));
  auto oracle = oracle_for(data, 6, *plan, 5);
  const auto noisy = fit_classes(oracle, four);
  ASSERT_TRUE(noisy.ok());
  EXPECT_EQ(noisy->empty, std::vector<std::size_t>{3});

  // Nobody named the classes: the warning tells the number.
  auto again = oracle_for(data, 6, *plan, 5);
  const auto told = estimator(four)->fit(again, {*Epsilon::of(1), *Delta::of(1e-6)});
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->facts["classes"].size(), 4U);
  EXPECT_EQ(told->warnings.back().rfind("Class '4'", 0), 0U) << told->warnings.back();
}

// Of bands that reach as far upwards as downwards 42 of these 50 hold.
TEST(Classes, BandsOfSeparationsHoldTheTruthAtASmallBudget) {
  constexpr Eigen::Index n = 1600, d = 14;
  ClassOptions options{GepOptions{.components = 1, .preparation = {}}, ClassProblem::kFisher, 4, {}, {}, {}, {}, false};
  const auto fda = estimator(options);
  const Vector roots = Vector::LinSpaced(d, 1, 2);
  const double bound = 2 * std::sqrt(roots.squaredNorm() + 10);
  const Budget spent{*Epsilon::of(1), *Delta::of(1e-6)};
  const RowsShape shape{static_cast<std::size_t>(d), static_cast<std::size_t>(n), {bound, 20}, spent.adjacency};
  const auto plan = calibrate(*fda->plan(shape, spent), spent.epsilon, spent.delta, spent.accounting);
  int bands = 0, held = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    Matrix means = Matrix::Zero(4, d);  // whitened: separations 2 and .5
    means.col(0) << 1.414, 1.414, -1.414, -1.414;
    means.col(1) << 0.707, -0.707, 0.707, -0.707;
    const Matrix U = Eigen::HouseholderQR<Matrix>(test::normal_matrix(random, d, d)).householderQ();
    const Matrix R = U * roots.asDiagonal() * U.transpose();
    Labelled data = labelled_rows(random, n, means);
    data.rows *= R;
    auto oracle = oracle_for(data, bound, *plan, seed);
    const auto fit = fda->fit(oracle, spent);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    const auto verdict = fit->judge();
    ASSERT_TRUE(verdict.ok()) << verdict.error().message;
    if (verdict->judged[0].standing == Standing::kNoise) continue;
    ++bands;
    held += verdict->low[0] <= 2 && 2 <= verdict->high[0] ? 1 : 0;
  }
  EXPECT_GE(bands, 45);
  EXPECT_GE(held, 0.88 * bands) << held << " of " << bands;
}

TEST(Classes, RefusesMoreDirectionsThanClassesAllow) {
  std::mt19937_64 random(4);
  const Labelled data = labelled_rows(random, 100, test::normal_matrix(random, 3, 5));
  for (const ClassOptions& options : {ClassOptions{{.components = 3}, ClassProblem::kFisher, 3},
                                      ClassOptions{{.components = 1}, ClassProblem::kFisher, 1},
                                      ClassOptions{{.components = 2}, ClassProblem::kSliced, 3, 2}}) {
    const PrivacyPlan plan = without_noise(plan_classes(Adjacency::kReplaceOne, options));
    auto oracle = oracle_for(data, 5, plan, 1);
    const auto fit = fit_classes(oracle, options);
    ASSERT_FALSE(fit.ok());
    EXPECT_EQ(fit.error().code, ErrorCode::kUsage);
  }
}

TEST(Classes, SlicesMergeIntoAboutEqualShares) {
  Vector counts(8);
  counts << 0, 10, 10, 0, 50, 10, 10, 10;
  EXPECT_EQ(merge_slices(counts, 4), (std::vector<std::size_t>{0, 4, 5, 6})) << "one slice holds half: it stays whole";
  EXPECT_EQ(merge_slices(Vector::Ones(8), 4), (std::vector<std::size_t>{0, 2, 4, 6}));
  EXPECT_EQ(merge_slices(Vector::Ones(3), 3), (std::vector<std::size_t>{0, 1, 2}));
}

TEST(Classes, PrivateSlicesFindTheDirectionOfASkewedResponse) {
  std::mt19937_64 random(5);
  const Eigen::Index d = 6;
  const Vector direction = test::normal_matrix(random, d, 1).col(0).normalized();
  Labelled data{test::normal_matrix(random, 20000, d), {}};
  for (Eigen::Index i = 0; i < data.rows.rows(); ++i) {
    const double response = std::exp(data.rows.row(i).dot(direction));  // most of it far below the range's middle
    data.classes.push_back(std::min(79, static_cast<int>(response / 10 * 80)));
  }
  const ClassOptions options{{.components = 1}, ClassProblem::kSliced, 80, 10};
  const auto plan = calibrate(plan_classes(Adjacency::kReplaceOne, options), *Epsilon::of(1), *Delta::of(1e-6));
  double mean = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    auto oracle = oracle_for(data, 3, *plan, seed);
    const auto fit = fit_classes(oracle, options);
    ASSERT_TRUE(fit.ok());
    EXPECT_LE(fit->first.size(), 10U);
    EXPECT_GE(fit->first.size(), 5U);
    mean += misalignment(fit->solution.vectors.col(0), direction) / 4;
  }
  EXPECT_LT(mean, 0.02);
}

TEST(Classes, ThreadsDoNotChangeTheAnswer) {
  std::mt19937_64 random(6);
  const Labelled data = labelled_rows(random, 3000, test::normal_matrix(random, 3, 5));
  const ClassOptions options{{.components = 2}, ClassProblem::kFisher, 3};
  const auto plan = calibrate(plan_classes(Adjacency::kReplaceOne, options), *Epsilon::of(1), *Delta::of(1e-6));
  auto one = oracle_for(data, 4, *plan, 9, 1);
  const auto expected = fit_classes(one, options);
  for (const int threads : {2, 7}) {
    auto many = oracle_for(data, 4, *plan, 9, threads);
    EXPECT_EQ(fit_classes(many, options)->solution.vectors, expected->solution.vectors);
  }
}

// Two classes that differ in ten columns. At d = 2000, n = 50,000: bench/accuracy/gep.
TEST(Classes, SparseDirectionsAreRecoveredWhereTheDenseOneDrowns) {
  std::mt19937_64 random(7);
  const Eigen::Index d = 500;
  std::set<Eigen::Index> support;
  while (support.size() < 10) support.insert(static_cast<Eigen::Index>(random() % 500));
  Matrix means = Matrix::Zero(2, d);
  for (const Eigen::Index i : support) means(0, i) = random() % 2 == 0 ? 1 : -1;
  const Labelled data = labelled_rows(random, 25000, means);
  const Vector truth = means.row(0).transpose();
  const auto run = [&](std::optional<std::size_t> sparsity) {
    ClassOptions options{{.components = 1}, ClassProblem::kFisher, 2};
    options.gep.sparsity = sparsity;
    const auto plan = calibrate(plan_classes(Adjacency::kReplaceOne, options), *Epsilon::of(1), *Delta::of(1e-6));
    auto oracle = oracle_for(data, std::sqrt(static_cast<double>(d)), *plan, 7);
    return Vector(fit_classes(oracle, options)->solution.vectors.col(0));
  };
  const Vector sparse = run(10);
  const Vector dense = run({});
  double hits = 0;
  for (const Eigen::Index i : support) hits += sparse[i] != 0 ? 1 : 0;
  EXPECT_GE(hits / 10, 0.9) << "ten columns are kept, so precision, recall and F1 are one number";
  EXPECT_LT(misalignment(sparse, truth), misalignment(dense, truth));
  EXPECT_LT(misalignment(sparse, truth), 0.1);
}

constexpr const char* kSklearn = R"(
import sys
try:
    import numpy as np
    from sklearn import datasets
    from sklearn.cross_decomposition import CCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as LDA
except ImportError:
    sys.exit(77)
load = {"iris": datasets.load_iris, "wine": datasets.load_wine, "cancer": datasets.load_breast_cancer}[sys.argv[1]]
X, y = load(return_X_y=True)
X = X - X.mean(axis=0)
X = X / X.std(axis=0)
X = np.trunc(X / 32 * 2**20) / 2**20 * 32        # the lattice of radius 32
lda = LDA(solver="eigen").fit(X, y)
half = X.shape[1] // 2
cca = CCA(n_components=1, max_iter=100000, tol=1e-14).fit(X[:, :half], X[:, half:])
np.savez(sys.argv[2], rows=X, classes=y.astype(float),
         scalings=lda.scalings_[:, :len(lda.classes_) - 1],
         x=(cca.x_rotations_[:, 0] / X[:, :half].std(axis=0)), y=(cca.y_rotations_[:, 0] / X[:, half:].std(axis=0)))
)";

class AgainstSklearn : public ::testing::TestWithParam<const char*> {};

TEST_P(AgainstSklearn, FdaAndCcaAreTheSameUpToSignAndScale) {
  const test::TempDir folder;
  const std::string file = folder.file("expected.npz");
  const auto ran = test::run_python(folder, kSklearn, {GetParam(), file});
  if (ran.exit_code == 77) GTEST_SKIP() << "python3-sklearn is not installed";
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const auto contents = read_npz(file);
  ASSERT_TRUE(contents.ok());
  const auto array = [&](const char* name) {
    for (const NamedArray& one : contents->arrays)
      if (one.name == name) return one.values;
    ADD_FAILURE() << name;
    return Matrix();
  };
  const Matrix y = array("classes");
  Labelled data{array("rows"), {}};
  for (Eigen::Index i = 0; i < y.size(); ++i) data.classes.push_back(static_cast<int>(y(i, 0)));
  const auto classes = static_cast<std::size_t>(y.maxCoeff()) + 1;

  const ClassResult fda = fit_without_noise(data, 32, {{.components = classes - 1}, ClassProblem::kFisher, classes});
  const Matrix expected = array("scalings");
  for (Eigen::Index k = 0; k < expected.cols(); ++k)
    EXPECT_LT(misalignment(fda.solution.vectors.col(k), expected.col(k)), 1e-8) << k;

  const Eigen::Index half = data.rows.cols() / 2;
  const CcaOptions options{{.components = 1}, static_cast<std::size_t>(half)};
  const PrivacyPlan plan = without_noise(plan_cca(Adjacency::kReplaceOne, options));
  auto oracle = test::oracle_over(data.rows, 32, plan, 1);
  const auto cca = fit_cca(oracle, options);
  ASSERT_TRUE(cca.ok());
  EXPECT_LT(misalignment(cca->x_weights.col(0), array("x")), 1e-8);
  EXPECT_LT(misalignment(cca->y_weights.col(0), array("y")), 1e-8);
}

INSTANTIATE_TEST_SUITE_P(Classes, AgainstSklearn, ::testing::Values("iris", "wine", "cancer"));

}  // namespace
}  // namespace eigenveil
