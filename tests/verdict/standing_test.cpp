// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/verdict/standing.hpp"

#include <gtest/gtest.h>

namespace eigenveil {
namespace {

constexpr Judged kNoise{Standing::kNoise, 0, 0};
constexpr Judged kWeak{Standing::kWeak, 0, 0};

Judged holds(std::size_t i) { return {Standing::kHolds, i, i}; }
Judged plane(std::size_t first, std::size_t last) { return {Standing::kPlane, first, last}; }

TEST(VerdictInWords, NamesRunsAndNotEveryDirection) {
  EXPECT_EQ(verdict_in_words({holds(1), holds(2), holds(3), plane(4, 5), plane(4, 5), kNoise, kNoise}, "PC"),
            "PC1-3 hold, PC4-5 only as a plane, the rest is noise.");
  EXPECT_EQ(verdict_in_words({holds(1), plane(2, 4), plane(2, 4), plane(2, 4)}, "PC"),
            "PC1 holds, PC2-4 only as a space.");
  EXPECT_EQ(verdict_in_words({holds(1), kNoise}, "LD"), "LD1 holds, LD2 is noise.");
}

TEST(VerdictInWords, NoiseAloneIsNotTheRestOfAnything) {
  EXPECT_EQ(verdict_in_words({kNoise}, "PC"), "PC1 is noise.");
  EXPECT_EQ(verdict_in_words({kNoise, kNoise, kNoise}, "PC"), "PC1-3 are noise.");
}

TEST(VerdictInWords, SaysOfWeakOnesThatTheyAreThere) {
  EXPECT_EQ(verdict_in_words({holds(1), kWeak, kNoise}, "PC"),
            "PC1 holds, PC2 is more than noise, but its direction is not determined, PC3 is noise.");
}

TEST(VerdictInWords, APlaneWithANeighbourThatHoldsIsNamed) {
  EXPECT_EQ(verdict_in_words({holds(1), plane(1, 2)}, "PC"), "PC1 holds, PC2 only within the plane of PC1-2.");
}

TEST(Standing, HasTheWordsOfAManifest) {
  EXPECT_EQ(name(Standing::kNoise), "noise");
  EXPECT_EQ(name(Standing::kWeak), "weak");
  EXPECT_EQ(name(Standing::kPlane), "plane");
  EXPECT_EQ(name(Standing::kHolds), "holds");
}

}  // namespace
}  // namespace eigenveil
