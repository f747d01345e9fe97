// SPDX-License-Identifier: Apache-2.0
// Run by mpirun: every exact answer of the ranks is that of one process, bit for bit. Rank 0 runs the tests.
#include "eigenveil/mpi/mpi.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "eigenveil/query/local_oracle.hpp"
#include "tests/data/hdf5_file.hpp"
#include "tests/data/reading.hpp"

namespace eigenveil::test {
namespace {

constexpr std::size_t kColumns = 6;

struct Table6 {
  std::string csv;
  std::vector<double> values;  ///< kColumns + 1 per row, the last one the class
};

// The first rows are shortened to the bound, some lack a value, and there are rows of no class.
Table6 table(std::size_t rows) {
  Table6 result{"a,b,c,d,e,f,class\n", {}};
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < kColumns; ++j) {
      const double x = std::sin(static_cast<double>(1 + i * 7 + j * 13 + i * j)) * (i % 11 == 0 ? 9.5 : 2.0);
      const bool missing = i % 17 == 3 && j == 2;
      result.values.push_back(missing ? kNaN : x);
      result.csv += missing ? std::string() : std::to_string(x);
      result.csv += ',';
    }
    result.values.push_back(static_cast<double>(i % 4));
    result.csv += std::to_string(i % 4) + "\n";
  }
  return result;
}

Directions directions(std::size_t k) {
  Matrix X = Matrix::Zero(kColumns, static_cast<Eigen::Index>(k));
  for (Eigen::Index j = 0; j < X.cols(); ++j) {
    X(j, j) = 0.8;
    X(j + 3, j) = -0.6;
  }
  return *Directions::quantise(X);
}

// What one process and what the ranks hold of the same file.
struct Both {
  std::unique_ptr<RowSums> one;
  std::unique_ptr<RowSums> many;
};

class Ranks : public testing::Test {
 protected:
  RowOptions options(const std::string& data) const {
    RowOptions rows;
    rows.data = data;
    rows.source.header = HeaderRule::kYes;
    rows.ranges = {"-10:10"};
    rows.row_bound = *RowBound::of(6);
    rows.missing = MissingPolicy::kZeroRow;
    rows.class_column = ClassColumn{"7", {"0", "1", "2"}, true, {}};
    return rows;
  }

  Both hold(const RowOptions& rows) {
    Observer nobody;
    const RunOptions run{.threads = 1};
    auto here = bound_rows(rows, run, 0, nobody);
    if (!here.ok()) throw std::runtime_error(here.error().message);
    const auto opened = open_data(rows);
    if (!opened.ok()) throw std::runtime_error(opened.error().message);
    auto shared = mpi::share_rows(rows, *opened, run, 0, nobody);
    if (!shared.ok()) throw std::runtime_error(shared.error().message);
    EXPECT_EQ(shared->diagnostics.rows, here->diagnostics().rows);
    EXPECT_EQ(shared->diagnostics.shortened, here->diagnostics().shortened);
    EXPECT_EQ(shared->diagnostics.zeroed, here->diagnostics().zeroed);
    return {sums_of(*std::move(here)), std::move(shared->sums)};
  }

  static void expect_same(const Both& both, const SumQuery& query) {
    const auto one = both.one->sum(query, Adjacency::kReplaceOne);
    const auto many = both.many->sum(query, Adjacency::kReplaceOne);
    ASSERT_TRUE(one.ok() && many.ok()) << (many.ok() ? "" : many.error().message);
    EXPECT_EQ(one->layout, many->layout);
    EXPECT_EQ(one->rows, many->rows);
    EXPECT_EQ(one->columns, many->columns);
    EXPECT_TRUE(one->values == many->values) << "query " << query.index();
    EXPECT_TRUE(std::any_of(one->values.begin(), one->values.end(), [](Int128 x) { return x != 0; }));
  }

  static void expect_all_same(const Both& both) {
    EXPECT_EQ(both.one->rows(), both.many->rows());
    expect_same(both, Gram{});
    expect_same(both, Apply{directions(2)});
    expect_same(both, ClassSums{1});
    expect_same(both, ClassCounts{1});
    expect_same(both, SquaredNorms{});
    expect_same(both, ProjectedGram{directions(2), 3.0});
    for (const auto& X : {std::optional<Directions>(), std::optional(directions(2))}) {
      const NormExceedance query{{0.5, 1, 2, 4, 5.5}, X};
      const auto one = both.one->counts(query);
      const auto many = both.many->counts(query);
      ASSERT_TRUE(one.ok() && many.ok());
      EXPECT_EQ(one->values, many->values);
      EXPECT_GT(one->values.front(), 0);
    }
    for (const FilterMode mode : {FilterMode::kShrink, FilterMode::kDrop}) {
      const FilteredApply query{directions(2), {0.5, 1, 2, 4, 8, 16}, mode};
      auto one = both.one->cells(query);
      auto many = both.many->cells(query);
      ASSERT_TRUE(one.ok() && many.ok());
      EXPECT_EQ(one->above().values, many->above().values);
      EXPECT_TRUE(one->sums() == many->sums());
    }
  }

  TempDir dir_;
};

TEST_F(Ranks, GiveTheSameIntegersAsOneProcess) {
  const Table6 rows = table(1001);
  const std::string shape = "(1001, 7)";
  const std::string plain = dir_.write_file("t.csv", rows.csv);
  const std::string packed = dir_.write_file("t.csv.gz", gzip(rows.csv));
  const std::string array = dir_.write_file("t.npy", npy("<f8", shape, bytes_of(rows.values)));
  const std::string hdf5 = write_hdf5(dir_.file("t.h5"), kColumns + 1, rows.values);
  for (const std::string& path : {plain, packed, array, hdf5}) {
    SCOPED_TRACE(path);
    const Both both = hold(options(path));
    expect_all_same(both);
  }
}

TEST_F(Ranks, GiveTheSameIntegersAfterRecentring) {
  const Table6 rows = table(700);
  Vector mean(kColumns);
  mean << 0.5, -0.25, 1, 0, 2, -1;
  for (const std::string& path :
       {dir_.write_file("t.csv", rows.csv), dir_.write_file("t.npy", npy("<f8", "(700, 7)", bytes_of(rows.values)))}) {
    SCOPED_TRACE(path);
    const Both both = hold(options(path));
    ASSERT_TRUE(both.one->recenter(mean, *RowBound::of(5)).ok());
    ASSERT_TRUE(both.many->recenter(mean, *RowBound::of(5)).ok());
    const LinearMap M =
        *LinearMap::quantise(Matrix::Ones(kColumns, kColumns) / 3 + Matrix::Identity(kColumns, kColumns));
    ASSERT_TRUE(both.one->remap(M, *RowBound::of(7)).ok());
    ASSERT_TRUE(both.many->remap(M, *RowBound::of(7)).ok());
    EXPECT_EQ(both.one->here().lattice().radius, both.many->here().lattice().radius);
    expect_all_same(both);
  }
}

// Rows of a person lie on several ranks: with counts of its own each rank would let them weigh one.
TEST_F(Ranks, GiveTheSameIntegersForPeople) {
  std::string text = "a,b,c,d,e,f,class,who\n";
  const Table6 rows = table(1001);
  std::size_t at = text.size() - 4;  // behind the header of the table, which is shorter by ",who"
  for (std::size_t i = 0; i < 1001; ++i) {
    const std::size_t end = rows.csv.find('\n', at);
    text += rows.csv.substr(at, end - at) + "," + (i % 23 == 5 ? "" : std::to_string(i * i % 97)) + "\n";
    at = end + 1;
  }
  for (const std::size_t least : {1, 20}) {
    RowOptions people = options(dir_.write_file("t.csv", text));
    people.person = PersonOptions{"who", least, {}, true};
    const Both both = hold(people);
    EXPECT_LT(both.one->rows(), 200U);
    expect_all_same(both);
  }
}

// 2,000 people with six rows each, four on rank 0 and one on each of the others, among people with one: of the six any
// two are kept. Each row has a column of its own, and one that all rows have alike.
TEST_F(Ranks, KeepAsManyRowsOfAPersonAsOneProcess) {
  constexpr std::size_t kPeople = 2000;
  std::vector<double> values;
  double others = kPeople;
  const auto add = [&](std::size_t own, double who) {
    for (std::size_t j = 0; j < 6; ++j) values.push_back(j == own ? 1 : 0);
    values.insert(values.end(), {1, who});
  };
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t p = 0; p < kPeople; ++p) add(i, static_cast<double>(p));
    for (std::size_t p = 0; i > 3 && p < 3 * kPeople; ++p) add(6, others++);
  }
  RowOptions rows;
  rows.data = dir_.write_file("t.npy", npy("<f8", "(24000, 8)", bytes_of(values)));
  rows.ranges = {"-1:1"};
  rows.center = Center::kNone;
  rows.row_bound = *RowBound::of(2);
  rows.person = PersonOptions{"8", 1, 2};
  const Both both = hold(rows);
  ASSERT_EQ(both.many->rows(), 7 * kPeople);
  const auto sums = [](RowSums& held) {
    const PrivateSum sum = *held.sum(ClassSums{1}, Adjacency::kReplaceOne);
    std::vector<double> all;
    for (const Int128& x : sum.values) all.push_back(std::ldexp(static_cast<double>(x), -sum.fraction) * sum.unit);
    return all;
  };
  const auto one = sums(*both.one), many = sums(*both.many);
  EXPECT_EQ(many[6], one[6]) << "what all weigh together";
  EXPECT_NEAR(many[6], 7 * kPeople, 1e-3);
  // Each of the six is one of the two with probability 1/3, and weighs 1/2: false alarms below 1e-8.
  const double deviation = 0.5 * std::sqrt(kPeople * 2.0 / 9);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(many[i], kPeople / 6.0, 6 * deviation) << i;
}

// A rank without rows owns people's ids like any other: it once told all others to keep every row, at the weight of
// two.
TEST_F(Ranks, KeepAsManyRowsOfAPersonWhereARankHasNone) {
  std::string text = "a,who\n";
  for (int i = 0; i < 200; ++i) text += "1," + std::to_string(i / 4) + "\n";
  RowOptions rows;
  rows.data = dir_.write_file("t.csv.gz", gzip(text));  // shared by blocks of 256 rows: rank 0 has all
  rows.source.header = HeaderRule::kYes;
  rows.ranges = {"-1:1"};
  rows.center = Center::kNone;
  for (const std::size_t most : {1, 2, 4}) {
    rows.person = PersonOptions{"who", 1, most};
    const Both both = hold(rows);
    EXPECT_EQ(both.many->here().rows(), 50 * most);
    expect_same(both, ClassSums{1});
    expect_same(both, ClassCounts{1});
    expect_same(both, Gram{});
  }
}

// One rank has so many people that their counts fill several pieces, and the others have one: what goes the same step
// round the ranks has different numbers of pieces.
TEST_F(Ranks, ExchangeMessagesOfDifferentLengths) {
  constexpr std::size_t kPeople = 150'000;
  std::vector<double> values;
  for (std::size_t i = 0; i < 3 * kPeople; ++i) {
    values.push_back(std::sin(static_cast<double>(i)));
    values.push_back(static_cast<double>(std::min(i, kPeople)));
  }
  RowOptions rows;
  rows.data = dir_.write_file("t.npy", npy("<f8", "(450000, 2)", bytes_of(values)));
  rows.ranges = {"-1:1"};
  rows.person = PersonOptions{"2"};
  const Both both = hold(rows);
  EXPECT_EQ(both.many->rows(), kPeople + 1);
  expect_same(both, Gram{});
}

TEST_F(Ranks, CountClasses) {
  RowOptions rows = options(dir_.write_file("t.csv", table(900).csv));
  rows.class_column->classes = {"0", "1", "2", "3"};
  rows.class_column->drop_unlisted = false;
  rows.missing = MissingPolicy::kError;
  rows.source.columns = {"a", "b", "d", "e", "f"};  // not c, which has gaps
  const Both both = hold(rows);
  expect_same(both, ClassSums{4});
  expect_same(both, ClassCounts{4});
}

TEST_F(Ranks, AddAllOf128Bits) {
  // 2^20 per row on the lattice, so 2^24 squares of 2^40: the low 64 bits are all zero
  const std::size_t n = std::size_t{1} << 24;
  RowOptions rows;
  rows.data = dir_.write_file("ones.npy", npy("|i1", "(" + std::to_string(n) + ", 1)", std::string(n, '\1')));
  rows.ranges = {"-1:1"};
  rows.row_bound = *RowBound::of(1);
  const Both both = hold(rows);
  const auto many = both.many->sum(SquaredNorms{}, Adjacency::kReplaceOne);
  ASSERT_TRUE(many.ok());
  EXPECT_TRUE(many->values.front() == Int128{1} << 64);
  expect_same(both, SquaredNorms{});
}

TEST_F(Ranks, SendWhatDoesNotFitIntoOnePiece) {
  constexpr std::size_t kWide = 3000;  // 300,000 entries: 1.2 MB as a query, 4.8 MB as an answer
  constexpr Eigen::Index kMany = 100;
  std::vector<double> values(31 * kWide);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
  RowOptions rows;
  rows.data = dir_.write_file("wide.npy", npy("<f8", "(31, 3000)", bytes_of(values)));
  rows.row_bound = *RowBound::of(100);
  const Both both = hold(rows);
  Matrix X = Matrix::Zero(kWide, kMany);
  for (Eigen::Index j = 0; j < kMany; ++j) X(static_cast<Eigen::Index>(kWide) - 1 - j, j) = 1;
  expect_same(both, Apply{*Directions::quantise(X)});
}

TEST_F(Ranks, HaveRowsOnceWhenTheyAreFewerThanTheRanks) {
  for (const std::size_t n : {1, 2, 5}) {
    SCOPED_TRACE(n);
    const Table6 rows = table(n);
    expect_all_same(hold(options(dir_.write_file("t.csv", rows.csv))));
    expect_all_same(
        hold(options(dir_.write_file("t.npy", npy("<f8", "(" + std::to_string(n) + ", 7)", bytes_of(rows.values))))));
  }
}

TEST_F(Ranks, ReadQuotedLineBreaksWhereverTheyAre) {
  // Long quoted notes that look like rows. Of seven, halves and thirds are cut inside one.
  std::string text = "a,b,note\n";
  for (int i = 0; i < 7; ++i) {
    text += std::to_string(i) + ",1,\"";
    for (int j = 0; j < 300; ++j) text += "\n8,8,x";
    text += "\"\n";
  }
  RowOptions rows;
  rows.data = dir_.write_file("t.csv", text);
  rows.source.header = HeaderRule::kYes;
  rows.source.columns = {"a", "b"};
  rows.ranges = {"-10:10"};
  const Both both = hold(rows);
  EXPECT_EQ(both.many->rows(), 7U);
  expect_same(both, Gram{});
}

TEST_F(Ranks, TellTheRowOfABadFieldAndHoldNothing) {
  std::string text = "a,b\n";
  for (int i = 0; i < 1000; ++i) text += i == 899 ? "1,tall\n" : "1,2\n";
  RowOptions rows;
  rows.data = dir_.write_file("t.csv", text);
  rows.source.header = HeaderRule::kYes;
  rows.ranges = {"-10:10"};
  Observer nobody;
  const auto opened = open_data(rows);
  ASSERT_TRUE(opened.ok());
  const auto shared = mpi::share_rows(rows, *opened, {.threads = 1}, 0, nobody);
  ASSERT_FALSE(shared.ok());
  EXPECT_EQ(shared.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(shared.error().message, testing::HasSubstr("rank "));
  EXPECT_THAT(shared.error().message, testing::HasSubstr("row 900 (line 901)"));
}

/// A charge that no ledger knows.
class Given final : public Reservation {
 public:
  explicit Given(PrivacyPlan plan) : plan_(std::move(plan)) {}
  const PrivacyPlan& plan() const override { return plan_; }
  bool in_ledger() const override { return false; }
  Status begin_answering() override { return {}; }
  void close_unused() override {}

 private:
  PrivacyPlan plan_;
};

// The sum that is kept is that of all ranks, and goes when rows move.
TEST_F(Ranks, GiveTheRestOfAPlanAsOneProcessDoes) {
  const PrivacyPlan plan(Adjacency::kReplaceOne,
                         {{"pilot", GaussianEvent{0.5}}, {"search", PureEvent{0.1}}, {"product", GaussianEvent{2}, 3}});
  for (const bool moved : {false, true}) {
    Both both = hold(options(dir_.write_file("t.csv", table(50).csv)));
    std::vector<Matrix> answers;
    for (auto* sums : {&both.one, &both.many}) {
      LocalOracle oracle(std::move(*sums), std::make_unique<Given>(plan), SecureRandom::insecure(7));
      ASSERT_TRUE(oracle.ask("pilot", Gram{}).ok());
      ASSERT_TRUE(!moved || oracle.recenter(Vector::Zero(kColumns), *RowBound::of(0x1p-8)).ok());
      const auto rest = oracle.ask_rest("gram", Gram{});
      ASSERT_TRUE(rest.ok()) << rest.error().message;
      EXPECT_TRUE(oracle.complete());
      answers.push_back(rest->value());
    }
    EXPECT_EQ(answers[0], answers[1]) << (moved ? "rows of one length" : "the same rows");
    EXPECT_TRUE(!moved || answers[0].cwiseAbs().maxCoeff() < 1) << "rows that are 2^-8 long, and their noise";
  }
}

TEST_F(Ranks, RefuseAQueryTogetherAndGoOn) {
  const Both both = hold(options(dir_.write_file("t.csv", table(50).csv)));
  ASSERT_TRUE(both.many->recenter(Vector::Zero(kColumns), *RowBound::of(6)).ok());
  EXPECT_FALSE(both.many->recenter(Vector::Zero(kColumns + 1), *RowBound::of(6)).ok());
  ASSERT_TRUE(both.one->recenter(Vector::Zero(kColumns), *RowBound::of(6)).ok());
  expect_same(both, Gram{});
}

}  // namespace
}  // namespace eigenveil::test

int main(int argc, char** argv) {
  return eigenveil::mpi::run([&] {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
  });
}
