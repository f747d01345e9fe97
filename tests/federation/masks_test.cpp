// SPDX-License-Identifier: Apache-2.0
// Masks cancel between two sites that were told the same, and between no others.
#include "eigenveil/federation/masks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

using ::testing::HasSubstr;

struct Pair {
  Secret a = Secret::draw();
  Secret b = Secret::draw();
  MaskEnd end_a{"a", open_key(a)};
  MaskEnd end_b{"b", open_key(b)};
  Mask at_a(const std::string& hp = "hp", const std::string& hr = "hr") const {
    return *Mask::between(a, end_a, end_b, hp, hr);
  }
  Mask at_b(const std::string& hp = "hp", const std::string& hr = "hr") const {
    return *Mask::between(b, end_b, end_a, hp, hr);
  }
};

std::vector<Int128> masked(const Mask& mask, const std::string& head, bool narrow, std::int64_t value) {
  std::vector<Int128> values(1500, value);
  mask.apply(head, narrow, values);
  return values;
}

std::vector<Int128> total(const std::vector<Int128>& x, const std::vector<Int128>& y, bool narrow) {
  std::vector<Int128> sum(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum[i] = static_cast<Int128>(static_cast<UInt128>(x[i]) + static_cast<UInt128>(y[i]));
    if (narrow) sum[i] = narrowed(sum[i]);
  }
  return sum;
}

/// No entry is anywhere near what it would be without masks.
void expect_uniform(const std::vector<Int128>& values, bool narrow) {
  const Int128 limit = Int128{1} << (narrow ? 40 : 100);
  EXPECT_LT(std::count_if(values.begin(), values.end(), [&](Int128 x) { return x > -limit && x < limit; }), 3);
}

TEST(Masks, CancelAndHaveAStreamForEachAsk) {
  const Pair pair;
  Mask a = pair.at_a(), b = pair.at_b();
  std::set<std::uint64_t> words;
  for (const std::string head : {"h1", "h2", "h3"}) {
    for (const bool narrow : {false, true}) {
      const std::string asked = head + (narrow ? "n" : "w");
      const auto x = masked(a, asked, narrow, 5);
      EXPECT_EQ(total(x, masked(b, asked, narrow, -7), narrow), std::vector<Int128>(1500, -2));
      for (const Int128 value : x) words.insert(static_cast<std::uint64_t>(static_cast<UInt128>(value) - 5));
    }
    a.advance(head);
    b.advance(head);
  }
  EXPECT_EQ(words.size(), 6U * 1500) << "no 64 bits of a stream occur in another";
}

// Three sites whose answers add up to `wanted`, each far beyond the width by itself where masks make it so.
Int128 decoded(Int128 wanted, bool narrow) {
  const Secret keys[] = {Secret::draw(), Secret::draw(), Secret::draw()};
  const MaskEnd ends[] = {{"a", open_key(keys[0])}, {"b", open_key(keys[1])}, {"c", open_key(keys[2])}};
  const Int128 part = wanted / 3;
  const Int128 parts[] = {part, part, wanted - part - part};
  std::vector<Int128> total(1);
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<Int128> values = {parts[i]};
    for (std::size_t j = 0; j < 3; ++j)
      if (j != i) Mask::between(keys[i], ends[i], ends[j], "hp", "hr")->apply("h", narrow, values);
    std::string bytes;
    append_integers(values.data(), 1, narrow, bytes);
    EXPECT_EQ(bytes.size(), narrow ? 8U : 16U);
    add_integers(bytes, narrow, total.data());
  }
  return total[0];
}

TEST(Masks, TotalsAtTheEdgesOfEachWidthAreDecodedAndOneBeyondIsNot) {
  const Int128 narrow_most = INT64_MAX;
  const Int128 wide_most = static_cast<Int128>(~UInt128{0} >> 1);
  for (const auto& [narrow, most] : {std::pair{true, narrow_most}, std::pair{false, wide_most}}) {
    const Int128 least = -most - 1;
    for (const Int128 total : {most, most - 1, least, least + 1, Int128{0}, Int128{1}, Int128{-1}})
      EXPECT_TRUE(decoded(total, narrow) == total) << narrow;
  }
  EXPECT_TRUE(decoded(narrow_most + 1, true) == -narrow_most - 1) << "which is why nobody may ask for it";
  EXPECT_TRUE(decoded(-narrow_most - 2, true) == narrow_most);
  EXPECT_TRUE(decoded(narrow_most + 1, false) == narrow_most + 1);
}

TEST(Masks, DoNotCancelForAnotherProposalRosterAskOrHistory) {
  const Pair pair;
  for (const bool narrow : {false, true}) {
    const auto one = masked(pair.at_a(), "h", narrow, 5);
    expect_uniform(total(one, masked(pair.at_b("hq", "hr"), "h", narrow, 0), narrow), narrow);
    expect_uniform(total(one, masked(pair.at_b("hp", "hs"), "h", narrow, 0), narrow), narrow);
    expect_uniform(total(one, masked(pair.at_b(), "g", narrow, 0), narrow), narrow);
    Mask later = pair.at_b();
    later.advance("another ask before");
    expect_uniform(total(one, masked(later, "h", narrow, 0), narrow), narrow);
  }
}

// Whoever shows an honest site's key as its own gets a pair that nobody else has.
TEST(Masks, AReflectedKeyIsAnotherPair) {
  const Pair pair;
  const MaskEnd posing{"c", pair.end_b.open};
  const Mask with_posing = *Mask::between(pair.a, pair.end_a, posing, "hp", "hr");
  expect_uniform(total(masked(with_posing, "h", false, 5), masked(pair.at_b(), "h", false, 0), false), false);
  EXPECT_FALSE(Mask::between(pair.a, pair.end_a, {"c", pair.end_a.open}, "hp", "hr").ok()) << "its own key";
  EXPECT_FALSE(Mask::between(pair.a, pair.end_a, {"a", pair.end_b.open}, "hp", "hr").ok()) << "its own name";
}

TEST(Masks, KeysOfLowOrderAreRefused) {
  const Pair pair;
  std::string one(32, '\0');
  one[0] = 1;
  for (const std::string& weak : {std::string(32, '\0'), one}) {
    const auto refused = Mask::between(pair.a, pair.end_a, {"b", weak}, "hp", "hr");
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, HasSubstr("low order"));
  }
  EXPECT_FALSE(Mask::between(pair.a, pair.end_a, {"b", "short"}, "hp", "hr").ok());
}

}  // namespace
}  // namespace eigenveil::federation
