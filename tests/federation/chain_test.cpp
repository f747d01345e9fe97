// SPDX-License-Identifier: Apache-2.0
// One hash of everything that was said: golden values, and bytes that say the same in another way are refused.
#include "eigenveil/federation/chain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "wire.pb.h"

namespace eigenveil::federation {
namespace {

// BLAKE2b-256 of (length, tag, length, field, ...), lengths in 8 bytes, little-endian; by hand, with another program.
TEST(Hash, HasItsGoldenValues) {
  EXPECT_EQ(hex(hash("chain", {})), "a85d2b0c8891231d67f6918f41196617afedcefd19d3c063b554cbf6a49fed5e");
  EXPECT_EQ(hex(hash("chain", {"a", "bc"})), "8857622a719e09e973bc405b3a147684972e8e4f78f0670078d5dc9a40a95a31");
  EXPECT_EQ(hex(Secret::of(std::string(32, 'k'))->derive("next", {"h"}).view()),
            "3c1ea162e7094468041d24e9e04f54ef2ec96d1d0acd87e542c34b5b3181210d");
}

TEST(Hash, TellsWhereAFieldEnds) {
  std::set<std::string> all = {hash("t", {"ab", "c"}), hash("t", {"a", "bc"}), hash("t", {"abc"}),
                               hash("t", {"abc", ""}), hash("ta", {"b", "c"}), hash("t", {"", "abc"})};
  EXPECT_EQ(all.size(), 6U);
}

TEST(Chain, EveryByteOfEveryAskChangesTheHead) {
  const auto head = [](const std::vector<std::string>& asks) {
    Chain chain("proposal", "roster");
    for (const auto& ask : asks) chain.add(ask);
    EXPECT_EQ(chain.last(), asks.size());
    return chain.head();
  };
  const std::vector<std::string> asks = {"first", "second", "third"};
  std::set<std::string> heads = {head(asks)};
  std::size_t changes = 1;
  for (std::size_t i = 0; i < asks.size(); ++i)
    for (std::size_t j = 0; j < asks[i].size(); ++j, ++changes) {
      auto other = asks;
      other[i][j] = static_cast<char>(other[i][j] ^ 1);
      heads.insert(head(other));
    }
  heads.insert(head({"second", "first", "third"}));
  heads.insert(head({"firstsecond", "third"}));
  EXPECT_EQ(heads.size(), changes + 2);
  EXPECT_NE(Chain("p", "r").head(), Chain("r", "p").head());
}

// Two bytes for each empty name, and fifty times that once they are read.
TEST(Canonical, PartsAreCountedBeforeTheyTakeMemory) {
  std::string tag;
  {
    wire::v2::Ask one;
    one.add_among("");
    tag = canonical_bytes(one);
  }
  std::string many;
  for (int i = 0; i < 30'000'000; ++i) many += tag;
  wire::v2::Ask ask;
  const auto refused = read_canonical(many, ask);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("more parts"));
  EXPECT_EQ(ask.among_size(), 0);
}

TEST(Canonical, OnlyOneWayToSayAThingIsRead) {
  wire::v2::Ask ask;
  ask.set_study("0123456789abcdef");
  ask.set_number(7);
  ask.set_label("gram");
  ask.mutable_sum()->mutable_gram();
  ask.add_among("a");
  const std::string bytes = canonical_bytes(ask);
  wire::v2::Ask read;
  ASSERT_TRUE(read_canonical(bytes, read).ok());
  EXPECT_EQ(read.label(), "gram");
  const std::string number = bytes.substr(18, 2);
  ASSERT_EQ(number, std::string("\x10\x07"));
  const std::vector<std::string> others = {
      bytes + std::string("\x98\x06\x01", 3),              // a field that is not known: 99
      bytes + std::string("\x49\0\0\0\0\0\0\xf0\xff", 9),  // the noise of the first version: mu = -infinity
      bytes + std::string("\x60\x00", 2),                  // an absent field, spelt out
      number + bytes.substr(0, 18) + bytes.substr(20),     // another order
      number + bytes,                                      // a field twice
      bytes.substr(0, 18) + std::string("\x10\x87\x00", 3) + bytes.substr(20),  // a long way to write 7
      bytes.substr(0, bytes.size() - 1),
      "",
      "not a message"};
  for (const std::string& other : others) {
    wire::v2::Ask message;
    const auto refused = read_canonical(other, message);
    if (other.empty()) continue;  // says nothing, in the one way to say it
    EXPECT_FALSE(refused.ok()) << hex(other);
  }
}

}  // namespace
}  // namespace eigenveil::federation
