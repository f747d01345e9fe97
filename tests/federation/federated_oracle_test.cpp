// SPDX-License-Identifier: Apache-2.0
// Sums over sites are the sums over all rows, integer for integer, and their noise is what was planned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/federation/stored.hpp"
#include "eigenveil/privacy/noisy_histogram.hpp"
#include "eigenveil/wire/convert.hpp"
#include "tests/support/federation.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <random>

namespace eigenveil {
namespace {

using federation::Aggregation;
using test::TestSites;

constexpr Eigen::Index kRows = 203;
constexpr Eigen::Index kColumns = 4;
constexpr double kRadius = 5;

struct Table {
  std::vector<std::string> lines;  // four numbers and a label
  RowMajorMatrix values;           // four numbers and the label's index
};

Table table() {
  std::mt19937_64 random(7);
  Table table;
  table.values.resize(kRows, kColumns + 1);
  for (Eigen::Index i = 0; i < kRows; ++i) {
    std::string line;
    for (Eigen::Index j = 0; j < kColumns; ++j) {
      table.values(i, j) = static_cast<double>(static_cast<int>(random() % 8001) - 4000) / 1000;
      line += fmt::format("{},", table.values(i, j));
    }
    table.values(i, kColumns) = static_cast<double>(random() % 3);
    table.lines.push_back(line + "ABC"[static_cast<int>(table.values(i, kColumns))]);
  }
  return table;
}

BoundedRows bounded(const Table& table) {
  MemorySource source(table.values);
  BoundingOptions options{.bound = *RowBound::of(kRadius)};
  options.class_column = kColumns;
  return *BoundedRows::read(
      source, *ColumnMap::from_schema(test::numeric_schema({"a", "b", "c", "d"}, 5), Centering::kNone), options);
}

RowOptions row_options() {
  RowOptions options;
  options.bounds = test::numeric_schema({"a", "b", "c", "d"}, 5);
  options.row_bound = *RowBound::of(kRadius);
  options.center = Center::kNone;
  options.class_column = ClassColumn{"label", {"A", "B", "C"}, false, {}};
  return options;
}

/// Sites that know the label's classes.
class ClassedSites : public TestSites {
 public:
  ClassedSites(std::size_t n, const Table& data)
      : TestSites(n, "a,b,c,d,label", test::numeric_schema({"a", "b", "c", "d"}, 5), data.lines) {
    for (federation::SiteConfig& config : configs) {
      config.classes["label"] = {{"A", "B", "C"}, {}};
      config.drop_unlisted = false;
    }
  }
};

using wire::v2::Kind;
const std::map<std::string, federation::Question>& questions() {
  static const std::map<std::string, federation::Question> all = {{"gram", {Kind::GRAM}},
                                                                  {"apply", {Kind::APPLY}},
                                                                  {"class sums", {Kind::CLASS_SUMS, 3}},
                                                                  {"class counts", {Kind::CLASS_COUNTS, 3}},
                                                                  {"squared norms", {Kind::SQUARED_NORMS}},
                                                                  {"projected gram", {Kind::PROJECTED_GRAM}},
                                                                  {"softmax gradient", {Kind::SOFTMAX_GRADIENT, 3}},
                                                                  {"norms", {Kind::NORM_COUNTS}},
                                                                  {"search", {Kind::SEARCH}},
                                                                  {"product", {Kind::PRODUCT, 0, Kind::RECENTER}},
                                                                  {"after", {Kind::GRAM}}};
  return all;
}

Directions directions() {
  Matrix X = Matrix::Zero(kColumns, 2);
  X(0, 0) = 0.6;
  X(1, 0) = -0.8;
  X(3, 1) = 1;
  return *Directions::quantise(X);
}

std::vector<std::pair<std::string, SumQuery>> sums() {
  return {{"gram", Gram{}},
          {"apply", Apply{directions()}},
          {"class sums", ClassSums{3}},
          {"class counts", ClassCounts{3}},
          {"squared norms", SquaredNorms{}},
          {"projected gram", ProjectedGram{directions(), 3.5}},
          {"softmax gradient", SoftmaxGradient{*LinearMap::quantise(Matrix::Ones(kColumns, 3)), 0.5}}};
}

Result<ChargedOracle> charge_over(const federation::CoordinatorOptions& options, const PrivacyPlan& plan) {
  return test::charge(options, row_options(), questions(), plan);
}

PrivateSum exact(const SumQuery& query, const BoundedRows& rows) {
  return *exact_sum(query, rows, Adjacency::kReplaceOne);
}

Matrix as_matrix(const PrivateSum& sum) {
  const auto rows = static_cast<Eigen::Index>(sum.rows), columns = static_cast<Eigen::Index>(sum.columns);
  const bool packed = sum.layout == PrivateSum::Layout::kSymmetric;
  Matrix matrix(rows, columns);
  std::size_t next = 0;
  for (Eigen::Index j = 0; j < columns; ++j)
    for (Eigen::Index i = packed ? j : 0; i < rows; ++i) {
      matrix(i, j) = static_cast<double>(sum.values[next++]) * sum.unit;
      if (packed) matrix(j, i) = matrix(i, j);
    }
  return matrix;
}

class Sites : public ::testing::TestWithParam<std::tuple<std::size_t, Aggregation>> {
 protected:
  std::size_t count() const { return std::get<0>(GetParam()); }
  Aggregation aggregation() const { return std::get<1>(GetParam()); }
};

// Every answer is the sum over all rows with noise of the deviation that it says (bit for bit: site_study_test.cpp).
TEST_P(Sites, GiveTheSumsOfAllRowsWithTheNoiseTheySay) {
  constexpr double kMu = 4;
  const Table data = table();
  PrivacyPlan plan(Adjacency::kReplaceOne);
  for (const auto& [label, query] : sums()) plan.events.push_back({label, GaussianEvent{kMu}, 1});
  for (const char* label : {"norms", "search"}) plan.events.push_back({label, PureEvent{kMu}, 1});
  for (const char* label : {"product", "after"}) plan.events.push_back({label, GaussianEvent{kMu}, 1});

  ClassedSites sites(count(), data);
  auto charged = charge_over(sites.coordinator(aggregation(), "pca"), plan);
  ASSERT_TRUE(charged.ok()) << charged.error().message;
  Oracle& oracle = *charged->oracle;
  EXPECT_EQ(oracle.shape().rows, static_cast<std::size_t>(kRows));

  BoundedRows rows = bounded(data);
  double squares = 0;
  Eigen::Index entries = 0;
  const auto compare = [&](const std::string& label, const Answer& answer, const PrivateSum& sum) {
    const Matrix noise = answer.value() - as_matrix(sum);
    const double own = deviation_of(sum, Mu(kMu));
    const auto n = static_cast<double>(count());
    const double factor = aggregation() == Aggregation::kLocal ? std::sqrt(n) : std::sqrt(n / (n - 1));
    EXPECT_NEAR(answer.deviation() / (own * factor), 1, 1e-9) << label;
    const double widest = sum.layout == PrivateSum::Layout::kSymmetric ? std::sqrt(2.0) : 1;
    EXPECT_LT(noise.cwiseAbs().maxCoeff(), 7 * widest * answer.deviation()) << label;
    EXPECT_GT(noise.cwiseAbs().minCoeff(), 1e-9 * answer.deviation()) << label;
    if (sum.layout == PrivateSum::Layout::kSymmetric) return;
    squares += noise.squaredNorm() / (answer.deviation() * answer.deviation());
    entries += noise.size();
  };
  for (const auto& [label, query] : sums()) {
    const auto answer = oracle.ask(label, query);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    compare(label, *answer, exact(query, rows));
  }
  EXPECT_FALSE(oracle.ask_rest("rest", Gram{}).ok())
      << "sites give every answer of the plan; and nothing was asked of them";
  constexpr std::int64_t kTarget = 60;
  const auto first = oracle.first_at_most("norms", NormExceedance{{1, 2, 3, 4, 5}, {}}, kTarget);
  ASSERT_TRUE(first.ok()) << first.error().message;
  const FilteredApply filtered{directions(), {0.5, 2, 8, 20}, FilterMode::kShrink};
  const auto answer = oracle.ask_filtered("search", "product", filtered, kTarget);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  compare("product", answer->product,
          FilteredCells::sweep(filtered, rows)->sum(*answer->chosen, Adjacency::kReplaceOne));
  Vector mean(kColumns);
  mean << 0.25, -0.5, 1, 0.125;
  ASSERT_TRUE(oracle.recenter(mean, *RowBound::of(4)).ok());
  ASSERT_TRUE(rows.recenter(mean, *RowBound::of(4)).ok());
  const auto after = oracle.ask("after", Gram{});
  ASSERT_TRUE(after.ok()) << after.error().message;
  compare("after", *after, exact(Gram{}, rows));
  EXPECT_TRUE(oracle.complete());
  // 44 squares: false alarms 8e-9.
  EXPECT_NEAR(squares / static_cast<double>(entries), 1, 8 * std::sqrt(2.0 / static_cast<double>(entries)));
}

INSTANTIATE_TEST_SUITE_P(Federated, Sites,
                         ::testing::Values(std::tuple{1, Aggregation::kLocal}, std::tuple{5, Aggregation::kLocal},
                                           std::tuple{2, Aggregation::kSecure}, std::tuple{5, Aggregation::kSecure}));

// N sites: N times the planned variance with `local`, N / (N - c - l) times with `secure`, as the answer says.
TEST(FederatedNoise, HasTheVarianceThatTheAggregationSays) {
  const Table data = table();
  for (const auto& [aggregation, lost, variance] :
       {std::tuple{Aggregation::kLocal, 0, 4.0}, std::tuple{Aggregation::kSecure, 0, 4.0 / 3},
        std::tuple{Aggregation::kSecure, 1, 2.0}}) {
    constexpr int kAnswers = 60;
    ClassedSites sites(4, data);
    auto options = sites.coordinator(aggregation, "pca");
    options.lost = static_cast<std::size_t>(lost);
    auto charged =
        charge_over(options, PrivacyPlan(Adjacency::kReplaceOne, {{"class sums", GaussianEvent{0.5}, kAnswers}}));
    ASSERT_TRUE(charged.ok()) << charged.error().message;
    const Matrix sums = as_matrix(exact(ClassSums{3}, bounded(data)));
    const double planned = 2 * kRadius / 0.5;  // sensitivity over mu
    double sum = 0;
    for (int i = 0; i < kAnswers; ++i) {
      const auto answer = charged->oracle->ask("class sums", ClassSums{3});
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      EXPECT_NEAR(answer->deviation() / planned, std::sqrt(variance), 1e-5);
      sum += (answer->value() - sums).squaredNorm();
    }
    const double ratio = sum / (kAnswers * 12) / (planned * planned * variance);
    EXPECT_NEAR(ratio, 1, 6 * std::sqrt(2.0 / (kAnswers * 12))) << lost;  // false alarms: 2e-8 each
  }
}

TEST(FederatedWords, NameTheConditionAndWhatOneSiteHasAlone) {
  ClassedSites sites(4, table());
  auto options = sites.coordinator(Aggregation::kSecure, "pca");
  options.lost = 1;
  options.spare_rounds = 2;
  const auto charged = charge_over(options, PrivacyPlan(Adjacency::kReplaceOne, {{"gram", GaussianEvent{0.5}, 1}}));
  ASSERT_TRUE(charged.ok()) << charged.error().message;
  const nlohmann::json& told = *charged->federation;
  EXPECT_EQ(told["shares"], 2);
  EXPECT_EQ(told["colluders"], 1);
  EXPECT_EQ(told["lost"], 1);
  EXPECT_EQ(told["sites_per_person"], 1);
  const std::string words = told["condition"];
  EXPECT_THAT(words, ::testing::HasSubstr("at most 1 of the 4 sites"));
  EXPECT_THAT(words, ::testing::HasSubstr("k = 2"));
  EXPECT_THAT(words, ::testing::HasSubstr("alone"));
  // What is certified is what the events say, spare rounds included.
  std::vector<PrivacyEvent> all = charged->plan.events;
  ASSERT_EQ(charged->spares.size(), 1U);
  all.push_back(charged->spares[0]);
  EXPECT_NEAR(*epsilon_of(all, *Delta::of(1e-6), Accounting::kTight), charged->certified_epsilon, 1e-9);
  for (PrivacyEvent& event : all)
    event.mechanism = GaussianEvent{std::get<GaussianEvent>(event.mechanism).mu * std::sqrt(2.0)};
  EXPECT_NEAR(*epsilon_of(all, *Delta::of(1e-6), Accounting::kTight), told["epsilon_alone"].get<double>(), 1e-9);
}

TEST(FederatedOptions, ThatLeaveNoHonestShareAreRefused) {
  ClassedSites sites(3, table());
  const auto good = sites.coordinator(Aggregation::kSecure, "pca");
  EXPECT_TRUE(check(good).ok());
  for (const auto& [colluders, lost] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 0}, {3, 0}, {1, 2}, {2, 1}, {1, SIZE_MAX}, {SIZE_MAX, 1}, {SIZE_MAX, SIZE_MAX}}) {
    auto options = good;
    options.colluders = colluders;
    options.lost = lost;
    EXPECT_FALSE(check(options).ok()) << colluders << " " << lost;
  }
  auto unknown = good;
  unknown.peers.erase("site-1");
  EXPECT_FALSE(check(unknown).ok()) << "a site whose key is not known";
}

// After a crash the coordinator asks nothing again that it has.
TEST(FederatedJournal, AnswersInsteadOfTheSites) {
  const Table data = table();
  const PrivacyPlan plan(Adjacency::kReplaceOne,
                         {{"gram", GaussianEvent{0.5}, 1}, {"squared norms", GaussianEvent{0.5}, 1}});
  ClassedSites sites(2, data);
  const auto options = sites.coordinator(Aggregation::kSecure, "pca");
  Matrix first;
  {
    auto charged = charge_over(options, plan);
    ASSERT_TRUE(charged.ok()) << charged.error().message;
    const auto gram = charged->oracle->ask("gram", Gram{});
    ASSERT_TRUE(gram.ok()) << gram.error().message;
    first = gram->value();
    ASSERT_TRUE(charged->oracle->ask("squared norms", SquaredNorms{}).ok());
  }
  {
    const auto journal = federation::AnswerLog::open(options.journal + "/totals.bin");
    ASSERT_TRUE(journal.ok() && journal->size() == 2);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(journal->read(i)->answer.narrow()) << "8 bytes are enough here";
  }
  // No site dials any more: everything comes from the journal, bit for bit.
  auto again = charge_over(options, plan);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->oracle->ask("gram", Gram{})->value(), first);
  const auto other = again->oracle->ask("squared norms", ClassSums{3});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, ::testing::HasSubstr("another study"));
}

// Whoever comes second leaves nothing: not even a proposal that the first one would find after a crash.
TEST(FederatedJournal, IsThatOfOneCoordinatorAtATime) {
  ClassedSites sites(1, table());
  const auto options = sites.coordinator(Aggregation::kLocal, "pca");
  const PrivacyPlan plan(Adjacency::kReplaceOne, {{"gram", GaussianEvent{0.5}, 1}});
  ASSERT_TRUE(federation::make_folder(options.journal).ok());
  {
    const auto first = federation::AnswerLog::open(options.journal + "/totals.bin");
    ASSERT_TRUE(first.ok());
    const auto second = charge_over(options, plan);
    ASSERT_FALSE(second.ok());
    EXPECT_THAT(second.error().message, ::testing::HasSubstr("another process uses this file"));
    EXPECT_FALSE(std::filesystem::exists(options.journal + "/proposal.bin"));
  }
  auto alone = charge_over(options, plan);
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  EXPECT_TRUE(alone->oracle->ask("gram", Gram{}).ok());
}

}  // namespace
}  // namespace eigenveil
