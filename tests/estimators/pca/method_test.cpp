// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/pca/method.hpp"

#include <gtest/gtest.h>

#include "eigenveil/forecast/spectrum_model.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kColumns = 30;

PcaProgram program_of(PcaMethod method) {
  PcaProgram program{method, {.components = 2}, {.rounds = 4}};
  if (method == PcaMethod::kSparsePower) program.options.sparsity = 20;
  program.spiked.rank = 2;
  return program;
}

class EveryPcaMethod : public ::testing::TestWithParam<PcaMethod> {
 protected:
  // Two components with 12 times the variance of the others; for sparse-power on ten columns.
  static SpectrumModel model(std::size_t rows) {
    SpectrumModel model{rows, gap_spectrum(kColumns, 2, 12), 1.6, 2};
    if (GetParam() == PcaMethod::kSparsePower) model.sparsity = 10;
    return model;
  }
  static Result<PcaFit> run(const RowMajorMatrix& rows, const PrivacyPlan& plan, std::uint64_t seed, int threads = 2) {
    auto oracle = test::oracle_over(rows, 1.6, plan, seed, threads);
    auto done = fit(program_of(GetParam()), oracle);
    EXPECT_TRUE(oracle.complete()) << "its plan is what the oracle metered";
    return done;
  }
};

TEST_P(EveryPcaMethod, MetersItsPlanUnderBothAdjacencies) {
  const RowMajorMatrix rows = draw_rows(model(2000), Eigenbasis(model(2000), 1), 2000, 1);
  for (const Adjacency adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne}) {
    const Budget budget{*Epsilon::of(1), *Delta::of(1e-6), adjacency};
    const auto planned = plan(program_of(GetParam()), budget);
    ASSERT_TRUE(planned.ok()) << planned.error().message;
    const double cost = *epsilon_of(planned->events, budget.delta);
    EXPECT_LE(cost, 1);
    EXPECT_GT(cost, 0.98);
    EXPECT_TRUE(run(rows, *planned, 1).ok());
  }
}

TEST_P(EveryPcaMethod, ThreadsDoNotChangeTheAnswer) {
  const RowMajorMatrix rows = draw_rows(model(20000), Eigenbasis(model(20000), 1), 20000, 1);  // more than one chunk
  const Budget budget{*Epsilon::of(1), *Delta::of(1e-6)};
  const PrivacyPlan planned = *plan(program_of(GetParam()), budget);
  const auto expected = run(rows, planned, 4, 1);
  for (const int threads : {2, 7}) EXPECT_EQ(run(rows, planned, 4, threads)->pca.components, expected->pca.components);
}

// sin^2 falls as n^-2 where noise dominates: the theorems of all three papers. Fixed seeds, slope within 20%.
TEST_P(EveryPcaMethod, ErrorFallsWithTheSquareOfTheRows) {
  const Budget budget{*Epsilon::of(0.5), *Delta::of(1e-6)};
  const PrivacyPlan noisy = *plan(program_of(GetParam()), budget);
  const PrivacyPlan silent = test::without_noise(noisy);
  constexpr int kSeeds = 4;
  // Plain power has the most noise and needs the most rows to be past its first, chaotic phase.
  const std::size_t smallest = GetParam() == PcaMethod::kPower ? 20000 : 4000;
  double xy = 0;
  double xx = 0;
  for (int step = 0; step < 4; ++step) {
    const std::size_t n = smallest << step;
    double excess = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const Eigenbasis basis(model(n), seed);
      const RowMajorMatrix rows = draw_rows(model(n), basis, n, seed);
      const auto error = [&](const PrivacyPlan& plan) {
        return test::sin_squared(basis.top(), run(rows, plan, seed)->pca.components);
      };
      excess += error(noisy) - error(silent);
    }
    xy += (step - 1.5) * std::log2(excess);
    xx += (step - 1.5) * (step - 1.5);
  }
  EXPECT_NEAR(xy / xx, -2, 0.4);
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryPcaMethod,
                         ::testing::Values(PcaMethod::kGram, PcaMethod::kPower, PcaMethod::kSparsePower,
                                           PcaMethod::kAdaptivePower, PcaMethod::kSpiked),
                         [](const auto& info) {
                           std::string text(name(info.param));
                           std::erase(text, '-');
                           return text;
                         });

TEST(PcaMethodNames, AreReadBack) {
  for (const auto method :
       {PcaMethod::kGram, PcaMethod::kPower, PcaMethod::kSparsePower, PcaMethod::kAdaptivePower, PcaMethod::kSpiked})
    EXPECT_EQ(*pca_method_from_name(name(method)), method);
  EXPECT_EQ(pca_method_from_name("best").error().code, ErrorCode::kUsage);
}

TEST(Candidates, LeaveGramOutWhereItDoesNotFit) {
  for (const PcaProgram& program : candidates({.components = 1}, 100000)) EXPECT_NE(program.method, PcaMethod::kGram);
  for (const PcaProgram& program : candidates({.components = 1, .sparsity = 5}, 100))
    EXPECT_NE(program.method, PcaMethod::kAdaptivePower);
}

}  // namespace
}  // namespace eigenveil
