// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "eigenveil/base/printable.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/federation/script.hpp"
#include "eigenveil/federation/site_config.hpp"
#include "eigenveil/privacy/accountant.hpp"
#include "eigenveil/privacy/least_delta.hpp"
#include "kinds.hpp"
#include "own_rows.hpp"

// Nothing here sees a row or the ledger, so whatever is refused may be told to whoever proposed it.

namespace eigenveil::federation {
namespace {

using wire::v2::Kind;
using wire::v2::Proposal;

Status check_text(const char* what, const std::string& text, std::uint32_t most) {
  if (text.size() <= most) return {};
  return bad_input(fmt::format("its {} has {} bytes, above this site's limit of {}", what, text.size(), most));
}

Status check_size(const char* what, std::uint64_t size, std::uint64_t most) {
  if (size <= most) return {};
  return bad_input(fmt::format("it has {} {}, above this site's limit of {}", size, what, most));
}

Status check_texts(const Proposal& proposal, const SiteLimits& limits) {
  if (proposal.version() != kWireVersion) return bad_input(other_version(proposal.version()));
  if (proposal.study().size() != kStudyBytes) return bad_input("its study has no proper number");
  EIGENVEIL_TRY(check_text("purpose", proposal.purpose(), limits.purpose));
  EIGENVEIL_TRY(check_text("options", proposal.options(), limits.purpose));
  EIGENVEIL_TRY(check_text("estimator", proposal.estimator(), limits.label));
  return check_text("unit", proposal.unit(), limits.label);
}

// k honest shares make the whole noise. Sums of what the proposal says are made in 64 bits and cannot wrap.
Status check_shares(const Proposal& proposal, std::uint64_t pinned, std::uint64_t colluders) {
  const std::uint64_t k = proposal.shares();
  const std::uint64_t lost = proposal.lost();
  const auto sites = static_cast<std::uint64_t>(proposal.sites_size());
  if (proposal.sites_per_person() < 1 || proposal.sites_per_person() > sites)
    return bad_input("a person has rows at one site at least, and at no more than there are");
  if (proposal.aggregation() == Proposal::LOCAL) {
    if (k == 1 && lost == 0 && proposal.spares() == 0) return {};
    return bad_input("with local aggregation every site adds the whole noise: one share, no spare rounds");
  }
  if (k < 1 || k + proposal.colluders() + lost > sites)
    return bad_input(fmt::format("{} shares of the noise, {} colluders and {} lost are not among {} sites", k,
                                 proposal.colluders(), lost, sites));
  if (pinned < colluders + lost + k)
    return bad_input(
        fmt::format("{} of its sites have keys that this site knows; {} of them may collude and {} be lost, which "
                    "leaves fewer than the {} whose shares make the noise",
                    pinned, colluders, lost, k));
  return {};
}

Status check_sites(const Proposal& proposal, const SiteConfig& config) {
  EIGENVEIL_TRY(check_size("sites", static_cast<std::uint64_t>(proposal.sites_size()), config.limits.sites));
  const Party& own = config.identity.party;
  std::set<std::string> keys;
  std::uint64_t pinned = 0;
  bool among = false;
  std::string before;
  for (const auto& site : proposal.sites()) {
    EIGENVEIL_TRY(check_pin(site.name(), site.key_hash()));
    if (site.name() <= before) return bad_input("its sites are not in ascending order, or one is there twice");
    before = site.name();
    if (!keys.insert(site.key_hash()).second)
      return bad_input(fmt::format("its site '{}' has the key of another one", site.name()));
    if (site.name() == config.coordinator_name || site.key_hash() == config.coordinator_key)
      return bad_input("its coordinator is among its sites");
    among = among || (site.name() == own.name && site.key_hash() == own.key_hash);
    const auto pin = config.peers.find(site.name());
    if (pin == config.peers.end()) continue;
    if (pin->second != site.key_hash())
      return bad_input(fmt::format("its site '{}' has another key than the one that this site knows", site.name()));
    ++pinned;
  }
  if (!among) return bad_input(fmt::format("its list of sites does not have this one, '{}', with its key", own.name));
  const bool secure = proposal.aggregation() == Proposal::SECURE;
  if (!secure && proposal.aggregation() != Proposal::LOCAL) return bad_input("its aggregation is not known");
  if (secure ? !config.policy.secure : !config.policy.local)
    return bad_input(fmt::format("this site does not allow {} aggregation", secure ? "secure" : "local"));
  return check_shares(proposal, pinned, config.colluders);
}

Status check_time(const Proposal& proposal, const SiteConfig& config, std::int64_t now) {
  if (proposal.not_after() <= now) return bad_input("it has expired");
  if (proposal.not_after() - now > std::int64_t{86400} * config.policy.most_days)
    return bad_input(fmt::format("it stays open for more than {} days, this site's limit", config.policy.most_days));
  if (proposal.not_after() > config.identity.party.not_after)
    return bad_input(fmt::format("it stays open longer than this site's certificate holds ({})",
                                 config.identity.party.valid_until_utc));
  return {};
}

std::uint32_t classes_of(const Proposal& proposal) {
  const auto& column = proposal.rows().class_column();
  return static_cast<std::uint32_t>(column.cuts_size() > 0 ? column.cuts_size() + 1 : column.classes_size());
}

// What is asked decides, not what it is called.
Status check_ask(const wire::v2::PlannedAsk& ask, const Proposal& proposal, std::uint32_t features,
                 const SiteConfig& config) {
  EIGENVEIL_TRY(check_text("label", ask.label(), config.limits.label));
  const std::string label = quote(ask.label());
  if (!config.policy.queries.contains(ask.kind()))
    return bad_input(fmt::format("this site does not allow the question '{}' ({})", name(ask.kind()), label));
  EIGENVEIL_TRY(check_size("grid points", ask.grid(), config.limits.grid));
  EIGENVEIL_TRY(check_size("directions", ask.columns(), config.limits.columns));
  EIGENVEIL_TRY(check_size("classes", ask.classes(), config.limits.classes));
  const std::uint32_t classes = classes_of(proposal);
  const KindFacts& known = facts(ask.kind());
  const bool fits = ask.rows() == features && (ask.grid() == 0 || known.grid) &&
                    (ask.columns() == 0 || known.width != Width::kNone) && (ask.classes() == 0) != known.classes &&
                    (ask.classes() <= 1 || ask.classes() == classes);
  if (!fits) return bad_input(fmt::format("its ask {} has a size that '{}' cannot have", label, name(ask.kind())));
  return {};
}

// A person with rows at m sites moves a masked total m times as far as one row, and m answers with noise of their own
// as sqrt(m) rows.
double moved_by_one(const Proposal& proposal) {
  const double m = proposal.sites_per_person();
  return proposal.aggregation() == Proposal::SECURE ? m : std::sqrt(m);
}

// The noise of all answers to questions of one kind over what one row, or one person with all theirs, can change,
// whatever the questions are called: any two of them may be the same. Every spare round may be one more. Under the
// condition of the study the noise in a masked total is whole, since k honest shares of 1 / k are in it (check_shares);
// what is left without it is most_epsilon_alone's.
Status check_noise(const Proposal& proposal, double least) {
  struct Asked {
    double squares = 0;  // of the mu of all answers
    double largest = 0;
  };
  std::map<Kind, Asked> kinds;
  for (const auto& ask : proposal.plan()) {
    Asked& asked = kinds[ask.kind()];
    asked.squares += ask.count() * ask.mu() * ask.mu();
    asked.largest = std::max(asked.largest, ask.mu());
  }
  for (const auto& [kind, asked] : kinds) {
    if (moves_rows(kind)) continue;
    const double mu =
        moved_by_one(proposal) * std::sqrt(asked.squares + proposal.spares() * asked.largest * asked.largest);
    if (const double noise = 1 / mu; !(noise >= least))
      return budget_refused(
          fmt::format("the noise of all answers to '{}' together would be {:.3g} times what one {} can change, below "
                      "this site's floor of {:g}",
                      name(kind), noise, proposal.sites_per_person() > 1 ? "person" : "row", least));
  }
  return {};
}

Result<PrivacyPlan> check_plan(const Proposal& proposal, std::uint32_t features, const SiteConfig& config) {
  EIGENVEIL_TRY(check_size("planned asks", static_cast<std::uint64_t>(proposal.plan_size()), config.limits.asks));
  std::uint64_t asks = proposal.spares();
  for (const auto& ask : proposal.plan()) {
    EIGENVEIL_TRY(check_ask(ask, proposal, features, config));
    asks += ask.count();
  }
  EIGENVEIL_TRY(check_size("asks and spare rounds", asks, config.limits.asks));
  auto plan = EIGENVEIL_TRY(charged_plan(proposal));
  EIGENVEIL_TRY(check_noise(proposal, config.policy.least_noise));
  return plan;
}

// A plan whose noise is `factor` times less.
Result<PrivacyPlan> with_less_noise(PrivacyPlan plan, double factor) {
  for (PrivacyEvent& event : plan.events) {
    const auto mu = EIGENVEIL_TRY(Mu::of(std::get<GaussianEvent>(event.mechanism).mu * factor));
    event.mechanism = GaussianEvent{mu};
  }
  return plan;
}

Result<double> epsilon_with(const PrivacyPlan& plan, double factor, Delta delta, Accounting accounting) {
  const auto changed = EIGENVEIL_TRY(with_less_noise(plan, factor));
  return epsilon_of(changed.events, delta, accounting);
}

Status check_most(const char* what, double epsilon, double most) {
  if (epsilon <= most) return {};
  return budget_refused(fmt::format("{} would be {:.4g}, above this site's limit of {:g}", what, epsilon, most));
}

// By this site's own accountant. Against all others together one share of the noise is left: mu sqrt(k).
Status certify(const Proposal& proposal, const SitePolicy& policy, Accepted& accepted) {
  const auto delta = Delta::of(proposal.delta());
  const bool tight = proposal.accounting() == "tight";
  if (!delta || !(tight || proposal.accounting() == "zcdp") || !std::isfinite(proposal.epsilon()))
    return bad_input("its privacy parameters are malformed");
  if (!(proposal.delta() <= policy.most_delta))
    return budget_refused(
        fmt::format("it asks for delta {:g}, above this site's limit of {:g}", proposal.delta(), policy.most_delta));
  const Accounting accounting = tight ? Accounting::kTight : Accounting::kZcdp;
  const auto of_row = epsilon_with(accepted.plan, 1, *delta, accounting);
  const double of_one = moved_by_one(proposal);
  const auto of_person = epsilon_with(accepted.plan, of_one, *delta, accounting);
  const auto alone = epsilon_with(accepted.plan, std::sqrt(static_cast<double>(proposal.shares())), *delta, accounting);
  for (const auto* epsilon : {&of_row, &of_person, &alone})
    if (!*epsilon) return epsilon->error();
  if (!(*of_row <= proposal.epsilon()))
    return budget_refused(
        fmt::format("it claims epsilon {:g}, but its plan costs {:.6g}", proposal.epsilon(), *of_row));
  EIGENVEIL_TRY(check_most("the epsilon that it claims", proposal.epsilon(), policy.most_epsilon));
  EIGENVEIL_TRY(check_most("its epsilon", *of_person, policy.most_epsilon));
  EIGENVEIL_TRY(check_most("its epsilon if all other sites join against this one", *alone, policy.most_epsilon_alone));
  auto charged = EIGENVEIL_TRY(with_less_noise(std::move(accepted.plan), of_one));
  accepted.plan = std::move(charged);  // what is shown is what is charged
  accepted.epsilon = *of_person;
  accepted.epsilon_alone = *alone;
  return {};
}

// Whose rows they are is the site's own affair, and who is who where an id is missing: a proposal says whether it is
// about people, and what their rows count.
Status add_people(const Proposal& proposal, const SiteConfig& config, Accepted& accepted) {
  if ((proposal.unit() == "person") != proposal.has_people())
    return bad_input("what rows of people count goes with protecting people, and only with it");
  if (proposal.unit() == "row") return {};
  if (proposal.unit() != "person")
    return bad_input(fmt::format("it protects one {}, which is neither a row nor a person", quote(proposal.unit())));
  if (config.person.empty())
    return bad_input(
        "it protects people, and this site's file does not say whose its rows are: add person = \"COLUMN\"");
  if (!(proposal.delta() >= kLeastDeltaOfPeople))
    return bad_input("it protects people, to whom no delta below 1e-18 can be promised");
  const auto& rule = proposal.people();
  if (rule.missing_is_own() != config.missing_person_is_own)
    return bad_input(fmt::format("its rule for rows without an id is not this site's: use `missing_person` {}",
                                 config.missing_person_is_own ? "own" : "error"));
  accepted.plan.person = config.person;
  accepted.rows.person = PersonOptions{config.person, rule.least_rows(), {}, rule.missing_is_own()};
  if (rule.most_rows() > 0) accepted.rows.person->most_rows = rule.most_rows();
  if (const auto sensible = check(*accepted.rows.person); !sensible)
    return bad_input("its rule for the rows of a person is malformed: " + sensible.error().message);
  return {};
}

}  // namespace

Result<Accepted> check_proposal(const Proposal& proposal, const SiteConfig& config, std::int64_t now) {
  EIGENVEIL_TRY(check_texts(proposal, config.limits));
  EIGENVEIL_TRY(check_time(proposal, config, now));
  EIGENVEIL_TRY(check_sites(proposal, config));
  auto rows = EIGENVEIL_TRY(own_rows(proposal.rows(), config));
  auto plan = EIGENVEIL_TRY(check_plan(proposal, rows.features, config));
  Accepted accepted{std::move(plan), 0, 0, std::move(rows.options)};
  EIGENVEIL_TRY(add_people(proposal, config, accepted));
  EIGENVEIL_TRY(certify(proposal, config.policy, accepted));
  return accepted;
}

}  // namespace eigenveil::federation
