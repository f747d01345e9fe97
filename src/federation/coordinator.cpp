#include "eigenveil/federation/coordinator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "eigenveil/federation/federated_oracle.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

class FederatedRows final : public HeldRows {
 public:
  FederatedRows(const CoordinatorOptions& options, wire::v1::Rows rows, std::size_t columns, Lattice lattice)
      : options_(options), rows_(std::move(rows)), columns_(columns), lattice_(lattice) {}

  std::size_t columns() const override { return columns_; }
  Lattice lattice() const override { return lattice_; }
  std::optional<std::size_t> rows() const override { return std::nullopt; }
  BoundingDiagnostics diagnostics() const override { return {}; }
  Result<ChargedOracle> charge(const ChargeRequest& request, Observer& observer) override;

 private:
  PrivacyPlan with_spares(PrivacyPlan shape) const;
  Result<wire::v1::Proposal> proposal(const ChargeRequest& request, const PrivacyPlan& plan) const;
  Result<std::map<std::string, wire::v1::Accept>> accepts(Sites& sites, const wire::v1::Proposal& proposal) const;

  CoordinatorOptions options_;
  wire::v1::Rows rows_;
  std::size_t columns_;
  Lattice lattice_;
};

// Spare rounds are charged like the least noisy answer of the plan.
PrivacyPlan FederatedRows::with_spares(PrivacyPlan shape) const {
  if (options_.spare_rounds == 0) return shape;
  double mu = 0;
  for (const PrivacyEvent& event : shape.events)
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) mu = std::max(mu, gaussian->mu.value());
  shape.events.push_back({kSpareRounds, GaussianEvent{mu}, static_cast<long long>(options_.spare_rounds)});
  return shape;
}

Result<wire::v1::Proposal> FederatedRows::proposal(const ChargeRequest& request, const PrivacyPlan& plan) const {
  wire::v1::Proposal proposal;
  proposal.set_version(kWireVersion);
  proposal.set_study(draw_study());
  proposal.set_estimator(options_.estimator);
  proposal.set_purpose(request.purpose);
  *proposal.mutable_rows() = rows_;
  proposal.set_epsilon(request.privacy.epsilon.value());
  proposal.set_delta(request.privacy.delta.value());
  proposal.set_adjacency(std::string(name(request.privacy.adjacency)));
  proposal.set_accounting(request.privacy.accounting == Accounting::kTight ? "tight" : "zcdp");
  *proposal.mutable_plan() = to_wire(plan);
  proposal.set_aggregation(options_.aggregation == Aggregation::kSecure ? wire::v1::Proposal::SECURE
                                                                        : wire::v1::Proposal::LOCAL);
  for (const std::string& site : options_.sites) proposal.add_sites(site);
  proposal.set_tolerate(static_cast<std::uint32_t>(options_.tolerate));
  proposal.set_spare_rounds(static_cast<std::uint32_t>(options_.spare_rounds));

  // A journal that was begun keeps its study's number.
  EIGENVEIL_TRY(make_folder(options_.journal));
  const std::string path = options_.journal + "/proposal.bin";
  wire::v1::Proposal before;
  const auto begun = load(path, before);
  if (!begun) return begun.error();
  if (!*begun) {
    EIGENVEIL_TRY(store(path, proposal));
    return proposal;
  }
  proposal.set_study(before.study());
  if (proposal.SerializeAsString() != before.SerializeAsString())
    return usage_error(
        fmt::format("{}: the journal belongs to another study; give --journal a new folder, or the same "
                    "options as before",
                    options_.journal));
  return proposal;
}

Result<std::map<std::string, wire::v1::Accept>> FederatedRows::accepts(Sites& sites,
                                                                       const wire::v1::Proposal& proposal) const {
  const auto path = [&](const std::string& name) { return options_.journal + "/accept-" + name + ".bin"; };
  // All of them are in the journal, or none counts.
  wire::v1::Roster done;
  const auto decided = load(options_.journal + "/roster.bin", done);
  if (!decided) return decided.error();
  std::map<std::string, wire::v1::Accept> known;
  if (*decided)
    for (const std::string& name : options_.sites) {
      wire::v1::Accept accept;
      const auto found = load(path(name), accept);
      if (!found) return found.error();
      if (*found) known[name] = accept;
    }
  auto accepted = sites.propose(proposal, columns_, known);
  const bool secure = options_.aggregation == Aggregation::kSecure;
  const std::size_t least =
      std::max<std::size_t>({1, options_.min_sites, secure ? options_.sites.size() - options_.tolerate : 1});
  if (accepted.size() < least) {
    std::string reasons;
    ErrorCode code = ErrorCode::kBadInput;
    for (const auto& [name, why] : sites.lost()) {
      reasons += fmt::format("; {}: {}", name, why.message);
      if (why.code == ErrorCode::kBudgetRefused) code = why.code;
    }
    return Error{code, fmt::format("{} of {} sites take part, where {} are needed{}", accepted.size(),
                                   options_.sites.size(), least, reasons)};
  }
  wire::v1::Roster roster;
  roster.set_study(proposal.study());
  if (secure)
    for (const auto& [name, accept] : accepted) *roster.add_keys() = accept.mask_key();
  if (!*decided) {
    for (const auto& [name, accept] : accepted) EIGENVEIL_TRY(store(path(name), accept));
    EIGENVEIL_TRY(store(options_.journal + "/roster.bin", roster));
  }
  if (secure) sites.introduce(roster);
  return accepted;
}

Result<ChargedOracle> FederatedRows::charge(const ChargeRequest& request, Observer& observer) {
  if (request.shape.model_based)
    return usage_error("a model-based guarantee needs all rows in one place: use --guarantee strict");
  auto certified = certify(with_spares(request.shape), largest_sensitivity(lattice_), request.privacy);
  if (!certified) return certified.error();
  const auto proposed = proposal(request, certified->plan);
  if (!proposed) return proposed.error();
  auto journal = AnswerLog::open(options_.journal + "/totals.bin");
  if (!journal) return journal.error();
  observer.step("waiting for sites");
  auto sites = Sites::listen({options_.listen, options_.identity, options_.sites,
                              std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options_.patience_seconds)),
                              options_.say});
  if (!sites) return sites.error();
  if (options_.say)
    options_.say(fmt::format("Study {}: waiting at port {} for {}", proposed->study(), (*sites)->port(),
                             fmt::join(options_.sites, ", ")));
  std::shared_ptr<Sites> shared = *std::move(sites);
  auto accepted = accepts(*shared, *proposed);
  if (!accepted) {
    shared->finish();
    return accepted.error();
  }
  PrivacyPlan asked = certified->plan;
  if (options_.spare_rounds > 0) asked.events.pop_back();
  Charge charge{asked, certified->epsilon, true, ""};
  const bool secure = options_.aggregation == Aggregation::kSecure;
  charge.federation = std::make_shared<nlohmann::json>(nlohmann::json{
      {"study", proposed->study()}, {"sites", options_.sites}, {"aggregation", secure ? "secure" : "local"}});
  if (secure) (*charge.federation)["tolerate"] = options_.tolerate;
  if (secure) (*charge.federation)["spare_rounds"] = options_.spare_rounds;
  auto oracle = std::make_unique<FederatedOracle>(
      shared,
      FederatedOracle::Study{*proposed, asked, lattice_, columns_, request.privacy.adjacency, *std::move(accepted)},
      options_, *std::move(journal), charge.federation);
  return ChargedOracle{std::move(charge), std::move(oracle)};
}

class FederatedEngine final : public Engine {
 public:
  explicit FederatedEngine(CoordinatorOptions options) : options_(std::move(options)) {}
  Result<std::unique_ptr<HeldRows>> hold(const RowOptions& options, const OpenedData& opened, const RunOptions& run,
                                         std::size_t, Observer&) override {
    if (run.insecure_seed)
      return usage_error("--insecure-seed is for rows of one's own: sites draw their noise themselves");
    const auto bound = first_bound(options, opened.map);
    if (!bound) return bound.error();
    return std::unique_ptr<HeldRows>(
        std::make_unique<FederatedRows>(options_, to_wire(options, opened), opened.map.features(),
                                        Lattice{bound->value(), BoundingOptions{*bound}.bits}));
  }

 private:
  CoordinatorOptions options_;
};

}  // namespace

Status check(const CoordinatorOptions& options) {
  std::vector<std::string> names = options.sites;
  std::sort(names.begin(), names.end());
  if (names.empty() || names.size() > 4096) return usage_error("--sites must name 1 to 4096 sites");
  for (const std::string& name : names)
    if (name.empty() || name.size() > 63 ||
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != std::string::npos)
      return usage_error(fmt::format("--sites: '{}' is no name of a certificate", name));
  if (std::adjacent_find(names.begin(), names.end()) != names.end()) return usage_error("--sites names a site twice");
  if (options.min_sites > names.size())
    return usage_error(fmt::format("--min-sites is {}, but there are {} sites", options.min_sites, names.size()));
  if (!(options.patience_seconds > 0) || options.patience_seconds > 1e7)
    return usage_error("--patience must be a positive number of seconds");
  const bool secure = options.aggregation == Aggregation::kSecure;
  if (!secure && (options.tolerate > 0 || options.spare_rounds > 0))
    return usage_error("--tolerate and --spare-rounds belong to --aggregation secure");
  if (secure && options.tolerate + 2 > names.size())
    return usage_error(
        fmt::format("--aggregation secure needs two sites more than --tolerate, but there are {}", names.size()));
  if (options.spare_rounds > 0 && options.tolerate == 0)
    return usage_error("--spare-rounds serve when a site is missing: give --tolerate 1 or more with them");
  return {};
}

Result<std::shared_ptr<Engine>> federated_engine(CoordinatorOptions options) {
  EIGENVEIL_TRY(check(options));
  if (options.min_sites == 0)
    options.min_sites = options.sites.size() - (options.aggregation == Aggregation::kSecure ? options.tolerate : 0);
  return std::shared_ptr<Engine>(std::make_shared<FederatedEngine>(std::move(options)));
}

}  // namespace eigenveil::federation
