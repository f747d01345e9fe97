// SPDX-License-Identifier: Apache-2.0
// Neighbours that differ in all rows of one person, 1 to 50 of them: no exact weighed sum moves by more than one row
// may move it, in integers and without tolerance; and people reach 95% of that.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "eigenveil/query/filtered.hpp"
#include "tests/support/queries.hpp"
#include "tests/support/rows.hpp"

namespace eigenveil {
namespace {

using test::kClasses;
using test::kKinds;
using test::lattice_rows;
using test::LatticeRow;
using test::random_directions;
using test::random_query;

struct Row {
  LatticeRow u;
  int row_class = 0;
};
using Person = std::vector<Row>;

// 256 bits: squares of sums in 2^-52 do not fit 128.
struct Wide {
  UInt128 high = 0, low = 0;
  Wide& operator+=(const Wide& other) {
    low += other.low;
    high += other.high + (low < other.low ? 1 : 0);
    return *this;
  }
  friend bool operator<=(const Wide& a, const Wide& b) { return a.high != b.high ? a.high < b.high : a.low <= b.low; }
  Wide shifted(int by) const {
    if (by == 0) return *this;
    if (by >= 128) return {low << (by - 128), 0};
    return {(high << by) | (low >> (128 - by)), low << by};
  }
};
Wide square(UInt128 a) {
  const UInt128 mask = (UInt128{1} << 64) - 1, a0 = a & mask, a1 = a >> 64;
  Wide sum{a1 * a1, a0 * a0};
  sum += Wide{0, a0 * a1}.shifted(65);
  return sum;
}

Wide squared_distance(const PrivateSum& one, const PrivateSum& two) {
  Wide total;
  std::size_t index = 0;
  for (std::size_t column = 0; column < one.columns; ++column)
    for (std::size_t row = one.layout == PrivateSum::Layout::kSymmetric ? column : 0; row < one.rows; ++row, ++index) {
      const Int128 difference = one.values[index] - two.values[index];
      const Wide part = square(static_cast<UInt128>(difference < 0 ? -difference : difference));
      total += part;
      if (one.layout == PrivateSum::Layout::kSymmetric && row != column) total += part;
    }
  return total;
}

// distance^2 <= (s 2^fraction)^2 for s = m 2^e
bool within(const Wide& squared, Sensitivity s, int fraction) {
  int exponent = 0;
  const auto m = static_cast<UInt128>(std::ldexp(std::frexp(s.value(), &exponent), 53));
  const int e = 2 * (exponent - 53 + fraction);
  return e >= 0 ? squared <= square(m).shifted(e) : squared.shifted(-e) <= square(m);
}

double length(const Wide& squared) {
  return std::sqrt(std::ldexp(static_cast<double>(squared.high), 128) + static_cast<double>(squared.low));
}

using People = std::vector<Person>;

// What everybody else has, with one person more; none: nobody more. Rows come in turns, one of each person, so that
// those of one lie among those of others.
BoundedRows rows_with(const Person* person, std::size_t d, int bits, std::size_t least, People people) {
  std::vector<LatticeRow> u;
  test::RowsSetup setup{.bits = bits};
  setup.rule.least_rows = least;
  if (person != nullptr) people.insert(people.begin() + static_cast<std::ptrdiff_t>(people.size() / 2), *person);
  for (std::size_t i = 0, last = 1; i < last; ++i)
    for (std::size_t p = 0; p < people.size(); ++p) {
      last = std::max(last, people[p].size());
      if (i >= people[p].size()) continue;
      u.push_back(people[p][i].u);
      setup.classes.push_back(people[p][i].row_class);
      setup.people.push_back(static_cast<int>(p));
    }
  return lattice_rows(u, d, setup);
}

People few_others(std::size_t d) { return {{{LatticeRow(d, 1), 0}, {LatticeRow(d, -1), 1}}, {{LatticeRow(d, 1), 2}}}; }

struct Filtered {
  FilteredApply query;
  std::size_t chosen;
};
PrivateSum sum_of(const SumQuery& query, const BoundedRows& rows, Adjacency adjacency) {
  return *exact_sum(query, rows, adjacency);
}
PrivateSum sum_of(const Filtered& filtered, const BoundedRows& rows, Adjacency adjacency) {
  return FilteredCells::sweep(filtered.query, rows)->sum(filtered.chosen, adjacency);
}

struct Moved {
  Wide squared;
  Sensitivity stated;
  int fraction;
  bool allowed() const { return within(squared, stated, fraction); }
  double share() const { return std::ldexp(length(squared), -fraction) / stated.value(); }
};
template <class Query>
Moved moved(const Query& query, const Person& one, const Person* two, std::size_t d, int bits, std::size_t least = 1,
            const People& others = {}) {
  const auto adjacency = two != nullptr ? Adjacency::kReplaceOne : Adjacency::kAddRemoveOne;
  const People& all = others.empty() ? few_others(d) : others;
  const PrivateSum left = sum_of(query, rows_with(&one, d, bits, least, all), adjacency);
  const PrivateSum right = sum_of(query, rows_with(two, d, bits, least, all), adjacency);
  return {squared_distance(left, right), left.moved, left.fraction};
}

// People whose rows are alike, along one direction, scattered, of few kinds, or partly zero.
Person hostile_person(std::mt19937_64& random, std::size_t d, int bits, const Matrix& X) {
  const Lattice lattice{1.0, bits};
  std::normal_distribution<double> normal;
  const std::size_t m = random() % 3 == 0 ? 1 + random() % 3 : 1 + random() % 50;
  const auto style = random() % 5;
  const auto column = static_cast<Eigen::Index>(random() % static_cast<std::size_t>(X.cols()));
  const int own_class = static_cast<int>(random() % kClasses);
  Person person;
  for (std::size_t i = 0; i < m; ++i) {
    std::vector<double> v(d);
    const double sign = style == 1 && random() % 2 == 0 ? -9 : 9;
    for (std::size_t j = 0; j < d; ++j) {
      const double x = X(static_cast<Eigen::Index>(j), column);
      v[j] = style == 4 ? 9 * normal(random) : style == 3 ? 9.0 * (j == i % d) : sign * x;
    }
    if (style == 2 && random() % 2 == 0) std::fill(v.begin(), v.end(), 0.0);
    Row row{LatticeRow(d), random() % 2 == 0 ? own_class : static_cast<int>(random() % kClasses)};
    bound_row(v.data(), d, lattice, row.u.data());
    person.push_back(row);
  }
  return person;
}

People hostile_people(std::mt19937_64& random, std::size_t d, int bits, const Matrix& X) {
  People people;
  for (std::size_t p = 0; p < 1 + random() % 4; ++p) people.push_back(hostile_person(random, d, bits, X));
  return people;
}

class EverySumOfPeople : public ::testing::TestWithParam<std::size_t> {};

TEST_P(EverySumOfPeople, MovesByAtMostWhatOneRowMay) {
  std::mt19937_64 random(GetParam() + 300);
  for (int trial = 0; trial < 1200; ++trial) {
    const int bits = std::uniform_int_distribution<>(4, 20)(random);
    const std::size_t d = std::uniform_int_distribution<std::size_t>(1, 8)(random);
    const std::size_t k = std::uniform_int_distribution<std::size_t>(1, std::min<std::size_t>(d, 4))(random);
    const Matrix X = random_directions(random, d, k);
    const SumQuery query = random_query(random, GetParam(), X, bits);
    const std::size_t least = trial % 3 == 0 ? 1 + random() % 30 : 1;
    const Person one = hostile_person(random, d, bits, X);
    const Person two = hostile_person(random, d, bits, X);
    const People others = hostile_people(random, d, bits, X);
    ASSERT_TRUE(moved(query, one, &two, d, bits, least, others).allowed()) << "replace-one, trial " << trial;
    ASSERT_TRUE(moved(query, one, nullptr, d, bits, least, others).allowed()) << "add-remove-one, trial " << trial;
  }
}
INSTANTIATE_TEST_SUITE_P(People, EverySumOfPeople, ::testing::Range<std::size_t>(0, kKinds));

// A query that is added to the variant and not to the search is seen here.
TEST(EverySumOfPeopleIs, SearchedForEveryQuery) {
  std::mt19937_64 random(1);
  std::set<std::size_t> searched;
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    searched.insert(random_query(random, kind, random_directions(random, 4, 2), 10).index());
  EXPECT_EQ(searched.size(), std::variant_size_v<SumQuery>);
}

TEST(FilteredSumOfPeople, MovesByAtMostWhatOneRowMay) {
  std::mt19937_64 random(78);
  for (int trial = 0; trial < 2500; ++trial) {
    const int bits = std::uniform_int_distribution<>(4, 20)(random);
    const std::size_t d = std::uniform_int_distribution<std::size_t>(1, 8)(random);
    const std::size_t k = std::uniform_int_distribution<std::size_t>(1, std::min<std::size_t>(d, 4))(random);
    const Matrix X = random_directions(random, d, k);
    const double L = std::ldexp(1.0, bits);
    const double ratio = std::uniform_real_distribution<>(1.05, 3)(random);
    std::vector<double> grid;
    for (double g = L * L; g >= 1 && grid.size() < 20; g /= ratio) grid.insert(grid.begin(), g);
    const Filtered filtered{{*Directions::quantise(X), grid, trial % 2 == 0 ? FilterMode::kShrink : FilterMode::kDrop},
                            random() % grid.size()};
    const Person one = hostile_person(random, d, bits, X);
    const Person two = hostile_person(random, d, bits, X);
    const People others = hostile_people(random, d, bits, X);
    ASSERT_TRUE(moved(filtered, one, &two, d, bits, 1, others).allowed()) << trial;
    ASSERT_TRUE(moved(filtered, one, nullptr, d, bits, 1, others).allowed()) << trial;
  }
}

constexpr int kL = 1 << 20;

Person of(const std::vector<Row>& kinds, std::size_t m) {
  Person person;
  for (std::size_t i = 0; i < m; ++i) person.push_back(kinds[i % kinds.size()]);
  return person;
}

TEST(SumsOfPeople, ReachWhatOneRowMay) {
  const Directions e1 = *Directions::quantise(Matrix::Identity(3, 1));
  const Directions e12 = *Directions::quantise(Matrix::Identity(3, 2));
  const LinearMap flat = *LinearMap::quantise(Matrix::Zero(3, kClasses));
  const Row x{{kL, 0, 0}, 0}, y{{0, kL, 0}, 0}, zero{{0, 0, 0}, 0}, back{{-kL, 0, 0}, 0}, other{{0, 0, 0}, 1};
  const double L2 = static_cast<double>(kL) * kL;
  const Row up{{kL / 16, 1046000, 0}, 0}, down{{kL / 16, -1046000, 0}, 0};
  const auto expect = [&](const char* name, const Moved& found) {
    EXPECT_GE(found.share(), 0.95) << name;
    EXPECT_TRUE(found.allowed()) << name;
  };
  const std::vector<std::pair<const char*, SumQuery>> add = {
      {"gram", Gram{}},          {"apply", Apply{e12}},      {"projected", ProjectedGram{e12, kL / 4.0}},
      {"sums", ClassSums{4}},    {"counts", ClassCounts{4}}, {"softmax", SoftmaxGradient{flat, kL / 4.0}},
      {"count", ClassCounts{1}}, {"norms", SquaredNorms{}},  {"score counts", ScoreCounts{e12, {0.5}, {0.5}, 4}}};
  struct Pair {
    const char* name;
    SumQuery query;
    Row one, two;
  };
  const std::vector<Pair> replace = {{"gram", Gram{}, x, y},
                                     {"apply k=1", Apply{e1}, x, zero},
                                     {"apply k=2", Apply{e12}, x, y},
                                     {"projected", ProjectedGram{e12, kL / 4.0}, x, y},
                                     {"sums", ClassSums{4}, x, back},
                                     {"counts", ClassCounts{4}, zero, other},
                                     {"score counts", ScoreCounts{e12, {0.5}, {0.5}, 1}, x, y},
                                     {"softmax", SoftmaxGradient{flat, kL / 4.0}, x, back},
                                     {"norms", SquaredNorms{}, x, zero}};
  for (const std::size_t m : {1U, 2U, 7U, 50U}) {
    for (const auto& [name, query] : add) expect(name, moved(query, of({x}, m), nullptr, 3, 20));
    for (const Pair& pair : replace) {
      const Person two = of({pair.two}, 51 - m);  // with another number of rows
      expect(pair.name, moved(pair.query, of({pair.one}, m), &two, 3, 20));
    }
    for (const FilterMode mode : {FilterMode::kShrink, FilterMode::kDrop}) {
      const Filtered narrow{{e1, {L2 / 16, L2}, mode}, 0};
      const Person downs = of({down}, m), ys = of({y}, m);
      expect("filtered", moved(narrow, of({up}, m), &downs, 3, 20));
      expect("filtered", moved(narrow, of({up}, m), nullptr, 3, 20));
      expect("filtered, wide", moved(Filtered{{e12, {L2 / 16, L2}, mode}, 1}, of({x}, m), &ys, 3, 20));
    }
  }
  // A row counts with m / M where M is more: 20 rows of rows:20 weigh one.
  expect("rows:20", moved(SumQuery(ClassCounts{1}), of({x}, 20), nullptr, 3, 20, 20));
  EXPECT_NEAR(moved(SumQuery(ClassCounts{1}), of({x}, 5), nullptr, 3, 20, 20).share(), 0.25, 1e-6);
}

// Ids that collide make one person of two: a newcomer then moves what another weighs, by up to twice the bound. This is
// what people.proof.md pays for in delta; neither is it more.
TEST(SumsOfPeople, MoveByUpToTwiceTheBoundWhereIdsCollide) {
  const Row x{{kL, 0, 0}, 0}, back{{-kL, 0, 0}, 0};
  const auto sum = [&](std::size_t newcomer_rows) {
    std::vector<LatticeRow> u = {x.u};
    for (std::size_t i = 0; i < newcomer_rows; ++i) u.push_back(back.u);
    return sum_of(SumQuery(ClassSums{1}), lattice_rows(u, 3, {.people = std::vector<int>(1 + newcomer_rows, 1)}),
                  Adjacency::kAddRemoveOne);
  };
  const PrivateSum alone = sum(0), both = sum(50);
  const Moved moved{squared_distance(alone, both), alone.moved, alone.fraction};
  EXPECT_FALSE(moved.allowed());
  EXPECT_GT(moved.share(), 1.9);
  EXPECT_LE(moved.share(), 2);
}

// What the sparse vector's proof needs of counts: both people's shares fall from at most one along the grid.
TEST(CountsOfPeople, FallFromAtMostOne) {
  std::mt19937_64 random(9);
  std::vector<double> grid;
  for (double g = 10; g < 0x1p25; g *= 1.5) grid.push_back(g);
  for (int trial = 0; trial < 600; ++trial) {
    const std::size_t d = 1 + random() % 6;
    const Matrix X = random_directions(random, d, 1);
    const Directions quantised = *Directions::quantise(X);
    const Person person = hostile_person(random, d, 12, X);
    const auto counts = [&](const BoundedRows& rows) {
      if (trial % 3 == 0) return FilteredCells::sweep({quantised, grid, FilterMode::kShrink}, rows)->above();
      return *exact_counts({grid, trial % 3 == 1 ? std::optional(quantised) : std::nullopt}, rows);
    };
    const People others = hostile_people(random, d, 12, X);
    const auto with = counts(rows_with(&person, d, 12, 1, others));
    const auto without = counts(rows_with(nullptr, d, 12, 1, others));
    EXPECT_EQ(with.fraction, 20);
    std::int64_t before = std::int64_t{1} << 20;
    for (std::size_t j = 0; j < grid.size(); ++j) {
      const std::int64_t share = with.values[j] - without.values[j];
      ASSERT_GE(share, 0);
      ASSERT_LE(share, before);
      before = share;
    }
  }
}

// Bounds that are found (estimators/preparation.proof.md, claims 1 and 4) move and shorten rows one by one, by what was
// released: whatever that is, at every step neighbours in a person have counts that fall from at most one, and sums
// within the bound of rows of the new length. The last step is that of `sphere`.
TEST(PeopleWhoseBoundIsFound, AreNeighboursAtEveryStep) {
  std::mt19937_64 random(21);
  std::normal_distribution<double> normal;
  double most = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const std::size_t d = 1 + random() % 5;
    const Matrix X = random_directions(random, d, 1);
    const std::size_t least = trial % 3 == 0 ? 1 + random() % 30 : 1;
    const People others = hostile_people(random, d, 20, X);
    const Person one = hostile_person(random, d, 20, X), two = hostile_person(random, d, 20, X);
    BoundedRows rows[] = {rows_with(nullptr, d, 20, least, others), rows_with(&one, d, 20, least, others),
                          rows_with(&two, d, 20, least, others)};
    for (int step = 0; step < 4; ++step) {
      const double radius = rows[0].lattice().radius;
      std::vector<double> grid;
      for (int i = 160; i >= 0; --i) grid.push_back(radius * std::exp2(-i / 16.0));
      std::vector<std::int64_t> counts[3];
      for (int i = 0; i < 3; ++i) counts[i] = exact_counts({grid, {}}, rows[i])->values;
      for (int i = 1; i < 3; ++i)
        for (std::size_t j = 0, before = std::size_t{1} << 20; j < grid.size(); ++j) {
          const std::int64_t share = counts[i][j] - counts[0][j];
          ASSERT_GE(share, 0) << trial;
          ASSERT_LE(share, static_cast<std::int64_t>(before)) << trial;
          before = static_cast<std::size_t>(share);
        }
      for (const SumQuery& query : {SumQuery(Gram{}), SumQuery(ClassSums{1}), SumQuery(ClassCounts{1})})
        for (const auto adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne}) {
          const PrivateSum left = sum_of(query, rows[1], adjacency);
          const PrivateSum right = sum_of(query, rows[adjacency == Adjacency::kReplaceOne ? 2 : 0], adjacency);
          const Moved moved{squared_distance(left, right), left.moved, left.fraction};
          ASSERT_TRUE(moved.allowed()) << trial << ", step " << step;
          if (step == 3) most = std::max(most, moved.share());
        }
      const auto chosen = step == 2 ? radius / 1024 : grid[random() % grid.size()];
      Vector mean = Vector::Zero(static_cast<Eigen::Index>(d));
      if (step < 2 && trial % 2 == 0) mean = mean.unaryExpr([&](double) { return radius * normal(random); });
      for (BoundedRows& held : rows) ASSERT_TRUE(held.recenter(mean, *RowBound::of(chosen)).ok());
    }
  }
  EXPECT_GE(most, 0.95) << "the bound is reached";
}

// The noise of an answer is that of one row, whatever people have.
TEST(SumsOfPeople, HaveTheNoiseOfRows) {
  const Lattice rows{1.0, 20}, people{1.0, 20, 32};
  const Directions e12 = *Directions::quantise(Matrix::Identity(300, 2));
  for (const Adjacency adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne})
    for (const double mu : {0.01, 0.3, 4.0}) {
      for (const SumQuery& query : {SumQuery(Gram{}), SumQuery(Apply{e12}), SumQuery(ClassSums{3}),
                                    SumQuery(ClassCounts{3}), SumQuery(SquaredNorms{})})
        EXPECT_EQ(deviation_of(empty_sum(query, 300, rows, adjacency), mu),
                  deviation_of(empty_sum(query, 300, people, adjacency), mu));
      const FilteredApply filtered{e12, {0.01, 1}, FilterMode::kShrink};
      EXPECT_EQ(deviation_of(empty_sum(filtered, 0, rows, adjacency), mu),
                deviation_of(empty_sum(filtered, 0, people, adjacency), mu));
    }
}

// How much better than chance whoever sees the released sum tells that somebody with 20 aligned rows is in it.
double advantage(const BoundedRows& with, const BoundedRows& without, SecureRandom& random) {
  constexpr int kRuns = 20'000;
  constexpr double kMu = 1;
  const auto released = [&](const BoundedRows& rows) {
    return GaussianMechanism::release(*exact_sum(ClassSums{1}, rows, Adjacency::kAddRemoveOne), kMu, random)
        ->value()(0, 0);
  };
  const auto exact = [](const BoundedRows& rows) {
    const PrivateSum sum = *exact_sum(ClassSums{1}, rows, Adjacency::kAddRemoveOne);
    return std::ldexp(static_cast<double>(sum.values[0]), -sum.fraction) * sum.unit;
  };
  const double middle = (exact(with) + exact(without)) / 2;
  int right = 0;
  for (int i = 0; i < kRuns; ++i) right += (released(with) > middle) - (released(without) > middle);
  return static_cast<double>(right) / kRuns;
}

TEST(SumsOfPeople, DoNotTellWhoIsThereBeyondTheClaim) {
  auto random = SecureRandom::insecure(11);
  const double claim = std::erf(0.5 / std::sqrt(2.0));  // 2 Phi(mu / 2) - 1, mu = 1
  const double margin = 5 * std::sqrt(0.5 / 20'000);    // false alarm below 1e-6
  const Person person = of({Row{{kL, 0, 0}, 0}}, 20);
  const double found =
      advantage(rows_with(&person, 3, 20, 1, few_others(3)), rows_with(nullptr, 3, 20, 1, few_others(3)), random);
  EXPECT_LT(found, claim + margin);
  EXPECT_GT(found, claim - margin) << "the bound is reached";
  // The same rows, each for itself: no promise to people.
  std::vector<LatticeRow> u(20, LatticeRow{kL, 0, 0});
  EXPECT_GT(advantage(lattice_rows(u, 3), lattice_rows({{0, 0, 0}}, 3), random), claim + 0.5);
}

}  // namespace
}  // namespace eigenveil
