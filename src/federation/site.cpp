// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/site.hpp"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <omp.h>

#include <chrono>
#include <thread>

#include "channel.hpp"
#include "credentials.hpp"
#include "eigenveil/base/printable.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/federation/tls_probe.hpp"
#include "wire.grpc.pb.h"

namespace eigenveil::federation {
namespace {

using Clock = std::chrono::steady_clock;
using Stream = grpc::ClientReaderWriter<wire::v2::FromSite, wire::v2::ToSite>;

// What the coordinator may hear: about what it said itself, why; about everything else one sentence and one code.
wire::v2::FromSite refusal(const Error& error, bool about_coordinator) {
  const bool tell = about_coordinator && error.code != ErrorCode::kInternal;
  wire::v2::FromSite message;
  message.mutable_refusal()->set_reason(tell ? error.message : kCannotTakePart);
  message.mutable_refusal()->set_code(static_cast<std::uint32_t>(tell ? error.code : ErrorCode::kBudgetRefused));
  return message;
}

std::shared_ptr<grpc::Channel> dial(const SiteConfig& config) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(std::min<std::uint64_t>(config.limits.message, kLargestAsk)));
  tune(arguments);
  return grpc::CreateCustomChannel(
      config.coordinator, credentials_of_site(config.identity, config.coordinator_name, config.coordinator_key),
      arguments);
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
        why_ = bad_input("the coordinator said: " + printable(message.refusal().reason(), 1000));
        return End::kRefused;
      case wire::v2::ToSite::kFinish:
        if (study_) {
          study_->finish();
          options_.say(fmt::format("Study {} is finished: {} asks were answered.", study_text(study_->study()),
                                   study_->answers()));
          study_.reset();
        }
        return End::kFinished;
      case wire::v2::ToSite::KIND_NOT_SET:
        break;
    }
    return refuse(bad_input("the coordinator said something that this site does not know"), true);
  }

  std::optional<End> consider(const wire::v2::SignedProposal& message) {
    const auto asked = Clock::now();
    const auto proposed = Proposed::read(message, config_);
    if (!proposed) return refuse(proposed.error(), true);
    if (!study_ || study_->study() != proposed->proposal.study()) {
      study_.reset();
      if (const auto fits = check_proposal(proposed->proposal, config_, now()); !fits)
        return refuse(fits.error(), true);
      auto opened = SiteStudy::open(config_, *proposed, options_.approve, observer_);
      wait_for_quantum(asked);  // rows were read
      if (!opened) return refuse(opened.error(), false);
      study_ = *std::move(opened);
      options_.say(fmt::format("Study {} ({}): accepted and charged to '{}'.", study_text(study_->study()),
                               printable(proposed->proposal.purpose()), config_.dataset));
    } else if (!study_->is(*proposed)) {
      return refuse(bad_input("it has the number of another study that was begun here"), true);
    }
    wire::v2::FromSite reply;
    *reply.mutable_accept() = study_->accept();
    if (!stream_.Write(reply, grpc::WriteOptions().set_buffer_hint())) return End::kLost;
    *reply.mutable_standing() = study_->standing();
    return stream_.Write(reply) ? std::nullopt : std::optional(End::kLost);
  }

  std::optional<End> reply(const std::string& ask) {
    const auto asked = Clock::now();
    const std::size_t before = study_->answers();
    observer_.step("answering");
    const auto stored = study_->answer(ask);
    wait_for_quantum(asked);
    if (!stored) return refuse(stored.error(), true);
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
    if (study_->answers() > before)
      options_.say(fmt::format("Answered {}: {}.", stored->ask.number(), printable(stored->ask.label())));
    // While the others answer.
    if (const auto moved = study_->move_on(); !moved) return refuse(moved.error(), false);
    return std::nullopt;
  }

  // How long an answer took says something about the rows; in how many quanta it came says little.
  void wait_for_quantum(Clock::time_point asked) const {
    if (config_.quantum_ms == 0) return;
    const std::chrono::milliseconds quantum(config_.quantum_ms);
    const auto quanta = (Clock::now() - asked) / quantum + 1;
    std::this_thread::sleep_until(asked + quanta * quantum);
  }

  static std::int64_t now() { return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()); }

  std::optional<End> refuse(const Error& error, bool about_coordinator) {
    why_ = error;
    stream_.Write(refusal(error, about_coordinator));
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
  erase_ended_keys(config);
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
      const grpc::Status closed = stream->Finish();
      if (closed.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
        options.say("Refused: " + other_version(1));
        if (options.once) return bad_input(other_version(1));
      }
      if (end == Connection::End::kRefused) {
        options.say("Refused: " + connection.why().message);
        if (options.once) return connection.why();
      }
      if (end == Connection::End::kFinished && options.once) return {};
      if (end == Connection::End::kLost && study) options.say("The connection was lost; dialling again.");
      erase_ended_keys(config);
      last_contact = Clock::now();
      said.clear();
      std::this_thread::sleep_for(std::chrono::milliseconds(end == Connection::End::kLost ? 100 : 1000));
    } else {
      const std::string why =
          why_no_connection(config.coordinator, config.coordinator_name, config.coordinator_key, config.identity);
      if (why != said && !why.starts_with("no fault")) options.say("Waiting for the coordinator: " + why);
      said = why;
      if (std::chrono::duration<double>(Clock::now() - last_contact).count() > options.give_up_seconds)
        return bad_input("no coordinator: " + why);
    }
  }
}

}  // namespace eigenveil::federation
