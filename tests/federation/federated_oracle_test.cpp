// Sums over sites are the sums over all rows, integer for integer, and their noise is what was planned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eigenveil/federation/stored.hpp"
#include "eigenveil/privacy/noisy_histogram.hpp"
#include "eigenveil/wire/convert.hpp"
#include "tests/support/federation.hpp"
#include "tests/support/fit.hpp"

#include <fmt/format.h>

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
  return *BoundedRows::read(source, ColumnMap::identity({"a", "b", "c", "d"}), options);
}

RowOptions row_options() {
  RowOptions options;
  options.source.columns = {"a", "b", "c", "d"};
  options.row_bound = *RowBound::of(kRadius);
  options.center = Center::kNone;
  options.class_column = ClassColumn{"label", {"A", "B", "C"}, false, {}};
  return options;
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
  const auto engine = federation::federated_engine(options);
  if (!engine) return engine.error();
  const auto opened = open_data(row_options());
  if (!opened) return opened.error();
  Observer silent;
  auto rows = (*engine)->hold(row_options(), *opened, {}, 0, silent);
  if (!rows) return rows.error();
  PrivacyOptions privacy{*Epsilon::of(1), *Delta::of(1e-6)};
  privacy.calibration = Calibration::kPaper;  // the plan as it is
  const ChargeRequest request{plan, privacy, RunOptions(), "", "test"};
  return (*rows)->charge(request, silent);
}

class Sites : public ::testing::TestWithParam<std::tuple<std::size_t, Aggregation>> {
 protected:
  std::size_t count() const { return std::get<0>(GetParam()); }
  Aggregation aggregation() const { return std::get<1>(GetParam()); }
};

// Noise of a thousandth of a lattice step: rounding takes it away, and what remains must be the exact sums, in the
// integers of the journal as in the answers.
TEST_P(Sites, GiveTheSumsOfAllRowsBitForBit) {
  const Table data = table();
  const Lattice lattice{kRadius, 20};
  PrivacyPlan plan;
  const auto exactly = [&](Sensitivity moved) { return moved.value() * 1024; };
  std::vector<double> mus;
  for (const auto& [label, query] : sums()) {
    mus.push_back(exactly(sensitivity(query, lattice, Adjacency::kReplaceOne)));
    plan.events.push_back({label, GaussianEvent{mus.back()}, 1});
  }
  const std::vector<double> grid = {1, 2, 3, 4, 5};
  plan.events.push_back({"norms", PureEvent{900}, 1});
  const FilteredApply filtered{directions(), {0.5, 2, 8, 20}, FilterMode::kShrink};
  constexpr std::int64_t kTarget = 60;
  const std::size_t expected_choice = [&] {
    const auto cells = exact_cells(filtered, bounded(data));
    std::size_t j = 0;
    while (j + 1 < filtered.grid.size() && cells->above.values[j] > kTarget) ++j;
    return j;
  }();
  const double filtered_mu = exactly(sensitivity(filtered, expected_choice, lattice, Adjacency::kReplaceOne));
  plan.events.push_back({"search", PureEvent{900}, 1});
  plan.events.push_back({"product", GaussianEvent{filtered_mu}, 1});
  Vector mean(kColumns);
  mean << 0.25, -0.5, 1, 0.125;
  const double after_mu = exactly(sensitivity(SumQuery(Gram{}), Lattice{4, 20}, Adjacency::kReplaceOne));
  plan.events.push_back({"after", GaussianEvent{after_mu}, 1});

  TestSites sites(count(), "a,b,c,d,label", data.lines);
  const auto options = sites.coordinator(aggregation(), "pca");
  auto charged = charge_over(options, plan);
  ASSERT_TRUE(charged.ok()) << charged.error().message;
  Oracle& oracle = *charged->oracle;
  EXPECT_EQ(oracle.shape().rows, static_cast<std::size_t>(kRows));

  BoundedRows rows = bounded(data);
  const auto in_units = [](const Matrix& values, double unit) -> Matrix { return (values / unit).array().round(); };
  const auto as_matrix = [&](PrivateSum sum) {
    SecureRandom random = SecureRandom::insecure(1);
    return **GaussianMechanism::release(std::move(sum), Sensitivity(1), test::kNoNoise, 1, random);
  };
  struct Exact {
    std::vector<Int128> integers;
    int shift;
  };
  std::map<std::string, Exact> exact;
  const auto expect = [&](const std::string& label, const PrivateSum& sum, Sensitivity moved) {
    exact[label] = {sum.values, GaussianMechanism::noise_for(moved, exactly(moved))->shift};
  };
  std::size_t next = 0;
  for (const auto& [label, query] : sums()) {
    const auto answer = oracle.ask(label, query, mus[next++]);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(in_units(**answer, unit(query, lattice)), as_matrix(*exact_sum(query, rows))) << label;
    expect(label, *exact_sum(query, rows), sensitivity(query, lattice, Adjacency::kReplaceOne));
  }

  const auto first = oracle.first_at_most("norms", NormExceedance{grid, {}}, kTarget, 900);
  ASSERT_TRUE(first.ok()) << first.error().message;
  SecureRandom none = SecureRandom::insecure(1);
  EXPECT_EQ(**first, **SparseVector::first_at_most(*exact_counts(NormExceedance{grid, {}}, rows), kTarget,
                                                   test::kNoNoise, none));

  const auto answer = oracle.ask_filtered("search", "product", filtered, kTarget, 900, filtered_mu);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(*answer->chosen, expected_choice);
  const PrivateSum weighted = filtered_sum(*exact_cells(filtered, rows), filtered, lattice, expected_choice);
  EXPECT_TRUE(answer->product->isApprox(as_matrix(weighted) * filtered_unit(lattice), 1e-12));
  expect("product", weighted, sensitivity(filtered, expected_choice, lattice, Adjacency::kReplaceOne));

  ASSERT_TRUE(oracle.recenter(mean, *RowBound::of(4)).ok());
  ASSERT_TRUE(rows.recenter(mean, *RowBound::of(4)).ok());
  const LinearMap map =
      *LinearMap::quantise(Matrix::Identity(kColumns, kColumns) + Matrix::Ones(kColumns, kColumns) / 9);
  ASSERT_TRUE(oracle.remap(map, *RowBound::of(5)).ok());
  ASSERT_TRUE(rows.remap(map, *RowBound::of(5)).ok());
  const auto after = oracle.ask("after", Gram{}, after_mu);
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_EQ(in_units(**after, unit(SumQuery(Gram{}), rows.lattice())), as_matrix(*exact_sum(Gram{}, rows)));
  expect("after", *exact_sum(Gram{}, rows), sensitivity(SumQuery(Gram{}), rows.lattice(), Adjacency::kReplaceOne));
  EXPECT_TRUE(oracle.complete());

  charged->oracle.reset();
  const auto journal = federation::AnswerLog::open(options.journal + "/totals.bin");
  ASSERT_TRUE(journal.ok()) << journal.error().message;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < journal->size(); ++i) {
    const auto total = journal->read(i);
    ASSERT_TRUE(total.ok()) << total.error().message;
    const auto found = exact.find(total->ask.label());
    if (found == exact.end()) continue;  // noisy counts
    const auto& [integers, shift] = found->second;
    std::vector<Int128> values(total->answer.entries());
    ASSERT_TRUE(federation::for_each_part(*total, [&](const std::string& bytes) -> Status {
                  add_integers(bytes, total->answer.narrow(), values.data());
                  return {};
                }).ok());
    for (Int128& value : values) value = (value + (Int128{1} << (shift - 1))) >> shift;
    EXPECT_EQ(values, integers) << found->first;
    ++compared;
  }
  EXPECT_EQ(compared, exact.size());
}

INSTANTIATE_TEST_SUITE_P(Federated, Sites,
                         ::testing::Values(std::tuple{1, Aggregation::kLocal}, std::tuple{2, Aggregation::kLocal},
                                           std::tuple{5, Aggregation::kLocal}, std::tuple{2, Aggregation::kSecure},
                                           std::tuple{5, Aggregation::kSecure}));

// N sites: N times the planned variance with `local`, N / (N - t) times with `secure`, as `shape` says.
TEST(FederatedNoise, HasTheVarianceThatTheAggregationSays) {
  const Table data = table();
  for (const auto& [aggregation, tolerate, variance] :
       {std::tuple{Aggregation::kLocal, 0, 4.0}, std::tuple{Aggregation::kSecure, 0, 1.0},
        std::tuple{Aggregation::kSecure, 2, 2.0}}) {
    constexpr int kAnswers = 60;
    TestSites sites(4, "a,b,c,d,label", data.lines);
    auto options = sites.coordinator(aggregation, "pca");
    options.tolerate = static_cast<std::size_t>(tolerate);
    const PrivacyPlan plan{{{"sum", GaussianEvent{0.5}, kAnswers}}};
    auto charged = charge_over(options, plan);
    ASSERT_TRUE(charged.ok()) << charged.error().message;
    EXPECT_NEAR(charged->oracle->shape().noise_factor, std::sqrt(variance), 1e-12);
    const Matrix exact = [&] {
      SecureRandom random = SecureRandom::insecure(1);
      const SumQuery query = ClassSums{3};
      return **GaussianMechanism::release(*exact_sum(query, bounded(data)), Sensitivity(1), test::kNoNoise,
                                          unit(query, Lattice{kRadius, 20}), random);
    }();
    double sum = 0;
    for (int i = 0; i < kAnswers; ++i) {
      const auto answer = charged->oracle->ask("sum", ClassSums{3}, 0.5);
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      sum += (**answer - exact).squaredNorm();
    }
    const double planned = 2 * kRadius / 0.5;  // sensitivity over mu
    const double ratio = sum / (kAnswers * 12) / (planned * planned * variance);
    EXPECT_NEAR(ratio, 1, 5 * std::sqrt(2.0 / (kAnswers * 12))) << tolerate;
  }
}

// After a crash the coordinator asks nothing again that it has.
TEST(FederatedJournal, AnswersInsteadOfTheSites) {
  const Table data = table();
  const PrivacyPlan plan{{{"one", GaussianEvent{0.5}, 1}, {"two", GaussianEvent{0.5}, 1}}};
  TestSites sites(2, "a,b,c,d,label", data.lines);
  const auto options = sites.coordinator(Aggregation::kSecure, "pca");
  Matrix first;
  {
    auto charged = charge_over(options, plan);
    ASSERT_TRUE(charged.ok()) << charged.error().message;
    first = **charged->oracle->ask("one", Gram{}, 0.5);
    ASSERT_TRUE(charged->oracle->ask("two", SquaredNorms{}, 0.5).ok());
  }
  {
    const auto journal = federation::AnswerLog::open(options.journal + "/totals.bin");
    ASSERT_TRUE(journal.ok() && journal->size() == 2);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(journal->read(i)->answer.narrow()) << "8 bytes are enough here";
  }
  // No site dials any more: everything comes from the journal, bit for bit.
  auto again = charge_over(options, plan);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(**again->oracle->ask("one", Gram{}, 0.5), first);
  const auto other = again->oracle->ask("two", ClassSums{3}, 0.5);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, ::testing::HasSubstr("another study"));
}

}  // namespace
}  // namespace eigenveil
