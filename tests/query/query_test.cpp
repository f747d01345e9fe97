// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/filtered.hpp"

#include <gtest/gtest.h>

#include <random>

#include "eigenveil/linalg/decompositions.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "tests/support/rows.hpp"

namespace eigenveil {
namespace {

Result<PrivateSum> exact_sum(const SumQuery& query, const BoundedRows& rows) {
  return eigenveil::exact_sum(query, rows, Adjacency::kReplaceOne);
}

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

struct SlowFilter {
  FilterMode mode;
  std::vector<Int128> edges;  // upper edges of the cells; the last one holds every row
  std::size_t chosen;
};

// The product, row by row in 128-bit integers, written from the definition.
std::vector<Int128> slow_apply(const std::vector<LatticeRow>& rows, const Matrix& X,
                               const std::optional<SlowFilter>& filter) {
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
    Int128 weight = filter ? 1 << 20 : 1;  // a filtered sum is in 2^-20ths
    if (filter) {
      std::size_t cell = 0;
      while (u2 * t2 > filter->edges[cell] * filter->edges[cell]) ++cell;
      if (cell > filter->chosen)
        weight = filter->mode == FilterMode::kDrop ? 0 : (filter->edges[filter->chosen] << 20) / filter->edges[cell];
    }
    for (std::size_t c = 0; c < k; ++c)
      for (std::size_t j = 0; j < d; ++j) sum[c * d + j] += weight * u[j] * t[c];
  }
  return sum;
}

const std::vector<std::pair<int, std::size_t>> kThreadsAndChunks = {{1, 0}, {2, 100}, {5, 7}};

// As many as 32 bits do not hold, in one chunk and in many.
TEST(ColumnSums, OfTheLargestRowsAreExact) {
  constexpr std::int32_t kMost = 1 << 20;
  std::vector<LatticeRow> rows(10000, {kMost, 0});
  for (std::size_t i = 7000; i < rows.size(); ++i) rows[i] = {0, -kMost};
  for (const auto& [threads, chunk_rows] : kThreadsAndChunks) {
    const auto bounded = lattice_rows(rows, 2, {.threads = threads, .chunk_rows = chunk_rows});
    const auto sum = exact_sum(ClassSums{1}, bounded);
    ASSERT_TRUE(sum.ok());
    EXPECT_EQ(sum->values, (std::vector<Int128>{Int128{7000} * kMost, Int128{-3000} * kMost}));
  }
}

TEST(ApplySum, EqualsTheDefinitionForAnyThreadsAndChunks) {
  const auto rows = random_rows(3000, 9);
  const Matrix X = orthonormal(Matrix::Random(9, 3));
  const auto expected = slow_apply(rows, X, {});
  for (const auto& [threads, chunk] : kThreadsAndChunks)
    EXPECT_EQ(
        exact_sum(Apply{*Directions::quantise(X)}, lattice_rows(rows, 9, {.threads = threads, .chunk_rows = chunk}))
            ->values,
        expected);
}

TEST(FilteredSum, EqualsTheDefinitionForAnyThreadsAndChunks) {
  const auto rows = random_rows(3000, 9);
  for (const Eigen::Index k : {1, 3}) {
    const Matrix X = orthonormal(Matrix::Random(9, k));
    const Directions quantised = *Directions::quantise(X);
    const std::vector<double> grid = {0x1p33, 0x1p35, 0x1p36, 0x1p37, 0x1p37 * 1.3, 0x1p40};
    const auto last = static_cast<Int128>(std::ceil(0x1p40 * quantised.norm_factor()));
    for (const FilterMode mode : {FilterMode::kShrink, FilterMode::kDrop})
      for (const std::size_t chosen : {0U, 3U, 5U}) {
        SlowFilter slow{mode, {}, chosen};
        for (const double g : grid) slow.edges.push_back(static_cast<Int128>(g));
        slow.edges.push_back(last);
        const auto expected = slow_apply(rows, X, slow);
        for (const auto& [threads, chunk] : kThreadsAndChunks) {
          const auto bounded = lattice_rows(rows, 9, {.threads = threads, .chunk_rows = chunk});
          const FilteredApply query{quantised, grid, mode};
          EXPECT_EQ(FilteredCells::sweep(query, bounded)->sum(chosen, Adjacency::kReplaceOne).values, expected);
        }
      }
  }
}

// Many rows of the greatest length in one cell: more than doubles could sum exactly without a flush.
TEST(FilteredSum, StaysExactBeyondWhatDoublesHold) {
  std::vector<LatticeRow> rows;
  Int128 expected = 0;
  for (std::int32_t i = 0; i < 100003; ++i) {
    rows.push_back({(1 << 20) - 1 - i % 101, 3});
    expected += (Int128{rows.back()[0]} * rows.back()[0]) << 20;
  }
  const FilteredApply query{*Directions::quantise(Matrix::Identity(2, 1)), {0x1p40}, FilterMode::kShrink};
  const auto bounded = lattice_rows(rows, 2, {.threads = 1});
  EXPECT_EQ(FilteredCells::sweep(query, bounded)->sum(0, Adjacency::kReplaceOne).values[0], expected);
}

TEST(ProjectedGramSum, EqualsTheDefinition) {
  const auto rows = random_rows(500, 6);
  const Matrix X = Matrix::Identity(6, 2);
  const ProjectedGram query{*Directions::quantise(X), 100000};
  std::vector<Int128> expected(3);
  int shortened = 0;
  for (const LatticeRow& u : rows) {
    double x = u[0];
    double y = u[1];
    const double length = std::sqrt(x * x + y * y);
    if (length > 100000) {
      ++shortened;
      x = std::trunc(x * (100000 / length * (1 - 0x1p-40)));
      y = std::trunc(y * (100000 / length * (1 - 0x1p-40)));
    }
    expected[0] += static_cast<Int128>(x * x);
    expected[1] += static_cast<Int128>(x * y);
    expected[2] += static_cast<Int128>(y * y);
  }
  EXPECT_GT(shortened, 100);
  for (const auto& [threads, chunk] : kThreadsAndChunks)
    EXPECT_EQ(exact_sum(query, lattice_rows(rows, 6, {.threads = threads, .chunk_rows = chunk}))->values, expected);
}

// (softmax - onehot) (x) u, shrunk, row by row in doubles; the integers are within their rounding of it.
Matrix slow_softmax(const std::vector<LatticeRow>& rows, const std::vector<int>& classes, const Matrix& W,
                    double clip) {
  Matrix sum = Matrix::Zero(W.rows(), W.cols());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Vector u(W.rows());
    for (Eigen::Index j = 0; j < u.size(); ++j) u[j] = rows[i][static_cast<std::size_t>(j)];
    Vector r = (W.transpose() * u).array().exp();
    r /= r.sum();
    r[classes[i]] -= 1;
    sum += u * r.transpose() * std::min(1.0, clip / (u.norm() * r.norm()));
  }
  return sum;
}

TEST(SoftmaxGradientSum, EqualsTheDefinitionForAnyThreadsAndChunks) {
  const auto rows = random_rows(3000, 9);
  std::vector<int> classes;
  for (std::size_t i = 0; i < rows.size(); ++i) classes.push_back(static_cast<int>(i * i % 4));
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0, 0x1p-20);
  const Matrix W = Matrix::NullaryExpr(9, 4, [&] { return 3 * normal(random); });
  const SumQuery query = SoftmaxGradient{*LinearMap::quantise(W), 300000};
  const auto once = exact_sum(query, lattice_rows(rows, 9, {.classes = classes}));
  ASSERT_TRUE(once.ok());
  const Matrix expected = slow_softmax(rows, classes, W, 300000);
  for (Eigen::Index i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(static_cast<double>(once->values[static_cast<std::size_t>(i)]) * once->unit, expected.data()[i],
                3000.0);  // a step of w a row
  for (const auto& [threads, chunk] : {std::pair<int, std::size_t>{1, 7}, {2, 100}, {7, 13}, {7, 0}}) {
    const auto other =
        exact_sum(query, lattice_rows(rows, 9, {.threads = threads, .chunk_rows = chunk, .classes = classes}));
    EXPECT_TRUE(other->values == once->values) << threads << " threads, chunks of " << chunk;
  }
  // Backwards: the order of rows does not count.
  EXPECT_TRUE(exact_sum(query, lattice_rows({rows.rbegin(), rows.rend()}, 9,
                                            {.threads = 2, .classes = {classes.rbegin(), classes.rend()}}))
                  ->values == once->values);
}

TEST(SoftmaxGradientSum, TakesNothingFromRowsThatSayNothing) {
  const LinearMap huge = *LinearMap::quantise(Matrix::Constant(2, 3, 0x1p190));
  const auto rows = lattice_rows({{0, 0}, {5, 5}}, 2, {.bits = 10, .classes = {1, 7}});  // zero; of no class
  const auto sum = exact_sum(SoftmaxGradient{huge, 100}, rows);
  EXPECT_TRUE(sum->values == std::vector<Int128>(6));
}

TEST(SoftmaxGradientSum, StaysExactBeyondWhatDoublesHold) {
  const LatticeRow row = {1048575, 3};
  constexpr std::size_t kRows = 40001;
  const LinearMap flat = *LinearMap::quantise(Matrix::Zero(2, 2));
  const auto sum = [&](std::size_t n) {
    return exact_sum(SoftmaxGradient{flat, 0x1p20}, lattice_rows(std::vector<LatticeRow>(n, row), 2,
                                                                 {.chunk_rows = 50000, .classes = std::vector<int>(n)}))
        ->values;
  };
  const auto one = sum(1);
  const auto all = sum(kRows);
  EXPECT_GT(all[2], Int128{1} << 53);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(all[i] == 40001 * one[i]) << i;
}

TEST(SoftmaxGradientSum, IsRefusedWhereItDoesNotFit) {
  const auto rows = lattice_rows({{1, 2}}, 2, {.bits = 10, .classes = {0}});
  const auto refused = [&](const BoundedRows& of, const Matrix& W, double clip) {
    return !validate(SumQuery(SoftmaxGradient{*LinearMap::quantise(W), clip}), of.facts(), Adjacency::kReplaceOne).ok();
  };
  EXPECT_FALSE(refused(rows, Matrix::Ones(2, 3), 1024));
  EXPECT_TRUE(refused(rows, Matrix::Ones(2, 3), 1024.5)) << "a clip above the row bound";
  EXPECT_TRUE(refused(rows, Matrix::Ones(2, 3), 0.0001)) << "a clip below the lattice";
  EXPECT_TRUE(refused(rows, Matrix::Ones(2, 3), std::nan("")));
  EXPECT_TRUE(refused(rows, Matrix::Ones(3, 3), 10));
  EXPECT_TRUE(refused(rows, Matrix::Ones(2, 1), 10));
  EXPECT_TRUE(refused(lattice_rows({{1, 2}}, 2, {.bits = 10}), Matrix::Ones(2, 3), 10)) << "no classes";
  EXPECT_FALSE(LinearMap::quantise(Matrix::Constant(2, 2, std::nan(""))).ok());
  EXPECT_FALSE(LinearMap::quantise(Matrix::Constant(2, 2, 0x1p201)).ok());
}

// A map of single rows: no row depends on its block, and the product is exact.
TEST(Remap, MapsEveryRowByItself) {
  const auto rows = random_rows(500, 9);
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  const LinearMap M = *LinearMap::quantise(Matrix::NullaryExpr(9, 9, [&] { return 3 * normal(random); }));
  const auto mapped = [&](const std::vector<LatticeRow>& from, int threads, std::size_t chunk) {
    auto bounded = lattice_rows(from, 9, {.threads = threads, .chunk_rows = chunk});
    EXPECT_TRUE(bounded.remap(M, *RowBound::of(0x1p21)).ok());
    return *exact_sum(Gram{}, bounded);
  };
  const auto all = mapped(rows, 1, 0);
  EXPECT_TRUE(mapped(rows, 7, 13).values == all.values);
  std::vector<Int128> added(all.values.size());
  for (const LatticeRow& row : rows) {
    const auto alone = mapped({row}, 1, 0);
    for (std::size_t i = 0; i < added.size(); ++i) added[i] += alone.values[i];
  }
  EXPECT_TRUE(added == all.values);

  auto one = lattice_rows({rows[0]}, 9);
  ASSERT_TRUE(one.remap(M, *RowBound::of(0x1p30)).ok());
  Vector u(9);
  for (Eigen::Index j = 0; j < 9; ++j) u[j] = rows[0][static_cast<std::size_t>(j)];
  const Vector expected = M.matrix().transpose() * u;
  std::vector<std::int32_t> buffer;
  const std::int32_t* got = *one.store().read(0, buffer);
  for (Eigen::Index j = 0; j < 9; ++j) EXPECT_NEAR(got[j] * one.lattice().unit(), expected[j], one.lattice().unit());
  EXPECT_FALSE(one.remap(*LinearMap::quantise(Matrix::Ones(9, 8)), *RowBound::of(1)).ok());
}

TEST(Directions, NormFactorBoundsTheSpectralNorm) {
  for (int trial = 0; trial < 50; ++trial) {
    const Eigen::Index d = 5 + trial * 7;
    const Eigen::Index k = 1 + trial % 5;
    Matrix X = orthonormal(Matrix::Random(d, k));
    const bool skewed = trial % 2 == 1;  // longer than one and correlated, as rounding in an estimator could leave it
    if (skewed) X += 0.02 * Matrix::Ones(d, k) + 0.05 * X;
    const auto directions = Directions::quantise(X);
    ASSERT_TRUE(directions.ok()) << trial;
    const Matrix quantised = (X * 0x1p20).unaryExpr([](double x) { return std::trunc(x); }) * 0x1p-20;
    EXPECT_GE(directions->norm_factor(), thin_svd(quantised).values(0));
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
  EXPECT_FALSE(validate(SumQuery(Apply{*Directions::quantise(Matrix::Identity(3, 1))}), rows.facts(), replace).ok());
  EXPECT_FALSE(validate(SumQuery(ClassSums{2}), rows.facts(), replace).ok());
  EXPECT_FALSE(validate(SumQuery(ClassSums{0}), rows.facts(), replace).ok());
  EXPECT_FALSE(validate(SumQuery(ClassCounts{1}), rows.facts(), replace).ok());
  EXPECT_TRUE(validate(SumQuery(ClassCounts{1}), rows.facts(), Adjacency::kAddRemoveOne).ok());
  const Directions e1 = *Directions::quantise(Matrix::Identity(2, 1));
  EXPECT_FALSE(validate(NormExceedance{{2, 1}, {}}, rows.facts()).ok());
  EXPECT_FALSE(validate(NormExceedance{{}, {}}, rows.facts()).ok());
  EXPECT_FALSE(validate(FilteredApply{e1, {2, 1}}, rows.facts()).ok());
  EXPECT_FALSE(validate(FilteredApply{e1, {0.5, 1}}, rows.facts()).ok()) << "below one lattice step";
  EXPECT_FALSE(validate(SumQuery(ProjectedGram{e1, 0.5}), rows.facts(), replace).ok());
  EXPECT_TRUE(validate(FilteredApply{e1, {1, 2}}, rows.facts()).ok());
  EXPECT_TRUE(validate(SumQuery(Gram{}), rows.facts(), replace).ok());
}

}  // namespace
}  // namespace eigenveil
