// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/figures.hpp"

#include <gtest/gtest.h>

namespace eigenveil {
namespace {

TEST(Figures, HaveNoExponentWherePeopleReadThem) {
  EXPECT_EQ(plain(1e-6), "0.000001");
  EXPECT_EQ(plain(1e-9), "0.000000001");
  EXPECT_EQ(plain(5.5252e-6), "0.0000055252");
  EXPECT_EQ(plain(-1.5e-5), "-0.000015");
  EXPECT_EQ(plain(9.999999e-5), "0.0001");
  EXPECT_EQ(plain(0.5), "0.5");
  EXPECT_EQ(plain(1.25), "1.25");
  EXPECT_EQ(plain(1000), "1000");
  EXPECT_EQ(plain(0), "0");
  EXPECT_EQ(plain(1e-10), "1e-10");
  EXPECT_EQ(plain(2.5e-18), "2.5e-18");
  EXPECT_EQ(plain(1e-300), "1e-300");
}

TEST(Figures, SayOneInHowMany) {
  EXPECT_EQ(chance(1e-6), "0.000001 (1 in 1,000,000)");
  EXPECT_EQ(chance(1e-5), "0.00001 (1 in 100,000)");
  EXPECT_EQ(chance(0.01), "0.01 (1 in 100)");
  EXPECT_EQ(chance(0.25), "0.25");
  EXPECT_EQ(chance(1e-18), "1e-18");
}

}  // namespace
}  // namespace eigenveil
