#include "eigenveil/federation/site_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "eigenveil/federation/certificates.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/ledger/ledger.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

Result<std::string> text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return bad_input(fmt::format("{}: the file cannot be read", path));
  return text.str();
}

// One table of a site.toml: takes its keys, and knows which are left over.
class Section {
 public:
  Section(const toml::table* table, std::string where) : table_(table), where_(std::move(where)) {}

  Result<std::string> text(const std::string& key, const std::optional<std::string>& otherwise = {}) {
    known_.push_back(key);
    const toml::node* node = table_ != nullptr ? table_->get(key) : nullptr;
    if (node == nullptr && otherwise) return *otherwise;
    if (node == nullptr) return bad_input(fmt::format("{}: '{}' is missing", where_, key));
    const auto value = node->value_exact<std::string>();
    if (!value || value->empty()) return bad_input(fmt::format("{}: '{}' must be a text", where_, key));
    return *value;
  }
  Result<std::optional<double>> number(const std::string& key) {
    known_.push_back(key);
    const toml::node* node = table_ != nullptr ? table_->get(key) : nullptr;
    if (node == nullptr) return std::optional<double>();
    const auto value = node->value<double>();
    if (!value || !(*value > 0)) return bad_input(fmt::format("{}: '{}' must be a positive number", where_, key));
    return value;
  }
  Result<std::vector<std::string>> texts(const std::string& key) {
    known_.push_back(key);
    const toml::node* node = table_ != nullptr ? table_->get(key) : nullptr;
    std::vector<std::string> values;
    if (node == nullptr) return values;
    if (!node->is_array()) return bad_input(fmt::format("{}: '{}' must be a list of texts", where_, key));
    for (const toml::node& one : *node->as_array()) {
      const auto value = one.value_exact<std::string>();
      if (!value) return bad_input(fmt::format("{}: '{}' must be a list of texts", where_, key));
      values.push_back(*value);
    }
    return values;
  }
  const toml::table* table(const std::string& key) {
    known_.push_back(key);
    return table_ != nullptr && table_->get(key) != nullptr ? table_->get(key)->as_table() : nullptr;
  }
  Status finish() const {
    if (table_ == nullptr) return {};
    for (const auto& [key, node] : *table_)
      if (std::find(known_.begin(), known_.end(), std::string(key.str())) == known_.end())
        return bad_input(fmt::format("{}: '{}' is not known; known are {}", where_, std::string(key.str()),
                                     fmt::join(known_, ", ")));
    return {};
  }

 private:
  const toml::table* table_;
  std::string where_;
  std::vector<std::string> known_;
};

Result<toml::table> parse(const std::string& path) try {
  return toml::parse_file(path);
} catch (const toml::parse_error& error) {
  const auto line = error.source().begin.line;
  return bad_input(line == 0 ? fmt::format("{}: the file cannot be read", path)
                             : fmt::format("{}, line {}: {}", path, line, std::string(error.description())));
}

std::string near(const std::string& config, const std::string& path) {
  return (std::filesystem::path(config).parent_path() / path).string();
}

bool same(const ColumnSpec& a, const ColumnSpec& b) {
  if (a.kind.index() != b.kind.index()) return false;
  if (const auto* numeric = std::get_if<NumericColumn>(&a.kind)) {
    const auto& other = std::get<NumericColumn>(b.kind);
    return numeric->lower == other.lower && numeric->upper == other.upper;
  }
  const auto& categorical = std::get<CategoricalColumn>(a.kind);
  const auto& other = std::get<CategoricalColumn>(b.kind);
  return categorical.values == other.values && categorical.other == other.other;
}

Status check_bounds(const RowOptions& rows, const std::string& path) {
  const auto schema = read_schema(path);
  if (!schema) return schema.error();
  if (!rows.bounds) return bad_input("it gives no bounds for the columns, but this site has a schema");
  for (const ColumnSpec& column : rows.bounds->columns) {
    const auto own = std::find_if(schema->columns.begin(), schema->columns.end(),
                                  [&](const ColumnSpec& spec) { return spec.name == column.name; });
    if (own == schema->columns.end())
      return bad_input(fmt::format("it uses the column '{}', which this site's schema does not have", column.name));
    if (!same(*own, column))
      return bad_input(fmt::format("its bounds of column '{}' differ from this site's schema", column.name));
  }
  return {};
}

Status check_noise(const PrivacyPlan& plan, double least) {
  for (const PrivacyEvent& event : plan.events)
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism); gaussian && 1 / gaussian->mu < least)
      return budget_refused(
          fmt::format("the noise of '{}' would be {:.3g} times what one row can change, below this "
                      "site's floor of {:g}",
                      event.label, 1 / gaussian->mu, least));
  return {};
}

// The spare rounds are the last event; what comes before is asked in order.
Status split_spares(const wire::v1::Proposal& proposal, Accepted& accepted) {
  if (proposal.spare_rounds() == 0) return {};
  const PrivacyEvent spare = accepted.plan.events.back();
  accepted.asked.events.pop_back();
  const auto* gaussian = std::get_if<GaussianEvent>(&spare.mechanism);
  if (gaussian == nullptr || spare.label != kSpareRounds || spare.count != proposal.spare_rounds() ||
      accepted.asked.events.empty())
    return bad_input("its spare rounds are not in its plan");
  accepted.spare_mu = gaussian->mu;
  return {};
}

Status check_sites(const wire::v1::Proposal& proposal, const std::string& own) {
  std::vector<std::string> sites(proposal.sites().begin(), proposal.sites().end());
  std::sort(sites.begin(), sites.end());
  if (sites.empty() || sites.size() > 4096 || std::adjacent_find(sites.begin(), sites.end()) != sites.end())
    return bad_input("its list of sites has none, too many, or one twice");
  if (!std::binary_search(sites.begin(), sites.end(), own))
    return bad_input(fmt::format("its list of sites does not have this one, '{}'", own));
  const bool secure = proposal.aggregation() == wire::v1::Proposal::SECURE;
  if (!secure && proposal.aggregation() != wire::v1::Proposal::LOCAL) return bad_input("its aggregation is not known");
  if (!secure && (proposal.tolerate() != 0 || proposal.spare_rounds() != 0))
    return bad_input("only secure aggregation has spare rounds");
  if (secure && proposal.tolerate() + 2 > sites.size())
    return bad_input(
        fmt::format("secure aggregation of {} sites cannot tolerate {} of them", sites.size(), proposal.tolerate()));
  return {};
}

}  // namespace

Result<Identity> Identity::read(const std::string& authority, const std::string& certificate, const std::string& key) {
  Identity identity;
  for (const auto& [path, to] :
       {std::pair{authority, &identity.authority}, {certificate, &identity.certificate}, {key, &identity.key}}) {
    auto text = text_of(path);
    if (!text) return text.error();
    *to = *std::move(text);
  }
  auto name = common_name(identity.certificate);
  if (!name) return Error{name.error().code, certificate + ": " + name.error().message};
  identity.name = *std::move(name);
  return identity;
}

Result<SiteConfig> read_site_config(const std::string& path) {
  const auto parsed = parse(path);
  if (!parsed) return parsed.error();
  Section root(&*parsed, path);
  SiteConfig config;
  Status status;
  const auto take = [&](Section& section, const char* key, std::string& to,
                        const std::optional<std::string>& otherwise = {}) {
    auto text = section.text(key, otherwise);
    if (!text && status.ok()) status = text.error();
    if (text) to = *std::move(text);
  };
  std::string schema;
  take(root, "coordinator", config.coordinator);
  take(root, "coordinator_name", config.coordinator_name);
  take(root, "data", config.data);
  take(root, "dataset", config.dataset);
  take(root, "schema", schema, "");
  take(root, "ledger", config.ledger, "");
  take(root, "state", config.state, "state");
  take(root, "member", config.source.member, "");
  std::string authority;
  std::string certificate;
  std::string key;
  Section tls(root.table("tls"), path + ", [tls]");
  take(tls, "authority", authority);
  take(tls, "certificate", certificate);
  take(tls, "key", key);
  Section policy(root.table("policy"), path + ", [policy]");
  auto estimators = policy.texts("estimators");
  auto most = policy.number("most_epsilon");
  auto most_delta = policy.number("most_delta");
  auto least = policy.number("least_noise");
  EIGENVEIL_TRY(status);
  if (!estimators) return estimators.error();
  if (!most) return most.error();
  if (!most_delta) return most_delta.error();
  if (!least) return least.error();
  EIGENVEIL_TRY(root.finish());
  EIGENVEIL_TRY(tls.finish());
  EIGENVEIL_TRY(policy.finish());
  config.policy = {*estimators, *most, most_delta->value_or(SitePolicy().most_delta), *least};
  config.data = near(path, config.data);
  if (!schema.empty()) config.schema = near(path, schema);
  if (!config.ledger.empty()) config.ledger = near(path, config.ledger);
  config.state = near(path, config.state);
  auto identity = Identity::read(near(path, authority), near(path, certificate), near(path, key));
  if (!identity) return identity.error();
  config.identity = *std::move(identity);
  return config;
}

Result<Accepted> check_proposal(const wire::v1::Proposal& proposal, const SiteConfig& config) {
  if (proposal.version() != kWireVersion)
    return bad_input(
        fmt::format("it speaks version {} of the protocol, this site version {}: use the same release of "
                    "eigenveil at both",
                    proposal.version(), kWireVersion));
  if (!is_study(proposal.study())) return bad_input("its study has no proper number");
  const auto& allowed = config.policy.estimators;
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), proposal.estimator()) == allowed.end())
    return bad_input(fmt::format("this site does not allow the estimator '{}' (it allows {})", proposal.estimator(),
                                 fmt::join(allowed, ", ")));
  EIGENVEIL_TRY(check_sites(proposal, config.identity.name));
  const auto adjacency = adjacency_from_name(proposal.adjacency());
  if (!adjacency) return adjacency.error();
  auto plan = from_wire(proposal.plan(), *adjacency);
  if (!plan) return plan.error();
  auto rows = from_wire(proposal.rows());
  if (!rows) return rows.error();
  const auto delta = Delta::of(proposal.delta());
  if (!delta || !(proposal.accounting() == "tight" || proposal.accounting() == "zcdp"))
    return bad_input("its privacy parameters are malformed");
  double epsilon = proposal.epsilon();
  if (!config.without_ledger) {
    const auto certified =
        epsilon_of(plan->events, *delta, proposal.accounting() == "tight" ? Accounting::kTight : Accounting::kZcdp);
    if (!certified) return certified.error();
    epsilon = *certified;
    if (!(epsilon <= proposal.epsilon()))
      return budget_refused(
          fmt::format("it claims epsilon {:g}, but its plan costs {:.6g}", proposal.epsilon(), epsilon));
  }
  if (!(proposal.delta() <= config.policy.most_delta))
    return budget_refused(fmt::format("it asks for delta {:g}, above this site's limit of {:g} a study",
                                      proposal.delta(), config.policy.most_delta));
  if (config.policy.most_epsilon && !(proposal.epsilon() <= *config.policy.most_epsilon))
    return budget_refused(fmt::format("it asks for epsilon {:g}, above this site's limit of {:g} a study",
                                      proposal.epsilon(), *config.policy.most_epsilon));
  Accepted accepted{*plan, *plan, {}, *adjacency, epsilon, *std::move(rows)};
  if (config.policy.least_noise) EIGENVEIL_TRY(check_noise(accepted.plan, *config.policy.least_noise));
  EIGENVEIL_TRY(split_spares(proposal, accepted));
  if (config.schema) EIGENVEIL_TRY(check_bounds(accepted.rows, *config.schema));
  accepted.rows.data = config.data;
  accepted.rows.source.header = config.source.header;
  accepted.rows.source.delimiter = config.source.delimiter;
  accepted.rows.source.member = config.source.member;
  return accepted;
}

std::string in_words(const wire::v1::Proposal& proposal, const Accepted& accepted, const SiteConfig& config) {
  std::string words =
      fmt::format("Study {}, proposed by '{}': {}\n", proposal.study(), config.coordinator_name, proposal.purpose());
  words += fmt::format("  Sites      {}\n", fmt::join(proposal.sites(), ", "));
  words += fmt::format("  Rows       {} columns of {}", proposal.rows().columns_size(), config.data);
  if (proposal.rows().has_row_bound()) words += fmt::format(", rows no longer than {:g}", proposal.rows().row_bound());
  words += "\n";
  for (const PrivacyEvent& event : accepted.plan.events) {
    const std::string times = event.count == 1 ? "" : fmt::format(", {} times", event.count);
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism))
      words += fmt::format("  Answer     {}{}: Gaussian noise of {:.3g} times what one row can change\n", event.label,
                           times, 1 / gaussian->mu);
    else
      words += fmt::format("  Answer     {}{}: noisy counts, epsilon {:.3g} each\n", event.label, times,
                           std::get<PureEvent>(event.mechanism).epsilon.value());
  }
  words += fmt::format("  Costs      epsilon {:g} at delta {:g} ({}), charged to data set '{}'\n", proposal.epsilon(),
                       proposal.delta(), name(accepted.adjacency), config.dataset);
  if (proposal.aggregation() == wire::v1::Proposal::SECURE)
    words += fmt::format(
        "  Secrecy    answers are masked: the coordinator learns only totals over all sites. Each site adds 1/{} of "
        "the "
        "noise variance, so up to {} of them may be curious or missing\n",
        proposal.sites_size() - static_cast<int>(proposal.tolerate()), proposal.tolerate());
  else
    words += "  Secrecy    every answer has the full noise before it leaves, whatever the other sites do\n";
  return words;
}

}  // namespace eigenveil::federation
