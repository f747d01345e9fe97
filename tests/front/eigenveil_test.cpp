// SPDX-License-Identifier: Apache-2.0
// Every call from C++ gives the arrays that the program writes for the same rows, options and seed, byte for byte.
#include "eigenveil/eigenveil.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "eigenveil/data/npz.hpp"
#include "eigenveil/release/model.hpp"
#include "tests/support/front_rows.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil {
namespace {

const Spending kSeeded{.epsilon = 2, .delta = 1e-6, .ledger = Ledger::none(), .insecure_seed = 7};

class SameAsTheProgram : public ::testing::Test {
 protected:
  SameAsTheProgram() : rows_(test::front_rows()) {}

  std::string file(const std::string& name, const Matrix& values) const {
    EXPECT_TRUE(write_npz(folder_.file(name), {{"rows", values}}, {}).ok());
    return folder_.file(name);
  }
  Model of_program(const std::string& command) const {
    const std::string out = folder_.file("program.npz");
    const std::string line = std::string(EIGENVEIL_PROGRAM) + " " + command + " --epsilon 2 --delta 1e-6 --no-ledger " +
                             "--insecure-seed 7 --quiet --json --force --out " + out + " > /dev/null";
    EXPECT_EQ(std::system(line.c_str()), 0) << line;
    return *read_model(out);
  }
  template <class Kind>
  void expect_same(const Result<Kind>& called, const std::string& command) {
    ASSERT_TRUE(called.ok()) << called.error().message;
    ASSERT_TRUE(called->save(folder_.file("called.npz")).ok());
    const Model ours = *read_model(folder_.file("called.npz")), theirs = of_program(command);
    ASSERT_EQ(ours.arrays.size(), theirs.arrays.size());
    for (std::size_t i = 0; i < ours.arrays.size(); ++i) {
      EXPECT_EQ(ours.arrays[i].name, theirs.arrays[i].name);
      EXPECT_EQ(ours.arrays[i].values, theirs.arrays[i].values) << ours.arrays[i].name;
    }
    EXPECT_EQ(ours.manifest, theirs.manifest);
    EXPECT_FALSE(called->is_private);
    EXPECT_GT(called->deviation, 0);
  }

  test::TempDir folder_;
  Matrix rows_;  ///< columns 1-5 normal, 6 a class, 7 a response
};

TEST_F(SameAsTheProgram, Pca) {
  const Matrix X = rows_.leftCols(5);
  const std::string data = file("x.npz", X);
  expect_same(pca(X, {.components = 2, .row_bound = 3, .center = Center::kPrivate}, kSeeded),
              "pca " + data + " --components 2 --row-bound 3 --center private");
  expect_same(pca(data, {.components = 2, .row_bound = 3, .method = PcaMethod::kAdaptivePower, .rounds = 4}, kSeeded),
              "pca " + data + " --components 2 --row-bound 3 --method adaptive-power --rounds 4");
  expect_same(pca(X, {.components = 1, .ranges = {{-3, 3}, {-1, 1.5, "2"}}, .method = {}}, kSeeded),
              "pca " + data + " --components 1 --range -3:3 --range 2=-1:1.5 --method auto");
  expect_same(
      pca(rows_, {.components = 1, .find_row_bound = true, .ranges = {{-3, 3}}, .columns = {"1-3", "5"}}, kSeeded),
      "pca " + file("all.npz", rows_) + " --components 1 --row-bound auto --range -3:3 --columns 1-3,5");
}

TEST_F(SameAsTheProgram, Covariance) {
  const Matrix X = rows_.leftCols(5);
  expect_same(covariance(X, {.row_bound = 3}, kSeeded), "covariance " + file("x.npz", X) + " --row-bound 3");
  expect_same(covariance(X, {.row_bound = 3, .method = PcaMethod::kSpiked, .dense = true, .rank = 2}, kSeeded),
              "covariance " + file("x.npz", X) + " --row-bound 3 --method spiked --dense --rank 2");
}

TEST_F(SameAsTheProgram, Regress) {
  const Matrix X = rows_.leftCols(5);
  const std::string data = file("x.npz", X);
  expect_same(regress(X, {.target = "2", .ranges = {{-3, 3}}}, kSeeded),
              "regress " + data + " --target 2 --range -3:3");
  expect_same(regress(X, {.target = "5", .ridge = 0.1, .ranges = {{-3, 3}}, .columns = {"1-3"}}, kSeeded),
              "regress " + data + " --target 5 --ridge 0.1 --columns 1-3 --range -3:3");
  const auto released = covariance(X, {.ranges = {{-3, 3}}, .center = Center::kPrivate}, kSeeded);
  ASSERT_TRUE(released.ok()) << released.error().message;
  const auto found = released->regress("3");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->coefficients.size(), 4);
  EXPECT_EQ(found->intervals.size(), 5U);
  EXPECT_EQ(found->target, "3");
  const auto predicted = found->predict(X(Eigen::all, std::vector<int>{0, 1, 3, 4}));
  ASSERT_TRUE(predicted.ok()) << predicted.error().message;
  EXPECT_NEAR((*predicted)[0], found->intercept + found->coefficients.dot(X(0, std::vector<int>{0, 1, 3, 4})), 1e-9);
}

TEST_F(SameAsTheProgram, Cca) {
  expect_same(
      cca(rows_, {.components = 1, .x_columns = {"1-2"}, .y_columns = {"3", "4", "5"}, .row_bound = 3}, kSeeded),
      "cca " + file("x.npz", rows_) + " --components 1 --x-columns 1-2 --y-columns 3,4,5 --row-bound 3");
  expect_same(cca(rows_,
                  {.components = 1,
                   .x_columns = {"1-2"},
                   .y_columns = {"3-5"},
                   .row_bound = 3,
                   .noise = GepNoise::kEachStep,
                   .rounds = 4},
                  kSeeded),
              "cca " + file("x.npz", rows_) +
                  " --components 1 --x-columns 1-2 --y-columns 3-5 --row-bound 3 --noise each-step --rounds 4");
}

TEST_F(SameAsTheProgram, Fda) {
  const Matrix X = rows_.leftCols(6);
  expect_same(fda(X, {.components = 1, .label = "6", .classes = {"0", "1"}, .row_bound = 3}, kSeeded),
              "fda " + file("x.npz", X) + " --components 1 --label 6 --classes '0|1' --row-bound 3");
}

TEST_F(SameAsTheProgram, Sir) {
  Matrix X(rows_.rows(), 6);
  X << rows_.leftCols(5), rows_.col(6);
  const std::string begin = "sir " + file("x.npz", X) + " --components 1 --response 6 --row-bound 3 ";
  expect_same(sir(X, {.components = 1, .response = "6", .cuts = {-0.5, 0.5}, .row_bound = 3}, kSeeded),
              begin + "--cuts=-0.5,0.5");
  expect_same(sir(X,
                  {.components = 1,
                   .response = "6",
                   .response_range = {{-3, 3}},
                   .slices = 4,
                   .private_slices = true,
                   .row_bound = 3},
                  kSeeded),
              begin + "--response-range=-3:3 --slices private:4");
}

TEST_F(SameAsTheProgram, Gep) {
  const Matrix X = rows_.leftCols(5);
  const Matrix A = X.transpose() * X / static_cast<double>(X.rows()), B = Matrix::Identity(5, 5) + 0.1 * A;
  expect_same(gep(A, B, {.components = 2, .sensitivity_a = 1e-3, .sensitivity_b = 1e-4, .rows = X.rows()}, kSeeded),
              "gep --matrix-a " + file("a.npz", A) + " --matrix-b " + file("b.npz", B) +
                  " --components 2 --sensitivity-a 1e-3 --sensitivity-b 1e-4 --rows " + std::to_string(X.rows()));
}

TEST_F(SameAsTheProgram, People) {
  Matrix X = rows_.leftCols(6);
  for (Eigen::Index i = 0; i < X.rows(); ++i) X(i, 5) = static_cast<double>(i % 500);
  const std::string begin = "pca " + file("p.npz", X) + " --components 2 --row-bound 2 --person 6 ";
  const Pca::Options options{.components = 2, .row_bound = 2, .person = PersonOptions{"6"}};
  expect_same(pca(X, options, kSeeded), begin);
  Pca::Options weighed = options;
  weighed.person = PersonOptions{.column = "6", .least_rows = 20, .most_rows = 4, .missing_is_own = true};
  expect_same(pca(X, weighed, kSeeded), begin + "--person-weight rows:20 --max-rows-per-person 4 --missing-person own");

  const Matrix A = X.leftCols(5).transpose() * X.leftCols(5) / 3000.0, B = Matrix::Identity(5, 5) + 0.1 * A;
  expect_same(
      gep(A, B, {.components = 2, .sensitivity_a = 1e-3, .sensitivity_b = 1e-4, .rows = 500, .person = "id"}, kSeeded),
      "gep --matrix-a " + file("a.npz", A) + " --matrix-b " + file("b.npz", B) +
          " --components 2 --sensitivity-a 1e-3 --sensitivity-b 1e-4 --people 500 --person id");

  const Matrix first = X.leftCols(3), second = X.middleCols(2, 3);
  const std::string ids = folder_.file("ids.txt");
  std::ofstream(ids) << [&] {
    std::string lines;
    for (Eigen::Index i = 0; i < X.rows(); ++i) lines += std::to_string(i % 500) + "\n";
    return lines;
  }();
  expect_same(clip(first, second, {.dim = 2, .person = PersonOptions{.column = ids, .least_rows = 20}}, kSeeded),
              "clip fit --x " + file("x.npz", first) + " --y " + file("y.npz", second) + " --dim 2 --person " + ids +
                  " --person-weight rows:20");
}

TEST_F(SameAsTheProgram, Clip) {
  const Matrix X = rows_.leftCols(3), Y = rows_.middleCols(2, 3);
  const std::string files = "--x " + file("x.npz", X) + " --y " + file("y.npz", Y);
  expect_same(clip(X, Y, {.dim = 2}, kSeeded), "clip fit " + files + " --dim 2");
  Spending hidden = kSeeded;
  hidden.adjacency = Adjacency::kAddRemoveOne;
  expect_same(clip(X, Y, {.dim = 2, .method = ClipMethod::kBatch, .sample_rate = 0.05, .steps = 20}, hidden),
              "clip fit " + files + " --dim 2 --method batch --sample-rate 0.05 --steps 20");
}

}  // namespace
}  // namespace eigenveil
