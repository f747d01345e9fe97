#include "eigenveil/query/query.hpp"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <Eigen/SVD>
#include <random>

#include "tests/support/rows.hpp"

namespace eigenveil {
namespace {

using test::lattice_rows;
using test::LatticeRow;

std::vector<LatticeRow> random_rows(std::size_t n, std::size_t d) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::vector<LatticeRow> rows(n, LatticeRow(d));
  for (auto& row : rows) {
    std::vector<double> v(d);
    for (double& x : v) x = 0.2 * normal(random);
    bound_row(v.data(), d, Lattice{1.0, 20}, row.data());
  }
  return rows;
}

// The filtered product, row by row in 128-bit integers, written from the definition.
std::vector<Int128> slow_apply(const std::vector<LatticeRow>& rows, const Matrix& X, std::optional<Filter> filter) {
  const auto d = static_cast<std::size_t>(X.rows());
  const auto k = static_cast<std::size_t>(X.cols());
  std::vector<Int128> sum(d * k);
  for (const LatticeRow& u : rows) {
    std::vector<Int128> t(k);
    Int128 u2 = 0;
    Int128 t2 = 0;
    for (std::size_t j = 0; j < d; ++j) u2 += Int128{u[j]} * u[j];
    for (std::size_t c = 0; c < k; ++c) {
      Int128 product = 0;
      for (std::size_t j = 0; j < d; ++j)
        product += Int128{u[j]} * static_cast<std::int64_t>(std::trunc(
                                      X(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(c)) * 0x1p20));
      t[c] = product / (1 << 20);  // integer division truncates toward zero
      t2 += t[c] * t[c];
    }
    const auto theta = static_cast<Int128>(filter ? filter->theta : 0x1p60);
    if (u2 * t2 > theta * theta) {
      if (filter->mode == FilterMode::kDrop) continue;
      const double factor =
          static_cast<double>(theta) / std::sqrt(static_cast<double>(u2) * static_cast<double>(t2)) * (1 - 0x1p-40);
      for (Int128& x : t) x = static_cast<Int128>(std::trunc(static_cast<double>(x) * factor));
    }
    for (std::size_t c = 0; c < k; ++c)
      for (std::size_t j = 0; j < d; ++j) sum[c * d + j] += u[j] * t[c];
  }
  return sum;
}

class ApplySums : public ::testing::TestWithParam<std::optional<FilterMode>> {};

TEST_P(ApplySums, EqualTheDefinitionForAnyThreadsAndChunks) {
  const auto rows = random_rows(3000, 9);
  const Matrix X = Eigen::HouseholderQR<Matrix>(Matrix::Random(9, 3)).householderQ() * Matrix::Identity(9, 3);
  std::optional<Filter> filter;
  if (GetParam()) filter = Filter{0x1p37, *GetParam()};
  const Apply query{*Directions::quantise(X), filter};
  const auto expected = slow_apply(rows, X, filter);
  for (const auto& [threads, chunk] : {std::pair{1, 0}, {2, 100}, {5, 7}}) {
    const auto bounded = lattice_rows(rows, 9, {.threads = threads, .chunk_rows = static_cast<std::size_t>(chunk)});
    EXPECT_EQ(exact_sum(query, bounded)->values, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Filters, ApplySums,
                         ::testing::Values(std::nullopt, std::optional(FilterMode::kShrink),
                                           std::optional(FilterMode::kDrop)));

TEST(Directions, NormFactorBoundsTheSpectralNorm) {
  for (int trial = 0; trial < 50; ++trial) {
    const Eigen::Index d = 5 + trial * 7;
    const Eigen::Index k = 1 + trial % 5;
    Matrix X = Eigen::HouseholderQR<Matrix>(Matrix::Random(d, k)).householderQ() * Matrix::Identity(d, k);
    const bool skewed = trial % 2 == 1;  // longer than one and correlated, as rounding in an estimator could leave it
    if (skewed) X += 0.02 * Matrix::Ones(d, k) + 0.05 * X;
    const auto directions = Directions::quantise(X);
    ASSERT_TRUE(directions.ok()) << trial;
    const Matrix quantised = (X * 0x1p20).unaryExpr([](double x) { return std::trunc(x); }) * 0x1p-20;
    EXPECT_GE(directions->norm_factor(), quantised.jacobiSvd().singularValues()(0));
    EXPECT_LE(directions->norm_factor(), skewed ? 2 : 1.01);
  }
}

TEST(Directions, RefusesWhatIsNotOrthonormal) {
  Matrix nan = Matrix::Identity(3, 2);
  nan(2, 1) = std::nan("");
  EXPECT_FALSE(Directions::quantise(nan).ok());
  EXPECT_FALSE(Directions::quantise(Matrix::Identity(3, 2) * 1e300).ok());
  EXPECT_FALSE(Directions::quantise(Matrix::Ones(50, 1)).ok());
  EXPECT_FALSE(Directions::quantise(Matrix::Ones(4, 4)).ok());
  EXPECT_FALSE(Directions::quantise(Matrix(0, 0)).ok());
  EXPECT_TRUE(Directions::quantise(Matrix::Identity(3, 2)).ok());
}

TEST(Query, ClassSumsAndCountsSplitByClass) {
  const auto rows = lattice_rows({{1, 2}, {3, 4}, {5, 6}}, 2, {.bits = 10, .classes = {1, 0, 1}});
  EXPECT_EQ(exact_sum(ClassSums{2}, rows)->values, (std::vector<Int128>{3, 4, 6, 8}));
  EXPECT_EQ(exact_sum(ClassSums{1}, rows)->values, (std::vector<Int128>{9, 12}));
  EXPECT_EQ(exact_sum(ClassCounts{2}, rows)->values, (std::vector<Int128>{1, 2}));
  EXPECT_EQ(exact_sum(ClassCounts{1}, rows)->values, (std::vector<Int128>{3}));
  EXPECT_EQ(exact_sum(SquaredNorms{}, rows)->values, (std::vector<Int128>{5 + 25 + 61}));
}

TEST(Query, RefusesWhatDoesNotFitTheRows) {
  const auto rows = lattice_rows({{1, 2}}, 2, {.bits = 10});
  const auto replace = Adjacency::kReplaceOne;
  EXPECT_FALSE(validate(SumQuery(Apply{*Directions::quantise(Matrix::Identity(3, 1)), {}}), rows, replace).ok());
  EXPECT_FALSE(validate(SumQuery(ClassSums{2}), rows, replace).ok());
  EXPECT_FALSE(validate(SumQuery(ClassSums{0}), rows, replace).ok());
  EXPECT_FALSE(validate(SumQuery(ClassCounts{1}), rows, replace).ok());
  EXPECT_TRUE(validate(SumQuery(ClassCounts{1}), rows, Adjacency::kAddRemoveOne).ok());
  EXPECT_FALSE(validate(CountQuery(RawNormExceedance{{2, 1}}), rows).ok());
  EXPECT_FALSE(validate(CountQuery(RawNormExceedance{{}}), rows).ok());
  EXPECT_TRUE(validate(SumQuery(Gram{}), rows, replace).ok());
}

}  // namespace
}  // namespace eigenveil
