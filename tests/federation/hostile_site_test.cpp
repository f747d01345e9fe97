// SPDX-License-Identifier: Apache-2.0
// The program as a site, and a coordinator over the network that does not keep to the protocol.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <set>

#include "../src/federation/credentials.hpp"
#include "tests/support/child.hpp"
#include "tests/support/hostile.hpp"
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

class SiteProgram {
 public:
  /// Runs the program as site 0 of the lab and gives its exit code and what it printed.
  std::pair<int, std::string> serve(const StudyLab& lab, int port, const std::string& more = "") const {
    const SiteConfig& config = lab.configs[0];
    for (const auto& [name, text] : {std::pair{"ca", config.identity.authority},
                                     {"crt", config.identity.certificate},
                                     {"key", config.identity.key}})
      std::ofstream(folder_.file(std::string("tls-") + name)) << text;
    std::string peers;
    for (const auto& [name, pin] : lab.pins) peers += fmt::format("\"{}\" = \"{}\"\n", name, pin);
    std::string queries;
    for (const wire::v2::Kind kind : test::all_kinds()) queries += fmt::format("\"{}\", ", name(kind));
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
        "[peers]\n{}[classes]\nlabel = [\"A\", \"B\", \"C\"]\n"
        "[policy]\nmost_epsilon = 900\nmost_epsilon_alone = 900\nleast_noise = 0.001\nqueries = [{}]\n",
        more, port, config.coordinator_key, config.data, config.ledger, config.state, peers, queries);
    test::Child child({EIGENVEIL_PROGRAM, "site", "serve", "--config", folder_.file("site.toml"), "--approve", "policy",
                       "--once", "--give-up", "5"});
    std::string text = child.all_output();
    return {WEXITSTATUS(child.wait()), text};
  }

 private:
  test::TempDir folder_;
};

class RealSite : public ::testing::Test {
 protected:
  explicit RealSite(Adjacency adjacency = Adjacency::kReplaceOne) : lab(1, adjacency) { lab.plan("gram", Kind::GRAM); }

  std::pair<int, std::string> serve(int port) const { return program_.serve(lab, port, more_); }
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
  SiteProgram program_;
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

/// The coordinator's end of TLS: studies, orders, sets, bytes and numbers at random, to the program as a site.
class HostileCoordinator final : public wire::v2::Coordinator::Service {
 public:
  using Stream = grpc::ServerReaderWriter<wire::v2::ToSite, wire::v2::FromSite>;
  HostileCoordinator(StudyLab& lab, test::Hostile& hostile) : lab_(lab), blank_(lab.proposal), hostile_(hostile) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(
        "127.0.0.1:0", credentials_of_coordinator(Certificates::shared().identity("coordinator"), lab.pins), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~HostileCoordinator() override { server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1)); }

  grpc::Status Join(grpc::ServerContext*, Stream* stream) override {
    stream_ = stream;
    if (hear()) {
      while (one_study()) {
      }
    }
    while (hear()) {
    }
    return grpc::Status::OK;
  }
  int port = 0;
  std::size_t messages = 0;
  std::size_t answered = 0;

 private:
  bool hear() { return stream_->Read(&heard_); }
  void say(const wire::v2::ToSite& message) {
    ++messages;
    stream_->Write(message);
  }
  void say_ask(const std::string& bytes) {
    wire::v2::ToSite message;
    message.set_ask(bytes);
    say(message);
  }
  void say_roster(const std::string& bytes) {
    wire::v2::ToSite message;
    message.set_roster(bytes);
    say(message);
  }
  bool propose() {
    wire::v2::ToSite message;
    *message.mutable_proposal() = lab_.signed_by_coordinator(lab_.proposal);
    say(message);
    if (!hear() || !heard_.has_accept()) return false;
    accept_ = heard_.accept();
    return hear() && heard_.has_standing();
  }

  /// An answer with all its integers; nothing: a refusal, or the connection is gone.
  std::optional<std::pair<wire::v2::Answer, std::vector<Int128>>> hear_answer() {
    if (!hear() || !heard_.has_answer()) return std::nullopt;
    const wire::v2::Answer answer = heard_.answer();
    std::vector<Int128> values(answer.entries());
    for (std::size_t got = 0; got < values.size();) {
      if (!hear() || !heard_.has_part()) return std::nullopt;
      add_integers(heard_.part().values(), answer.narrow(), values.data() + got);
      got += heard_.part().values().size() / integer_bytes(answer.narrow());
    }
    return std::pair{answer, values};
  }

  std::string spoilt(std::string bytes) {
    switch (hostile_.below(4)) {
      case 0:
        return bytes + std::string("\x49\0\0\0\0\0\0\xf0\xff", 9);  // a field that is not there: -infinity
      case 1:
        return bytes.substr(0, hostile_.below(bytes.size()));
      case 2:
        bytes[hostile_.below(bytes.size())] ^= static_cast<char>(1 + hostile_.below(255));
        return bytes;
      default:
        return bytes + bytes;
    }
  }

  // Whether the site goes on afterwards.
  bool one_study() {
    lab_.proposal = blank_;
    lab_.proposal.set_study(draw_study());
    hostile_.make_plan(lab_);
    const bool proper = hostile_.below(5) != 0;
    if (!proper) hostile_.spoil(lab_.proposal);
    const bool others = [&] {
      for (std::size_t i = 1; i < lab_.configs.size(); ++i)
        if (!lab_.open(i).ok()) return false;
      return true;
    }();
    if (!propose()) {
      EXPECT_FALSE(proper) << heard_.ShortDebugString();
      return false;
    }
    const auto first = accept_;
    wire::v2::Roster roster;
    roster.set_study(lab_.proposal.study());
    *roster.add_accepts() = accept_;
    for (std::size_t i = 1; others && i < lab_.studies.size(); ++i) *roster.add_accepts() = lab_.studies[i]->accept();
    std::string bytes = canonical_bytes(roster);
    const bool right = hostile_.below(10) != 0;
    if (!right) bytes = spoilt(bytes);
    lab_.chain.emplace(lab_.proposal_hash(), hash("roster", {lab_.proposal_hash(), bytes}));
    lab_.among.clear();
    for (const auto& [name, pin] : lab_.pins) lab_.among.push_back(name);
    if (hostile_.below(12) != 0) say_roster(bytes);
    for (std::size_t i = 1; right && others && i < lab_.studies.size(); ++i)
      EXPECT_TRUE(lab_.studies[i]->meet(bytes).ok());

    std::vector<wire::v2::Ask> asked;
    std::string last;
    std::vector<Int128> last_values;
    for (const auto* planned : test::Hostile::in_order(lab_.proposal)) {
      switch (hostile_.below(12)) {
        case 0:
          say_roster(bytes);
          break;
        case 1:
          if (!propose()) return false;
          EXPECT_EQ(accept_.SerializeAsString(), first.SerializeAsString());
          break;
        case 2:
          if (last.empty()) break;
          say_ask(last);
          if (const auto again = hear_answer())
            EXPECT_EQ(again->second, last_values);
          else
            return false;
          break;
        case 3:
          if (hostile_.below(4) == 0) say({});
          break;
        default:
          break;
      }
      auto ask = lab_.ask(planned->label());
      if (hostile_.below(6) == 0) hostile_.spoil(ask);
      std::string ask_bytes = canonical_bytes(ask);
      bool raw = hostile_.below(25) == 0;
      if (raw) {
        ask_bytes = spoilt(ask_bytes);
        wire::v2::Ask other;  // one byte of a number may make another proper ask
        if (read_canonical(ask_bytes, other).ok()) {
          ask = other;
          raw = false;
        }
      }
      const auto expected = raw ? std::nullopt : test::Hostile::expected(lab_, ask, *planned, asked);
      say_ask(ask_bytes);
      const auto answer = hear_answer();
      if (!answer) return false;
      EXPECT_FALSE(raw || !right) << "answered " << ask.ShortDebugString();
      last = ask_bytes;
      last_values = answer->second;
      EXPECT_TRUE(expected.has_value() || ask.has_recenter()) << ask.ShortDebugString();
      if (!expected && !ask.has_recenter()) return false;
      hostile_.compare(lab_, ask, answer->second, expected, *planned, asked);
      lab_.sent(ask);
      asked.push_back(ask);
      EXPECT_GE(lab_.work(0)->step, asked.size()) << "the ledger has every answer";
      if (ask.has_recenter()) {
        EXPECT_TRUE(answer->second.empty());
        continue;
      }
      ++answered;
      hostile_.answered(*planned);
      hostile_.expect_paid(lab_);
    }
    if (hostile_.below(3) != 0) return true;
    wire::v2::ToSite over;
    over.mutable_finish()->set_study(lab_.proposal.study());
    say(over);
    return false;
  }

  StudyLab& lab_;
  const wire::v2::Proposal blank_;
  test::Hostile& hostile_;
  Stream* stream_ = nullptr;
  wire::v2::FromSite heard_;
  wire::v2::Accept accept_;
  std::unique_ptr<grpc::Server> server_;
};

TEST(HostileTls, WhateverIsSaidOverTlsIsRefusedOrHasTheNoiseOfThePlan) {
  const std::size_t most = std::getenv("EIGENVEIL_NIGHTLY") != nullptr ? 5'000 : 120;
  test::Hostile hostile{20261118};
  std::size_t messages = 0;
  std::size_t answered = 0;
  while (messages < most && !::testing::Test::HasFailure()) {
    StudyLab lab(hostile.below(2) == 0 ? 1 : 3,
                 hostile.below(2) == 0 ? Adjacency::kReplaceOne : Adjacency::kAddRemoveOne);
    hostile.begin_ledger();
    SiteProgram program;
    HostileCoordinator coordinator(lab, hostile);
    for (int process = 0; process < 4 && !::testing::Test::HasFailure(); ++process) {
      const auto [code, text] = program.serve(lab, coordinator.port);
      EXPECT_TRUE(code == 0 || code == 3 || code == 4) << code << "\n" << text;  // 4: beyond the site's policy
    }
    messages += coordinator.messages;
    answered += coordinator.answered;
  }
  EXPECT_GT(answered, most / 5);
  EXPECT_GT(hostile.totals(), most / 50);
  hostile.expect_planned_deviation();
  std::cout << messages << " messages, " << answered << " answers, " << hostile.totals() << " masked totals\n";
}

}  // namespace
}  // namespace eigenveil::federation
