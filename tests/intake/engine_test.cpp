// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/intake/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eigenveil/data/memory_source.hpp"

namespace eigenveil {
namespace {

/// Would have others read the rows.
class OthersRead final : public Engine {
 public:
  Result<std::unique_ptr<HeldRows>> hold(const RowOptions&, OpenedData&, const RunOptions&, std::size_t,
                                         Observer&) override {
    return internal_error("the engine was asked");
  }
};

TEST(Engine, IsNotAskedForRowsInMemory) {
  const auto given = [] {
    return std::make_shared<GivenRows>(std::make_unique<MemorySource>(RowMajorMatrix::Ones(4, 2)));
  };
  RunOptions run;
  run.engine = std::make_shared<OthersRead>();
  Observer silent;
  RowOptions rows;
  rows.given = given();
  rows.row_bound = *RowBound::of(1);
  auto opened = open_data(rows);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_THAT(hold(rows, *opened, run, 0, silent).error().message, ::testing::HasSubstr("this process alone"));

  RowOptions pairs;
  pairs.pairs = PairReading{.files = {}, .given_x = given(), .given_y = given()};
  auto views = open_data(pairs);
  ASSERT_TRUE(views.ok()) << views.error().message;
  EXPECT_THAT(hold(pairs, *views, run, 0, silent).error().message, ::testing::HasSubstr("this process alone"));
}

}  // namespace
}  // namespace eigenveil
