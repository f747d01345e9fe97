// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/column_map.hpp"

#include <rapidcheck.h>

#include "tests/data/reading.hpp"
#include "tests/support/processor_time.hpp"

namespace eigenveil::test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

Schema mixed() {
  return {{{"t", NumericColumn{-10, 30}},
           {"u", NumericColumn{2, 4}},
           {"c", CategoricalColumn{{"x", "y", "z"}}},
           {"v", NumericColumn{-1, 1}}}};
}

ColumnMap map_of(const Schema& schema, Centering centering) {
  Result<ColumnMap> map = ColumnMap::from_schema(schema, centering);
  if (map.ok()) return *map;
  ADD_FAILURE() << map.error().message;
  return ColumnMap::identity({});
}

std::vector<double> mapped(const ColumnMap& map, const std::vector<double>& raw) {
  EXPECT_EQ(raw.size(), map.raw_columns());
  std::vector<double> features(map.features());
  map.apply(raw.data(), features.data());
  return features;
}

TEST(ColumnMapping, FeaturesAreNamedAfterColumnsAndValues) {
  const ColumnMap map = map_of(mixed(), Centering::kNone);
  EXPECT_THAT(map.feature_names(), ElementsAre("t", "u", "c=x", "c=y", "c=z", "v"));
  EXPECT_EQ(map.raw_columns(), 4U);
  EXPECT_EQ(map.features(), 6U);
}

TEST(ColumnMapping, RangeCenteringTakesBoundsToPlusAndMinusOne) {
  const ColumnMap map = map_of(mixed(), Centering::kRange);
  // Three values are the corners of a triangle in the unit circle: (e_j - 1/3) sqrt(3/2).
  const double on = std::sqrt(2.0 / 3), off = -std::sqrt(1.0 / 6);
  EXPECT_THAT(mapped(map, {-10, 4, 1, 0}),
              Pointwise(DoubleNear(1e-15), std::vector<double>{-1.0, 1.0, off, on, off, 0.0}));
  EXPECT_THAT(mapped(map, {10, 3, 0, 1}),
              Pointwise(DoubleNear(1e-15), std::vector<double>{0.0, 0.0, on, off, off, 1.0}));
}

TEST(ColumnMapping, CategoriesAreTogetherAsLongAsOneNumberHoweverManyTheyAre) {
  for (const std::size_t m : {2U, 3U, 10U, 1000U}) {
    CategoricalColumn column;
    for (std::size_t v = 0; v < m; ++v) column.values.push_back(std::to_string(v));
    for (const double weight : {1.0, 0.25, 3.0}) {
      column.weight = weight;
      for (const Centering centering : {Centering::kNone, Centering::kRange}) {
        const ColumnMap map = map_of({{{"c", column}}}, centering);
        const auto one = mapped(map, {0}), other = mapped(map, {static_cast<double>(m - 1)});
        double length = 0, apart = 0;
        for (std::size_t j = 0; j < m; ++j) {
          length += one[j] * one[j];
          apart += std::pow(one[j] - other[j], 2);
        }
        EXPECT_NEAR(length, weight * weight, 1e-9 * weight * weight);
        EXPECT_NEAR(map.largest_norm(), weight, 1e-9 * weight);
        const auto n = static_cast<double>(m);
        const double expected = centering == Centering::kNone ? 2.0 : 2 * n / (n - 1);
        EXPECT_NEAR(apart, expected * weight * weight, 1e-9 * weight * weight);
      }
    }
  }
}

TEST(ColumnMapping, AMissingCellCountsAsWhatTheSchemaSays) {
  Schema schema = mixed();
  std::get<NumericColumn>(schema.columns[1].kind).missing = 4;
  EXPECT_THAT(mapped(map_of(with_missing(schema, MissingRule::kNone), Centering::kRange), {0, kNaN, 0, 0})[1],
              testing::IsNan());
  const ColumnMap value = map_of(with_missing(schema, MissingRule::kValue), Centering::kRange);
  EXPECT_EQ(mapped(value, {kNaN, kNaN, kNaN, kNaN}), (std::vector<double>{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(mapped(value, {kInf, 2, 0, -1}), mapped(map_of(mixed(), Centering::kRange), {kInf, 2, 0, -1}));

  const Schema stated = with_missing(schema, MissingRule::kCategory);
  EXPECT_THAT(std::get<CategoricalColumn>(stated.columns[2].kind).values, ElementsAre("x", "y", "z", "missing"));
  const ColumnMap category = map_of(stated, Centering::kRange);
  EXPECT_THAT(category.feature_names(), ElementsAre("t", "u", "c=x", "c=y", "c=z", "c=missing", "v"));
  EXPECT_EQ(mapped(category, {10, 3, kNaN, 0}), mapped(category, {10, 3, 3, 0}));
  // Twice is as good as once, and a value of that name is the one that is meant.
  EXPECT_EQ(with_missing(stated, MissingRule::kCategory).categories()[0].values.size(), 4U);
  EXPECT_EQ(mapped(ColumnMap::from_parts(category.specs(), category.offset(), category.scale()), {10, 3, kNaN, 0}),
            mapped(category, {10, 3, 3, 0}));

  // Without a range zero takes the place of what is no number; an infinity is none.
  const ColumnMap free = ColumnMap::identity({"a", "b", "c"});
  const ColumnMap filled =
      ColumnMap::from_parts(with_missing({free.specs()}, MissingRule::kValue).columns, free.offset(), free.scale());
  EXPECT_EQ(mapped(filled, {kNaN, kInf, 7}), (std::vector<double>{0, 0, 7}));
}

TEST(ColumnMapping, ARowWithoutAResponseHasNoPlace) {
  const Schema schema = with_missing({{{"x", NumericColumn{0, 2}}, {"y", NumericColumn{0, 2}}}}, MissingRule::kValue);
  const ColumnMap map = map_of(schema, Centering::kRange).with_response(1, 1);
  std::vector<double> features(3);
  const double raw[2] = {kNaN, kNaN};
  map.apply(raw, features.data());
  EXPECT_EQ(features[0], 0);
  EXPECT_THAT(features[1], testing::IsNan());
}

TEST(ColumnMapping, NoCenteringKeepsZeroAndScalesByTheLargestMagnitude) {
  const ColumnMap map = map_of(mixed(), Centering::kNone);
  EXPECT_THAT(mapped(map, {-10, 4, 2, 0}), ElementsAre(testing::DoubleEq(-1.0 / 3), 1, 0, 0, 1, 0));
  EXPECT_TRUE(map.offset().isZero(0));
}

TEST(ColumnMapping, ValuesOutsideAreClampedAndMissingOnesStayMissing) {
  const ColumnMap map = map_of(mixed(), Centering::kRange);
  const auto clamped = mapped(map, {-1e300, kInf, 0, -kInf});
  EXPECT_EQ(clamped, mapped(map, {-10, 4, 0, -1}));
  EXPECT_THAT(mapped(map, {kNaN, 3, kNaN, 0}), SameValues(std::vector<double>{kNaN, 0, kNaN, kNaN, kNaN, 0}));
}

TEST(ColumnMapping, TheIdentityPassesEverything) {
  const ColumnMap map = ColumnMap::identity({"a", "b", "c"});
  EXPECT_THAT(mapped(map, {1e300, -kInf, kNaN}), SameValues(std::vector<double>{1e300, -kInf, kNaN}));
  EXPECT_EQ(map.largest_norm(), kInf);
  EXPECT_THAT(map.feature_names(), ElementsAre("a", "b", "c"));
}

// Rows of such a map are not copied: what it says of one value more than copying would be left out.
TEST(ColumnMapping, OnlyWhatCopiesIsTheIdentity) {
  const auto of = [](NumericColumn last, double offset, double scale) {
    return ColumnMap::from_parts({{"a", NumericColumn{-kInf, kInf}}, {"b", last}}, Vector{{0, offset}},
                                 Vector{{1, scale}});
  };
  const NumericColumn any{-kInf, kInf};
  EXPECT_TRUE(ColumnMap::identity({"a", "b"}).is_identity());
  EXPECT_TRUE(of(any, 0, 1).is_identity());
  EXPECT_FALSE(of(any, 0.5, 1).is_identity());
  EXPECT_FALSE(of(any, 0, 2).is_identity());
  EXPECT_FALSE(of({-kInf, 3}, 0, 1).is_identity());
  EXPECT_FALSE(of({-3, kInf}, 0, 1).is_identity());
  EXPECT_FALSE(of({-kInf, kInf, 0.0}, 0, 1).is_identity()) << "a missing value counts as 0";
  EXPECT_FALSE(of(any, 0, 1).with_response(1, 1).is_identity());
  EXPECT_FALSE(map_of(mixed(), Centering::kNone).is_identity());
}

TEST(ColumnMapping, PartsRebuildTheSameMap) {
  for (Centering centering : {Centering::kNone, Centering::kRange}) {
    const ColumnMap map = map_of(mixed(), centering);
    const ColumnMap again = ColumnMap::from_parts(map.specs(), map.offset(), map.scale());
    EXPECT_EQ(again.feature_names(), map.feature_names());
    EXPECT_EQ(again.largest_norm(), map.largest_norm());
    EXPECT_EQ(mapped(again, {5, 3.3, 1, 0.2}), mapped(map, {5, 3.3, 1, 0.2}));
  }
}

TEST(ColumnMapping, TheLargestNormCountsACategoricalColumnOnce) {
  EXPECT_NEAR(map_of(mixed(), Centering::kNone).largest_norm(), 2, 1e-13);  // three bounds and one category
  EXPECT_NEAR(map_of(mixed(), Centering::kRange).largest_norm(), 2, 1e-13);
  EXPECT_NEAR(map_of({{{"a", NumericColumn{-5, 2}}}}, Centering::kNone).largest_norm(), 1, 1e-14);
}

TEST(ColumnMapping, NoRowExceedsTheLargestNorm) {
  ASSERT_EQ(::setenv("RC_PARAMS", "seed=20 max_success=2000", 1), 0);
  EXPECT_TRUE(rc::check("norm(mapped row) <= largest_norm()", [] {
    const auto columns = *rc::gen::inRange<std::size_t>(1, 30);
    Schema schema;
    std::vector<double> raw;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string name = std::to_string(i);
      if (*rc::gen::inRange(0, 4) == 0) {
        const auto values = *rc::gen::inRange<std::size_t>(1, 5);
        CategoricalColumn kind;
        for (std::size_t v = 0; v < values; ++v) kind.values.push_back(std::to_string(v));
        schema.columns.push_back({name, kind});
        raw.push_back(static_cast<double>(*rc::gen::inRange<std::size_t>(0, values)));
      } else {
        // awkward ends on purpose: thirds are not representable, scales differ by many powers of ten
        const double unit = std::pow(10.0, *rc::gen::inRange(-200, 200));
        const double lower = *rc::gen::inRange(-999, 999) / 3.0 * unit;
        const double upper = lower + *rc::gen::inRange(1, 999) / 7.0 * unit;
        schema.columns.push_back({name, NumericColumn{lower, upper}});
        raw.push_back(lower);
      }
    }
    const auto centering = *rc::gen::element(Centering::kNone, Centering::kRange);
    const Result<ColumnMap> map = ColumnMap::from_schema(schema, centering);
    RC_ASSERT(map.ok());
    // the row whose every feature is as large as it can be: the bound must hold to the last bit
    std::vector<double> features(map->features());
    std::vector<double> low(raw);
    std::vector<double> high(raw);
    for (std::size_t i = 0; i < columns; ++i)
      if (std::holds_alternative<NumericColumn>(schema.columns[i].kind)) low[i] = -(high[i] = kInf);
    std::vector<double> features_high(features);
    map->apply(low.data(), features.data());
    map->apply(high.data(), features_high.data());
    long double sum = 0;  // 64-bit mantissa: its rounding is far below that of double
    for (std::size_t i = 0; i < features.size(); ++i) {
      const long double f = std::max(std::fabs(features[i]), std::fabs(features_high[i]));
      sum += f * f;
    }
    RC_ASSERT(std::sqrt(sum) <= static_cast<long double>(map->largest_norm()));
    RC_ASSERT(map->largest_norm() <= std::sqrt(static_cast<double>(map->features())) * (1 + 1e-9));
  }));
}

TEST(ColumnMapping, ExtremeBoundsNeitherOverflowNorDivideByZero) {
  constexpr double kHuge = 1.7e308;
  const ColumnMap wide = map_of({{{"a", NumericColumn{-kHuge, kHuge}}}}, Centering::kRange);
  EXPECT_THAT(mapped(wide, {kInf}), ElementsAre(testing::DoubleNear(1, 1e-12)));
  const ColumnMap shifted = map_of({{{"a", NumericColumn{1e308, kHuge}}}}, Centering::kRange);
  EXPECT_THAT(mapped(shifted, {-kInf}), ElementsAre(testing::DoubleNear(-1, 1e-12)));
  for (Centering centering : {Centering::kNone, Centering::kRange})
    EXPECT_FALSE(ColumnMap::from_schema({{{"a", NumericColumn{0, 5e-324}}}}, centering).ok());
}

TEST(ColumnMapping, SchemasWithoutSenseAreRefused) {
  const auto refusal = [](const Schema& schema) {
    const Result<ColumnMap> map = ColumnMap::from_schema(schema, Centering::kNone);
    return map.ok() ? std::string("accepted") : map.error().message;
  };
  EXPECT_THAT(refusal({}), HasSubstr("no columns"));
  EXPECT_THAT(refusal({{{"a", NumericColumn{1, 1}}}}), HasSubstr("Column 'a': lower must be less"));
  EXPECT_THAT(refusal({{{"a", NumericColumn{kNaN, 1}}}}), HasSubstr("finite"));
  EXPECT_THAT(refusal({{{"a", CategoricalColumn{}}}}), HasSubstr("values is empty"));
  EXPECT_THAT(refusal({{{"a", NumericColumn{0, 1}}, {"a", NumericColumn{0, 1}}}}), HasSubstr("'a' twice"));
}

TEST(ColumnMapping, AHundredThousandColumnsAreMappedQuickly) {
  Schema schema;
  for (int i = 0; i < 100'000; ++i) schema.columns.push_back({std::to_string(i), NumericColumn{-1, 1.0 + i}});
  const ColumnMap map = map_of(schema, Centering::kRange);
  const std::vector<double> raw(100'000, 0.5);
  std::vector<double> features(100'000);
  const double took = processor_seconds([&] {
    for (int i = 0; i < 100; ++i) map.apply(raw.data(), features.data());
  });
  EXPECT_LT(took, 1.0) << "100 rows of 100,000 columns";  // some 30 ms on one idle core
}

}  // namespace
}  // namespace eigenveil::test
