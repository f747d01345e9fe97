// SPDX-License-Identifier: Apache-2.0
// Coordinators that want answers with less noise than their plan has, of other rows than it says, or larger than a site
// allows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/extremes.hpp"
#include "tests/support/study_lab.hpp"

namespace eigenveil::federation {
namespace {

using test::extremes;
using test::integers;
using test::StudyLab;
using ::testing::HasSubstr;
using wire::v2::Kind;

constexpr double kMu = StudyLab::kMu;

TEST(HostileNoise, AnAskHasNoFieldForIt) {
  const auto* ask = wire::v2::Ask::descriptor();
  for (int i = 0; i < ask->field_count(); ++i) {
    EXPECT_NE(ask->field(i)->cpp_type(), google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE) << ask->field(i)->name();
    EXPECT_NE(ask->field(i)->cpp_type(), google::protobuf::FieldDescriptor::CPPTYPE_FLOAT) << ask->field(i)->name();
  }
}

// mu = -infinity as the first version had it, in its field and in every other: not one byte is answered.
TEST(HostileNoise, AnAskThatBringsItsOwnIsRefused) {
  for (const int field : {9, 10, 14, 20, 100}) {
    StudyLab lab;
    lab.plan("gram", Kind::GRAM);
    ASSERT_TRUE(lab.begin().ok());
    auto ask = lab.ask("gram");
    wire::v2::Ask::GetReflection()->MutableUnknownFields(&ask)->AddFixed64(field, 0xfff0000000000000);
    EXPECT_FALSE(lab.studies[0]->answer(ask.SerializeAsString()).ok());
    EXPECT_FALSE(lab.send(0, lab.ask("gram")).ok()) << "and the study is over";
  }
}

TEST(HostileNoise, APlanWithoutProperNoiseIsRefusedBeforeItIsCharged) {
  for (const double mu : extremes()) {
    SCOPED_TRACE(mu);
    StudyLab lab;
    lab.plan("gram", Kind::GRAM);
    lab.proposal.mutable_plan(0)->set_mu(mu);
    EXPECT_FALSE(lab.open(0).ok());
    EXPECT_EQ(lab.charges(0), 0U);
  }
}

TEST(HostileNoise, SpareRoundsWithoutProperNoiseAreRefusedBeforeTheyAreCharged) {
  auto all = extremes();
  all.push_back(kMu / 2);  // cheaper than what they repeat
  for (const double mu : all) {
    SCOPED_TRACE(mu);
    StudyLab lab(3);
    lab.plan("gram", Kind::GRAM);
    lab.secure(1, 1, 2);
    lab.proposal.set_spare_mu(mu);
    EXPECT_FALSE(lab.open(0).ok());
    EXPECT_EQ(lab.charges(0), 0U);
  }
}

// Search, then rows on a lattice whose steps are a thousand times smaller, then the product of the search.
TEST(HostileCells, DieWithTheLatticeTheyCameFrom) {
  StudyLab lab;
  lab.plan("search", Kind::SEARCH);
  lab.plan("recentre", Kind::RECENTER);
  lab.plan("product", Kind::PRODUCT);
  ASSERT_TRUE(lab.begin().ok());
  std::vector<wire::v2::Ask> asked = {lab.ask("search")};
  ASSERT_TRUE(lab.send(0, asked[0]).ok());
  lab.sent(asked[0]);
  asked.push_back(lab.ask("recentre"));
  asked[1].mutable_recenter()->set_radius(0.004);
  ASSERT_TRUE(lab.send(0, asked[1]).ok());
  lab.sent(asked[1]);
  const auto product = lab.ask("product");
  const auto expected = lab.expected(0, product, kMu, lab.rows(0, asked));
  const auto answer = lab.send(0, product);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  const auto values = integers(*answer);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], (expected.sum.values[i] << expected.scale.shift) + expected.noise[i]);
}

TEST(HostileCells, RowsAreMovedOnlyWhereThePlanSaysSo) {
  StudyLab lab;
  lab.plan("search", Kind::SEARCH);
  lab.plan("product", Kind::PRODUCT);
  ASSERT_TRUE(lab.begin().ok());
  const auto search = lab.ask("search");
  ASSERT_TRUE(lab.send(0, search).ok());
  lab.sent(search);
  auto recentre = lab.ask("recentre");
  StudyLab::fill(recentre, Kind::RECENTER);
  const auto refused = lab.send(0, recentre);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("beyond the plan"));
}

TEST(HostileSizes, WhatIsLargerThanTheSiteAllowsIsRefusedBeforeItIsComputed) {
  using Change = std::function<void(wire::v2::Ask&)>;
  for (const Change& change : std::vector<Change>{[](auto& ask) {
                                                    for (int i = 0; i < 600; ++i)
                                                      ask.mutable_exceedance()->add_grid(10 + i);
                                                  },
                                                  [](auto& ask) { ask.set_label(std::string(300, 'x')); },
                                                  [](auto& ask) { ask.set_label(std::string(60'000'000, 'x')); }}) {
    StudyLab lab;
    lab.plan("norms", Kind::NORM_COUNTS);
    ASSERT_TRUE(lab.begin().ok());
    auto ask = lab.ask("norms");
    change(ask);
    EXPECT_FALSE(lab.send(0, ask).ok());
    EXPECT_EQ(std::filesystem::file_size(lab.state(0) + "/answers.bin"), 0U);
  }
}

// It was said to be an error of the program, which then stopped as if it were broken (exit code 5).
TEST(HostileQueries, ThatAreNoneAreTheCoordinatorsDoingAndEndTheStudy) {
  using Change = std::function<void(wire::v2::Ask&)>;
  const std::vector<std::pair<Kind, Change>> hostile = {
      {Kind::SOFTMAX_GRADIENT, [](auto& ask) { ask.mutable_sum()->mutable_softmax_gradient()->set_clip(100); }},
      {Kind::CLASS_SUMS, [](auto& ask) { ask.mutable_sum()->mutable_class_sums()->set_classes(0); }},
      {Kind::APPLY, [](auto& ask) { ask.mutable_sum()->mutable_apply()->mutable_x()->set_scaled(0, 1 << 30); }},
      {Kind::PROJECTED_GRAM, [](auto& ask) { ask.mutable_sum()->mutable_projected_gram()->set_radius(1e-25); }},
      {Kind::NORM_COUNTS, [](auto& ask) { ask.mutable_exceedance()->set_grid(0, 1e9); }},
      {Kind::SEARCH, [](auto& ask) { ask.mutable_search()->set_grid(0, 1e-30); }},
      {Kind::PRODUCT, [](auto& ask) { ask.set_chosen(99); }},
      {Kind::RECENTER, [](auto& ask) { ask.mutable_recenter()->add_mean(1); }},
      {Kind::MAP, [](auto& ask) {
         *ask.mutable_recenter() = to_wire(*LinearMap::quantise(Matrix::Identity(3, 3)), *RowBound::of(3));
       }}};
  for (const auto& [kind, change] : hostile) {
    SCOPED_TRACE(Kind_Name(kind));
    StudyLab lab;
    lab.plan("asked", kind);
    lab.plan("gram", Kind::GRAM);
    ASSERT_TRUE(lab.begin().ok());
    auto ask = lab.ask("asked");
    change(ask);
    const auto answer = lab.send(0, ask);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code, ErrorCode::kBadInput) << answer.error().message;
    EXPECT_EQ(std::filesystem::file_size(lab.state(0) + "/answers.bin"), 0U);
    EXPECT_FALSE(lab.send(0, lab.ask("asked")).ok()) << "and the study is over";
  }
}

// Before it is read at all: what is in it may be anything.
TEST(HostileSizes, AnAskLongerThanTheSitesLimitIsRefused) {
  for (const bool longer : {false, true}) {
    StudyLab lab;
    lab.plan("apply", Kind::APPLY);
    ASSERT_TRUE(lab.begin().ok());
    const auto ask = lab.ask("apply");
    const std::size_t bytes = canonical_bytes(ask).size();
    lab.configs[0].limits.message = static_cast<std::uint32_t>(longer ? bytes - 1 : bytes);
    lab.studies[0].reset();
    ASSERT_TRUE(lab.open(0).ok());
    const auto answer = lab.send(0, ask);
    ASSERT_EQ(answer.ok(), !longer);
    if (longer) {
      EXPECT_THAT(answer.error().message, HasSubstr("too long"));
    }
  }
}

}  // namespace
}  // namespace eigenveil::federation
