#include "eigenveil/planner/forecast.hpp"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>

#include "tests/support/fit.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil {
namespace {

Budget budget_of(double epsilon) { return {*Epsilon::of(epsilon), *Delta::of(1e-6)}; }

TEST(PublicModel, DrawsRowsWithItsSpectrumAndComponents) {
  Vector spectrum(6);
  spectrum << 5, 3, 1, 1, 0.5, 0.5;
  const PublicModel model{20000, spectrum, 100, 2};
  const Eigenbasis basis(model, 3);
  const RowMajorMatrix rows = draw_rows(model, basis, 20000, 3);
  const Matrix S = rows.transpose() * rows / 20000.0;
  EXPECT_LT((S - basis.covariance(spectrum)).norm(), 0.3);
  EXPECT_LT((basis.top().transpose() * basis.covariance(spectrum) * basis.top() - Matrix(spectrum.head(2).asDiagonal()))
                .norm(),
            1e-12);
  const Eigen::SelfAdjointEigenSolver<Matrix> dense(basis.covariance(spectrum));
  EXPECT_LT((dense.eigenvalues().reverse() - spectrum).norm(), 1e-12);
}

// A sample of m rows is to err as n rows do: its second moment has the spread of a Wishart matrix with n degrees.
TEST(PublicModel, ASmallSampleErrsNoMoreThanTheLargeOne) {
  const PublicModel model{100000, Vector::Ones(10), 100, 1};
  double square = 0;
  constexpr int kTrials = 40;
  for (int seed = 0; seed < kTrials; ++seed) {
    const auto s = static_cast<std::uint64_t>(seed);
    const RowMajorMatrix rows = draw_rows(model, Eigenbasis(model, s), 300, s);
    square += (rows.transpose() * rows / 300.0 - Matrix::Identity(10, 10)).squaredNorm() / kTrials;
  }
  // E ||W / n - I||_F^2 = d (d + 1) / n = 0.0011; 300 plain rows would have 0.37
  EXPECT_NEAR(square, 0.0011, 0.0003);
}

TEST(PublicModel, SparseComponentsLiveOnFewColumns) {
  const PublicModel model{1000, gap_spectrum(50, 2, 9), 2, 2, 1, 5};
  EXPECT_EQ((Eigenbasis(model, 1).top().rowwise().norm().array() > 0).count(), 5);
}

TEST(Spectrum, IsReadSortedAndContinued) {
  const test::TempDir folder;
  const auto read = [&](const std::string& text) { return read_spectrum(folder.write_file("s.txt", text), 5); };
  EXPECT_EQ(*read("1, 4\n2"), (Vector(5) << 4, 2, 1, 1, 1).finished());
  for (const char* bad : {"", "1 2 x", "3 -1", "nan", "0 0", "1 1 1 1 1 1"}) {
    const auto refused = read(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage) << bad;
  }
  EXPECT_FALSE(read_spectrum(folder.file("missing"), 5).ok());
}

// The forecast against the thing itself: many rows, drawn and fitted in full.
TEST(Forecast, IsWhatTheMethodsReallyReach) {
  const PublicModel model{20000, gap_spectrum(60, 1, 10), 1.2, 1};
  const auto sample = Sample::draw(model, 2, 1);
  ASSERT_TRUE(sample.ok());
  EXPECT_LT(sample->rows(), 5000U);
  const PcaOptions options{.components = 1};
  for (const PcaProgram& program :
       {PcaProgram{PcaMethod::kGram, options}, PcaProgram{PcaMethod::kAdaptivePower, options, {.rounds = 6}}}) {
    const auto forecast = eigenveil::forecast(*sample, program, budget_of(1), model.rows);
    ASSERT_TRUE(forecast.ok()) << forecast.error().message;
    const PrivacyPlan noisy = *plan(program, budget_of(1));
    double measured = 0;
    for (std::uint64_t seed = 10; seed < 15; ++seed) {
      const Eigenbasis basis(model, seed);
      auto oracle = test::oracle_over(draw_rows(model, basis, model.rows, seed), 1.2, noisy, seed);
      measured += sin_squared(basis.top(), fit(program, budget_of(1), oracle)->pca.components) / 5;
    }
    EXPECT_GT(forecast->error, measured / 2.5) << describe(program);
    EXPECT_LT(forecast->error, measured * 2.5) << describe(program);
  }
}

TEST(Forecast, StatesTheNoiseOfEveryAnswer) {
  const PublicModel model{50000, gap_spectrum(20, 1, 4), 2, 1};
  const auto sample = Sample::draw(model, 1, 1);
  const PcaProgram gram{PcaMethod::kGram, {.components = 1}};
  const auto forecast = eigenveil::forecast(*sample, gram, budget_of(1), model.rows);
  ASSERT_EQ(forecast->noise.size(), 1U);
  EXPECT_EQ(forecast->noise[0].label, "covariance");
  const double mu = test::mu_of(plan(gram, budget_of(1))->events.back());
  EXPECT_NEAR(forecast->noise[0].deviation, 4 / mu / 50000, 1e-6);  // B^2 / (mu n)
}

// 001's claim, and its limit: many columns of low coherence are for adaptive-power; few heavy rows are for gram.
TEST(Choose, KnowsWhichMethodIsBetter) {
  const auto chosen = [](const PublicModel& model, double epsilon) {
    const auto sample = Sample::draw(model, 2, 1);
    const auto d = static_cast<std::size_t>(model.spectrum.size());
    return choose(*sample, candidates({.components = 1}, d), budget_of(epsilon), model.rows)->best.program.method;
  };
  EXPECT_EQ(chosen({10000, gap_spectrum(150, 1, 5), 1.2, 1}, 1), PcaMethod::kAdaptivePower);
  EXPECT_EQ(chosen({20000, gap_spectrum(10, 1, 5), 1.5, 1}, 1), PcaMethod::kGram);
  PublicModel heavy{40000, Vector::Constant(60, 1e-6), 1, 1, 0.005};
  heavy.spectrum[0] = 0.005 * 0.25;
  EXPECT_EQ(chosen(heavy, 4), PcaMethod::kGram);
}

TEST(Candidates, LeaveGramOutWhereItDoesNotFit) {
  for (const PcaProgram& program : candidates({.components = 1}, 100000)) EXPECT_NE(program.method, PcaMethod::kGram);
  for (const PcaProgram& program : candidates({.components = 1, .sparsity = 5}, 100))
    EXPECT_NE(program.method, PcaMethod::kAdaptivePower);
}

}  // namespace
}  // namespace eigenveil
