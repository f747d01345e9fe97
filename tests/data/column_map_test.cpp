// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/column_map.hpp"

#include <rapidcheck.h>

#include "tests/data/reading.hpp"
#include "tests/support/processor_time.hpp"

namespace eigenveil::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  EXPECT_THAT(mapped(map, {-10, 4, 1, 0}), ElementsAre(-1, 1, -1, 1, -1, 0));
  EXPECT_THAT(mapped(map, {10, 3, 0, 1}), ElementsAre(0, 0, 1, -1, -1, 1));
}

TEST(ColumnMapping, NoCenteringKeepsZeroAndScalesByTheLargestMagnitude) {
  const ColumnMap map = map_of(mixed(), Centering::kNone);
  EXPECT_THAT(mapped(map, {-10, 4, 2, 0}), ElementsAre(testing::DoubleEq(-1.0 / 3), 1, 0, 0, 1, 0));
  EXPECT_TRUE(map.offset().isZero(0));
}

TEST(ColumnMapping, ValuesOutsideAreClampedAndMissingOnesStayMissing) {
  const ColumnMap map = map_of(mixed(), Centering::kRange);
  EXPECT_THAT(mapped(map, {-1e300, kInf, 0, -kInf}), ElementsAre(-1, 1, 1, -1, -1, -1));
  EXPECT_THAT(mapped(map, {kNaN, 3, kNaN, 0}), SameValues(std::vector<double>{kNaN, 0, kNaN, kNaN, kNaN, 0}));
}

TEST(ColumnMapping, TheIdentityPassesEverything) {
  const ColumnMap map = ColumnMap::identity({"a", "b", "c"});
  EXPECT_THAT(mapped(map, {1e300, -kInf, kNaN}), SameValues(std::vector<double>{1e300, -kInf, kNaN}));
  EXPECT_EQ(map.largest_norm(), kInf);
  EXPECT_THAT(map.feature_names(), ElementsAre("a", "b", "c"));
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

TEST(ColumnMapping, TheLargestNormCountsACategoryOnceWithoutCentering) {
  EXPECT_NEAR(map_of(mixed(), Centering::kNone).largest_norm(), 2, 1e-13);  // three bounds and one category
  EXPECT_NEAR(map_of(mixed(), Centering::kRange).largest_norm(), std::sqrt(6.0), 1e-13);
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
