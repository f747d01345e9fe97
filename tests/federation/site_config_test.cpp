// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/site_config.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/proposals.hpp"

namespace eigenveil::federation {
namespace {

using test::message;
using test::SiteFile;
using testing::HasSubstr;
using wire::v2::Kind;

TEST_F(SiteFile, HasSafeDefaultsForAllButWhatOnlyTheSiteKnows) {
  const SiteConfig own = config();
  EXPECT_EQ(own.identity.party.name, "a");
  EXPECT_EQ(own.colluders, 1u);
  EXPECT_EQ(own.missing, MissingPolicy::kZeroRow);
  EXPECT_TRUE(own.drop_unlisted);
  EXPECT_EQ(own.limits.grid, 512u);
  EXPECT_EQ(own.limits.label, 200u);
  EXPECT_EQ(own.limits.purpose, 500u);
  EXPECT_EQ(own.limits.asks, 10'000u);
  EXPECT_EQ(own.limits.sites, 64u);
  EXPECT_EQ(own.policy.most_epsilon, 1);
  EXPECT_EQ(own.policy.most_epsilon_alone, 5);
  EXPECT_EQ(own.policy.most_delta, 1e-5);
  EXPECT_FALSE(own.policy.queries.contains(Kind::SOFTMAX_GRADIENT));
  EXPECT_EQ(own.classes.at("dose").cuts, (std::vector<double>{-4, 0, 4}));
  for (const char* key : {"coordinator", "coordinator_name", "coordinator_key", "data", "schema", "dataset", "peers"})
    EXPECT_THAT(message(read({.without = key})), HasSubstr(fmt::format("'{}' is missing", key)));
}

TEST_F(SiteFile, UnknownKeysAreRefused) {
  EXPECT_THAT(message(read({.top = "colluder = 2\n"})), HasSubstr("'colluder' is not known"));
  EXPECT_THAT(message(read({.policy = "most_epsilom = 2\n"})), HasSubstr("'most_epsilom' is not known"));
  EXPECT_THAT(message(read({.limits = "gird = 2\n"})), HasSubstr("'gird' is not known"));
  EXPECT_THAT(message(read({.limits = "\"a\\u001b[2J\" = 2\n"})), HasSubstr("'a\\x1b[2J' is not known"));
}

TEST_F(SiteFile, WholeNumbersDoNotWrapAround) {
  for (const char* value : {"0", "-1", "4294967297", "9223372036854775807", "1e3", "\"3\"", "true", "nan"}) {
    EXPECT_THAT(message(read({.top = fmt::format("colluders = {}\n", value)})), HasSubstr("whole number")) << value;
    EXPECT_THAT(message(read({.limits = fmt::format("grid = {}\n", value)})), HasSubstr("whole number")) << value;
    EXPECT_THAT(message(read({.limits = fmt::format("asks = {}\n", value)})), HasSubstr("whole number")) << value;
  }
  EXPECT_THAT(message(read({.limits = "sites = 65\n"})), HasSubstr("from 1 to 64"));
  EXPECT_EQ(config({.limits = "sites = 64\nasks = 2147483647\n"}).limits.asks, 2147483647u);
}

TEST_F(SiteFile, LimitsOfPrivacyAreFiniteAndPositive) {
  for (const char* key : {"most_epsilon", "most_epsilon_alone", "most_delta", "least_noise"})
    for (const char* value : {"0", "-1", "inf", "-inf", "nan", "\"1\"", "true"})
      EXPECT_THAT(message(read({.policy = fmt::format("{} = {}\n", key, value)})), HasSubstr("positive number"))
          << key << value;
}

TEST_F(SiteFile, PeersAreNamesWithKeysThisSiteAmongThemAndTheCoordinatorNot) {
  Pins peers = study_.sites;
  peers.erase("a");
  EXPECT_THAT(message(read({.peers = peers})), HasSubstr("this site itself is missing"));
  peers["a"] = study_.sites["b"];
  EXPECT_THAT(message(read({.peers = peers})), HasSubstr("this site itself is missing or has another key"));
  peers = study_.sites;
  peers["x"] = study_.coordinator.key_hash;
  EXPECT_THAT(message(read({.peers = peers})), HasSubstr("is the coordinator"));
  peers = study_.sites;
  peers["b"] = "4f0c";
  EXPECT_THAT(message(read({.peers = peers})), HasSubstr("is no key of 'b'"));
}

TEST_F(SiteFile, ClassesAreColumnsAndLabelsOfTheSchema) {
  EXPECT_THAT(message(read({.classes = "hiv = [\"neg\", \"pos\"]\n"})), HasSubstr("the schema has no column 'hiv'"));
  EXPECT_THAT(message(read({.classes = "label = [\"A\", \"Z\"]\n"})), HasSubstr("'Z' is not in the schema"));
  EXPECT_THAT(message(read({.classes = "label = [1, 2]\n"})), HasSubstr("labels, not cuts"));
  EXPECT_THAT(message(read({.classes = "dose = [\"1\"]\n"})), HasSubstr("cuts, not labels"));
  EXPECT_THAT(message(read({.classes = "dose = [2, 1]\n"})), HasSubstr("ascend"));
  for (const char* slices : {"1", "10001", "-1", "\"4\""})
    EXPECT_THAT(message(read({.classes = fmt::format("dose = {{ slices = {} }}\n", slices)})), HasSubstr("slices = N"));
  EXPECT_THAT(message(read({.top = "columns = [\"height\"]\n"})), HasSubstr("the schema has no column 'height'"));
}

TEST_F(SiteFile, EstimatorsStandForTheirQuestions) {
  EXPECT_EQ(config({.policy = "estimators = [\"covariance\"]\n"}).policy.queries, queries_of("covariance"));
  EXPECT_EQ(config({.policy = "queries = [\"gram\"]\n"}).policy.queries, std::set<Kind>{Kind::GRAM});
  EXPECT_THAT(message(read({.policy = "queries = [\"rows\"]\n"})), HasSubstr("'rows' is no kind of question"));
  EXPECT_THAT(message(read({.policy = "estimators = [\"magic\"]\n"})), HasSubstr("no estimator for sites"));
}

}  // namespace
}  // namespace eigenveil::federation
