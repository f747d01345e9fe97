#include "eigenveil/federation/sites.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "channel.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/wire/convert.hpp"
#include "wire.grpc.pb.h"

namespace eigenveil::federation {

using SiteStream = grpc::ServerReaderWriter<wire::v2::ToSite, wire::v2::FromSite>;
using Lock = std::unique_lock<std::mutex>;

/// One thread a connection (`Join`), one that asks; everything they share is under `mutex_`.
class Sites::Service final : public wire::v2::Coordinator::Service {
 public:
  explicit Service(Options options) : options_(std::move(options)) {
    for (const std::string& name : options_.names) sites_[name];
  }

  Status start() {
    grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = options_.identity.authority;
    tls.pem_key_cert_pairs = {{options_.identity.key, options_.identity.certificate}};
    grpc::ServerBuilder builder;
    builder.AddListeningPort(options_.listen, grpc::SslServerCredentials(tls), &port_);
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(kLargestReply);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second coordinator on the port is an error
    tune(builder);
    server_ = builder.BuildAndStart();
    if (server_ && port_ != 0) return {};
    return usage_error(
        fmt::format("cannot listen at {}: give --listen HOST:PORT with an address of this machine and a "
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
    const std::string name = peer_of(*context);
    wire::v2::FromSite hello;
    if (!stream->Read(&hello)) return grpc::Status::OK;
    if (!sites_.contains(name))
      return turn_away(*stream, fmt::format("'{}' is not one of the sites of this study", name));
    if (!hello.has_hello() || hello.hello().version() != kWireVersion)
      return turn_away(*stream,
                       fmt::format("the site speaks version {} of the protocol, the coordinator version {}: use "
                                   "the same release of eigenveil at both",
                                   hello.hello().version(), kWireVersion));
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

  std::map<std::string, wire::v2::Accept> propose(const wire::v2::Proposal& proposal, std::size_t columns,
                                                  std::map<std::string, wire::v2::Accept> known) {
    Lock lock(mutex_);
    for (auto& [name, accept] : known) sites_[name].accept = accept;
    proposal_ = proposal;
    columns_ = columns;
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

  void introduce(const wire::v2::Roster& roster) {
    const Lock lock(mutex_);
    roster_ = roster;
    changed_.notify_all();
  }

  Total ask(const wire::v2::Ask& ask, const AnswerShape& shape) {
    Lock lock(mutex_);
    ask_ = ask;
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
    grpc::ServerContext* context = nullptr;  // of its connection
  };

  static std::string peer_of(const grpc::ServerContext& context) {
    const auto names = context.auth_context()->FindPropertyValues("x509_common_name");
    return names.empty() ? "" : std::string(names.front().data(), names.front().size());
  }

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
    if (proposal_->aggregation() == wire::v2::Proposal::SECURE) {
      if (!wait(lock, context, [&] { return roster_ || finished_ || site.lost; })) return;
      if (roster_) {
        wire::v2::ToSite message;
        *message.mutable_roster() = *roster_;
        lock.unlock();
        if (!stream.Write(message)) return;
        lock.lock();
      }
    }
    const auto due = [&] {
      return ask_ && !total_.from.contains(name) &&
             std::find(ask_->among().begin(), ask_->among().end(), name) != ask_->among().end();
    };
    for (;;) {
      if (!wait(lock, context, [&] { return due() || finished_ || site.lost; })) return;
      wire::v2::ToSite message;
      if (site.lost) {
        message.mutable_refusal()->set_reason("the study goes on without this site: " + site.lost->message);
        lock.unlock();
        stream.Write(message);
        return;
      }
      if (finished_) {
        message.mutable_finish()->set_study(proposal_->study());
        lock.unlock();
        stream.Write(message);
        wire::v2::FromSite rest;
        while (stream.Read(&rest)) continue;  // until the site hangs up
        return;
      }
      *message.mutable_ask() = *ask_;
      const AnswerShape shape = shape_;
      lock.unlock();
      if (!stream.Write(message) || !receive(name, site, message.ask(), shape, stream)) return;
      lock.lock();
    }
  }

  bool settle_proposal(const std::string& name, Site& site, const grpc::ServerContext& context, SiteStream& stream) {
    Lock lock(mutex_);
    if (!wait(lock, context, [&] { return proposal_.has_value(); })) return false;
    wire::v2::ToSite message;
    *message.mutable_proposal() = *proposal_;
    lock.unlock();
    wire::v2::FromSite reply;
    if (!stream.Write(message) || !stream.Read(&reply)) return false;
    lock.lock();
    if (reply.has_refusal()) {
      lose(name, site, said_no(reply.refusal()));
      return false;
    }
    if (!reply.has_accept() || reply.accept().study() != proposal_->study() || reply.accept().columns() != columns_ ||
        (proposal_->adjacency() == "replace-one" && !reply.accept().has_rows())) {
      lose(name, site, bad_input("it answered the proposal with something else"));
      return false;
    }
    if (!site.accept) site.accept = reply.accept();
    changed_.notify_all();
    return true;
  }

  static Error said_no(const wire::v2::Refusal& refusal) {
    const bool budget = refusal.code() == static_cast<std::uint32_t>(ErrorCode::kBudgetRefused);
    return Error{budget ? ErrorCode::kBudgetRefused : ErrorCode::kBadInput, "it refused: " + refusal.reason()};
  }

  bool lose_for(const std::string& name, Site& site, const Error& why) {
    const Lock lock(mutex_);
    lose(name, site, why);
    return false;
  }

  // One answer at a time is read, so that there is one copy beside the total; of the others, a first part.
  bool receive(const std::string& name, Site& site, const wire::v2::Ask& ask, const AnswerShape& shape,
               SiteStream& stream) {
    wire::v2::FromSite message;
    if (!stream.Read(&message)) return false;
    if (message.has_refusal()) return lose_for(name, site, said_no(message.refusal()));
    const auto& head = message.answer();
    if (!message.has_answer() || head.study() != ask.study() || head.number() != ask.number() ||
        head.rows() != shape.rows || head.columns() != shape.columns || head.symmetric() != shape.symmetric ||
        head.shift() != shape.shift || head.entries() != shape.entries || head.narrow() != ask.narrow())
      return lose_for(name, site,
                      bad_input(fmt::format("it sent something else than the answer to '{}'", ask.label())));
    const bool narrow = head.narrow();
    const std::size_t each = integer_bytes(narrow);
    if (shape.entries > 0 && !stream.Read(&message)) return false;
    const Lock one(reading_);
    scratch_.assign(shape.entries, 0);
    for (std::uint64_t got = 0; got < shape.entries;) {
      if (got > 0 && !stream.Read(&message)) return false;
      const std::string& bytes = message.part().values();
      if (!message.has_part() || bytes.empty() || bytes.size() % each != 0 || bytes.size() / each > shape.entries - got)
        return lose_for(name, site, bad_input(fmt::format("it sent a part of '{}' that does not fit", ask.label())));
      add_integers(bytes, narrow, &scratch_[got]);
      got += bytes.size() / each;
    }
    const Lock lock(mutex_);
    if (!ask_ || ask_->number() != ask.number() || site.lost) return false;
    for (std::size_t i = 0; i < scratch_.size(); ++i)
      total_.values[i] =
          static_cast<Int128>(static_cast<UInt128>(total_.values[i]) + static_cast<UInt128>(scratch_[i]));
    total_.from.insert(name);
    changed_.notify_all();
    return true;
  }

  Options options_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Site> sites_;  // its keys never change
  std::optional<wire::v2::Proposal> proposal_;
  std::size_t columns_ = 0;
  std::optional<wire::v2::Roster> roster_;
  std::optional<wire::v2::Ask> ask_;
  AnswerShape shape_;
  Total total_;
  bool finished_ = false;
  bool stopped_ = false;
  std::mutex reading_;
  std::vector<Int128> scratch_;
};

Sites::Sites(std::unique_ptr<Service> service) : service_(std::move(service)) {}
Sites::~Sites() { service_->stop(); }

Result<std::unique_ptr<Sites>> Sites::listen(Options options) {
  auto service = std::make_unique<Service>(std::move(options));
  EIGENVEIL_TRY(service->start());
  return std::unique_ptr<Sites>(new Sites(std::move(service)));
}

int Sites::port() const { return service_->port(); }
std::map<std::string, wire::v2::Accept> Sites::propose(const wire::v2::Proposal& proposal, std::size_t columns,
                                                       std::map<std::string, wire::v2::Accept> known) {
  return service_->propose(proposal, columns, std::move(known));
}
void Sites::introduce(const wire::v2::Roster& roster) { service_->introduce(roster); }
Total Sites::ask(const wire::v2::Ask& ask, const AnswerShape& shape) { return service_->ask(ask, shape); }
void Sites::finish() { service_->finish(); }
std::map<std::string, Error> Sites::lost() const { return service_->lost(); }

}  // namespace eigenveil::federation
