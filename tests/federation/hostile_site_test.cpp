// SPDX-License-Identifier: Apache-2.0
// The program as a site, and a coordinator over the network that does not keep to the protocol.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "../src/federation/credentials.hpp"
#include "tests/support/child.hpp"
#include "tests/support/study_lab.hpp"
#include "wire.grpc.pb.h"

namespace eigenveil::federation {
namespace {

using test::Certificates;
using test::StudyLab;
using ::testing::HasSubstr;
using wire::v2::Kind;

constexpr double kMu = StudyLab::kMu;

/// A coordinator that sends what it is given, one message after each message of the site.
class Script final : public wire::v2::Coordinator::Service {
 public:
  using Next = std::function<std::optional<wire::v2::ToSite>(const wire::v2::FromSite&)>;
  explicit Script(const StudyLab& lab, Next next) : next_(std::move(next)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(
        "127.0.0.1:0", credentials_of_coordinator(Certificates::shared().identity("coordinator"), lab.pins), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Script() override { server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1)); }
  grpc::Status Join(grpc::ServerContext*,
                    grpc::ServerReaderWriter<wire::v2::ToSite, wire::v2::FromSite>* stream) override {
    wire::v2::FromSite message;
    while (stream->Read(&message)) {
      heard.push_back(message);
      if (const auto next = next_(message)) stream->Write(*next);
    }
    return grpc::Status::OK;
  }
  int port = 0;
  std::vector<wire::v2::FromSite> heard;

 private:
  Next next_;
  std::unique_ptr<grpc::Server> server_;
};

class RealSite : public ::testing::Test {
 protected:
  explicit RealSite(Adjacency adjacency = Adjacency::kReplaceOne) : lab(1, adjacency) { lab.plan("gram", Kind::GRAM); }

  /// Runs the program as a site and gives its exit code and what it printed.
  std::pair<int, std::string> serve(int port) {
    const SiteConfig& config = lab.configs[0];
    for (const auto& [name, text] : {std::pair{"ca", config.identity.authority},
                                     {"crt", config.identity.certificate},
                                     {"key", config.identity.key}})
      std::ofstream(folder_.file(std::string("tls-") + name)) << text;
    std::string schema;
    for (const char* column : {"a", "b"})
      schema += fmt::format("[[column]]\nname = \"{}\"\nkind = \"numeric\"\nlower = -4\nupper = 4\n", column);
    schema += "[[column]]\nname = \"label\"\nkind = \"categorical\"\nvalues = [\"A\", \"B\", \"C\"]\n";
    std::ofstream(folder_.file("schema.toml")) << schema;
    std::ofstream(folder_.file("site.toml")) << fmt::format(
        "{}coordinator = \"127.0.0.1:{}\"\ncoordinator_name = \"coordinator\"\ncoordinator_key = \"{}\"\n"
        "data = \"{}\"\nschema = \"schema.toml\"\nmissing = \"error\"\nunlisted = \"error\"\n"
        "dataset = \"rows\"\nledger = \"{}\"\nstate = \"{}\"\n"
        "[tls]\nauthority = \"tls-ca\"\ncertificate = \"tls-crt\"\nkey = \"tls-key\"\n"
        "[peers]\n\"site-0\" = \"{}\"\n[classes]\nlabel = [\"A\", \"B\", \"C\"]\n"
        "[policy]\nmost_epsilon = 900\nmost_epsilon_alone = 900\nleast_noise = 0.001\n",
        more_, port, config.coordinator_key, config.data, config.ledger, config.state, lab.pins.at("site-0"));
    test::Child child({EIGENVEIL_PROGRAM, "site", "serve", "--config", folder_.file("site.toml"), "--approve", "policy",
                       "--once", "--give-up", "5"});
    std::string text = child.all_output();
    return {WEXITSTATUS(child.wait()), text};
  }
  /// Proposal, roster, and then the ask that `last` makes.
  Script::Next conversation(std::function<std::optional<wire::v2::ToSite>()> last) {
    return [this, last](const wire::v2::FromSite& from) -> std::optional<wire::v2::ToSite> {
      wire::v2::ToSite message;
      if (from.has_hello()) {
        *message.mutable_proposal() = lab.signed_by_coordinator(lab.proposal);
        return message;
      }
      if (from.has_accept()) {
        wire::v2::Roster roster;
        roster.set_study(lab.proposal.study());
        *roster.add_accepts() = from.accept();
        const std::string bytes = canonical_bytes(roster);
        lab.chain.emplace(lab.proposal_hash(), hash("roster", {lab.proposal_hash(), bytes}));
        lab.among = {"site-0"};
        message.set_roster(bytes);
        return message;
      }
      if (from.has_part()) message.mutable_finish()->set_study(lab.proposal.study());
      if (from.has_part()) return message;
      return from.has_standing() ? last() : std::nullopt;
    };
  }
  test::TempDir folder_;
  std::string more_;  // lines of the site's file
  StudyLab lab;
};

// How long reading took says something about the rows, whether the site takes part or not.
TEST_F(RealSite, AcceptsAndRefusesAtAMultipleOfTheQuantum) {
  using Clock = std::chrono::steady_clock;
  more_ = "quantum_ms = 1500\n";
  for (const char* line : {"1,1,A", "1,,A"}) {
    SCOPED_TRACE(line);
    lab.proposal.set_study(draw_study());
    std::ofstream(lab.data(0), std::ios::app) << line << "\n";
    std::optional<Clock::time_point> proposed;
    std::optional<Clock::time_point> answered;
    Script script(lab, [&](const wire::v2::FromSite& from) -> std::optional<wire::v2::ToSite> {
      wire::v2::ToSite message;
      if (from.has_hello()) {
        proposed = Clock::now();
        *message.mutable_proposal() = lab.signed_by_coordinator(lab.proposal);
        return message;
      }
      if (from.has_accept() || from.has_refusal()) answered = Clock::now();
      if (!from.has_standing()) return std::nullopt;
      message.mutable_finish()->set_study(lab.proposal.study());
      return message;
    });
    const auto [code, text] = serve(script.port);
    ASSERT_TRUE(proposed && answered) << text;
    EXPECT_GE(*answered - *proposed, std::chrono::milliseconds(1500)) << text;
  }
}

/// Where the number of rows is private.
class PrivateCount : public RealSite {
 protected:
  static constexpr std::chrono::milliseconds kQuantum{1500};
  PrivateCount() : RealSite(Adjacency::kAddRemoveOne) { more_ = fmt::format("quantum_ms = {}\n", kQuantum.count()); }

  /// One message of the site: its bytes without what is drawn at random, and after how many quanta it came.
  using Heard = std::tuple<std::size_t, std::string, std::chrono::steady_clock::rep>;
  std::vector<Heard> transcript(int rows) {
    using Clock = std::chrono::steady_clock;
    std::ofstream out(lab.data(0));
    out << "a,b,label\n";
    for (int i = 0; i < rows; ++i)
      out << i % 7 - 3 << "," << i % 5 - 2 << ","
          << "ABC"[i % 3] << "\n";
    out.close();
    lab.proposal.set_study(draw_study());
    std::vector<Heard> heard;
    Clock::time_point told = Clock::now();
    const auto next = conversation([&] {
      wire::v2::ToSite message;
      message.set_ask(canonical_bytes(lab.ask("gram")));
      return std::optional(message);
    });
    Script script(lab, [&](const wire::v2::FromSite& from) {
      // The site says hello unasked, and hears the proposal then.
      if (!from.has_hello()) heard.push_back(without_chance(from, (Clock::now() - told) / kQuantum));
      const auto reply = next(from);
      if (reply && !reply->has_roster()) told = Clock::now();
      return reply;
    });
    const auto [code, text] = serve(script.port);
    EXPECT_EQ(code, 0) << text;
    return heard;
  }

 private:
  static Heard without_chance(wire::v2::FromSite from, std::chrono::steady_clock::rep quanta) {
    if (from.has_accept()) {
      wire::v2::AcceptStatement said;
      said.ParseFromString(from.accept().statement());
      said.clear_proposal();
      said.clear_x25519();
      from.mutable_accept()->set_statement(canonical_bytes(said));
      from.mutable_accept()->clear_signature();
    }
    if (from.has_standing()) from.mutable_standing()->clear_study();
    if (from.has_answer()) {
      from.mutable_answer()->clear_study();
      from.mutable_answer()->clear_head();
    }
    const std::size_t size = from.ByteSizeLong();
    if (from.has_part()) from.mutable_part()->clear_values();
    return {size, canonical_bytes(from), quanta};
  }
};

// Twice the rows: the same messages of the same sizes after the same number of quanta.
TEST_F(PrivateCount, ATranscriptDoesNotTellAThousandRowsFromTwoThousand) {
  std::vector<Heard> small;
  std::vector<Heard> large;
  for (int attempt = 0; attempt < 10 && (small.empty() || small != large);
       ++attempt) {  // other work may take a quantum
    small = transcript(1000);
    large = transcript(2000);
  }
  EXPECT_EQ(small, large);
  ASSERT_EQ(small.size(), 4U) << "accept, standing, answer, part";
  EXPECT_GE(std::get<2>(small[0]), 1);
  EXPECT_GE(std::get<2>(small[2]), 1);
}

TEST_F(RealSite, RefusesAnAskBeyondThePlanAndSaysSo) {
  Script script(lab, conversation([&] {
                  wire::v2::ToSite message;
                  auto ask = lab.ask("gram");
                  StudyLab::fill(ask, Kind::CLASS_COUNTS);
                  message.set_ask(canonical_bytes(ask));
                  return std::optional(message);
                }));
  const auto [code, text] = serve(script.port);
  ASSERT_FALSE(script.heard.empty()) << text;
  EXPECT_EQ(code, 3) << text;
  EXPECT_THAT(text, HasSubstr("the coordinator asks beyond the plan"));
  ASSERT_TRUE(script.heard.back().has_refusal());
  EXPECT_EQ(lab.charges(0), 1U);
}

TEST_F(RealSite, AnswersOverTlsWithTheNoiseOfThePlan) {
  std::optional<test::Expected> expected;
  Script script(lab, conversation([&] {
                  wire::v2::ToSite message;
                  const auto ask = lab.ask("gram");
                  expected = lab.expected(0, ask, kMu, lab.rows(0));
                  message.set_ask(canonical_bytes(ask));
                  return std::optional(message);
                }));
  const auto [code, text] = serve(script.port);
  EXPECT_EQ(code, 0) << text;
  ASSERT_TRUE(expected.has_value()) << text;
  ASSERT_TRUE(script.heard.back().has_part());
  std::vector<Int128> values(3);
  add_integers(script.heard.back().part().values(), false, values.data());
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(values[i], (expected->sum.values[i] << expected->scale.shift) + expected->noise[i]);
  EXPECT_EQ(lab.work(0)->state, WorkState::kClosed);
}

// Random asks to the program itself: refused, or answered with the noise of the plan.
TEST_F(RealSite, WhateverIsAskedOverTlsIsRefusedOrHasTheNoiseOfThePlan) {
  const int rounds = std::getenv("EIGENVEIL_NIGHTLY") != nullptr ? 200 : 4;
  std::mt19937 random(5);
  for (int round = 0; round < rounds; ++round) {
    lab.proposal.set_study(draw_study());
    std::optional<test::Expected> expected;
    const std::size_t change = random() % 8;
    Script script(lab, conversation([&] {
                    wire::v2::ToSite message;
                    auto ask = lab.ask("gram");
                    if (change == 0) ask.set_number(static_cast<std::uint32_t>(random()));
                    if (change == 1) ask.set_prev(hash("x", {"y"}));
                    if (change == 2) StudyLab::fill(ask, static_cast<Kind>(1 + random() % 12));
                    if (change == 3) ask.add_among("site-1");
                    if (kind_of(ask) == Kind::GRAM) expected = lab.expected(0, ask, kMu, lab.rows(0));
                    message.set_ask(canonical_bytes(ask));
                    if (change == 4) message.mutable_ask()->append("\x49\0\0\0\0\0\0\xf0\xff", 9);  // mu = -infinity
                    return std::optional(message);
                  }));
    const auto [code, text] = serve(script.port);
    if (script.heard.back().has_refusal()) continue;
    ASSERT_TRUE(script.heard.back().has_part() && expected.has_value()) << text;
    std::vector<Int128> values(3);
    add_integers(script.heard.back().part().values(), false, values.data());
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(values[i], (expected->sum.values[i] << expected->scale.shift) + expected->noise[i]);
  }
}

TEST_F(RealSite, RefusesAProtocolOfAnotherVersion) {
  lab.proposal.set_version(7);
  Script script(lab, conversation([] { return std::nullopt; }));
  const auto [code, text] = serve(script.port);
  ASSERT_FALSE(script.heard.empty()) << text;
  EXPECT_EQ(code, 3) << text;
  EXPECT_THAT(text, HasSubstr("it speaks version 7 of the protocol, this end version 2"));
  EXPECT_EQ(lab.charges(0), 0U);
}

// As when an old proposal is sent again.
TEST_F(RealSite, AProposalWhoseTimeIsUpIsRefusedAndCostsNothing) {
  lab.proposal.set_not_after(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()) - 1);
  Script script(lab, conversation([] { return std::nullopt; }));
  const auto [code, text] = serve(script.port);
  EXPECT_EQ(code, 3) << text;
  EXPECT_THAT(text, HasSubstr("it has expired"));
  ASSERT_TRUE(script.heard.back().has_refusal());
  EXPECT_EQ(lab.charges(0), 0U);
  EXPECT_FALSE(lab.work(0).has_value());
}

// A row that is no number, one with a class that is not listed, a file that is not there: the coordinator hears one
// sentence, the same as when the person says no, and the charge stays.
TEST_F(RealSite, WhateverIsWrongWithTheRowsTheCoordinatorHearsTheSame) {
  std::set<std::string> heard;
  for (const std::string line : {"secret,1,A", "1,1,Z", "1,,A", "1,1"}) {
    SCOPED_TRACE(line);
    lab.proposal.set_study(draw_study());
    lab.write_rows(0);
    std::ofstream(lab.data(0), std::ios::app) << line << "\n";
    Script script(lab, conversation([] { return std::nullopt; }));
    const auto [code, text] = serve(script.port);
    EXPECT_NE(code, 0) << text;
    ASSERT_TRUE(script.heard.back().has_refusal()) << text;
    heard.insert(script.heard.back().SerializeAsString());
    EXPECT_EQ(script.heard.back().refusal().reason(), kCannotTakePart);
    ASSERT_TRUE(lab.work(0).has_value());
    EXPECT_FALSE(lab.work(0)->refunded);
  }
  EXPECT_EQ(heard.size(), 1U);
}

}  // namespace
}  // namespace eigenveil::federation
