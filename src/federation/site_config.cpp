// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/site_config.hpp"

#include <filesystem>
#include <limits>
#include <map>

#include "../data/toml_file.hpp"
#include "eigenveil/federation/protocol.hpp"
#include "eigenveil/federation/script.hpp"
#include "toml_section.hpp"

namespace eigenveil::federation {
namespace {

using wire::v2::Kind;

constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();

/// What estimators ask beside the questions that all of them may ask.
const std::map<std::string, std::set<Kind>>& estimators_for_sites() {
  static const std::map<std::string, std::set<Kind>> table = {
      {"pca", {Kind::APPLY, Kind::SEARCH, Kind::PRODUCT, Kind::PROJECTED_GRAM, Kind::SQUARED_NORMS}},
      {"covariance", {}},
      {"cca", {Kind::APPLY}},
      {"fda", {Kind::APPLY}},
      {"sir", {Kind::APPLY}},
      {"regress", {}}};
  return table;
}

std::vector<std::string> names_for_sites() {
  std::vector<std::string> names;
  for (const auto& [name, kinds] : estimators_for_sites()) names.push_back(name);
  return names;
}

std::string near(const std::string& config, const std::string& path) {
  return path.empty() ? path : (std::filesystem::path(config).parent_path() / path).string();
}

const ColumnSpec* find_column(const Schema& schema, const std::string& name) {
  const auto found = std::find_if(schema.columns.begin(), schema.columns.end(),
                                  [&](const ColumnSpec& spec) { return spec.name == name; });
  return found == schema.columns.end() ? nullptr : &*found;
}

// Labels, or cuts, or { slices = N }: so many of equal width between the schema's bounds.
Result<ClassRule> class_rule(const toml::node& node, const ColumnSpec& spec) {
  ClassRule rule;
  const auto* numeric = std::get_if<NumericColumn>(&spec.kind);
  if (const toml::table* table = node.as_table()) {
    const auto slices = (*table)["slices"].value_exact<std::int64_t>();
    if (!slices || table->size() != 1 || *slices < 2 || *slices > 10'000)
      return bad_input("write { slices = N } with N from 2 to 10000");
    if (numeric == nullptr) return bad_input("only a numeric column has slices");
    rule.cuts = equal_cuts(*numeric, *slices);
    return rule;
  }
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty()) return bad_input("write its labels or its cuts as a list");
  if (Section::texts(node, rule.labels)) {
    if (numeric != nullptr) return bad_input("the schema says that it is a number: it has cuts, not labels");
    const auto& values = std::get<CategoricalColumn>(spec.kind).values;
    for (const std::string& label : rule.labels)
      if (std::find(values.begin(), values.end(), label) == values.end())
        return bad_input(fmt::format("the label {} is not in the schema", quote(label)));
    return rule;
  }
  rule.labels.clear();
  if (numeric == nullptr) return bad_input("the schema says that it has labels, not cuts");
  for (const toml::node& one : *list) {
    const auto cut = one.is_number() ? one.value<double>() : std::nullopt;
    if (!cut || !std::isfinite(*cut) || (!rule.cuts.empty() && !(rule.cuts.back() < *cut)))
      return bad_input("its cuts must be numbers that ascend");
    rule.cuts.push_back(*cut);
  }
  return rule;
}

// What a study may do with the columns of the schema.
Status read_columns(Section& root, const std::string& path, SiteConfig& config) {
  root.take("columns", config.columns);
  for (std::size_t i = 0; i < config.columns.size(); ++i) {
    const auto before = config.columns.begin() + i;
    if (find_column(config.schema, config.columns[i]) == nullptr)
      return bad_input(fmt::format("{}: the schema has no column {}", path, quote(config.columns[i])));
    if (std::find(config.columns.begin(), before, config.columns[i]) != before)
      return bad_input(fmt::format("{}: the column {} is listed twice", path, quote(config.columns[i])));
  }
  const toml::table* classes = root.table("classes");
  if (classes == nullptr) return {};
  for (const auto& [key, node] : *classes) {
    const std::string column(key.str());
    const ColumnSpec* spec = find_column(config.schema, column);
    if (spec == nullptr)
      return bad_input(fmt::format("{}, [classes]: the schema has no column {}", path, quote(column)));
    auto rule = class_rule(node, *spec);
    if (!rule) return bad_input(fmt::format("{}, [classes], {}: {}", path, quote(column), rule.error().message));
    config.classes.emplace(column, *std::move(rule));
  }
  return {};
}

Status read_peers(const toml::table& peers, const std::string& path, SiteConfig& config) {
  if (const auto pin = check_pin(config.coordinator_name, config.coordinator_key); !pin)
    return bad_input(path + ", coordinator: " + pin.error().message);
  for (const auto& [key, node] : peers) {
    const std::string name(key.str());
    const std::string pin = node.value_exact<std::string>().value_or("");
    if (const auto checked = check_pin(name, pin); !checked)
      return bad_input(path + ", [peers]: " + checked.error().message);
    config.peers.emplace(name, pin);
  }
  const Party& own = config.identity.party;
  const auto self = config.peers.find(own.name);
  if (self == config.peers.end() || self->second != own.key_hash)
    return bad_input(fmt::format("{}, [peers]: this site itself is missing or has another key: write {} = \"{}\"", path,
                                 own.name, own.key_hash));
  for (const auto& [name, pin] : config.peers)
    if (name == config.coordinator_name || pin == config.coordinator_key)
      return bad_input(fmt::format("{}, [peers]: '{}' is the coordinator, which is no site", path, name));
  return {};
}

// Kinds by their names; estimators stand for what they ask.
Status read_queries(Section& policy, const std::string& path, std::set<Kind>& to) {
  std::vector<std::string> queries;
  std::vector<std::string> estimators;
  policy.take("queries", queries);
  policy.take("estimators", estimators);
  for (const std::string& text : queries) {
    const Kind kind = kind_from_name(text);
    if (kind == Kind::KIND_UNKNOWN)
      return bad_input(
          fmt::format("{}, [policy]: {} is no kind of question; docs/federation.md lists them", path, quote(text)));
    to.insert(kind);
  }
  for (const std::string& text : estimators) {
    const auto kinds = queries_of(text);
    if (kinds.empty())
      return bad_input(fmt::format("{}, [policy]: {} is no estimator for sites; known are {}", path, quote(text),
                                   fmt::join(names_for_sites(), ", ")));
    to.insert(kinds.begin(), kinds.end());
  }
  if (queries.empty() && estimators.empty())
    for (const auto& [estimator, own] : estimators_for_sites()) to.merge(queries_of(estimator));
  return {};
}

Status read_policy(Section policy, const std::string& path, SitePolicy& to) {
  EIGENVEIL_TRY(read_queries(policy, path, to.queries));
  std::size_t aggregation = 0;
  policy.take_word("aggregation", {"any", "local", "secure"}, aggregation);
  to.local = aggregation != 2;
  to.secure = aggregation != 1;
  policy.take("most_epsilon", to.most_epsilon);
  policy.take("most_epsilon_alone", to.most_epsilon_alone);
  policy.take("most_delta", to.most_delta);
  policy.take("least_noise", to.least_noise);
  policy.take("most_days", to.most_days, 1, 366);
  return policy.finish();
}

Status read_limits(Section limits, SiteLimits& to) {
  limits.take("grid", to.grid, 1, 1'000'000);
  limits.take("label", to.label, 1, 10'000);
  limits.take("purpose", to.purpose, 1, 100'000);
  limits.take("asks", to.asks, 1, kMost32);
  limits.take("sites", to.sites, 1, static_cast<std::int64_t>(kMostSites));
  limits.take("columns", to.columns, 1, 1'000'000);
  limits.take("classes", to.classes, 1, 1'000'000);
  limits.take("message", to.message, 1024, kMost32);
  return limits.finish();
}

Status read_rows_section(Section& root, const std::string& path, SiteConfig& config) {
  root.take("data", config.data, true);
  root.take("member", config.source.member);
  std::string schema;
  root.take("schema", schema, true);
  std::size_t missing = 0;
  std::size_t unlisted = 0;
  root.take_word("missing", {"zero-row", "error", "value", "category"}, missing);
  root.take_word("unlisted", {"drop", "error"}, unlisted);
  constexpr MissingPolicy kPolicies[] = {MissingPolicy::kZeroRow, MissingPolicy::kError, MissingPolicy::kValue,
                                         MissingPolicy::kCategory};
  config.missing = kPolicies[missing];
  config.drop_unlisted = unlisted == 0;
  double bound = 0;
  root.take("row_bound", bound);
  EIGENVEIL_TRY(root.status());
  if (bound > 0) {
    const auto row_bound = RowBound::of(bound);
    if (!row_bound) return bad_input(fmt::format("{}: {}", path, row_bound.error().message));
    config.row_bound = *row_bound;
  }
  config.schema = EIGENVEIL_TRY(read_schema(near(path, schema)));
  config.source.header = config.schema.header;
  config.source.delimiter = config.schema.delimiter;
  config.source.fields = config.schema.fields;
  config.data = near(path, config.data);
  return read_columns(root, path, config);
}

// An id is no feature and no class: a study that named it would be refused when it is too late to be cheap.
Status check_person(const std::string& path, const SiteConfig& config) {
  const auto& offered = config.columns;
  const bool feature = offered.empty() ? find_column(config.schema, config.person) != nullptr
                                       : std::find(offered.begin(), offered.end(), config.person) != offered.end();
  if (config.person.empty() || !(feature || config.classes.contains(config.person))) return {};
  return bad_input(fmt::format(
      "{}: {} says whose a row is, so it is no column to learn from: take it out of the schema, or list the "
      "others as columns",
      path, quote(config.person)));
}

Result<Identity> read_identity(Section tls, const std::string& path) {
  std::string authority;
  std::string certificate;
  std::string key;
  tls.take("authority", authority, true);
  tls.take("certificate", certificate, true);
  tls.take("key", key, true);
  EIGENVEIL_TRY(tls.finish());
  return Identity::read(Role::kSite, near(path, authority), near(path, certificate), near(path, key));
}

}  // namespace

std::set<Kind> queries_of(const std::string& estimator) {
  const auto found = estimators_for_sites().find(estimator);
  if (found == estimators_for_sites().end()) return {};
  // Centring and bounds that are learnt privately belong to each of them.
  std::set<Kind> kinds = {Kind::CLASS_COUNTS, Kind::CLASS_SUMS, Kind::NORM_COUNTS, Kind::RECENTER, Kind::GRAM};
  kinds.insert(found->second.begin(), found->second.end());
  return kinds;
}

Result<SiteConfig> read_site_config(const std::string& path) {
  const auto parsed = EIGENVEIL_TRY(data::read_toml(path));
  Section root(&parsed, path);
  SiteConfig config;
  root.take("coordinator", config.coordinator, true);
  root.take("coordinator_name", config.coordinator_name, true);
  root.take("coordinator_key", config.coordinator_key, true);
  root.take("colluders", config.colluders, 1, static_cast<std::int64_t>(kMostSites));
  root.take("dataset", config.dataset, true);
  root.take("ledger", config.ledger);
  root.take("person", config.person);
  std::size_t missing_person = 0;
  root.take_word("missing_person", {"error", "own"}, missing_person);
  config.missing_person_is_own = missing_person == 1;
  config.state = "state";
  root.take("state", config.state);
  config.quantum_ms = 50;
  root.take("quantum_ms", config.quantum_ms, 0, 600'000);
  EIGENVEIL_TRY(read_rows_section(root, path, config));
  EIGENVEIL_TRY(check_person(path, config));
  EIGENVEIL_TRY(read_policy(Section(root.table("policy"), path + ", [policy]"), path, config.policy));
  EIGENVEIL_TRY(read_limits(Section(root.table("limits"), path + ", [limits]"), config.limits));
  const toml::table* tls = root.table("tls", true);
  const toml::table* peers = root.table("peers", true);
  EIGENVEIL_TRY(root.finish());  // what is misspelt is said before what does not fit
  auto identity = EIGENVEIL_TRY(read_identity(Section(tls, path + ", [tls]"), path));
  config.identity = std::move(identity);
  EIGENVEIL_TRY(read_peers(*peers, path, config));
  config.ledger = near(path, config.ledger);
  config.state = near(path, config.state);
  return config;
}

}  // namespace eigenveil::federation
