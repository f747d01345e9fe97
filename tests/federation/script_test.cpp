// SPDX-License-Identifier: Apache-2.0
// A proposal's asks in their order, and what each costs.
#include "eigenveil/federation/script.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/federation/questions.hpp"

namespace eigenveil::federation {
namespace {

using ::testing::HasSubstr;
using wire::v2::Kind;

wire::v2::Proposal proposal() {
  wire::v2::Proposal proposal;
  proposal.set_adjacency("replace-one");
  const PrivacyPlan plan(Adjacency::kReplaceOne, {{"column sums", GaussianEvent{0.5}, 1},
                                                  {"threshold 1", GaussianEvent{0.1}, 1},
                                                  {"product 1", GaussianEvent{0.7}, 1},
                                                  {"class counts", GaussianEvent{0.2}, 2}});
  const auto described = describe(plan, 3, 4, questions_of_estimators(), proposal);
  EXPECT_TRUE(described.ok());
  return proposal;
}

TEST(Script, KnowsWhatIsBehindTheEstimatorsLabelsAndWhereRowsMove) {
  std::vector<std::pair<std::string, std::string>> all;
  const auto proposed = proposal();
  for (const auto& ask : proposed.plan()) all.emplace_back(ask.label(), name(ask.kind()));
  const std::vector<std::pair<std::string, std::string>> expected = {{"column sums", "class_sums"},
                                                                     {"recentre", "recenter"},
                                                                     {"threshold 1", "search"},
                                                                     {"product 1", "product"},
                                                                     {"class counts", "class_counts"}};
  EXPECT_EQ(all, expected);
  for (int kind = 1; kind <= 12; ++kind)
    EXPECT_EQ(kind_from_name(name(static_cast<Kind>(kind))), static_cast<Kind>(kind));
  wire::v2::Proposal other;
  EXPECT_FALSE(describe(PrivacyPlan(Adjacency::kReplaceOne, {{"something", GaussianEvent{1.0}, 1}}), 3, 0,
                        questions_of_estimators(), other)
                   .ok());
}

TEST(Script, ChargesEveryAnswerAndItsSpareRounds) {
  auto with_spares = proposal();
  with_spares.set_spares(3);
  with_spares.set_spare_mu(0.7);
  const auto plan = charged_plan(with_spares);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->adjacency, Adjacency::kReplaceOne);
  ASSERT_EQ(plan->events.size(), 5U) << "rows that move cost nothing";
  EXPECT_EQ(plan->events.back().label, kSpareRounds);
  EXPECT_EQ(plan->events.back().count, 3);
  with_spares.set_spare_mu(0.69);
  EXPECT_FALSE(charged_plan(with_spares).ok()) << "cheaper than what they repeat";
}

// Searches cost as Gaussian answers: the weight that the plan gave them, in the same units as all others.
TEST(Script, SearchesOverSitesAreGaussian) {
  const PrivacyPlan plan = for_sites(PrivacyPlan(Adjacency::kReplaceOne, {{"row bound", PureEvent{0.25}, 1}}));
  EXPECT_EQ(std::get<GaussianEvent>(plan.events[0].mechanism).mu, 0.25);
}

TEST(Script, GivesTheNoiseOfThePlanInItsOrder) {
  auto script = Script::of(proposal());
  ASSERT_TRUE(script.ok());
  wire::v2::Ask ask;
  ask.set_number(1);
  ask.set_label("column sums");
  ask.mutable_sum()->mutable_class_sums()->set_classes(1);
  auto mu = script->next(ask);
  ASSERT_TRUE(mu.ok()) << mu.error().message;
  EXPECT_EQ(mu->value(), 0.5);
  ask.set_number(2);
  ask.set_label("recentre");
  ask.mutable_recenter()->add_mean(0);
  mu = script->next(ask);
  ASSERT_TRUE(mu.ok());
  EXPECT_FALSE(mu->has_value());
  ask.set_number(3);
  ask.set_label("threshold 1");
  ask.mutable_product()->add_grid(1);
  mu = script->next(ask);
  ASSERT_FALSE(mu.ok());
  EXPECT_THAT(mu.error().message, HasSubstr("next is 'threshold 1' (search), not 'threshold 1' (product)"));
  ask.mutable_search()->add_grid(1);
  EXPECT_FALSE(script->next(ask).ok()) << "after a refusal everything is refused";
}

}  // namespace
}  // namespace eigenveil::federation
