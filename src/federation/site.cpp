#include "eigenveil/federation/site.hpp"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <omp.h>

#include <chrono>
#include <thread>

#include "channel.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/federation/tls_probe.hpp"
#include "wire.grpc.pb.h"

namespace eigenveil::federation {
namespace {

using Clock = std::chrono::steady_clock;
using Stream = grpc::ClientReaderWriter<wire::v2::FromSite, wire::v2::ToSite>;

constexpr const char* kDataTrouble = "its data could not be used; the site's own terminal says why";

// What the coordinator may hear of a refusal: nothing that depends on rows, and no figures of the ledger.
std::string told(const Error& error, bool about_proposal) {
  if (error.code == ErrorCode::kInternal) return "something failed at the site; its own terminal says what";
  if (about_proposal) return error.message;
  return error.code == ErrorCode::kBudgetRefused ? "its budget or its person does not allow this study" : kDataTrouble;
}

wire::v2::FromSite refusal(const std::string& reason, ErrorCode code) {
  wire::v2::FromSite message;
  message.mutable_refusal()->set_reason(reason);
  message.mutable_refusal()->set_code(static_cast<std::uint32_t>(code));
  return message;
}

std::shared_ptr<grpc::Channel> dial(const SiteConfig& config) {
  grpc::SslCredentialsOptions tls{config.identity.authority, config.identity.key, config.identity.certificate};
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(config.coordinator_name);
  arguments.SetMaxReceiveMessageSize(kLargestAsk);
  tune(arguments);
  return grpc::CreateCustomChannel(config.coordinator, grpc::SslCredentials(tls), arguments);
}

// One connection, from Hello to its end.
class Connection {
 public:
  Connection(const SiteConfig& config, const ServeOptions& options, Observer& observer,
             std::unique_ptr<SiteStudy>& study, Stream& stream)
      : config_(config), options_(options), observer_(observer), study_(study), stream_(stream) {}

  enum class End { kLost, kFinished, kRefused };

  End run() {
    wire::v2::FromSite hello;
    hello.mutable_hello()->set_version(kWireVersion);
    hello.mutable_hello()->set_software("eigenveil");
    if (!stream_.Write(hello)) return End::kLost;
    for (wire::v2::ToSite message; stream_.Read(&message);)
      if (const auto end = react(message)) return *end;
    return End::kLost;
  }

  const Error& why() const { return *why_; }

 private:
  std::optional<End> react(const wire::v2::ToSite& message) {
    switch (message.kind_case()) {
      case wire::v2::ToSite::kProposal:
        return consider(message.proposal());
      case wire::v2::ToSite::kRoster:
        if (!study_) return refuse(bad_input("the coordinator introduced sites before a study"), true);
        if (const auto met = study_->meet(message.roster()); !met) return refuse(met.error(), true);
        return std::nullopt;
      case wire::v2::ToSite::kAsk:
        if (!study_) return refuse(bad_input("the coordinator asked before it proposed"), true);
        return reply(message.ask());
      case wire::v2::ToSite::kRefusal:
        why_ = bad_input("the coordinator said: " + message.refusal().reason());
        return End::kRefused;
      case wire::v2::ToSite::kFinish:
        if (study_) {
          study_->finish();
          options_.say(fmt::format("Study {} is finished: {} answers were given.", study_->study(), study_->answers()));
          study_.reset();
        }
        return End::kFinished;
      case wire::v2::ToSite::KIND_NOT_SET:
        break;
    }
    return refuse(bad_input("the coordinator said something that this site does not know"), true);
  }

  std::optional<End> consider(const wire::v2::Proposal& proposal) {
    if (!study_ || study_->study() != proposal.study()) {
      study_.reset();
      if (const auto fits = check_proposal(proposal, config_); !fits) return refuse(fits.error(), true);
      auto opened = SiteStudy::open(config_, proposal, options_.approve, observer_);
      if (!opened) return refuse(opened.error(), false);
      study_ = *std::move(opened);
      options_.say(fmt::format("Study {} ({}): accepted and charged to '{}'.", study_->study(), proposal.purpose(),
                               config_.dataset));
    }
    wire::v2::FromSite message;
    *message.mutable_accept() = study_->accept();
    return stream_.Write(message) ? std::nullopt : std::optional(End::kLost);
  }

  std::optional<End> reply(const wire::v2::Ask& ask) {
    const std::size_t before = study_->answers();
    observer_.step("answering: " + ask.label());
    const auto stored = study_->answer(ask);
    if (!stored) return refuse(stored.error(), stored.error().code != ErrorCode::kInternal);
    wire::v2::FromSite message;
    *message.mutable_answer() = stored->answer;
    // Goes out with the first part, if there is one.
    const auto together = stored->answer.entries() > 0 ? grpc::WriteOptions().set_buffer_hint() : grpc::WriteOptions();
    if (!stream_.Write(message, together)) return End::kLost;
    const auto sent = for_each_part(*stored, [&](std::string bytes) -> Status {
      message.mutable_part()->set_values(std::move(bytes));
      return stream_.Write(message) ? Status() : Status(internal_error("the connection was lost"));
    });
    if (!sent) return End::kLost;
    if (study_->answers() > before) options_.say(fmt::format("Answered {}: {}.", ask.number(), ask.label()));
    return std::nullopt;
  }

  std::optional<End> refuse(const Error& error, bool about_proposal) {
    why_ = error;
    stream_.Write(refusal(told(error, about_proposal), error.code));
    study_.reset();
    return End::kRefused;
  }

  const SiteConfig& config_;
  const ServeOptions& options_;
  Observer& observer_;
  std::unique_ptr<SiteStudy>& study_;
  Stream& stream_;
  std::optional<Error> why_;
};

}  // namespace

Status serve(const SiteConfig& config, const ServeOptions& options, Observer& observer) {
  omp_set_num_threads(1);  // sums have threads of their own; what is left is too small for more
  const auto channel = dial(config);
  const auto stub = wire::v2::Coordinator::NewStub(channel);
  std::unique_ptr<SiteStudy> study;
  std::string said;
  auto last_contact = Clock::now();
  for (;;) {
    channel->GetState(true);
    // gRPC itself dials again and again, with pauses that grow to two seconds.
    if (channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(3))) {
      grpc::ClientContext context;
      const auto stream = stub->Join(&context);
      Connection connection(config, options, observer, study, *stream);
      const auto end = connection.run();
      stream->WritesDone();
      if (end != Connection::End::kLost) {
        // What was written is delivered before the stream ends.
        for (wire::v2::ToSite rest; stream->Read(&rest);) continue;
      } else {
        context.TryCancel();
      }
      stream->Finish();
      if (end == Connection::End::kRefused) {
        options.say("Refused: " + connection.why().message);
        if (options.once) return connection.why();
      }
      if (end == Connection::End::kFinished && options.once) return {};
      if (end == Connection::End::kLost && study) options.say("The connection was lost; dialling again.");
      last_contact = Clock::now();
      said.clear();
      std::this_thread::sleep_for(std::chrono::milliseconds(end == Connection::End::kLost ? 100 : 1000));
    } else {
      const std::string why = why_no_connection(config.coordinator, config.coordinator_name, config.identity.authority,
                                                config.identity.certificate, config.identity.key);
      if (why != said && !why.starts_with("no fault")) options.say("Waiting for the coordinator: " + why);
      said = why;
      if (std::chrono::duration<double>(Clock::now() - last_contact).count() > options.give_up_seconds)
        return bad_input("no coordinator: " + why);
    }
  }
}

}  // namespace eigenveil::federation
