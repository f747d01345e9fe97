// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/published.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "eigenveil/data/npz.hpp"
#include "eigenveil/eigenveil.hpp"
#include "tests/support/front_rows.hpp"
#include "tests/support/temp_dir.hpp"

namespace eigenveil {
namespace {

using ::testing::HasSubstr;

Spending seeded(std::uint64_t seed, double epsilon = 2) {
  return {.epsilon = epsilon, .delta = 1e-6, .ledger = Ledger::none(), .insecure_seed = seed};
}

// Released second moments less the exact ones are the noise: its spread off the diagonal is what `deviation` says.
TEST(Published, DeviationIsThatOfTheNoise) {
  const Eigen::Index n = 4000, d = 40;
  const Matrix X = Matrix::Constant(n, d, 0.125);  // on the lattice of the row bound 1
  const auto found = covariance(X, {.row_bound = 1, .center = Center::kNone}, seeded(5, 0.5));
  ASSERT_TRUE(found.ok()) << found.error().message;
  // The spectrum of a symmetric noise matrix ends at 2 sigma sqrt(d) (Wigner), within d^(-2/3) of it or so.
  const double below = found->eigenvalues[1];
  EXPECT_NEAR(below / (2 * found->deviation * std::sqrt(static_cast<double>(d))), 1, 0.15);
  EXPECT_EQ(found->rows, static_cast<double>(n));
}

TEST(Published, ComesBackFromAFile) {
  const Matrix all = test::front_rows(), X = all.leftCols(5);
  const test::TempDir folder;
  const auto made = pca(X, {.components = 2, .row_bound = 3, .center = Center::kPrivate}, seeded(1));
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_TRUE(made->save(folder.file("pca.npz")).ok());
  const auto back = Pca::load(folder.file("pca.npz"));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->components, made->components);
  EXPECT_EQ(back->eigenvalues, made->eigenvalues);
  EXPECT_EQ(back->mean, made->mean);
  EXPECT_EQ(back->rows, made->rows);
  EXPECT_EQ(back->deviation, made->deviation);
  EXPECT_EQ(back->warnings, made->warnings);
  EXPECT_EQ(back->manifest, made->manifest);
  EXPECT_EQ(back->is_private, made->is_private);
  EXPECT_EQ(*back->transform(X), *made->transform(X));
  const auto other = Cca::load(folder.file("pca.npz"));
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("kind 'pca', not 'cca'"));
  EXPECT_FALSE(Pca::load(folder.file("nothing.npz")).ok());
}

TEST(Published, AFileThatSaysNothingOfNoiseHasNoDeviation) {
  const Matrix X = test::front_rows().leftCols(3);
  const test::TempDir folder;
  ASSERT_TRUE(pca(X, {.components = 1, .row_bound = 3}, seeded(1))->save(folder.file("pca.npz")).ok());
  auto contents = *read_npz(folder.file("pca.npz"));
  for (const char* noise : {"[]", "[1, null]", "[{\"entries\": \"9\", \"deviation\": 1}]"}) {
    std::string text = contents.texts.front().text;
    const std::size_t begin = text.find("\"noise\": ["), end = text.find(']', begin);
    ASSERT_NE(begin, std::string::npos);
    text.replace(begin, end + 1 - begin, std::string("\"noise\": ") + noise);
    ASSERT_TRUE(write_npz(folder.file("other.npz"), contents.arrays, {{"manifest.json", text}}).ok());
    const auto other = Pca::load(folder.file("other.npz"));
    ASSERT_TRUE(other.ok()) << other.error().message;
    EXPECT_TRUE(std::isnan(other->deviation)) << noise;
  }
}

TEST(Published, ScoresAreProjectionsAndLeadBack) {
  const Matrix X = test::front_rows().leftCols(3);
  const auto made = pca(X, {.components = 3, .ranges = {{-5, 3}}, .center = Center::kPrivate}, seeded(2));
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto scores = made->transform(X);
  ASSERT_TRUE(scores.ok()) << scores.error().message;
  // The middle of -5:3 is -1, half its length 4.
  const Matrix features = (X.array().max(-5).min(3) + 1) / 4;
  const Matrix expected = (features.rowwise() - made->mean.transpose()) * made->components.transpose();
  EXPECT_LT((*scores - expected).cwiseAbs().maxCoeff(), 1e-12);
  const auto back = made->inverse_transform(*scores);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_LT((*back - Matrix(X.array().max(-5).min(3))).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_FALSE(made->inverse_transform(Matrix::Zero(2, 2)).ok());
  EXPECT_FALSE(made->transform(X.leftCols(2)).ok());
}

TEST(Published, ScoresOfAFileAreThoseOfItsRows) {
  const test::TempDir folder;
  const std::string data = folder.write_file("d.csv", "a,sex,b\n0.5,F,1\n0.25,M,0.5\n-1,F,0\n");
  const std::string schema = folder.write_file("s.toml",
                                               "[[column]]\nname = \"a\"\nkind = \"numeric\"\nlower = -1\nupper = 1\n"
                                               "[[column]]\nname = \"sex\"\nkind = \"categorical\"\nvalues = [\"F\", "
                                               "\"M\"]\n");
  const auto made = pca(data, {.components = 2, .schema = schema}, seeded(3));
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto scores = made->transform(data);
  ASSERT_TRUE(scores.ok()) << scores.error().message;
  EXPECT_EQ(scores->rows(), 3);
  EXPECT_EQ(scores->cols(), 2);
}

TEST(Published, PredictsClasses) {
  const Matrix X = test::front_rows().leftCols(6);
  const auto made = fda(X, {.components = 1, .label = "6", .classes = {"0", "1"}, .row_bound = 4}, seeded(4, 8));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->classes, (std::vector<std::string>{"0", "1"}));
  const auto labels = made->predict(X.leftCols(5));
  ASSERT_TRUE(labels.ok()) << labels.error().message;
  Eigen::Index right = 0;
  for (Eigen::Index i = 0; i < X.rows(); ++i)
    right += labels->at(static_cast<std::size_t>(i)) == std::to_string(static_cast<int>(X(i, 5))) ? 1 : 0;
  EXPECT_GT(static_cast<double>(right) / static_cast<double>(X.rows()), 0.9);
  EXPECT_EQ(*made->predict(X), *labels) << "by name the label is no feature";
}

TEST(Published, EmbedsViewsAsUnitVectors) {
  const Matrix all = test::front_rows();
  const test::TempDir folder;
  const auto made = clip(all.leftCols(2), all.middleCols(2, 2), {.dim = 2}, seeded(6));
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_TRUE(made->save(folder.file("clip.npz")).ok());
  const auto back = Clip::load(folder.file("clip.npz"));
  ASSERT_TRUE(back.ok()) << back.error().message;
  const auto x = back->embed_x(all.leftCols(2)), y = back->embed_y(all.middleCols(2, 2));
  ASSERT_TRUE(x.ok() && y.ok());
  EXPECT_NEAR(x->rowwise().norm().maxCoeff(), 1, 1e-12);
  // f(x) = W x / |x| - o, of unit length
  const Vector unit = all.leftCols(2).row(0).transpose().normalized();
  EXPECT_LT(((made->x_weights * unit - made->x_offset).normalized() - x->row(0).transpose()).norm(), 1e-12);
  EXPECT_GT((x->array() * y->array()).rowwise().sum().mean(), 0.2) << "pairs are near each other";
}

TEST(Published, WritesAReport) {
  const Matrix X = test::front_rows().leftCols(4);
  const test::TempDir folder;
  const auto made = pca(X, {.components = 1, .row_bound = 3}, seeded(8));
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_TRUE(made->report(folder.file("report.html"), ImageShape{2, 2}).ok());
  EXPECT_THAT(test::read_file(folder.file("report.html")), HasSubstr("<svg"));
  EXPECT_THAT(made->report(folder.file("other.html"), ImageShape{3, 3}).error().message,
              HasSubstr("`image_shape` 3x3"));
}

}  // namespace
}  // namespace eigenveil
