// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

#include "eigenveil/base/figures.hpp"
#include "eigenveil/base/printable.hpp"
#include "eigenveil/federation/chain.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/federation/script.hpp"
#include "eigenveil/federation/site_config.hpp"
#include "eigenveil/privacy/adjacency.hpp"
#include "kinds.hpp"

// What a person reads. A text of the coordinator appears through `quote` alone, so it is one piece of one line of ours.

namespace eigenveil::federation {
namespace {

using wire::v2::Kind;
using wire::v2::Proposal;

constexpr int kShownColumns = 60;
constexpr int kShownAsks = 60;
constexpr int kHashDigits = 16;

/// A line with its heading; further ones of the same heading have none.
class Lines {
 public:
  void add(const char* heading, const std::string& text) {
    text_ += fmt::format("  {:<11}{}\n", heading == last_ ? "" : heading, text);
    last_ = heading;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string last_;
};

template <class Texts>
std::string quoted_list(const Texts& texts, std::size_t most) {
  std::vector<std::string> shown;
  for (const auto& text : texts) {
    if (shown.size() == most) return fmt::format("{} and {} more", fmt::join(shown, ", "), std::size(texts) - most);
    shown.push_back(quote(text));
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::string utc(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm when{};
  ::gmtime_r(&time, &when);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", when.tm_year + 1900, when.tm_mon + 1, when.tm_mday,
                     when.tm_hour, when.tm_min);
}

std::string in_words(const wire::v2::Column& column) {
  if (column.bounded())
    return fmt::format("{} from {:g} to {:g}", quote(column.name()), column.lower(), column.upper());
  return fmt::format("{} of {}", quote(column.name()), quoted_list(column.values(), 20));
}

void add_rows(const wire::v2::Rows& rows, const SiteConfig& config, Lines& lines) {
  lines.add("Rows", fmt::format("{} columns of {}", rows.columns_size(), config.data));
  for (int i = 0; i < std::min(rows.columns_size(), kShownColumns); ++i)
    lines.add("Columns", in_words(rows.columns(i)));
  if (rows.columns_size() > kShownColumns)
    lines.add("Columns", fmt::format("and {} more, as in this site's schema", rows.columns_size() - kShownColumns));
  lines.add("Missing", rows.missing() == wire::v2::Rows::MISSING_VALUE
                           ? "a missing value counts as a public one, as the schema says"
                       : rows.missing() == wire::v2::Rows::MISSING_CATEGORY
                           ? "a missing value counts as a category of its own, or a public number"
                       : rows.zero_missing() ? "a row with a missing value counts as zero"
                                             : "a row with a missing value ends the study here");
  lines.add("Bound", fmt::format("rows are shortened to {:g}", rows.radius()));
  if (rows.has_response())
    lines.add("Response",
              fmt::format("{}, which counts for {:g} times its range; each row has a constant of {:g}",
                          quote(rows.response().column()), rows.response().weight(), rows.response().constant()));
  if (!rows.has_class_column()) return lines.add("Classes", "none");
  const auto& sorted = rows.class_column();
  if (sorted.cuts_size() > 0)
    return lines.add("Classes", fmt::format("by the number in {}, cut at {:g}", quote(sorted.column()),
                                            fmt::join(sorted.cuts(), ", ")));
  lines.add("Classes", fmt::format("by {}: {}; a row of another one {}", quote(sorted.column()),
                                   quoted_list(sorted.classes(), 100),
                                   sorted.drop_unlisted() ? "counts as zero" : "ends the study here"));
}

std::string size_in_words(const wire::v2::PlannedAsk& ask) {
  return fmt::format(fmt::runtime(facts(ask.kind()).size), ask.rows(), ask.columns(), ask.classes(),
                     std::uint64_t{ask.grid()} + 1);
}

std::string in_words(const wire::v2::PlannedAsk& ask) {
  std::string words = fmt::format("{}, {}", name(ask.kind()), size_in_words(ask));
  if (ask.count() != 1) words += fmt::format(", {} times", ask.count());
  if (ask.mu() > 0) words += fmt::format(": noise of {:.3g} times what one row can change", 1 / ask.mu());
  return words + fmt::format("; called {}", quote(ask.label()));
}

// Of those that are not shown one by one: how many of each kind, and the least noise among them.
void add_rest(const Proposal& proposal, Lines& lines) {
  std::map<Kind, std::pair<std::uint64_t, double>> rest;
  for (int i = kShownAsks; i < proposal.plan_size(); ++i) {
    auto& [count, mu] = rest[proposal.plan(i).kind()];
    count += proposal.plan(i).count();
    mu = std::max(mu, proposal.plan(i).mu());
  }
  for (const auto& [kind, of_it] : rest)
    lines.add("Asks", fmt::format("and {} more of {}{}", of_it.first, name(kind),
                                  of_it.second > 0 ? fmt::format(": noise of at least {:.3g} times what one row can "
                                                                 "change",
                                                                 1 / of_it.second)
                                                   : ""));
}

void add_plan(const Proposal& proposal, Lines& lines) {
  for (int i = 0; i < std::min(proposal.plan_size(), kShownAsks); ++i) lines.add("Asks", in_words(proposal.plan(i)));
  add_rest(proposal, lines);
  if (proposal.spares() > 0)
    lines.add("Spares", fmt::format("{} of these may be asked again, each with noise of at least {:.3g} times what one "
                                    "row can change",
                                    proposal.spares(), 1 / proposal.spare_mu()));
}

void add_sites(const Proposal& proposal, const SiteConfig& config, Lines& lines) {
  std::vector<std::string> known;
  std::vector<std::string> unknown;
  for (const auto& site : proposal.sites()) {
    const bool own = site.name() == config.identity.party.name;
    const bool pinned = config.peers.contains(site.name());
    (pinned ? known : unknown).push_back(own ? site.name() + " (this site)" : quote(site.name()));
  }
  lines.add("Sites", fmt::format("{} with keys that this site knows: {}", known.size(), fmt::join(known, ", ")));
  if (!unknown.empty())
    lines.add("Sites", fmt::format("{} with keys that it does NOT know, trusted with nothing: {}", unknown.size(),
                                   fmt::join(unknown, ", ")));
}

void add_condition(const Proposal& proposal, const SiteConfig& config, Lines& lines) {
  if (proposal.aggregation() == Proposal::LOCAL)
    return lines.add("Condition",
                     "none: every answer has the full noise (k = 1) before it leaves, whatever the others do");
  lines.add("Condition",
            fmt::format("answers are masked, so that only totals are seen; each site adds 1/{} of the noise variance "
                        "(k = {})",
                        proposal.shares(), proposal.shares()));
  lines.add("Condition",
            fmt::format("at most {} of the known sites tell what they know (c = {}, by this site's file; the proposal "
                        "says {}), at most {} are lost (l)",
                        config.colluders, config.colluders, proposal.colluders(), proposal.lost()));
}

}  // namespace

std::string in_words(const Proposal& proposal, const std::string& hash, const Accepted& accepted,
                     const SiteConfig& config, const std::string& budget) {
  Lines lines;
  lines.add("Proposal", fmt::format("{} (first digits of its hash), open until {}", hex(hash).substr(0, kHashDigits),
                                    utc(proposal.not_after())));
  lines.add("Why", quote(proposal.purpose(), config.limits.purpose));
  lines.add("Estimator",
            fmt::format("{}, told {}", quote(proposal.estimator()), quote(proposal.options(), config.limits.purpose)));
  add_sites(proposal, config, lines);
  add_rows(proposal.rows(), config, lines);
  add_plan(proposal, lines);
  add_condition(proposal, config, lines);
  lines.add("Costs",
            fmt::format("epsilon {:.4g} at delta {} under this condition ({}; it protects one {}, who has rows at no "
                        "more than {} of the sites)",
                        accepted.epsilon, plain(proposal.delta()), name(accepted.plan.adjacency),
                        quote(proposal.unit()), proposal.sites_per_person()));
  if (!accepted.plan.person.empty())
    lines.add("Protects",
              fmt::format("one person's rows at one site; whose they are here says the column {}. Ids are not compared "
                          "between sites: whoever has rows at several has the guarantee of as many persons who act "
                          "together",
                          quote(accepted.plan.person)));
  if (const auto& person = accepted.rows.person)
    lines.add("Counts", fmt::format("a row of a person of m rows as 1/{}{}{}",
                                    person->least_rows > 1 ? fmt::format("max({}, m)", person->least_rows) : "m",
                                    person->most_rows ? fmt::format(", of {} kept by chance", *person->most_rows) : "",
                                    person->missing_is_own ? "; one without an id as a person of its own" : ""));
  lines.add("Alone", fmt::format("epsilon {:.4g} if all other sites and the coordinator join against this one",
                                 accepted.epsilon_alone));
  lines.add("Budget", fmt::format("of data set {}: {}", quote(config.dataset), printable(budget, 1000)));
  return fmt::format("Study {}, proposed by the coordinator {}:\n{}", study_text(proposal.study()),
                     quote(config.coordinator_name), lines.text());
}

}  // namespace eigenveil::federation
