#include "eigenveil/query/local_oracle.hpp"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>

#include <limits>

#include "tests/support/rows.hpp"

namespace eigenveil {
namespace {

using test::lattice_rows;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Writes down what the oracle tells its reservation.
class Witness final : public Reservation {
 public:
  Witness(PrivacyPlan plan, std::vector<std::string>& log, bool broken = false)
      : plan_(std::move(plan)), log_(log), broken_(broken) {}
  const PrivacyPlan& plan() const override { return plan_; }
  bool in_ledger() const override { return true; }
  Status begin_answering() override {
    log_.emplace_back("begin");
    return broken_ ? Status(internal_error("disk full")) : Status();
  }
  void close_unused() override { log_.emplace_back("unused"); }

 private:
  PrivacyPlan plan_;
  std::vector<std::string>& log_;
  bool broken_;
};

BoundedRows three_rows() { return lattice_rows({{3, 4}, {1, 0}, {0, -2}}, 2, {.bits = 10}); }

LocalOracle oracle_for(PrivacyPlan plan, std::vector<std::string>& log, Adjacency adjacency = Adjacency::kReplaceOne,
                       bool broken = false) {
  return {three_rows(), adjacency, std::make_unique<Witness>(std::move(plan), log, broken), SecureRandom::insecure(1)};
}

TEST(LocalOracle, AnswersThePlanAndSaysWhenItIsComplete) {
  std::vector<std::string> log;
  {
    auto oracle = oracle_for({{{"sums", GaussianEvent{kInfinity}}, {"gram", GaussianEvent{kInfinity}}}}, log);
    const auto sums = oracle.ask("sums", ClassSums{1}, kInfinity);
    ASSERT_TRUE(sums.ok());
    EXPECT_EQ(sums->value(), Matrix((Matrix(2, 1) << 4, 2).finished()));
    EXPECT_FALSE(oracle.complete());
    const auto gram = oracle.ask("gram", Gram{}, kInfinity);
    ASSERT_TRUE(gram.ok());
    EXPECT_EQ(gram->value(), Matrix((Matrix(2, 2) << 10, 12, 12, 20).finished()));
    EXPECT_TRUE(oracle.complete());
  }
  EXPECT_EQ(log, (std::vector<std::string>{"begin"}));
}

TEST(LocalOracle, FailsClosedAfterAnAskThatIsNotInThePlan) {
  std::vector<std::string> log;
  auto oracle = oracle_for({{{"gram", GaussianEvent{0.5}}, {"gram again", GaussianEvent{0.5}}}}, log);
  EXPECT_FALSE(oracle.ask("gram", Gram{}, 0.6).ok()) << "less noise than planned";
  EXPECT_FALSE(oracle.ask("gram", Gram{}, 0.5).ok()) << "everything is refused from then on";
  EXPECT_FALSE(oracle.complete());
  EXPECT_TRUE(log.empty()) << "a refused ask begins no answer";
}

TEST(LocalOracle, GivesNothingWhenTheLedgerCannotRecordThatItAnswers) {
  std::vector<std::string> log;
  auto oracle = oracle_for({{{"gram", GaussianEvent{0.5}}}}, log, Adjacency::kReplaceOne, true);
  const auto answer = oracle.ask("gram", Gram{}, 0.5);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message, "disk full");
}

TEST(LocalOracle, ReportsAnUnusedReservation) {
  std::vector<std::string> log;
  { auto oracle = oracle_for({{{"gram", GaussianEvent{0.5}}}}, log); }
  EXPECT_EQ(log, (std::vector<std::string>{"unused"}));
}

TEST(LocalOracle, ABadQueryDoesNotUseUpThePlan) {
  std::vector<std::string> log;
  auto oracle = oracle_for({{{"apply", GaussianEvent{0.5}}}}, log);
  EXPECT_FALSE(oracle.ask("apply", Apply{*Directions::quantise(Matrix::Identity(5, 1))}, 0.5).ok());
  EXPECT_TRUE(oracle.ask("apply", Apply{*Directions::quantise(Matrix::Identity(2, 1))}, 0.5).ok());
}

TEST(LocalOracle, HidesTheNumberOfRowsUnderAddRemoveOne) {
  std::vector<std::string> log;
  const auto replace = oracle_for({}, log);
  const auto add_remove = oracle_for({}, log, Adjacency::kAddRemoveOne);
  EXPECT_EQ(replace.shape().rows, 3U);
  EXPECT_EQ(add_remove.shape().rows, std::nullopt);
}

TEST(LocalOracle, SearchesAGridByTheSparseVector) {
  std::vector<std::string> log;
  auto oracle = oracle_for({{{"search", PureEvent{kInfinity}, 2}}}, log);
  const auto first = oracle.first_at_most("search", NormExceedance{{0.5, 1.5, 3, 6}, {}}, 1, kInfinity);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(**first, 2U);  // norms 5, 1, 2: one of them above 3
  EXPECT_FALSE(oracle.first_at_most("search", NormExceedance{{3, 1}, {}}, 1, kInfinity).ok());
}

// Rows (3, 4), (1, 0), (0, 2) along the first axis: ||u|| |u_1| = 15, 1, 0.
TEST(LocalOracle, FindsAThresholdAndTheFilteredSumTogether) {
  std::vector<std::string> log;
  const FilteredApply query{*Directions::quantise(Matrix::Identity(2, 1)), {1, 3, 1024 * 1024}, FilterMode::kDrop};
  const PrivacyPlan plan{{{"search", PureEvent{kInfinity}}, {"product", GaussianEvent{kInfinity}}}};
  auto oracle = oracle_for(plan, log);
  const auto answer = oracle.ask_filtered("search", "product", query, 1, kInfinity, kInfinity);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(*answer->chosen, 0U);
  EXPECT_EQ(*answer->product, Matrix((Matrix(2, 1) << 1, 0).finished()));
  EXPECT_TRUE(oracle.complete());

  auto strict = oracle_for(plan, log);
  EXPECT_EQ(*strict.ask_filtered("search", "product", query, 0, kInfinity, kInfinity)->chosen, 2U);
  auto reordered = oracle_for({{{"product", GaussianEvent{0.5}}, {"search", PureEvent{0.5}}}}, log);
  EXPECT_FALSE(reordered.ask_filtered("search", "product", query, 0, 0.5, 0.5).ok());
  auto greedy = oracle_for({{{"search", PureEvent{0.5}}, {"product", GaussianEvent{0.5}}}}, log);
  EXPECT_FALSE(greedy.ask_filtered("search", "product", query, 0, 0.5, 0.6).ok());
}

TEST(LocalOracle, FilteredNoiseHasTheDeviationItStates) {
  std::vector<std::string> log;
  const FilteredApply query{*Directions::quantise(Matrix::Identity(2, 1)), {16, 1024 * 1024}, FilterMode::kDrop};
  constexpr int kTrials = 4000;
  PrivacyPlan plan;
  for (int i = 0; i < kTrials; ++i) {
    plan.events.push_back({"search", PureEvent{20}});
    plan.events.push_back({"product", GaussianEvent{0.5}});
  }
  auto oracle = oracle_for(plan, log);
  const double stated = oracle.noise_of(query, 0, 0.5);
  EXPECT_NEAR(stated, 2 * 16 / 0.5, 1e-3);
  double squares = 0;
  for (int i = 0; i < kTrials; ++i) {
    const auto answer = oracle.ask_filtered("search", "product", query, 50, 20, 0.5);
    ASSERT_EQ(*answer->chosen, 0U);
    squares += (*answer->product - Matrix((Matrix(2, 1) << 10, 12).finished())).squaredNorm() / (2 * kTrials);
  }
  EXPECT_NEAR(squares / (stated * stated), 1, 5.5 * std::sqrt(1.0 / kTrials));  // false alarm 4e-8
}

TEST(LocalOracle, AnswersUnderAModelOnlyIfThePlanSaysSo) {
  std::vector<std::string> log;
  PrivacyPlan plan{{{"projector", GaussianEvent{kInfinity}}}};
  const ModelQuery query = SpikedProjector{1, 0.1};
  auto strict = oracle_for(plan, log);
  EXPECT_FALSE(strict.ask_model("projector", query, kInfinity).ok());
  plan.model_based = true;
  auto wrong = oracle_for(plan, log, Adjacency::kAddRemoveOne);
  EXPECT_FALSE(wrong.ask_model("projector", query, kInfinity).ok());
  auto oracle = oracle_for(plan, log);
  EXPECT_FALSE(oracle.ask_model("projector", SpikedProjector{2, 0.1}, kInfinity).ok()) << "rank = columns";
  const auto P = oracle.ask_model("projector", query, kInfinity);
  ASSERT_TRUE(P.ok()) << P.error().message;
  // sum u u^T = [10 12; 12 20]
  const Eigen::SelfAdjointEigenSolver<Matrix> dense((Matrix(2, 2) << 10, 12, 12, 20).finished());
  EXPECT_LT((P->value() - dense.eigenvectors().col(1) * dense.eigenvectors().col(1).transpose()).norm(), 1e-11);
}

TEST(LocalOracle, RecentringMapsEveryRowByItself) {
  std::vector<std::string> log;
  auto oracle = oracle_for({{{"sums", GaussianEvent{kInfinity}}}}, log);
  Vector mean(2);
  mean << 1, 1;
  ASSERT_TRUE(oracle.recenter(mean, *RowBound::of(1024)).ok());
  const auto sums = oracle.ask("sums", ClassSums{1}, kInfinity);
  EXPECT_EQ(sums->value(), Matrix((Matrix(2, 1) << 1, -1).finished()));
}

TEST(LocalOracle, NoiseHasTheDeviationItStates) {
  std::vector<std::string> log;
  auto oracle = oracle_for({{{"sums", GaussianEvent{0.5}, 4000}}}, log);
  const double stated = oracle.noise_of(ClassSums{1}, 0.5);
  EXPECT_NEAR(stated, 2 * 1024 / 0.5, 0.01);
  double squares = 0;
  for (int i = 0; i < 4000; ++i) {
    const Matrix noise = oracle.ask("sums", ClassSums{1}, 0.5)->value() - Matrix((Matrix(2, 1) << 4, 2).finished());
    squares += noise.squaredNorm() / 8000;
  }
  EXPECT_NEAR(squares / (stated * stated), 1, 5.5 * std::sqrt(2.0 / 8000));  // false alarm 4e-8
}

}  // namespace
}  // namespace eigenveil
