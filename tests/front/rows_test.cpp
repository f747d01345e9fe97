// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "eigenveil/data/npz.hpp"
#include "eigenveil/eigenveil.hpp"
#include "tests/support/front_rows.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Spending kSeeded{.epsilon = 1, .delta = 1e-6, .ledger = Ledger::none(), .insecure_seed = 3};

/// Doubles from a pipe: they come once and in order, and nobody knows how many.
class PipeSource final : public RowSource {
 public:
  PipeSource(int descriptor, std::size_t columns) : in_(::fdopen(descriptor, "rb")) {
    for (std::size_t j = 1; j <= columns; ++j) names_.push_back(std::to_string(j));
  }
  ~PipeSource() override { std::fclose(in_); }
  PipeSource(const PipeSource&) = delete;
  PipeSource& operator=(const PipeSource&) = delete;
  const std::vector<std::string>& columns() const override { return names_; }
  std::optional<std::size_t> rows_announced() const override { return {}; }
  double progress() const override { return 0; }
  Status next(RawBatch& batch, std::size_t max_rows) override {
    batch.first_row = done_;
    batch.values.resize(max_rows * names_.size());
    batch.rows = std::fread(batch.values.data(), sizeof(double) * names_.size(), max_rows, in_);
    batch.values.resize(batch.rows * names_.size());
    done_ += batch.rows;
    return {};
  }

 private:
  std::FILE* in_;
  std::vector<std::string> names_;
  std::size_t done_ = 0;
};

// Column 6 says whose a row is.
Matrix with_ids(const Matrix& X, Eigen::Index each) {
  Matrix all(X.rows(), 6);
  all.leftCols(5) = X.leftCols(5);
  for (Eigen::Index i = 0; i < X.rows(); ++i) all(i, 5) = static_cast<double>(i / each);
  return all;
}

TEST(Rows, OfPeopleAreProtectedTogether) {
  const Matrix X = test::front_rows().leftCols(5);
  const Pca::Options plain{.components = 2, .row_bound = 2};
  const auto of_people = [&](const PersonOptions& person) {
    Pca::Options options = plain;
    options.person = person;
    return options;
  };
  const auto without = pca(X, plain, kSeeded);
  const auto own = pca(with_ids(X, 1), of_people({"6"}), kSeeded);
  ASSERT_TRUE(own.ok()) << own.error().message;
  EXPECT_EQ(own->components, without->components) << "with one row each it is the same release";
  EXPECT_EQ(own->rows, 3000);

  const auto three = pca(with_ids(X, 3), of_people({"6"}), kSeeded);
  ASSERT_TRUE(three.ok()) << three.error().message;
  EXPECT_EQ(three->rows, 1000);
  EXPECT_THAT(three->manifest, HasSubstr("Every person counts alike"));
  const auto weighed = pca(with_ids(X, 3), of_people({.column = "6", .least_rows = 6}), kSeeded);
  ASSERT_TRUE(weighed.ok()) << weighed.error().message;
  EXPECT_NEAR(*weighed->rows, 500, 300) << "3000 rows of 1/6 each, told with noise";
  const auto kept = pca(with_ids(X, 3), of_people({.column = "6", .most_rows = 1}), kSeeded);
  EXPECT_EQ(kept->rows, 1000);
  EXPECT_NE(kept->components, three->components);

  Matrix missing = with_ids(X, 3);
  missing(7, 5) = std::nan("");
  const auto refused = pca(missing, of_people({"6"}), kSeeded);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("row 8"), HasSubstr("the person's id is missing")));
  EXPECT_TRUE(pca(missing, of_people({.column = "6", .missing_is_own = true}), kSeeded).ok());
  EXPECT_FALSE(pca(X, of_people({"6"}), kSeeded).ok()) << "there is no such column";
  Pca::Options feature = of_people({"6"});
  feature.columns = {"1", "6"};
  EXPECT_THAT(pca(with_ids(X, 3), feature, kSeeded).error().message, HasSubstr("cannot be a feature too"));

  const test::TempDir folder;
  Ledger ledger = *Ledger::open(folder.file("ledger.db"));
  ASSERT_TRUE(ledger.create({.name = "rows", .limit = DatasetBudget::Limit{*Epsilon::of(5), *Delta::of(1e-5)}}).ok());
  Spending paying = kSeeded;
  paying.ledger = Ledger::at(folder.file("ledger.db"), "rows");
  EXPECT_EQ(pca(with_ids(X, 3), of_people({"6"}), paying).error().code, ErrorCode::kBudgetRefused);
}

// A float is a whole number beyond 2^24 as well, and not the one that somebody wrote.
TEST(Rows, SayWhoseTheyAreInNumbersThatWereNotRounded) {
  const Matrix ids = with_ids(test::front_rows(), 3);
  const Pca::Options options{.components = 2, .row_bound = 2, .person = PersonOptions{"6"}};
  const auto beyond = [&](auto scalar, double first) {
    Matrix all = ids;
    all.col(5).array() += first;
    return pca(all.cast<decltype(scalar)>().eval(), options, kSeeded);
  };
  EXPECT_TRUE(beyond(float{}, 0x1p24 - 1000).ok());
  EXPECT_THAT(beyond(float{}, 0x1p24 - 999).error().message, HasSubstr("no integer below 2^24"));
  EXPECT_TRUE(beyond(Eigen::half{}, 1048).ok());
  EXPECT_THAT(beyond(Eigen::half{}, 1049).error().message, HasSubstr("no integer below 2^11"));
  EXPECT_TRUE(beyond(double{}, 0x1p24).ok());
  // Whole numbers of any width; beyond 2^53 they would be rounded here.
  Eigen::Matrix<std::int64_t, Eigen::Dynamic, Eigen::Dynamic> whole = ids.cast<std::int64_t>();
  whole.col(5).array() += std::int64_t{1} << 24;
  EXPECT_TRUE(pca(whole, options, kSeeded).ok());
  whole.col(5).array() += std::int64_t{1} << 53;
  EXPECT_FALSE(pca(whole, options, kSeeded).ok());
}

TEST(Rows, ThatAreEachTheirOwnPersonsAreRemarkedUponAndReleased) {
  class Hearing final : public Observer {
   public:
    void remark(std::string_view words) override { heard += words; }
    std::string heard;
  } hearing;
  const Matrix X = test::front_rows().leftCols(5);
  Pca::Options options{.components = 2, .row_bound = 2, .person = PersonOptions{"6"}};
  options.observer = &hearing;
  EXPECT_TRUE(pca(with_ids(X, 3), options, kSeeded).ok());
  EXPECT_EQ(hearing.heard, "");
  const auto made = pca(with_ids(X, 1), options, kSeeded);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_THAT(hearing.heard, HasSubstr("every row is its own person"));
  EXPECT_THAT(made->manifest, Not(HasSubstr("own person")));
}

// Views in memory leave the list of people as the only file that a ledger can know.
TEST(Rows, InMemoryBelongToThePeopleThatTheLedgerKnows) {
  const test::TempDir folder;
  std::filesystem::create_directory(folder.file("other"));
  const auto list = [&](const std::string& name, Eigen::Index each) {
    std::ofstream out(folder.file(name));
    for (Eigen::Index i = 0; i < 3000; ++i) out << i / each << "\n";
    return folder.file(name);
  };
  const std::string own = list("who.txt", 3), other = list("other/who.txt", 1);
  Ledger ledger = *Ledger::open(folder.file("ledger.db"));
  ASSERT_TRUE(
      ledger
          .create({.name = "visits", .limit = DatasetBudget::Limit{*Epsilon::of(9), *Delta::of(1e-5)}, .person = "who"})
          .ok());
  Spending paying = kSeeded;
  paying.ledger = Ledger::at(folder.file("ledger.db"), "visits");
  const Matrix X = test::front_rows();
  const auto made = [&](const std::string& people) {
    return clip(X.leftCols(3), X.middleCols(2, 3), {.dim = 1, .person = PersonOptions{people}}, paying);
  };
  const auto first = made(own);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->rows, 1000);
  const auto refused = made(other);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBudgetRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("is not the list of people that data set 'visits' knows"));
  EXPECT_TRUE(made(own).ok());
}

TEST(Rows, OfEveryPlaceGiveTheSameRelease) {
  const Matrix X = test::front_rows().leftCols(5);
  const RowMajorMatrix by_row = X;
  const test::TempDir folder;
  ASSERT_TRUE(write_npz(folder.file("x.npz"), {{"rows", X}}, {}).ok());
  const Pca::Options options{.components = 2, .row_bound = 2};
  const auto expected = pca(X, options, kSeeded);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  EXPECT_EQ(pca(by_row, options, kSeeded)->components, expected->components);
  EXPECT_EQ(pca(X.array() + 0.0, options, kSeeded)->components, expected->components);
  EXPECT_EQ(pca(by_row * Matrix::Identity(5, 5), options, kSeeded)->components, expected->components);
  EXPECT_EQ(pca(test::front_rows().leftCols(5), options, kSeeded)->components, expected->components);
  EXPECT_EQ(pca(folder.file("x.npz"), options, kSeeded)->components, expected->components);
  EXPECT_EQ(pca(folder.path() / "x.npz", options, kSeeded)->components, expected->components);

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    const auto* bytes = reinterpret_cast<const char*>(by_row.data());
    std::size_t left = static_cast<std::size_t>(by_row.size()) * sizeof(double);
    while (left > 0) {
      const ssize_t written = ::write(ends[1], bytes, left);
      if (written <= 0) break;
      bytes += written;
      left -= static_cast<std::size_t>(written);
    }
    ::close(ends[1]);
  });
  const auto piped = pca(std::make_unique<PipeSource>(ends[0], 5), options, kSeeded);
  writer.join();
  ASSERT_TRUE(piped.ok()) << piped.error().message;
  EXPECT_EQ(piped->components, expected->components);
}

TEST(Rows, OfIntegersAreNumbers) {
  const Eigen::MatrixXi counts = (test::front_rows().leftCols(3) * 10).array().round().matrix().cast<int>();
  const Pca::Options options{.components = 1, .row_bound = 30};
  const auto whole = pca(counts, options, kSeeded);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ(whole->components, pca(counts.cast<double>(), options, kSeeded)->components);
}

TEST(Rows, HaveTheNamesThatAreGiven) {
  const Matrix X = test::front_rows().leftCols(3);
  const auto named = pca({X, {"age", "mass", "height"}},
                         {.components = 1, .ranges = {{-2, 2}, {-1, 1, "mass"}}, .columns = {"mass", "age"}}, kSeeded);
  ASSERT_TRUE(named.ok()) << named.error().message;
  EXPECT_THAT(named->manifest, AllOf(HasSubstr("\"mass\""), HasSubstr("\"age\"")));
  const auto unknown =
      pca({X, {"age", "mass", "height"}}, {.components = 1, .row_bound = 1, .columns = {"weight"}}, kSeeded);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, AllOf(HasSubstr("rows in memory"), HasSubstr("weight"), HasSubstr("age")));
  const auto short_list = pca({X, {"age", "mass"}}, {.components = 1, .row_bound = 1}, kSeeded);
  ASSERT_FALSE(short_list.ok());
  EXPECT_THAT(short_list.error().message, HasSubstr("2 names for 3 columns"));
}

TEST(Rows, WithAMissingValueAreNamedOrCountAsZero) {
  Matrix X = test::front_rows().leftCols(3);
  X(4, 1) = std::numeric_limits<double>::quiet_NaN();
  const auto refused = pca(X, {.components = 1, .row_bound = 2}, kSeeded);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("rows in memory, row 5"), HasSubstr("'2'")));
  Matrix zero = X;
  zero.row(4).setZero();
  // About zero: about a mean, what was dropped stays zero and a row of zeros does not.
  const auto dropped =
      pca(X, {.components = 1, .row_bound = 2, .center = Center::kNone, .missing = MissingPolicy::kZeroRow}, kSeeded);
  ASSERT_TRUE(dropped.ok()) << dropped.error().message;
  const auto expected = pca(zero, {.components = 1, .row_bound = 2, .center = Center::kNone}, kSeeded);
  EXPECT_EQ(dropped->components, expected->components);
}

TEST(Rows, OfASourceAreReadOnce) {
  const Matrix X = test::front_rows().leftCols(3);
  const Rows rows(X);
  ASSERT_TRUE(pca(rows, {.components = 1, .row_bound = 2}, kSeeded).ok());
  const auto again = pca(rows, {.components = 1, .row_bound = 2}, kSeeded);
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message, HasSubstr("read once"));
}

/// Two hundred rows, and then an error or an exception; or rows that are too long, and hold what is no number.
class Faulty final : public RowSource {
 public:
  enum class Fault : std::uint8_t { kError, kThrows, kInfinite };
  explicit Faulty(Fault fault) : fault_(fault) {}
  const std::vector<std::string>& columns() const override { return names_; }
  std::optional<std::size_t> rows_announced() const override { return 7; }  // there are others
  double progress() const override { return -1; }
  Status next(RawBatch& batch, std::size_t max_rows) override {
    if (read_ >= 200 && fault_ == Fault::kError) return bad_input("the pipe broke");
    if (read_ >= 200 && fault_ == Fault::kThrows) throw std::runtime_error("the pipe broke");
    batch.first_row = 3;
    batch.rows = read_ >= 200 ? 0 : std::min<std::size_t>(max_rows, 50);
    const double value = fault_ == Fault::kInfinite ? std::numeric_limits<double>::infinity() : 1e300;
    batch.values.assign(batch.rows * names_.size(), value);
    read_ += batch.rows;
    return {};
  }

 private:
  Fault fault_;
  std::size_t read_ = 0;
  std::vector<std::string> names_ = {"1", "2"};
};

TEST(Rows, ThatFailHalfwayCostNothing) {
  const test::TempDir folder;
  auto ledger = Ledger::open(folder.file("ledger.db"));
  ASSERT_TRUE(ledger.ok()) << ledger.error().message;
  ASSERT_TRUE(ledger->create({"d", DatasetBudget::Limit{*Epsilon::of(1), *Delta::of(1e-6)}}).ok());
  const Spending spending{.epsilon = 1, .delta = 1e-6, .ledger = Ledger::at(folder.file("ledger.db"), "d")};
  const Pca::Options options{.components = 1, .row_bound = 2};
  EXPECT_FALSE(pca(std::make_unique<Faulty>(Faulty::Fault::kError), options, spending).ok());
  EXPECT_FALSE(pca(std::make_unique<Faulty>(Faulty::Fault::kInfinite), options, spending).ok());
  EXPECT_THROW((void)pca(std::make_unique<Faulty>(Faulty::Fault::kThrows), options, spending), std::runtime_error);
  EXPECT_TRUE(ledger->show("d")->reservations.empty());
}

TEST(Rows, ThatAreNotThereAreRefused) {
  EXPECT_THAT(pca("", {.components = 1, .row_bound = 2}, kSeeded).error().message, HasSubstr("path of the rows"));
  EXPECT_FALSE(pca(std::unique_ptr<RowSource>(), {.components = 1, .row_bound = 2}, kSeeded).ok());
  EXPECT_THAT(pca(Matrix(0, 3), {.components = 1, .row_bound = 2}, kSeeded).error().message, HasSubstr("no rows"));
  Spending hidden = kSeeded;
  hidden.adjacency = Adjacency::kAddRemoveOne;
  EXPECT_TRUE(pca(Matrix(0, 3), {.components = 1, .row_bound = 2}, hidden).ok()) << "their number is private";
  EXPECT_FALSE(pca(Matrix(3, 0), {.components = 1, .row_bound = 2}, kSeeded).ok());
}

}  // namespace
}  // namespace eigenveil
