// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/local_oracle.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/rows.hpp"

namespace eigenveil {
namespace {

using test::lattice_rows;

constexpr double kQuiet = 0x1p30;     // hardly any Gaussian noise: a lattice of few bits bears no less
constexpr double kQuietSearch = 100;  // hardly any in a search

PrivacyPlan plan_of(std::vector<PrivacyEvent> events, Adjacency adjacency = Adjacency::kReplaceOne) {
  return PrivacyPlan(adjacency, std::move(events));
}

void expect_near(const Matrix& value, const Matrix& expected) {
  EXPECT_LT((value - expected).cwiseAbs().maxCoeff(), 0.05);
}

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

LocalOracle oracle_for(PrivacyPlan plan, std::vector<std::string>& log, bool broken = false) {
  return {three_rows(), std::make_unique<Witness>(std::move(plan), log, broken), SecureRandom::insecure(1)};
}

TEST(LocalOracle, AnswersThePlanAndSaysWhenItIsComplete) {
  std::vector<std::string> log;
  {
    auto oracle = oracle_for(plan_of({{"sums", GaussianEvent{kQuiet}}, {"gram", GaussianEvent{kQuiet}}}), log);
    const auto sums = oracle.ask("sums", ClassSums{1});
    ASSERT_TRUE(sums.ok());
    expect_near(sums->value(), Matrix((Matrix(2, 1) << 4, 2).finished()));
    EXPECT_FALSE(oracle.complete());
    const auto gram = oracle.ask("gram", Gram{});
    ASSERT_TRUE(gram.ok());
    expect_near(gram->value(), Matrix((Matrix(2, 2) << 10, 12, 12, 20).finished()));
    EXPECT_TRUE(oracle.complete());
  }
  EXPECT_EQ(log, (std::vector<std::string>{"begin"}));
}

TEST(LocalOracle, RepeatsASumWithAllTheNoiseThatIsLeft) {
  std::vector<std::string> log;
  const double mu = 0x1p27;
  auto oracle = oracle_for(plan_of({{"pilot", GaussianEvent{mu}},
                                    {"search", PureEvent{0.1}},
                                    {"product", GaussianEvent{3 * mu}},
                                    {"product again", GaussianEvent{4 * mu}}}),
                           log);
  const auto pilot = oracle.ask("pilot", Gram{});
  ASSERT_TRUE(pilot.ok());
  const auto rest = oracle.ask_rest("gram", Gram{});
  ASSERT_TRUE(rest.ok());
  EXPECT_NEAR(pilot->deviation() / rest->deviation(), 5, 1e-6);
  expect_near(rest->value(), Matrix((Matrix(2, 2) << 10, 12, 12, 20).finished()));
  EXPECT_NE(pilot->value()(0, 0), rest->value()(0, 0)) << "noise of its own";
  EXPECT_TRUE(oracle.complete());
  EXPECT_FALSE(oracle.ask_rest("gram", Gram{}).ok()) << "once";
}

std::vector<SumQuery> some_sums() {
  return {Gram{}, ClassSums{1}, ClassCounts{1}, Apply{*Directions::quantise(Matrix::Identity(2, 2))}};
}

// Whatever the rest is given to, and whatever rows are by then: to the last bit what a plan of that one answer gives,
// so its noise is that of its own sensitivity.
TEST(LocalOracle, GivesTheRestOfAPlanToAnySum) {
  std::vector<std::string> log;
  const PrivacyPlan plan = plan_of({{"pilot", GaussianEvent{0.25}},
                                    {"one", GaussianEvent{0.75}},
                                    {"search", PureEvent{0.1}},
                                    {"two", GaussianEvent{0.5}, 4}},
                                   Adjacency::kAddRemoveOne);
  Meter meter(plan);
  ASSERT_TRUE(meter.gaussian("pilot").ok());
  const Mu rest = *meter.rest("rest");
  EXPECT_LE(rest.value(), 1.25);
  EXPECT_GT(rest.value(), 1.25 - 1e-9);
  const PrivacyPlan same =
      plan_of({{"pilot", GaussianEvent{0.25}}, {"rest", GaussianEvent{rest}}}, Adjacency::kAddRemoveOne);
  for (const double radius : {8.0, 1.0})
    for (const SumQuery& query : some_sums()) {
      auto oracle = oracle_for(plan, log), planned = oracle_for(same, log);
      for (auto* one : {&oracle, &planned}) {
        ASSERT_TRUE(one->ask("pilot", Gram{}).ok());
        ASSERT_TRUE(radius == 8 || one->recenter(Vector::Zero(2), *RowBound::of(radius)).ok());
      }
      const auto given = oracle.ask_rest("rest", query), expected = planned.ask("rest", query);
      ASSERT_TRUE(given.ok()) << given.error().message;
      ASSERT_TRUE(expected.ok()) << expected.error().message;
      EXPECT_EQ(given->value(), expected->value()) << query.index();
      EXPECT_EQ(given->deviation(), expected->deviation()) << query.index();
      EXPECT_TRUE(oracle.complete());
    }
}

TEST(LocalOracle, GivesTheRestOfAPlanOnce) {
  const PrivacyPlan plan = plan_of({{"one", GaussianEvent{0.5}}, {"search", PureEvent{0.5}}});
  const FilteredApply filtered{*Directions::quantise(Matrix::Identity(2, 1)), {1, 3, 1024 * 1024}, FilterMode::kDrop};
  const std::vector<std::function<bool(LocalOracle&)>> again = {
      [](LocalOracle& oracle) { return oracle.ask_rest("rest", Gram{}).ok(); },
      [](LocalOracle& oracle) { return oracle.ask_rest("one", ClassSums{1}).ok(); },
      [](LocalOracle& oracle) { return oracle.ask("one", Gram{}).ok(); },
      [](LocalOracle& oracle) {
        return oracle.first_at_most("search", NormExceedance{{1, 2}, {}}, 1).ok();
      },
      [&](LocalOracle& oracle) { return oracle.ask_filtered("search", "one", filtered, 1).ok(); }};
  for (const auto& more : again) {
    std::vector<std::string> log;
    auto oracle = oracle_for(plan, log);
    ASSERT_TRUE(oracle.ask_rest("rest", Gram{}).ok());
    EXPECT_EQ(log, (std::vector<std::string>{"begin"})) << "the ledger knows it before the answer";
    EXPECT_FALSE(more(oracle));
    EXPECT_FALSE(oracle.complete()) << "the run is broken";
  }
}

// Refused by what is public, and before anything of the plan is given up.
TEST(LocalOracle, GivesTheRestOfAPlanToNoBadQuery) {
  std::vector<std::string> log;
  {
    auto oracle = oracle_for(plan_of({{"one", GaussianEvent{0.5}}}), log);
    EXPECT_FALSE(oracle.ask_rest("rest", Apply{*Directions::quantise(Matrix::Identity(5, 1))}).ok());
    EXPECT_FALSE(oracle.ask_rest("rest", ClassSums{3}).ok()) << "rows of no classes";
    EXPECT_TRUE(log.empty());
    EXPECT_TRUE(oracle.ask_rest("rest", Gram{}).ok());
  }
  log.clear();
  auto broken = oracle_for(plan_of({{"one", GaussianEvent{0.5}}}), log, true);
  EXPECT_FALSE(broken.ask_rest("rest", Gram{}).ok()) << "the ledger could not record it";
  EXPECT_FALSE(broken.ask_rest("rest", Gram{}).ok()) << "and it was given up";
}

// What was kept dies with the rows that it was the sum of.
TEST(LocalOracle, RepeatsNoSumOfOtherRows) {
  std::vector<std::string> log;
  const PrivacyPlan plan = plan_of({{"pilot", GaussianEvent{kQuiet}}, {"gram", GaussianEvent{kQuiet}}});
  auto shorter = oracle_for(plan, log), mapped = oracle_for(plan, log);
  ASSERT_TRUE(shorter.ask("pilot", Gram{}).ok() && mapped.ask("pilot", Gram{}).ok());
  // (3, 4), (1, 0) and (0, -2) become (.6, .8), (1, 0) and (0, -1).
  const Matrix of_length_one = (Matrix(2, 2) << 1.36, 0.48, 0.48, 1.64).finished();
  ASSERT_TRUE(shorter.recenter(Vector::Zero(2), *RowBound::of(1)).ok());
  expect_near(shorter.ask_rest("gram", Gram{})->value(), of_length_one);
  ASSERT_TRUE(mapped.remap(*LinearMap::quantise(Matrix::Identity(2, 2)), *RowBound::of(1)).ok());
  expect_near(mapped.ask_rest("gram", Gram{})->value(), of_length_one);
}

TEST(LocalOracle, SaysWhatAFitNeedsOfItsPlan) {
  std::vector<std::string> log;
  const auto oracle = oracle_for(
      plan_of({{"sums", GaussianEvent{3}}, {"search", PureEvent{0.25}}, {"products", GaussianEvent{2}, 4}}), log);
  EXPECT_TRUE(oracle.plans("search"));
  EXPECT_FALSE(oracle.plans("gram"));
  EXPECT_EQ(oracle.planned_mu("products")->value(), 2);
  EXPECT_FALSE(oracle.planned_mu("search").ok());
  EXPECT_EQ(*oracle.planned_epsilon("search"), 0.25);
  EXPECT_EQ(*oracle.planned_epsilon("products"), 2) << "sites search with Gaussian noise";
  EXPECT_FALSE(oracle.planned_epsilon("gram").ok());
  EXPECT_EQ(oracle.total_mu(), 5);  // 3^2 + 4 times 2^2
}

TEST(LocalOracle, FailsClosedAfterAnAskThatIsNotInThePlan) {
  std::vector<std::string> log;
  auto oracle = oracle_for(plan_of({{"gram", GaussianEvent{0.5}}, {"gram again", GaussianEvent{0.5}}}), log);
  EXPECT_FALSE(oracle.ask("gram again", Gram{}).ok()) << "not the next answer of the plan";
  EXPECT_FALSE(oracle.ask("gram", Gram{}).ok()) << "everything is refused from then on";
  EXPECT_FALSE(oracle.complete());
  EXPECT_TRUE(log.empty()) << "a refused ask begins no answer";
}

TEST(LocalOracle, GivesNothingWhenTheLedgerCannotRecordThatItAnswers) {
  std::vector<std::string> log;
  auto oracle = oracle_for(plan_of({{"gram", GaussianEvent{0.5}}}), log, true);
  const auto answer = oracle.ask("gram", Gram{});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message, "disk full");
}

TEST(LocalOracle, ReportsAnUnusedReservation) {
  std::vector<std::string> log;
  { auto oracle = oracle_for(plan_of({{"gram", GaussianEvent{0.5}}}), log); }
  EXPECT_EQ(log, (std::vector<std::string>{"unused"}));
}

TEST(LocalOracle, ABadQueryDoesNotUseUpThePlan) {
  std::vector<std::string> log;
  auto oracle = oracle_for(plan_of({{"apply", GaussianEvent{0.5}}}), log);
  EXPECT_FALSE(oracle.ask("apply", Apply{*Directions::quantise(Matrix::Identity(5, 1))}).ok());
  EXPECT_TRUE(oracle.ask("apply", Apply{*Directions::quantise(Matrix::Identity(2, 1))}).ok());
}

TEST(LocalOracle, HidesTheNumberOfRowsUnderAddRemoveOne) {
  std::vector<std::string> log;
  const auto replace = oracle_for(plan_of({}), log);
  const auto add_remove = oracle_for(plan_of({}, Adjacency::kAddRemoveOne), log);
  EXPECT_EQ(replace.shape().rows, 3U);
  EXPECT_EQ(add_remove.shape().rows, std::nullopt);
}

TEST(LocalOracle, SearchesAGridByTheSparseVector) {
  std::vector<std::string> log;
  auto oracle = oracle_for(plan_of({{"search", PureEvent{kQuietSearch}, 2}}), log);
  const auto first = oracle.first_at_most("search", NormExceedance{{0.5, 1.5, 3, 6}, {}}, 1);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(**first, 2U);  // norms 5, 1, 2: one of them above 3
  EXPECT_FALSE(oracle.first_at_most("search", NormExceedance{{3, 1}, {}}, 1).ok());
}

// Rows (3, 4), (1, 0), (0, 2) along the first axis: ||u|| |u_1| = 15, 1, 0.
TEST(LocalOracle, FindsAThresholdAndTheFilteredSumTogether) {
  std::vector<std::string> log;
  const FilteredApply query{*Directions::quantise(Matrix::Identity(2, 1)), {1, 3, 1024 * 1024}, FilterMode::kDrop};
  const PrivacyPlan plan = plan_of({{"search", PureEvent{kQuietSearch}}, {"product", GaussianEvent{kQuiet}}});
  auto oracle = oracle_for(plan, log);
  const auto answer = oracle.ask_filtered("search", "product", query, 1);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(*answer->chosen, 0U);
  expect_near(answer->product.value(), Matrix((Matrix(2, 1) << 1, 0).finished()));
  EXPECT_TRUE(oracle.complete());

  auto strict = oracle_for(plan, log);
  EXPECT_EQ(*strict.ask_filtered("search", "product", query, 0)->chosen, 2U);
  auto reordered = oracle_for(plan_of({{"product", GaussianEvent{0.5}}, {"search", PureEvent{0.5}}}), log);
  EXPECT_FALSE(reordered.ask_filtered("search", "product", query, 0).ok());
  auto pure = oracle_for(plan_of({{"search", PureEvent{0.5}}, {"product", PureEvent{0.5}}}), log);
  EXPECT_FALSE(pure.ask_filtered("search", "product", query, 0).ok()) << "noise of another kind";
}

TEST(LocalOracle, FilteredNoiseHasTheDeviationItStates) {
  std::vector<std::string> log;
  const FilteredApply query{*Directions::quantise(Matrix::Identity(2, 1)), {16, 1024 * 1024}, FilterMode::kDrop};
  constexpr int kTrials = 4000;
  PrivacyPlan plan(Adjacency::kReplaceOne);
  for (int i = 0; i < kTrials; ++i) {
    plan.events.push_back({"search", PureEvent{20}});
    plan.events.push_back({"product", GaussianEvent{0.5}});
  }
  auto oracle = oracle_for(plan, log);
  double stated = 0;
  double squares = 0;
  for (int i = 0; i < kTrials; ++i) {
    const auto answer = oracle.ask_filtered("search", "product", query, 50);
    ASSERT_EQ(*answer->chosen, 0U);
    stated = answer->product.deviation();
    squares += (answer->product.value() - Matrix((Matrix(2, 1) << 10, 12).finished())).squaredNorm() / (2 * kTrials);
  }
  EXPECT_NEAR(stated, 2 * 16 / 0.5, 1e-3);
  EXPECT_NEAR(squares / (stated * stated), 1, 5.5 * std::sqrt(1.0 / kTrials));  // false alarm 4e-8
}

// The value is the Gram matrix itself, and its sensitivity is assumed to be one.
struct AssumedGram final : ModelQuery {
  Status validate(std::size_t, Adjacency) const override { return {}; }
  SumQuery behind(const Lattice&) const override { return Gram{}; }
  Sensitivity assumed(const Lattice&) const override { return Sensitivity(0x1p20); }
  Result<PrivateSum> value(PrivateSum sum, const Lattice& lattice) const override {
    sum.moved = assumed(lattice);
    return sum;
  }
};

TEST(LocalOracle, AnswersUnderAModelOnlyIfThePlanSaysSo) {
  std::vector<std::string> log;
  PrivacyPlan plan = plan_of({{"gram", GaussianEvent{kQuiet}}});
  auto strict = oracle_for(plan, log);
  EXPECT_FALSE(strict.ask_model("gram", AssumedGram()).ok());
  plan.model_based = true;
  auto oracle = oracle_for(plan, log);
  const auto gram = oracle.ask_model("gram", AssumedGram());
  ASSERT_TRUE(gram.ok()) << gram.error().message;
  expect_near(gram->value(), Matrix((Matrix(2, 2) << 10, 12, 12, 20).finished()));
}

// What was swept before rows moved to another lattice keeps the sensitivity of its own.
TEST(LocalOracle, CellsKeepTheLatticeTheyCameFrom) {
  BoundedRows rows = three_rows();
  const FilteredApply query{*Directions::quantise(Matrix::Identity(2, 1)), {16, 1024 * 1024}, FilterMode::kDrop};
  const auto cells = FilteredCells::sweep(query, rows);
  ASSERT_TRUE(cells.ok());
  const PrivateSum before = cells->sum(0, Adjacency::kReplaceOne);
  ASSERT_TRUE(rows.recenter(Vector::Zero(2), *RowBound::of(1)).ok());
  const PrivateSum after = cells->sum(0, Adjacency::kReplaceOne);
  EXPECT_EQ(before.values, after.values);
  EXPECT_EQ(before.moved.value(), after.moved.value());
  EXPECT_EQ(before.unit, after.unit);
  EXPECT_NE(empty_sum(query, 0, rows.lattice(), Adjacency::kReplaceOne).unit, after.unit);
}

// How many rows there are decides nothing but the answer: no refusal, no charge that comes back.
TEST(LocalOracle, ABatchIsAnsweredHoweverManyRowsThereAre) {
  for (const std::size_t n :
       {std::size_t{0}, std::size_t{1}, std::size_t{8192}, std::size_t{8193}, std::size_t{20000}}) {
    std::vector<std::string> log;
    PrivacyPlan plan(Adjacency::kAddRemoveOne, {{"batch", PoissonGaussianEvent{0.5, 1}}});
    {
      LocalOracle oracle(lattice_rows(std::vector<test::LatticeRow>(n, {1, 0}), 2, {.bits = 10}),
                         std::make_unique<Witness>(plan, log), SecureRandom::insecure(n));
      const ClippedBatch query([](const Batch& batch) { return Vector(batch.rows.colwise().sum().transpose()); }, 1);
      const auto answer = oracle.ask_batch("batch", query);
      EXPECT_TRUE(answer.ok()) << n;
    }
    EXPECT_EQ(log, (std::vector<std::string>{"begin"})) << n;
  }
}

// Rows 0, 2, 4 and 5 are one person's, 1 and 3 another's: as GradientOracle.TakesPeopleWithOneRowEach. To six
// deviations.
TEST(LocalOracle, ABatchTakesPeopleWithOneRowEach) {
  constexpr int kSteps = 20000;
  const std::vector<int> person = {7, 3, 7, 3, 7, 7};
  std::vector<test::LatticeRow> rows(6, test::LatticeRow(6));
  for (std::size_t i = 0; i < 6; ++i) rows[i][i] = 1;
  for (const std::size_t least : {1U, 3U, 8U}) {
    std::vector<std::string> log;
    test::RowsSetup setup{.bits = 10, .people = person};
    setup.rule.least_rows = least;
    PrivacyPlan plan(Adjacency::kAddRemoveOne, {{"batch", PoissonGaussianEvent{0.5, 1}, kSteps}});
    LocalOracle oracle(lattice_rows(rows, 6, setup), std::make_unique<Witness>(plan, log), SecureRandom::insecure(5));
    std::vector<double> drawn(6);
    const ClippedBatch query(
        [&](const Batch& batch) {
          const Vector found = batch.rows.colwise().sum().transpose();
          EXPECT_LE(found[0] + found[2] + found[4] + found[5], 1);
          EXPECT_LE(found[1] + found[3], 1);
          for (std::size_t i = 0; i < 6; ++i) drawn[i] += found[static_cast<Eigen::Index>(i)];
          return found;
        },
        1);
    for (int step = 0; step < kSteps; ++step) ASSERT_TRUE(oracle.ask_batch("batch", query).ok());
    for (std::size_t i = 0; i < 6; ++i) {
      const double p = 0.5 / std::max(person[i] == 7 ? 4.0 : 2.0, static_cast<double>(least));
      EXPECT_NEAR(drawn[i], kSteps * p, 6 * std::sqrt(kSteps * p * (1 - p))) << least << " " << i;
    }
  }
}

TEST(LocalOracle, RecentringMapsEveryRowByItself) {
  std::vector<std::string> log;
  auto oracle = oracle_for(plan_of({{"sums", GaussianEvent{kQuiet}}}), log);
  Vector mean(2);
  mean << 1, 1;
  ASSERT_TRUE(oracle.recenter(mean, *RowBound::of(1024)).ok());
  const auto sums = oracle.ask("sums", ClassSums{1});
  expect_near(sums->value(), Matrix((Matrix(2, 1) << 1, -1).finished()));
}

TEST(LocalOracle, NoiseHasTheDeviationItStates) {
  std::vector<std::string> log;
  auto oracle = oracle_for(plan_of({{"sums", GaussianEvent{0.5}, 4000}}), log);
  double stated = 0;
  double squares = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto answer = oracle.ask("sums", ClassSums{1});
    stated = answer->deviation();
    const Matrix noise = answer->value() - Matrix((Matrix(2, 1) << 4, 2).finished());
    squares += noise.squaredNorm() / 8000;
  }
  EXPECT_NEAR(stated, 2 * 1024 / 0.5, 0.01);
  EXPECT_NEAR(squares / (stated * stated), 1, 5.5 * std::sqrt(2.0 / 8000));  // false alarm 4e-8
}

}  // namespace
}  // namespace eigenveil
