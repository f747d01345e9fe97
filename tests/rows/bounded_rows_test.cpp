// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/bounded_rows.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "eigenveil/data/memory_source.hpp"

namespace eigenveil {
namespace {

Result<BoundedRows> read(double value, BoundingOptions options) {
  RowMajorMatrix raw(1, 2);
  raw << 1, value;
  MemorySource source(raw);
  options.class_column = 1;
  return BoundedRows::read(source, ColumnMap::identity({"1"}), options);
}

// Whatever a source says, a class is one of those that there are or none: no number is cast that no integer holds.
TEST(ClassesOfRows, AreWholeNumbersThatFitOrNone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const std::size_t classes : {0U, 3U}) {
    BoundingOptions options{.bound = *RowBound::of(2)};
    options.classes = classes;
    for (const double good : {0.0, 2.0}) EXPECT_EQ(read(good, options)->classes().at(0), good);
    for (const double bad : {-1.0, -0.5, 0.5, 1e10, 0x1p31, 1e300, -1e300, kInfinity, -kInfinity}) {
      options.drop_unlisted = false;
      const auto refused = read(bad, options);
      ASSERT_FALSE(refused.ok()) << bad;
      EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
      options.drop_unlisted = true;
      const auto dropped = read(bad, options);
      ASSERT_TRUE(dropped.ok()) << bad;
      EXPECT_EQ(dropped->classes().at(0), -1) << bad;
      std::vector<std::int32_t> buffer;
      EXPECT_EQ(**dropped->store().read(0, buffer), 0) << bad;
    }
  }
}

}  // namespace
}  // namespace eigenveil
