// Coordinators and sites that do not keep to the protocol: what they get, and what it costs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <set>

#include "eigenveil/federation/masks.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/wire/convert.hpp"
#include "tests/support/child.hpp"
#include "tests/support/federation.hpp"
#include "wire.grpc.pb.h"

namespace eigenveil::federation {
namespace {

using test::Certificates;
using ::testing::HasSubstr;

constexpr double kMu = 0.3;

/// A site with twenty rows, a ledger and a proposal of three answers.
class Hostile : public ::testing::Test {
 protected:
  Hostile() {
    std::ofstream out(folder_.file("rows.csv"));
    out << "a,b\n";
    for (int i = 0; i < 20; ++i) out << i % 7 - 3 << "," << i % 5 - 2 << "\n";
    out.close();
    config_.coordinator_name = "coordinator";
    config_.identity = Certificates::shared().identity("site-0");
    config_.data = folder_.file("rows.csv");
    config_.dataset = "rows";
    config_.ledger = folder_.file("ledger.db");
    config_.state = folder_.file("state");
    config_.threads = 1;
    auto ledger = Ledger::open(config_.ledger);
    EXPECT_TRUE(ledger->create({.name = "rows", .limit = {{*Epsilon::of(20), *Delta::of(1e-6)}}}).ok());

    proposal_.set_version(kWireVersion);
    proposal_.set_study(std::string(32, 'a'));
    proposal_.set_estimator("pca");
    proposal_.set_purpose("a test");
    for (const char* name : {"a", "b"}) {
      auto* column = proposal_.mutable_rows()->add_columns();
      column->set_name(name);
      column->set_bounded(true);
      column->set_lower(-4);
      column->set_upper(4);
    }
    proposal_.mutable_rows()->set_center(wire::v2::Rows::CENTER_RANGE);
    *proposal_.mutable_plan() = to_wire(
        PrivacyPlan{{{"gram", GaussianEvent{kMu}, 1}, {"norms", PureEvent{0.5}, 1}, {"apply", GaussianEvent{kMu}, 2}}});
    proposal_.set_epsilon(10);
    proposal_.set_delta(1e-6);
    proposal_.set_adjacency("replace-one");
    proposal_.set_accounting("tight");
    for (std::size_t i = 0; i < 3; ++i) proposal_.add_sites(Certificates::site(i));
  }

  Result<std::unique_ptr<SiteStudy>> open() {
    Observer silent;
    return SiteStudy::open(
        config_, proposal_, [](const std::string&) { return true; }, silent);
  }

  wire::v2::Ask ask(std::uint32_t number, const std::string& label) const {
    wire::v2::Ask ask;
    ask.set_study(proposal_.study());
    ask.set_number(number);
    ask.set_label(label);
    ask.set_mu(kMu);
    if (label == "gram") ask.mutable_sum()->mutable_gram();
    if (label == "norms") {
      ask.clear_mu();
      ask.set_epsilon(0.5);
      ask.mutable_exceedance()->add_grid(0.5);
    }
    if (label == "apply") {
      auto* x = ask.mutable_sum()->mutable_apply()->mutable_x();
      x->set_rows(2);
      x->set_columns(1);
      x->add_scaled(1 << 20);
      x->add_scaled(0);
    }
    return ask;
  }

  std::size_t reservations() const { return Ledger::open(config_.ledger)->show("rows")->reservations.size(); }

  /// The ask is refused with these words, and so is everything after it, now and after a restart.
  void expect_end(SiteStudy& study, const wire::v2::Ask& bad, const wire::v2::Ask& good, const std::string& words) {
    const auto refused = study.answer(bad);
    ASSERT_FALSE(refused.ok()) << words;
    EXPECT_THAT(refused.error().message, HasSubstr(words));
    EXPECT_FALSE(study.answer(good).ok()) << words;
    const auto again = open();
    ASSERT_FALSE(again.ok()) << words;
    EXPECT_THAT(again.error().message, HasSubstr(words));
    EXPECT_EQ(reservations(), 1U);
  }

  test::TempDir folder_;
  SiteConfig config_;
  wire::v2::Proposal proposal_;
};

std::string integers(const Stored& stored) {
  std::string all;
  EXPECT_TRUE(for_each_part(stored, [&](const std::string& bytes) -> Status {
                all += bytes;
                return {};
              }).ok());
  return all;
}

// A coordinator that tells one site "narrow" and the other not must not get a mask of one to cancel with the other's.
TEST(Masks, CancelAndHaveAStreamForEachNumberAndWidth) {
  const MaskPair a = MaskPair::draw(), b = MaskPair::draw();
  const auto first = Mask::between(a, "a", b.open, "b", "study");
  const auto second = Mask::between(b, "b", a.open, "a", "study");
  ASSERT_TRUE(first.ok() && second.ok());
  const auto masked = [](const Mask& mask, std::uint32_t number, bool narrow, std::int64_t value) {
    std::vector<Int128> values(1500, value);
    mask.apply(number, narrow, values);
    return values;
  };
  std::set<std::uint64_t> words;
  for (const bool narrow : {false, true})
    for (const std::uint32_t number : {1U, 2U}) {
      const auto x = masked(*first, number, narrow, 5), y = masked(*second, number, narrow, -7);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto total = static_cast<Int128>(static_cast<UInt128>(x[i]) + static_cast<UInt128>(y[i]));
        ASSERT_EQ(narrow ? narrowed(total) : total, -2) << i;
        const auto mask = static_cast<UInt128>(x[i]) - 5;
        words.insert(static_cast<std::uint64_t>(mask));
        if (!narrow) words.insert(static_cast<std::uint64_t>(mask >> 64));
      }
    }
  EXPECT_EQ(words.size(), 2U * 1500 * 3) << "no 64 bits of a stream occur in another";
}

TEST_F(Hostile, TheSameAskGetsTheSameBytesNowAndAfterARestart) {
  auto study = open();
  ASSERT_TRUE(study.ok()) << study.error().message;
  const auto first = (*study)->answer(ask(1, "gram"));
  ASSERT_TRUE(first.ok()) << first.error().message;
  const std::string bytes = integers(*first);
  EXPECT_FALSE(bytes.empty());
  EXPECT_EQ(integers(*(*study)->answer(ask(1, "gram"))), bytes);
  study->reset();
  study = open();
  ASSERT_TRUE(study.ok()) << study.error().message;
  EXPECT_EQ(integers(*(*study)->answer(ask(1, "gram"))), bytes);
  EXPECT_TRUE((*study)->answer(ask(2, "norms")).ok());
  EXPECT_EQ(reservations(), 1U);
}

TEST_F(Hostile, AStudyWhoseAnswersAreLostIsNotAnsweredAgain) {
  auto study = open();
  ASSERT_TRUE(study.ok()) << study.error().message;
  for (const auto& next : {ask(1, "gram"), ask(2, "norms")}) ASSERT_TRUE((*study)->answer(next).ok());
  // A second process of the site would draw noise of its own.
  const auto beside = open();
  ASSERT_FALSE(beside.ok());
  EXPECT_THAT(beside.error().message, HasSubstr("another process"));
  study->reset();
  std::filesystem::remove(config_.state + "/study-" + proposal_.study() + "/answers.bin");
  const auto gone = open();
  ASSERT_FALSE(gone.ok());
  EXPECT_THAT(gone.error().message, HasSubstr("answers.bin is gone"));
  std::filesystem::remove_all(config_.state);
  const auto lost = open();
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, ErrorCode::kBudgetRefused);
  EXPECT_THAT(lost.error().message, HasSubstr("does not know what was answered"));
  EXPECT_EQ(reservations(), 1U);
}

TEST_F(Hostile, ALargeDeltaDoesNotHideALargeEpsilon) {
  config_.policy.most_epsilon = 1;
  proposal_.set_delta(0.5);
  proposal_.set_epsilon(1);
  const auto study = open();
  ASSERT_FALSE(study.ok());
  EXPECT_THAT(study.error().message, HasSubstr("above this site's limit of 1e-05"));
  EXPECT_EQ(reservations(), 0U);
}

TEST_F(Hostile, EveryAskThatIsNotInThePlanEndsTheStudy) {
  struct Case {
    std::string words;
    wire::v2::Ask bad;
    std::vector<wire::v2::Ask> before;
  };
  std::vector<Case> cases;
  const auto gram = ask(1, "gram");
  const auto norms = ask(2, "norms");
  const auto apply = ask(3, "apply");
  auto bad = gram;
  bad.set_mu(0.31);
  cases.push_back({"less noise than planned", bad, {}});
  bad = gram;
  bad.set_label("norms");
  cases.push_back({"the plan's next answer is 'gram'", bad, {}});
  bad = gram;
  bad.set_number(2);
  cases.push_back({"asked number 2 where 1 was due", bad, {}});
  bad = gram;
  bad.set_study(std::string(32, 'b'));
  cases.push_back({"another study", bad, {}});
  bad = gram;
  bad.clear_sum();
  cases.push_back({"beyond the plan", bad, {}});
  bad = gram;
  bad.set_mu(0.2);
  cases.push_back({"repeats an ask with other parameters", bad, {gram}});
  bad = norms;
  bad.set_epsilon(0.6);
  cases.push_back({"less noise than planned", bad, {gram}});
  bad = norms;
  bad.mutable_exceedance()->add_grid(0.25);
  cases.push_back({"does not ascend", bad, {gram}});
  bad = apply;
  bad.mutable_sum()->mutable_apply()->mutable_x()->set_scaled(0, 1 << 30);
  cases.push_back({"malformed", bad, {gram, norms}});
  bad = apply;
  bad.mutable_sum()->mutable_apply()->mutable_x()->set_rows(3);
  cases.push_back({"malformed", bad, {gram, norms}});
  auto other = ask(4, "apply");
  bad = ask(5, "apply");
  cases.push_back({"comes after the plan's last answer", bad, {gram, norms, apply, other}});
  bad = ask(4, "apply");
  bad.set_repeats(3);
  cases.push_back({"a spare round that is not in the plan", bad, {gram, norms, apply}});
  wire::v2::Ask recenter;
  recenter.set_study(proposal_.study());
  recenter.set_number(1);
  *recenter.mutable_recenter() = to_wire(Vector::Constant(2, 1.0), *RowBound::of(3));
  recenter.mutable_recenter()->set_mean(0, std::nan(""));
  cases.push_back({"not finite", recenter, {}});

  for (const Case& one : cases) {
    SCOPED_TRACE(one.words);
    test::TempDir fresh;
    config_.state = fresh.file("state");
    config_.ledger = fresh.file("ledger.db");
    ASSERT_TRUE(
        Ledger::open(config_.ledger)->create({.name = "rows", .limit = {{*Epsilon::of(20), *Delta::of(1e-6)}}}).ok());
    auto study = open();
    ASSERT_TRUE(study.ok()) << study.error().message;
    for (const auto& before : one.before) ASSERT_TRUE((*study)->answer(before).ok());
    expect_end(**study, one.bad, one.before.empty() ? gram : one.before.front(), one.words);
  }
}

TEST_F(Hostile, AProposalThatCostsMoreThanItClaimsIsRefused) {
  proposal_.set_epsilon(0.5);
  const auto study = open();
  ASSERT_FALSE(study.ok());
  EXPECT_THAT(study.error().message, HasSubstr("its plan costs"));
  EXPECT_EQ(study.error().code, ErrorCode::kBudgetRefused);
  EXPECT_EQ(reservations(), 0U);
}

TEST_F(Hostile, AnotherPlanUnderAStudysNumberIsRefused) {
  ASSERT_TRUE(open().ok());
  proposal_.set_purpose("another test");
  const auto study = open();
  ASSERT_FALSE(study.ok());
  EXPECT_THAT(study.error().message, HasSubstr("the number of another study"));
  EXPECT_EQ(reservations(), 1U);
}

class HostileSecure : public Hostile {
 protected:
  HostileSecure() {
    proposal_.set_aggregation(wire::v2::Proposal::SECURE);
    proposal_.set_tolerate(1);
  }
  wire::v2::MaskKey key_of(std::size_t site, const std::string& study) {
    const auto identity = Certificates::shared().identity(Certificates::site(site));
    const MaskPair pair = MaskPair::draw();
    wire::v2::MaskKey key;
    key.set_site(identity.name);
    key.set_x25519(pair.open);
    key.set_certificate(identity.certificate);
    key.set_signature(*sign(identity.key, key_statement(study, identity.name, pair.open)));
    return key;
  }
  /// Another site, as far as its state and ledger go.
  void start_anew(const test::TempDir& fresh) {
    config_.state = fresh.file("state");
    config_.ledger = fresh.file("ledger.db");
    ASSERT_TRUE(
        Ledger::open(config_.ledger)->create({.name = "rows", .limit = {{*Epsilon::of(20), *Delta::of(1e-6)}}}).ok());
  }
  wire::v2::Ask among(std::vector<std::string> sites) const {
    auto ask = Hostile::ask(1, "gram");
    *ask.mutable_among() = {sites.begin(), sites.end()};
    return ask;
  }
};

TEST_F(HostileSecure, NoSiteAnswersForATotalOfTooFew) {
  for (const auto& sites : {std::vector<std::string>{"site-0"}, {"site-0", "site-0"}, {"site-1", "site-2"}, {}}) {
    test::TempDir fresh;
    start_anew(fresh);
    auto study = open();
    ASSERT_TRUE(study.ok()) << study.error().message;
    wire::v2::Roster roster;
    for (std::size_t i : {1, 2}) *roster.add_keys() = key_of(i, proposal_.study());
    ASSERT_TRUE((*study)->meet(roster).ok());
    const auto refused = (*study)->answer(among(sites));
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, HasSubstr("where the noise needs 2"));
  }
}

TEST_F(HostileSecure, AKeyThatItsSiteDidNotSignForThisStudyIsRefused) {
  const auto good = key_of(1, proposal_.study());
  auto forged = good;
  forged.set_x25519(MaskPair::draw().open);
  auto stranger = good;
  stranger.set_site("site-5");
  auto posing = key_of(2, proposal_.study());
  posing.set_site("site-1");
  for (const auto& bad : {forged, posing, key_of(1, std::string(32, 'b')), stranger}) {
    test::TempDir fresh;
    start_anew(fresh);
    auto study = open();
    ASSERT_TRUE(study.ok()) << study.error().message;
    wire::v2::Roster roster;
    *roster.add_keys() = bad;
    EXPECT_FALSE((*study)->meet(roster).ok());
    EXPECT_FALSE((*study)->answer(among({"site-0", "site-1"})).ok());
  }
}

/// A coordinator that sends what it is given, one message after each message of the site.
class Script final : public wire::v2::Coordinator::Service {
 public:
  explicit Script(std::vector<wire::v2::ToSite> messages) : messages_(std::move(messages)) {
    const auto identity = Certificates::shared().identity("coordinator");
    grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = identity.authority;
    tls.pem_key_cert_pairs = {{identity.key, identity.certificate}};
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Script() override { server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1)); }
  grpc::Status Join(grpc::ServerContext*,
                    grpc::ServerReaderWriter<wire::v2::ToSite, wire::v2::FromSite>* stream) override {
    wire::v2::FromSite message;
    for (const auto& next : messages_) {
      if (!stream->Read(&message)) return grpc::Status::OK;
      heard.push_back(message);
      stream->Write(next);
    }
    while (stream->Read(&message)) heard.push_back(message);
    return grpc::Status::OK;
  }
  int port = 0;
  std::vector<wire::v2::FromSite> heard;

 private:
  std::vector<wire::v2::ToSite> messages_;
  std::unique_ptr<grpc::Server> server_;
};

class RealSite : public Hostile {
 protected:
  /// Runs the program as a site and gives its exit code and what it printed.
  std::pair<int, std::string> serve(int port) {
    const std::string ca = folder_.file("tls-");
    for (const auto& [name, text] : {std::pair{"ca", config_.identity.authority},
                                     {"crt", config_.identity.certificate},
                                     {"key", config_.identity.key}})
      std::ofstream(ca + name) << text;
    std::ofstream(folder_.file("site.toml")) << fmt::format(
        "coordinator = \"127.0.0.1:{}\"\ncoordinator_name = \"coordinator\"\ndata = \"rows.csv\"\n"
        "dataset = \"rows\"\nledger = \"ledger.db\"\n[tls]\nauthority = \"tls-ca\"\n"
        "certificate = \"tls-crt\"\nkey = \"tls-key\"\n",
        port);
    test::Child child({EIGENVEIL_PROGRAM, "site", "serve", "--config", folder_.file("site.toml"), "--approve", "policy",
                       "--once", "--give-up", "5"});
    std::string text = child.all_output();
    return {WEXITSTATUS(child.wait()), text};
  }
};

TEST_F(RealSite, RefusesAnAskBeyondThePlanAndSaysSo) {
  wire::v2::ToSite proposal;
  *proposal.mutable_proposal() = proposal_;
  wire::v2::ToSite bad;
  *bad.mutable_ask() = ask(1, "gram");
  bad.mutable_ask()->set_mu(1e6);
  Script script({proposal, bad});
  const auto [code, text] = serve(script.port);
  EXPECT_EQ(code, 3) << text;
  EXPECT_THAT(text, HasSubstr("the coordinator asks beyond the plan"));
  EXPECT_TRUE(script.heard.back().has_refusal());
  EXPECT_EQ(reservations(), 1U);
}

TEST_F(RealSite, RefusesAProtocolOfAnotherVersion) {
  wire::v2::ToSite proposal;
  *proposal.mutable_proposal() = proposal_;
  proposal.mutable_proposal()->set_version(7);
  Script script({proposal});
  const auto [code, text] = serve(script.port);
  EXPECT_EQ(code, 3) << text;
  EXPECT_THAT(text, HasSubstr("it speaks version 7 of the protocol, this site version 1"));
  EXPECT_EQ(reservations(), 0U);
}

/// A site that says hello and accepts, and then what it is given.
void misbehave(int port, std::uint32_t version, const std::vector<wire::v2::FromSite>& replies, std::string& heard) {
  const auto identity = Certificates::shared().identity("site-7");
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride("coordinator");
  const auto stub = wire::v2::Coordinator::NewStub(grpc::CreateCustomChannel(
      fmt::format("127.0.0.1:{}", port), grpc::SslCredentials({identity.authority, identity.key, identity.certificate}),
      arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  const auto stream = stub->Join(&context);
  wire::v2::FromSite message;
  message.mutable_hello()->set_version(version);
  stream->Write(message);
  wire::v2::ToSite from;
  while (stream->Read(&from)) {
    if (from.has_refusal()) heard = from.refusal().reason();
    if (from.has_proposal()) {
      message.mutable_accept()->set_study(from.proposal().study());
      message.mutable_accept()->set_rows(10);
      message.mutable_accept()->set_columns(2);
      stream->Write(message);
    }
    if (from.has_ask())
      for (wire::v2::FromSite reply : replies) {
        if (reply.has_answer()) reply.mutable_answer()->set_study(from.ask().study());
        stream->Write(reply);
      }
  }
  stream->Finish();
}

TEST(HostileSites, AreLeftOutAndTheStudyGoesOn) {
  wire::v2::FromSite right;
  right.mutable_answer()->set_number(1);
  right.mutable_answer()->set_rows(2);
  right.mutable_answer()->set_columns(2);
  right.mutable_answer()->set_symmetric(true);
  right.mutable_answer()->set_entries(3);
  constexpr double kHardlyAnyNoise = 1e9;
  const Sensitivity moved = sensitivity(SumQuery(Gram{}), Lattice{4, 20}, Adjacency::kReplaceOne);
  right.mutable_answer()->set_shift(GaussianMechanism::noise_for(moved, kHardlyAnyNoise)->shift);
  auto wrong_shape = right;
  wrong_shape.mutable_answer()->set_entries(4);
  auto wrong_width = right;
  wrong_width.mutable_answer()->set_narrow(true);
  wire::v2::FromSite garbage;
  garbage.mutable_part()->set_values("not sixteen bytes");
  wire::v2::FromSite too_much;
  too_much.mutable_part()->set_values(std::string(64, 'x'));
  struct Case {
    const char* words;
    std::uint32_t version;
    std::vector<wire::v2::FromSite> replies;
  };
  for (const Case& one :
       {Case{"something else than the answer", 1, {wrong_shape}},
        Case{"something else than the answer", 1, {wrong_width}}, Case{"something else", 1, {garbage}},
        Case{"does not fit", 1, {right, garbage}}, Case{"does not fit", 1, {right, too_much}},
        Case{"did not answer", 1, {}}, Case{"did not answer the proposal", 9, {}}}) {
    SCOPED_TRACE(one.words);
    test::TestSites honest(1, "a,b", {"1,2", "3,-1", "-2,0.5"});
    auto options = honest.coordinator(Aggregation::kLocal, "pca");
    options.sites.push_back("site-7");
    options.min_sites = 1;
    options.patience_seconds = 2;
    std::string lines;
    std::string heard;
    std::thread hostile;
    options.say = [&, start = options.say](const std::string& line) {
      lines += line + "\n";
      start(line);
      const std::size_t at = line.find("port ");
      if (at != std::string::npos && !hostile.joinable())
        hostile = std::thread(
            [&, port = std::stoi(line.substr(at + 5))] { misbehave(port, one.version, one.replies, heard); });
    };
    RowOptions rows;
    rows.source.columns = {"a", "b"};
    rows.row_bound = *RowBound::of(4);
    rows.center = Center::kNone;
    Observer silent;
    const auto engine = federated_engine(options);
    auto held = (*engine)->hold(rows, *open_data(rows), RunOptions(), 0, silent);
    ASSERT_TRUE(held.ok()) << held.error().message;
    {
      PrivacyOptions privacy{*Epsilon::of(1), *Delta::of(1e-6)};
      privacy.calibration = Calibration::kPaper;  // the plan as it is
      const ChargeRequest request{PrivacyPlan{{{"gram", GaussianEvent{kHardlyAnyNoise}, 1}}}, privacy, RunOptions(), "",
                                  "test"};
      auto charged = (*held)->charge(request, silent);
      ASSERT_TRUE(charged.ok()) << charged.error().message;
      const auto answer = charged->oracle->ask("gram", Gram{}, kHardlyAnyNoise);
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      EXPECT_NEAR((**answer)(0, 0), 14.0 * (one.version == kWireVersion ? 13 : 3) / 3, 1e-4);
      // The honest one's answer stands for all rows that there were said to be.
      const std::size_t all = one.version == kWireVersion ? 13 : 3;
      EXPECT_EQ(charged->oracle->shape().rows, all);
      EXPECT_NEAR(charged->oracle->shape().noise_factor, static_cast<double>(all) / 3, 1e-12);
      EXPECT_EQ((*charged->federation)["lost"], nlohmann::json::array({"site-7"}));
    }
    EXPECT_THAT(lines, HasSubstr(one.words));
    hostile.join();
    if (one.version != kWireVersion) {
      EXPECT_THAT(heard, HasSubstr("speaks version 9"));
    }
  }
}

}  // namespace
}  // namespace eigenveil::federation
