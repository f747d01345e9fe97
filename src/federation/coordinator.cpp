// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/coordinator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "eigenveil/federation/federated_oracle.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

class FederatedRows final : public HeldRows {
 public:
  FederatedRows(const CoordinatorOptions& options, wire::v2::Rows rows, std::size_t columns, Lattice lattice,
                std::optional<PersonOptions> person)
      : options_(options), rows_(std::move(rows)), columns_(columns), lattice_(lattice), person_(std::move(person)) {}

  std::size_t columns() const override { return columns_; }
  Lattice lattice() const override { return lattice_; }
  std::optional<std::size_t> rows() const override { return std::nullopt; }
  BoundingDiagnostics diagnostics() const override { return {}; }
  Result<ChargedOracle> charge(const ChargeRequest& request, Observer& observer) override;

 private:
  PrivacyPlan with_spares(PrivacyPlan draft) const;
  Result<wire::v2::Proposal> proposal(const ChargeRequest& request, const PrivacyPlan& plan) const;
  Result<wire::v2::SignedProposal> signed_proposal(wire::v2::Proposal proposal) const;
  Result<wire::v2::Roster> meet(Sites& sites, const wire::v2::SignedProposal& proposal) const;
  nlohmann::json told(const wire::v2::Proposal& proposal, double epsilon_alone) const;

  CoordinatorOptions options_;
  wire::v2::Rows rows_;
  std::size_t columns_;
  Lattice lattice_;
  std::optional<PersonOptions> person_;
};

// Spare rounds are charged like the least noisy answer of the plan.
PrivacyPlan FederatedRows::with_spares(PrivacyPlan draft) const {
  if (options_.spare_rounds == 0) return draft;
  double mu = 0;
  for (const PrivacyEvent& event : draft.events) mu = std::max(mu, std::get<GaussianEvent>(event.mechanism).mu.value());
  draft.events.push_back({kSpareRounds, GaussianEvent{mu}, static_cast<long long>(options_.spare_rounds)});
  return draft;
}

std::uint32_t number(std::size_t n) { return static_cast<std::uint32_t>(n); }

// `plan` ends with the spare rounds, if there are any.
Result<wire::v2::Proposal> FederatedRows::proposal(const ChargeRequest& request, const PrivacyPlan& plan) const {
  wire::v2::Proposal proposal;
  proposal.set_version(kWireVersion);
  proposal.set_study(draw_study());
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  proposal.set_not_after(now + static_cast<std::int64_t>(86400 * options_.valid_days));
  proposal.set_estimator(options_.estimator);
  proposal.set_options(request.purpose);
  proposal.set_purpose(options_.purpose);
  *proposal.mutable_rows() = rows_;
  proposal.set_adjacency(std::string(name(plan.adjacency)));
  proposal.set_unit(person_ ? "person" : "row");
  if (person_) {
    proposal.mutable_people()->set_least_rows(number(person_->least_rows));
    proposal.mutable_people()->set_most_rows(number(person_->most_rows.value_or(0)));
    proposal.mutable_people()->set_missing_is_own(person_->missing_is_own);
  }
  proposal.set_sites_per_person(1);
  proposal.set_aggregation(options_.secure() ? wire::v2::Proposal::SECURE : wire::v2::Proposal::LOCAL);
  for (const auto& [site, pin] : options_.peers) {
    auto* to = proposal.add_sites();
    to->set_name(site);
    to->set_key_hash(pin);
  }
  proposal.set_shares(number(options_.shares()));
  proposal.set_colluders(number(options_.secure() ? options_.colluders : 0));
  proposal.set_lost(number(options_.lost));
  PrivacyPlan asked = plan;
  if (options_.spare_rounds > 0) {
    proposal.set_spares(number(options_.spare_rounds));
    proposal.set_spare_mu(std::get<GaussianEvent>(asked.events.back().mechanism).mu);
    asked.events.pop_back();
  }
  const auto& sorted = rows_.class_column();
  const auto classes = number(sorted.cuts_size() > 0 ? sorted.cuts_size() + 1 : sorted.classes_size());
  EIGENVEIL_TRY(describe(asked, number(columns_), classes, options_.questions, proposal));
  proposal.set_epsilon(request.privacy.epsilon.value());
  proposal.set_delta(request.privacy.delta.value());
  proposal.set_accounting(request.privacy.accounting == Accounting::kTight ? "tight" : "zcdp");
  return proposal;
}

// A journal that was begun keeps its study's number, time and signature.
Result<wire::v2::SignedProposal> FederatedRows::signed_proposal(wire::v2::Proposal proposal) const {
  const std::string path = options_.journal + "/proposal.bin";
  wire::v2::SignedProposal before;
  const auto begun = EIGENVEIL_TRY(load(path, before));
  if (begun) {
    wire::v2::Proposal there;
    EIGENVEIL_TRY(read_canonical(before.proposal(), there));
    proposal.set_study(there.study());
    proposal.set_not_after(there.not_after());
    if (canonical_bytes(proposal) == before.proposal()) return before;
    return usage_error(
        fmt::format("{}: the journal belongs to another study; give `journal` a new folder, or the same "
                    "options as before",
                    options_.journal));
  }
  wire::v2::SignedProposal message;
  message.set_proposal(canonical_bytes(proposal));
  const auto signature =
      EIGENVEIL_TRY(sign(options_.identity.key, proposal_statement(hash("proposal", {message.proposal()}))));
  message.set_signature(signature);
  message.set_certificate(options_.identity.certificate);
  EIGENVEIL_TRY(store(path, message));
  return message;
}

// Who takes part is in the journal before anybody is asked, and stays.
Result<wire::v2::Roster> FederatedRows::meet(Sites& sites, const wire::v2::SignedProposal& proposal) const {
  wire::v2::Roster roster;
  const std::string path = options_.journal + "/roster.bin";
  const auto decided = EIGENVEIL_TRY(load(path, roster));
  std::map<std::string, wire::v2::Accept> known;
  for (const auto& accept : roster.accepts()) {
    wire::v2::AcceptStatement said;
    EIGENVEIL_TRY(read_canonical(accept.statement(), said));
    known[said.site()] = accept;
  }
  const auto accepted = sites.propose(proposal, known);
  const std::size_t least =
      std::max<std::size_t>({1, options_.min_sites, options_.secure() ? options_.shares() + options_.colluders : 1});
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
  if (!decided) {
    wire::v2::Proposal proposed;
    EIGENVEIL_TRY(read_canonical(proposal.proposal(), proposed));
    roster.set_study(proposed.study());
    for (const auto& [name, accept] : accepted) *roster.add_accepts() = accept;
    EIGENVEIL_TRY(store(path, roster));
  }
  sites.introduce(canonical_bytes(roster));
  return roster;
}

// What a reader of the release must know about who could learn more.
nlohmann::json FederatedRows::told(const wire::v2::Proposal& proposal, double epsilon_alone) const {
  nlohmann::json told = {{"study", study_text(proposal.study())},
                         {"sites", options_.sites},
                         {"aggregation", options_.secure() ? "secure" : "local"},
                         {"shares", options_.shares()},
                         {"sites_per_person", proposal.sites_per_person()},
                         {"searches", "counts of rows by cell with Gaussian noise"}};
  const std::string of_whom =
      person_ ? "It protects one person's rows at one site. Ids are not compared between sites: whoever has rows at "
                "several has the guarantee of as many persons who act together."
              : "A person has rows at one site only.";
  if (!options_.secure()) {
    told["condition"] =
        "It holds for each site's rows against the coordinator and all other sites together: every site adds the full "
        "noise. " +
        of_whom;
    return told;
  }
  told["colluders"] = options_.colluders;
  told["lost"] = options_.lost;
  told["spare_rounds"] = options_.spare_rounds;
  told["epsilon_alone"] = epsilon_alone;
  told["condition"] = fmt::format(
      "It holds for each site's rows as long as at most {} of the {} sites tell the coordinator what they know, "
      "whoever of "
      "the others is missing: each site adds 1/{} of the noise variance (k = {}). {} If all other sites and the "
      "coordinator join against one site, its rows have epsilon {:.4g} alone.",
      options_.colluders, options_.sites.size(), options_.shares(), options_.shares(), of_whom, epsilon_alone);
  return told;
}

// epsilon of the plan with mu sqrt(k): one share of the noise is all there is.
Result<double> alone(PrivacyPlan plan, std::size_t shares, const PrivacyOptions& privacy) {
  for (PrivacyEvent& event : plan.events)
    event.mechanism =
        GaussianEvent{std::get<GaussianEvent>(event.mechanism).mu.value() * std::sqrt(static_cast<double>(shares))};
  return epsilon_of(plan.events, privacy.delta, privacy.accounting);
}

Result<ChargedOracle> FederatedRows::charge(const ChargeRequest& request, Observer& observer) {
  if (request.draft.model_based)
    return usage_error("a model-based guarantee needs all rows in one place: use `guarantee` strict");
  auto certified =
      EIGENVEIL_TRY(certify(with_spares(for_sites(request.draft)), largest_sensitivity(lattice_), request.privacy));
  auto wanted = EIGENVEIL_TRY(proposal(request, certified.plan));
  // Whoever has the totals has the whole folder: two coordinators must not write two proposals into it.
  EIGENVEIL_TRY(make_folder(options_.journal));
  auto journal = EIGENVEIL_TRY(AnswerLog::open(options_.journal + "/totals.bin"));
  const auto proposed = EIGENVEIL_TRY(signed_proposal(std::move(wanted)));
  wire::v2::Proposal agreed;
  EIGENVEIL_TRY(read_canonical(proposed.proposal(), agreed));
  const auto epsilon_alone = EIGENVEIL_TRY(alone(certified.plan, options_.shares(), request.privacy));
  observer.step("waiting for sites");
  auto sites = EIGENVEIL_TRY(Sites::listen(
      {options_.listen, options_.identity, options_.peers,
       std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options_.patience_seconds)), options_.say}));
  if (options_.say)
    options_.say(fmt::format("Study {}: waiting at port {} for {}", study_text(agreed.study()), sites->port(),
                             fmt::join(options_.sites, ", ")));
  std::shared_ptr<Sites> shared = std::move(sites);
  auto roster = meet(*shared, proposed);
  if (!roster) {
    shared->finish();
    return roster.error();
  }
  PrivacyPlan asked = certified.plan;
  Charge charge{asked, certified.epsilon, true, ""};
  if (options_.spare_rounds > 0) {
    charge.spares = {charge.plan.events.back()};
    charge.plan.events.pop_back();
  }
  charge.federation = std::make_shared<nlohmann::json>(told(agreed, epsilon_alone));
  auto oracle = EIGENVEIL_TRY(FederatedOracle::make(
      shared, {proposed, *std::move(roster), charge.plan, lattice_, columns_, person_ && person_->least_rows > 1},
      options_, std::move(journal), charge.federation));
  return ChargedOracle{std::move(charge), std::move(oracle)};
}

class FederatedEngine final : public Engine {
 public:
  explicit FederatedEngine(CoordinatorOptions options) : options_(std::move(options)) {}
  Result<std::unique_ptr<HeldRows>> hold(const RowOptions& options, OpenedData& opened, const RunOptions& run,
                                         std::size_t, Observer&) override {
    if (options.pairs) return usage_error("clip cannot be fitted on pairs that others hold");
    if (run.insecure_seed)
      return usage_error("`insecure_seed` is for rows of one's own: sites draw their noise themselves");
    if (options.person) EIGENVEIL_TRY(eigenveil::check(*options.person));
    const auto bound = EIGENVEIL_TRY(first_bound(options, opened.map));
    const Lattice lattice{bound.value(), BoundingOptions{bound}.bits, options.person ? kPersonBits : 0};
    wire::v2::Rows rows = to_wire(options, opened);
    rows.set_radius(lattice.radius);
    rows.set_bits(static_cast<std::uint32_t>(lattice.bits));
    return std::unique_ptr<HeldRows>(
        std::make_unique<FederatedRows>(options_, std::move(rows), opened.map.features(), lattice, options.person));
  }

 private:
  CoordinatorOptions options_;
};

}  // namespace

Status check(const CoordinatorOptions& options) {
  std::vector<std::string> names = options.sites;
  std::sort(names.begin(), names.end());
  if (names.empty() || names.size() > kMostSites)
    return usage_error(fmt::format("`sites` must name 1 to {} sites", kMostSites));
  if (std::adjacent_find(names.begin(), names.end()) != names.end()) return usage_error("`sites` names a site twice");
  for (const std::string& name : names) {
    const auto pin = options.peers.find(name);
    if (pin == options.peers.end())
      return usage_error(
          fmt::format("`peers` has no key of '{}': ask the site for it (eigenveil federation show)", name));
    EIGENVEIL_TRY(check_pin(name, pin->second));
  }
  if (options.min_sites > names.size())
    return usage_error(fmt::format("`min_sites` is {}, but there are {} sites", options.min_sites, names.size()));
  if (!(options.patience_seconds > 0) || options.patience_seconds > 1e7)
    return usage_error("`patience` must be a positive number of seconds");
  if (!(options.valid_days > 0) || options.valid_days > 366)
    return usage_error("`valid_days` must be a positive number of days, at most 366");
  if (!options.secure()) {
    if (options.lost > 0 || options.spare_rounds > 0)
      return usage_error("`lost` and `spare_rounds` belong to `aggregation` secure");
    return {};
  }
  if (options.colluders < 1)
    return usage_error("`colluders` must be at least 1: a site that is curious knows its own share of the noise");
  // No sum of what a user gave: it could overflow.
  if (options.colluders >= names.size() || options.lost >= names.size() - options.colluders)
    return usage_error(
        fmt::format("of {} sites {} may collude and {} be missing: none is left whose noise protects the others. Lower "
                    "`colluders` or `lost`, or find more sites",
                    names.size(), options.colluders, options.lost));
  if (options.spare_rounds > 0 && options.lost == 0)
    return usage_error("`spare_rounds` serve when a site is missing: give `lost` 1 or more with them");
  return {};
}

Result<std::shared_ptr<Engine>> federated_engine(CoordinatorOptions options) {
  EIGENVEIL_TRY(check(options));
  std::sort(options.sites.begin(), options.sites.end());
  std::erase_if(options.peers, [&](const auto& peer) {
    return !std::binary_search(options.sites.begin(), options.sites.end(), peer.first);
  });
  if (options.min_sites == 0) options.min_sites = options.sites.size() - (options.secure() ? options.lost : 0);
  return std::shared_ptr<Engine>(std::make_shared<FederatedEngine>(std::move(options)));
}

}  // namespace eigenveil::federation
