// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/sites.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "channel.hpp"
#include "credentials.hpp"
#include "eigenveil/base/printable.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "incoming.hpp"
#include "version1.grpc.pb.h"
#include "wire.grpc.pb.h"

namespace eigenveil::federation {

using SiteStream = grpc::ServerReaderWriter<wire::v2::ToSite, wire::v2::FromSite>;
using Lock = std::unique_lock<std::mutex>;

/// One thread a connection (`Join`), one that asks; everything they share is under `mutex_`.
class Sites::Service final : public wire::v2::Coordinator::Service {
 public:
  explicit Service(Options options) : options_(std::move(options)) {
    for (const auto& [name, pin] : options_.peers) sites_[name];
  }

  Status start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(options_.listen, credentials_of_coordinator(options_.identity, options_.peers), &port_);
    builder.RegisterService(this);
    builder.RegisterService(&old_);
    builder.SetMaxReceiveMessageSize(kLargestReply);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second coordinator on the port is an error
    tune(builder);
    server_ = builder.BuildAndStart();
    if (server_ && port_ != 0) return {};
    return usage_error(
        fmt::format("cannot listen at {}: give `listen` HOST:PORT with an address of this machine and a "
                    "port that nobody uses",
                    options_.listen));
  }

  void stop() {
    {
      const Lock lock(mutex_);
      stopped_ = true;
      changed_.notify_all();
    }
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
    server_->Wait();
  }

  int port() const { return port_; }

  grpc::Status Join(grpc::ServerContext* context, SiteStream* stream) override {
    wire::v2::FromSite hello;
    if (!stream->Read(&hello)) return grpc::Status::OK;
    const auto peer = peer_of(*context->auth_context());
    if (!peer) return turn_away(*stream, peer.error().message);
    const std::string& name = peer->name;  // one of ours: TLS has seen to it
    if (!hello.has_hello() || hello.hello().version() != kWireVersion)
      return turn_away(*stream, other_version(hello.hello().version()));
    Lock lock(mutex_);
    Site& site = sites_[name];
    // A site has one connection: the newest.
    if (site.context != nullptr) site.context->TryCancel();
    changed_.wait(lock, [&] { return site.context == nullptr || stopped_; });
    if (stopped_) return grpc::Status::OK;
    site.context = context;
    lock.unlock();
    converse(name, site, *context, *stream);
    lock.lock();
    site.context = nullptr;
    changed_.notify_all();
    return grpc::Status::OK;
  }

  std::map<std::string, wire::v2::Accept> propose(const wire::v2::SignedProposal& proposal,
                                                  const std::map<std::string, wire::v2::Accept>& known) {
    Lock lock(mutex_);
    for (const auto& [name, accept] : known) sites_[name].accept = accept;
    proposal_ = Proposed{proposal, {}, hash("proposal", {proposal.proposal()})};
    proposal_->proposal.ParseFromString(proposal.proposal());
    changed_.notify_all();
    const auto decided = [&] {
      return std::all_of(sites_.begin(), sites_.end(),
                         [](const auto& entry) { return entry.second.accept || entry.second.lost; });
    };
    if (known.empty()) {
      const auto deadline = std::chrono::steady_clock::now() + options_.patience;
      while (!decided() && std::chrono::steady_clock::now() < deadline) {
        if (changed_.wait_for(lock, std::chrono::seconds(5)) == std::cv_status::timeout && !decided()) say_missing();
      }
    }
    std::map<std::string, wire::v2::Accept> accepts;
    for (auto& [name, site] : sites_) {
      if (site.accept && !site.lost)
        accepts[name] = *site.accept;
      else if (!site.lost)
        lose(name, site, bad_input("it did not answer the proposal in time"));
    }
    return accepts;
  }

  void introduce(const std::string& roster) {
    const Lock lock(mutex_);
    roster_ = roster;
    changed_.notify_all();
  }

  Total ask(const ChainedAsk& chained, const AnswerShape& shape) {
    Lock lock(mutex_);
    const wire::v2::Ask& ask = chained.ask;
    ask_ = chained;
    shape_ = shape;
    total_ = {};
    total_.values.resize(shape.entries);
    changed_.notify_all();
    const auto open = [&](const std::string& name) {
      return !total_.from.contains(name) && !sites_.at(name).lost.has_value();
    };
    const auto complete = [&] { return std::none_of(ask.among().begin(), ask.among().end(), open); };
    changed_.wait_for(lock, options_.patience, complete);
    for (const std::string& name : ask.among())
      if (open(name))
        lose(name, sites_.at(name),
             bad_input(fmt::format("it did not answer '{}' within {:g} s", ask.label(),
                                   std::chrono::duration<double>(options_.patience).count())));
    ask_.reset();
    return std::move(total_);
  }

  void finish() {
    Lock lock(mutex_);
    finished_ = true;
    changed_.notify_all();
    // Whoever is connected hears it.
    changed_.wait_for(lock, std::chrono::seconds(5), [&] {
      return std::all_of(sites_.begin(), sites_.end(),
                         [](const auto& entry) { return entry.second.context == nullptr; });
    });
  }

  std::map<std::string, Error> lost() const {
    const Lock lock(mutex_);
    std::map<std::string, Error> result;
    for (const auto& [name, site] : sites_)
      if (site.lost) result.emplace(name, *site.lost);
    return result;
  }

 private:
  struct Site {
    std::optional<wire::v2::Accept> accept;
    std::optional<Error> lost;
    std::uint32_t last = 0;  // where it stands, by its own words and its answers
    std::string head;
    grpc::ServerContext* context = nullptr;  // of its connection
  };

  static grpc::Status turn_away(SiteStream& stream, const std::string& reason) {
    wire::v2::ToSite message;
    message.mutable_refusal()->set_reason(reason);
    stream.Write(message);
    return grpc::Status::OK;
  }

  // Under the lock.
  void lose(const std::string& name, Site& site, const Error& why) {
    if (site.lost) return;
    site.lost = why;
    if (options_.say) options_.say(fmt::format("Without '{}': {}", name, why.message));
    if (site.context != nullptr) site.context->TryCancel();
    changed_.notify_all();
  }

  void say_missing() const {
    std::vector<std::string> missing;
    for (const auto& [name, site] : sites_)
      if (!site.accept && !site.lost) missing.push_back(name + (site.context != nullptr ? " (considering)" : ""));
    if (options_.say) options_.say(fmt::format("Waiting for {}", fmt::join(missing, ", ")));
  }

  // Waits for something to be said to this site; false: the connection is gone.
  template <class Ready>
  bool wait(Lock& lock, const grpc::ServerContext& context, const Ready& ready) {
    while (!ready()) {
      if (stopped_ || context.IsCancelled()) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(500));
    }
    return !stopped_ && !context.IsCancelled();
  }

  void converse(const std::string& name, Site& site, const grpc::ServerContext& context, SiteStream& stream) {
    if (!settle_proposal(name, site, context, stream)) return;
    Lock lock(mutex_);
    if (!wait(lock, context, [&] { return roster_ || finished_ || site.lost; })) return;
    if (roster_ && !site.lost) {
      wire::v2::ToSite message;
      message.set_roster(*roster_);
      lock.unlock();
      if (!stream.Write(message)) return;
      lock.lock();
    }
    const auto due = [&] {
      return ask_ && !total_.from.contains(name) &&
             std::find(ask_->ask.among().begin(), ask_->ask.among().end(), name) != ask_->ask.among().end();
    };
    for (;;) {
      if (!wait(lock, context, [&] { return due() || finished_ || site.lost; })) return;
      wire::v2::ToSite message;
      if (due() && !site.lost && !finished_ && !stands(site))
        lose(name, site, bad_input("it has forgotten what it answered: it was restored from an older copy"));
      if (site.lost) {
        message.mutable_refusal()->set_reason("the study goes on without this site: " + site.lost->message);
        lock.unlock();
        stream.Write(message);
        return;
      }
      if (finished_) {
        message.mutable_finish()->set_study(proposal_->proposal.study());
        lock.unlock();
        stream.Write(message);
        wire::v2::FromSite rest;
        while (stream.Read(&rest)) continue;  // until the site hangs up
        return;
      }
      message.set_ask(ask_->bytes);
      const ChainedAsk asked = *ask_;
      const AnswerShape shape = shape_;
      lock.unlock();
      if (!stream.Write(message) || !receive(name, site, asked, shape, stream)) return;
      lock.lock();
    }
  }

  // Whether the site is where the ask goes on from, or has answered it before.
  bool stands(const Site& site) const {
    const std::uint32_t number = ask_->ask.number();
    if (site.last + 1 == number) return number == 1 || site.head == ask_->ask.prev();
    return site.last >= number;
  }

  bool settle_proposal(const std::string& name, Site& site, const grpc::ServerContext& context, SiteStream& stream) {
    Lock lock(mutex_);
    if (!wait(lock, context, [&] { return proposal_.has_value(); })) return false;
    wire::v2::ToSite message;
    *message.mutable_proposal() = proposal_->signed_by;
    lock.unlock();
    wire::v2::FromSite reply;
    wire::v2::FromSite standing;
    if (!stream.Write(message) || !stream.Read(&reply)) return false;
    if (reply.has_accept() && !stream.Read(&standing)) return false;
    lock.lock();
    if (reply.has_refusal()) {
      lose(name, site, said_no(reply.refusal()));
      return false;
    }
    if (!reply.has_accept() || !standing.has_standing()) {
      lose(name, site, bad_input("it answered the proposal with something else"));
      return false;
    }
    if (const auto good = check_accept(name, reply.accept()); !good) {
      lose(name, site, good.error());
      return false;
    }
    if (site.accept && canonical_bytes(*site.accept) != canonical_bytes(reply.accept())) {
      lose(name, site, bad_input("it accepted the proposal before, with other keys: it has lost its state"));
      return false;
    }
    site.accept = reply.accept();
    site.last = standing.standing().last();
    site.head = standing.standing().head();
    changed_.notify_all();
    return true;
  }

  Status check_accept(const std::string& name, const wire::v2::Accept& accept) const {
    wire::v2::AcceptStatement said;
    EIGENVEIL_TRY(read_canonical(accept.statement(), said));
    if (said.proposal() != proposal_->hash || said.site() != name || said.role() != federation::name(Role::kSite) ||
        said.x25519().size() != Secret::kBytes || said.has_rows() != (proposal_->proposal.adjacency() == "replace-one"))
      return bad_input("it accepted something else than the proposal");
    EIGENVEIL_TRY(
        verify_party(options_.identity.authority, accept.certificate(), Role::kSite, name, options_.peers.at(name)));
    return verify_signature(accept.certificate(), accept_statement(accept.statement()), accept.signature());
  }

  static Error said_no(const wire::v2::Refusal& refusal) {
    const bool budget = refusal.code() == static_cast<std::uint32_t>(ErrorCode::kBudgetRefused);
    return Error{budget ? ErrorCode::kBudgetRefused : ErrorCode::kBadInput,
                 "it refused: " + printable(refusal.reason(), 1000)};
  }

  bool lose_for(const std::string& name, Site& site, const Error& why) {
    const Lock lock(mutex_);
    lose(name, site, why);
    return false;
  }

  // Nothing that others need is held while a site is waited for.
  bool receive(const std::string& name, Site& site, const ChainedAsk& asked, const AnswerShape& shape,
               SiteStream& stream) {
    const wire::v2::Ask& ask = asked.ask;
    wire::v2::FromSite message;
    if (!stream.Read(&message)) return false;
    if (message.has_refusal()) return lose_for(name, site, said_no(message.refusal()));
    const auto& head = message.answer();
    if (!message.has_answer() || head.study() != ask.study() || head.number() != ask.number() ||
        head.head() != asked.head || head.rows() != shape.rows || head.columns() != shape.columns ||
        head.symmetric() != shape.symmetric || head.shift() != shape.shift || head.entries() != shape.entries ||
        head.narrow() != ask.narrow())
      return lose_for(name, site,
                      bad_input(fmt::format("it sent something else than the answer to '{}'", ask.label())));
    IncomingAnswer answer(shape.entries, head.narrow());
    while (!answer.complete()) {
      if (!stream.Read(&message)) return false;
      if (const auto taken = answer.take(std::move(*message.mutable_part()->mutable_values())); !taken)
        return lose_for(name, site, taken.error());
    }
    const Lock lock(mutex_);
    if (!ask_ || ask_->head != asked.head || site.lost) return false;
    if (const auto added = answer.add_to(total_.values); !added) {
      lose(name, site, added.error());
      return false;
    }
    total_.from.insert(name);
    site.last = std::max(site.last, ask.number());
    site.head = asked.head;
    changed_.notify_all();
    return true;
  }

  // Whoever still speaks the first version hears one sentence.
  class Old final : public wire::v1::Coordinator::Service {
    grpc::Status Join(grpc::ServerContext*,
                      grpc::ServerReaderWriter<wire::v1::ToSite, wire::v1::FromSite>* stream) override {
      wire::v1::FromSite hello;
      wire::v1::ToSite message;
      stream->Read(&hello);
      message.mutable_refusal()->set_reason(other_version(1));
      stream->Write(message);
      return grpc::Status::OK;
    }
  };

  Options options_;
  Old old_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Site> sites_;  // its keys never change
  std::optional<Proposed> proposal_;
  std::optional<std::string> roster_;
  std::optional<ChainedAsk> ask_;
  AnswerShape shape_;
  Total total_;
  bool finished_ = false;
  bool stopped_ = false;
};

Sites::Sites(std::unique_ptr<Service> service) : service_(std::move(service)) {}
Sites::~Sites() { service_->stop(); }

Result<std::unique_ptr<Sites>> Sites::listen(Options options) {
  auto service = std::make_unique<Service>(std::move(options));
  EIGENVEIL_TRY(service->start());
  return std::unique_ptr<Sites>(new Sites(std::move(service)));
}

int Sites::port() const { return service_->port(); }
std::map<std::string, wire::v2::Accept> Sites::propose(const wire::v2::SignedProposal& proposal,
                                                       std::map<std::string, wire::v2::Accept> known) {
  return service_->propose(proposal, std::move(known));
}
void Sites::introduce(const std::string& roster) { service_->introduce(roster); }
Total Sites::ask(const ChainedAsk& ask, const AnswerShape& shape) { return service_->ask(ask, shape); }
void Sites::finish() { service_->finish(); }
std::map<std::string, Error> Sites::lost() const { return service_->lost(); }

}  // namespace eigenveil::federation
