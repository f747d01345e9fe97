// SPDX-License-Identifier: Apache-2.0
// What is refused names the option as a C++ program writes it; what is spent is in the ledger that was chosen.
#include "eigenveil/front/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "eigenveil/data/sha256.hpp"
#include "eigenveil/eigenveil.hpp"
#include "tests/support/front_rows.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const double kNan = std::numeric_limits<double>::quiet_NaN();

class FrontOptions : public ::testing::Test {
 protected:
  FrontOptions() : X_(test::front_rows(1000)) {}
  static Spending spending() { return {.epsilon = 1, .delta = 1e-6, .ledger = Ledger::none(), .insecure_seed = 1}; }
  template <class Kind>
  static void expect_refused(const Result<Kind>& result, const std::string& option) {
    ASSERT_FALSE(result.ok()) << option;
    EXPECT_EQ(result.error().code, ErrorCode::kUsage) << result.error().message;
    EXPECT_THAT(result.error().message, AllOf(HasSubstr(option), Not(HasSubstr("--"))));
  }
  Matrix X_;
};

TEST_F(FrontOptions, OfRowsAreNamed) {
  const Matrix X = X_.leftCols(3);
  const auto refused = [&](const Pca::Options& options, const std::string& option) {
    expect_refused(pca(X, options, spending()), option);
  };
  refused({.components = 1}, "give `ranges`");
  refused({.components = 1, .row_bound = -1}, "`row_bound`");
  refused({.components = 1, .row_bound = kNan}, "`row_bound`");
  refused({.components = 1, .ranges = {{1, 0}}}, "`ranges` 1:0");
  refused({.components = 1, .ranges = {{0, kNan}}}, "`ranges` 0:nan");
  refused({.components = 1, .ranges = {{0, 1, "age"}}}, "`ranges` age=0:1");
  refused({.components = 1, .ranges = {{0, 1}}, .schema = "s.toml"}, "`schema` and `ranges`");
  refused({.components = 1, .row_bound = 1, .header = HeaderRule::kNo}, "header");
  refused({.components = 1, .row_bound = 1, .delimiter = ';'}, "delimiter");
  refused({.components = 1, .row_bound = 1, .fields = 3}, "fields");
  refused({.components = 1, .row_bound = 1, .member = "a"}, "member");
  refused({.components = 1, .row_bound = 1, .memory = 1000}, "memory");
}

TEST_F(FrontOptions, OfEstimatorsAreNamed) {
  const Matrix X = X_.leftCols(3);
  expect_refused(pca(X, {.components = 0, .row_bound = 1}, spending()), "components");
  expect_refused(pca(X, {.components = -2, .row_bound = 1}, spending()), "`components` must be a whole number from 1");
  expect_refused(pca(X, {.components = 1, .row_bound = 1, .sparsity = -1}, spending()), "sparsity");
  expect_refused(pca(X, {.components = 1, .row_bound = 1, .method = PcaMethod::kPower, .rounds = 0}, spending()),
                 "rounds");
  expect_refused(
      pca(X, {.components = 1, .row_bound = 1, .method = PcaMethod::kAdaptivePower, .grid_ratio = kNan}, spending()),
      "grid_ratio");
  expect_refused(covariance(X, {.row_bound = 1, .method = PcaMethod::kPower}, spending()), "method");
  expect_refused(covariance(X, {.row_bound = 1, .method = PcaMethod::kSpiked, .noise_variance = -1.0}, spending()),
                 "noise_variance");
  expect_refused(cca(X, {.components = 1, .x_columns = {"1"}, .y_columns = {}, .row_bound = 1}, spending()),
                 "`x_columns` and `y_columns`");
  expect_refused(
      cca(X, {.components = 1, .x_columns = {"1"}, .y_columns = {"2"}, .row_bound = 1, .step = -1.0}, spending()),
      "step");
  expect_refused(fda(X_, {.components = 1, .label = "6", .row_bound = 1}, spending()), "classes");
  expect_refused(fda(X_, {.components = 1, .label = "", .row_bound = 1}, spending()), "label");
  expect_refused(sir(X_, {.components = 1, .response = "7", .row_bound = 1}, spending()), "response_range");
  expect_refused(sir(X_, {.components = 1, .response = "7", .response_range = {{1, kNan}}, .row_bound = 1}, spending()),
                 "response_range");
  expect_refused(
      sir(X_, {.components = 1, .response = "7", .response_range = {{0, 1}}, .slices = 1, .row_bound = 1}, spending()),
      "slices");
  expect_refused(gep(Matrix::Identity(3, 3), Matrix::Identity(3, 3),
                     {.components = 1, .sensitivity_a = kNan, .sensitivity_b = 1, .rows = 5}, spending()),
                 "sensitivity");
  expect_refused(clip(X, X, {.temperature = kNan}, spending()), "temperature");
  expect_refused(clip(X, X, {.dim = 9}, spending()), "dim");
  expect_refused(clip(X, X, {.method = ClipMethod::kBatch}, spending()), "adjacency");
}

TEST_F(FrontOptions, OfSpendingAreNamedBeforeARowIsRead) {
  const auto refused = [&](const Spending& spending, const std::string& option) {
    const Rows rows(X_);
    expect_refused(pca(rows, {.components = 1, .row_bound = 1}, spending), option);
    EXPECT_TRUE(rows.given()->take({}).ok()) << "the rows were touched";
  };
  refused({.epsilon = 0, .delta = 1e-6, .ledger = Ledger::none()}, "`epsilon`");
  refused({.epsilon = kNan, .delta = 1e-6, .ledger = Ledger::none()}, "`epsilon`");
  refused({.epsilon = 1, .delta = 1, .ledger = Ledger::none()}, "`delta`");
  refused({.epsilon = 1, .delta = 1e-6, .ledger = Ledger::at("", "patients")}, "ledger");
}

class FrontLedger : public FrontOptions {
 protected:
  Result<Pca> release(const std::string& dataset) {
    return pca(X_, {.components = 1, .row_bound = 1},
               {.epsilon = 1, .delta = 1e-6, .ledger = Ledger::at(folder_.file("ledger.db"), dataset)});
  }
  Ledger ledger() { return *Ledger::open(folder_.file("ledger.db")); }
  test::TempDir folder_;
};

TEST_F(FrontLedger, ANamedBudgetPaysForRowsInMemoryAndIsKept) {
  ASSERT_TRUE(ledger().create({"patients", DatasetBudget::Limit{*Epsilon::of(1.2), *Delta::of(1e-6)}}).ok());
  const auto paid = release("patients");
  ASSERT_TRUE(paid.ok()) << paid.error().message;
  EXPECT_TRUE(paid->is_private);
  EXPECT_THAT(paid->manifest, AllOf(HasSubstr("\"limited\": true"), HasSubstr("\"dataset\": \"patients\"")));
  EXPECT_THAT(paid->warnings, Not(::testing::Contains(HasSubstr("outside any budget"))));
  EXPECT_EQ(ledger().show("patients")->reservations.size(), 1U);
  const auto refused = release("patients");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBudgetRefused);
  EXPECT_EQ(ledger().show("patients")->reservations.size(), 1U);
}

TEST_F(FrontLedger, ADataSetThatIsNotThereIsRefused) {
  const auto refused = release("nobody");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("there is no ledger at"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "a mistyped path is no new ledger";
  ASSERT_TRUE(ledger().create({"patients", DatasetBudget::Limit{*Epsilon::of(1.2), *Delta::of(1e-6)}}).ok());
  EXPECT_FALSE(release("nobody").ok());
}

// Neither with a data set nor without one: then it would be a ledger without limits.
TEST_F(FrontLedger, AMistypedPathIsNoNewLedger) {
  for (const char* dataset : {"patients", ""}) {
    const auto refused = release(dataset);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(refused.error().message, HasSubstr("there is no ledger at"));
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  }
}

TEST_F(FrontLedger, RowsInMemoryWithoutADataSetAreRecordedUnderOneName) {
  ASSERT_TRUE(ledger().list().ok());
  const auto recorded = release("");
  ASSERT_TRUE(recorded.ok()) << recorded.error().message;
  EXPECT_THAT(recorded->warnings, ::testing::Contains(HasSubstr("outside any budget")));
  EXPECT_EQ(ledger().show("rows in memory (replace-one)")->reservations.size(), 1U);
}

// Whatever became of the ledger's place meanwhile: another one there has an entry of the same number.
TEST_F(FrontLedger, KnowsTheFileThatAReleaseWasSavedAs) {
  const DatasetBudget patients{"patients", DatasetBudget::Limit{*Epsilon::of(3), *Delta::of(1e-6)}};
  const auto recorded = [&] { return ledger().show("patients")->reservations[0].model; };
  ASSERT_TRUE(ledger().create(patients).ok());
  const auto made = release("patients");
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(recorded(), "");
  ASSERT_TRUE(made->save(folder_.file("a.npz")).ok());
  EXPECT_EQ(recorded(), *sha256_of_files({folder_.file("a.npz")}));
  ASSERT_TRUE(AnyModel(*made).save(folder_.file("b.npz")).ok());
  EXPECT_EQ(recorded(), *sha256_of_files({folder_.file("b.npz")})) << "the same bytes";

  for (const std::string ending : {"", ".key", ".anchor"}) std::filesystem::remove(folder_.file("ledger.db" + ending));
  EXPECT_TRUE(made->save(folder_.file("c.npz")).ok()) << "without a ledger only the note is missing";
  EXPECT_FALSE(std::filesystem::exists(folder_.file("ledger.db")));
  ASSERT_TRUE(ledger().create(patients).ok());
  ASSERT_TRUE(release("patients").ok());
  ASSERT_TRUE(made->save(folder_.file("d.npz")).ok());
  EXPECT_EQ(recorded(), "");
}

TEST_F(FrontLedger, ARefusalCostsNothing) {
  const auto refused = pca(X_, {.components = 99, .row_bound = 1},
                           {.epsilon = 1, .delta = 1e-6, .ledger = Ledger::at(folder_.file("ledger.db"), "")});
  EXPECT_FALSE(refused.ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.file("ledger.db")));
}

}  // namespace
}  // namespace eigenveil
