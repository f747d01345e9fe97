// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/federated_oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eigenveil/federation/noise.hpp"
#include "eigenveil/privacy/noisy_histogram.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

Result<std::vector<Int128>> values_of(const Stored& stored) {
  std::vector<Int128> values(stored.answer.entries());
  std::size_t got = 0;
  EIGENVEIL_TRY(for_each_part(stored, [&](const std::string& bytes) -> Status {
    add_integers(bytes, stored.answer.narrow(), &values[got]);
    got += bytes.size() / integer_bytes(stored.answer.narrow());
    return {};
  }));
  return values;
}

AnswerShape shape_of(const PrivateSum& empty, int shift) {
  return {static_cast<std::uint32_t>(empty.rows), static_cast<std::uint32_t>(empty.columns),
          empty.layout == PrivateSum::Layout::kSymmetric, shift, empty.entries()};
}

}  // namespace

Result<std::unique_ptr<FederatedOracle>> FederatedOracle::make(std::shared_ptr<Sites> sites, Study study,
                                                               const CoordinatorOptions& options, AnswerLog journal,
                                                               std::shared_ptr<nlohmann::json> told) {
  std::map<std::string, std::size_t> rows;
  for (const auto& accept : study.roster.accepts()) {
    wire::v2::AcceptStatement said;
    EIGENVEIL_TRY(read_canonical(accept.statement(), said));
    rows[said.site()] = said.rows();
  }
  const std::string proposed = hash("proposal", {study.proposal.proposal()});
  const Chain chain(proposed, hash("roster", {proposed, canonical_bytes(study.roster)}));
  return std::unique_ptr<FederatedOracle>(new FederatedOracle(
      std::move(sites), std::move(study), options, std::move(journal), std::move(told), chain, std::move(rows)));
}

FederatedOracle::FederatedOracle(std::shared_ptr<Sites> sites, Study study, const CoordinatorOptions& options,
                                 AnswerLog journal, std::shared_ptr<nlohmann::json> told, Chain chain,
                                 std::map<std::string, std::size_t> rows)
    : sites_(std::move(sites)),
      study_(std::move(study)),
      options_(options),
      journal_(std::move(journal)),
      told_(std::move(told)),
      chain_(std::move(chain)),
      rows_(std::move(rows)),
      meter_(study_.plan) {
  for (const auto& [name, count] : rows_) everyone_.insert(name);
  active_ = everyone_;
}

FederatedOracle::~FederatedOracle() { sites_->finish(); }

RowsShape FederatedOracle::shape() const {
  RowsShape shape{study_.columns, std::nullopt, study_.lattice, study_.plan.adjacency};
  if (study_.plan.adjacency == Adjacency::kReplaceOne && !study_.total_private) shape.rows = rows_of(everyone_);
  return shape;
}

std::size_t FederatedOracle::rows_of(const std::set<std::string>& sites) const {
  std::size_t rows = 0;
  for (const std::string& name : sites) rows += rows_.at(name);
  return rows;
}

// How many rows of all sites one row of those who are left stands for. Under add-remove-one the released count itself
// is a total, and nothing is scaled.
double FederatedOracle::stands_for() const {
  const std::size_t left = study_.plan.adjacency == Adjacency::kReplaceOne ? rows_of(active_) : 0;
  return left == 0 ? 1.0 : static_cast<double>(rows_of(everyone_)) / static_cast<double>(left);
}

void FederatedOracle::tell_lost() {
  nlohmann::json lost;
  for (const std::string& name : options_.sites)
    if (!active_.contains(name)) lost.push_back(name);
  if (!lost.is_null()) (*told_)["missing"] = lost;
}

bool FederatedOracle::enough(std::size_t sites) const {
  if (options_.secure() && sites < options_.shares() + options_.colluders) return false;
  return sites >= std::max<std::size_t>(1, options_.min_sites);
}

Error FederatedOracle::too_few(const std::string& label) const {
  std::string reasons;
  ErrorCode code = ErrorCode::kBadInput;
  for (const auto& [name, why] : sites_->lost()) {
    reasons += fmt::format("; {}: {}", name, why.message);
    if (why.code == ErrorCode::kBudgetRefused) code = why.code;
  }
  return {code,
          fmt::format("too few sites are left for '{}'{}. What the others answered stays charged", label, reasons)};
}

ChainedAsk FederatedOracle::chained(wire::v2::Ask ask) const {
  ask.set_number(chain_.last() + 1);
  ask.set_prev(chain_.head());
  *ask.mutable_among() = {active_.begin(), active_.end()};
  std::string bytes = canonical_bytes(ask);
  std::string head = chain_.after(bytes);
  return {std::move(ask), std::move(bytes), std::move(head)};
}

// The total that the journal has for an ask; nothing: it must be asked, as a repetition if the journal says that rounds
// failed. What this process wrote itself is not read again.
Result<std::optional<std::vector<Int128>>> FederatedOracle::from_journal(wire::v2::Ask& ask, const AnswerShape& shape) {
  while (!durable_.valid() && replayed_ < journal_.size()) {
    const auto kept = EIGENVEIL_TRY(journal_.read(replayed_));
    const ChainedAsk asked = chained(ask);
    if (canonical_bytes(kept.ask) != asked.bytes)
      return usage_error(
          fmt::format("{}: the journal belongs to another study or another version of eigenveil; give "
                      "`journal` a new folder",
                      options_.journal));
    ++replayed_;
    chain_.add(asked.bytes);
    active_ = {kept.answer.from().begin(), kept.answer.from().end()};
    if (kept.answer.number() == 0) {  // without a total
      ask.set_repeats(asked.ask.number());
      ++spares_used_;
      continue;
    }
    if (kept.answer.entries() != shape.entries) return internal_error("a total of the journal has another size");
    auto values = EIGENVEIL_TRY(values_of(kept));
    return std::optional(std::move(values));
  }
  return std::optional<std::vector<Int128>>();
}

// On disk while the sites work on the next ask; until then they would be asked for this one again, and have it.
Status FederatedOracle::write(const ChainedAsk& asked, const Total& total, bool complete) {
  constexpr std::size_t kSmall = 1U << 16;  // of others no further copy is made
  EIGENVEIL_TRY(written());
  wire::v2::Answer answer;
  answer.set_number(complete ? asked.ask.number() : 0);
  answer.set_entries(complete ? total.values.size() : 0);
  answer.set_narrow(asked.ask.narrow());
  *answer.mutable_from() = {total.from.begin(), total.from.end()};
  const auto append = [this, ask = asked.ask, answer](const std::vector<Int128>& values) -> Status {
    const auto appended = journal_.append(ask, answer, values);
    return appended ? Status() : Status(appended.error());
  };
  const bool small = !complete || total.values.size() <= kSmall;
  if (!small) EIGENVEIL_TRY(append(total.values));
  durable_ = std::async(std::launch::async,
                        [=, this, values = small && complete ? total.values : std::vector<Int128>()]() -> Status {
                          if (small) EIGENVEIL_TRY(append(values));
                          return journal_.sync();
                        });
  return {};
}

// Waits for what is being written. Nobody else uses the journal meanwhile.
Status FederatedOracle::written() {
  if (!durable_.valid()) return {};
  EIGENVEIL_TRY(durable_.get());
  replayed_ = journal_.size();
  return {};
}

// An ask is a function of the totals before it, so it need not be written before it is sent: a coordinator that
// starts again sends the same one, under the same number. Only who was lost is not: it is written before it matters.
Result<std::vector<Int128>> FederatedOracle::perform(wire::v2::Ask ask, const AnswerShape& shape) {
  ask.set_study(study_.roster.study());
  auto known = EIGENVEIL_TRY(from_journal(ask, shape));
  tell_lost();
  if (known) return *std::move(known);
  for (;;) {
    if (!enough(active_.size()) || spares_used_ > options_.spare_rounds) return too_few(ask.label());
    const ChainedAsk asked = chained(ask);
    Total total = sites_->ask(asked, shape);
    const bool everyone = total.from.size() == active_.size();
    // Masks cancel among all who were asked, or not at all. Where rows move there is nothing to add up.
    const bool masked = options_.secure() && !ask.has_recenter();
    const bool complete = everyone || (!masked && enough(total.from.size()));
    chain_.add(asked.bytes);
    active_ = total.from;
    tell_lost();
    if (ask.narrow()) std::transform(total.values.begin(), total.values.end(), total.values.begin(), narrowed);
    EIGENVEIL_TRY(write(asked, total, complete));
    if (!everyone) EIGENVEIL_TRY(written());
    if (complete) return std::move(total.values);
    if (!masked) return too_few(ask.label());
    ++spares_used_;
    ask.set_repeats(asked.ask.number());
  }
}

Result<FederatedOracle::NoisyTotal> FederatedOracle::total(wire::v2::Ask ask, PrivateSum empty) {
  const auto mu = EIGENVEIL_TRY(meter_.gaussian(ask.label()));
  const auto noise = EIGENVEIL_TRY(GaussianMechanism::noise_for(empty, mu));
  // Without the number of rows nobody knows how large a total can be.
  ask.set_narrow(study_.plan.adjacency == Adjacency::kReplaceOne &&
                 fits_narrow(empty.moved, noise, everyone_.size(), rows_of(everyone_)));
  auto values = EIGENVEIL_TRY(perform(ask, shape_of(empty, noise.shift)));
  const auto sites = static_cast<double>(active_.size());
  const double factor = stands_for() * std::sqrt(sites / static_cast<double>(options_.shares()));
  const double deviation = factor * deviation_of(empty, mu);
  empty.values = std::move(values);
  return NoisyTotal{GaussianMechanism::to_matrix(NoisySum(std::move(empty), noise.shift), stands_for()), deviation};
}

Result<Answer> FederatedOracle::gaussian(wire::v2::Ask ask, PrivateSum empty) {
  auto noisy = EIGENVEIL_TRY(total(std::move(ask), std::move(empty)));
  return Answer(std::move(noisy.value), noisy.deviation);
}

Result<Released<std::size_t>> FederatedOracle::histogram(const wire::v2::Ask& ask, std::size_t points,
                                                         std::int64_t target) {
  const auto cells = EIGENVEIL_TRY(total(ask, NoisyHistogram::empty(points, study_.plan.adjacency)));
  return NoisyHistogram::first_at_most(cells.value, target);
}

Result<Answer> FederatedOracle::ask(const std::string& label, const SumQuery& query) {
  wire::v2::Ask ask;
  ask.set_label(label);
  *ask.mutable_sum() = to_wire(query);
  return gaussian(ask, empty_sum(query, study_.columns, study_.lattice, study_.plan.adjacency));
}

Result<Released<std::size_t>> FederatedOracle::first_at_most(const std::string& label, const NormExceedance& query,
                                                             std::int64_t target) {
  wire::v2::Ask ask;
  ask.set_label(label);
  *ask.mutable_exceedance() = to_wire(query);
  return histogram(ask, query.grid.size(), target);
}

Result<FilteredAnswer> FederatedOracle::ask_filtered(const std::string& search, const std::string& product,
                                                     const FilteredApply& query, std::int64_t target) {
  wire::v2::Ask ask;
  ask.set_label(search);
  *ask.mutable_search() = to_wire(query);
  auto chosen = EIGENVEIL_TRY(histogram(ask, query.grid.size(), target));
  ask.Clear();
  ask.set_label(product);
  *ask.mutable_product() = to_wire(query);
  ask.set_chosen(static_cast<std::uint32_t>(*chosen));
  auto sum = EIGENVEIL_TRY(gaussian(ask, empty_sum(query, *chosen, study_.lattice, study_.plan.adjacency)));
  return FilteredAnswer{std::move(chosen), std::move(sum)};
}

Status FederatedOracle::move(const wire::v2::Ask& ask, RowBound radius) {
  EIGENVEIL_TRY(perform(ask, {}));
  study_.lattice.radius = radius.value();
  return {};
}

Status FederatedOracle::recenter(const Vector& mean, RowBound radius) {
  wire::v2::Ask ask;
  ask.set_label(kRecentre);
  *ask.mutable_recenter() = to_wire(mean, radius);
  return move(ask, radius);
}

Status FederatedOracle::remap(const LinearMap& M, RowBound radius) {
  wire::v2::Ask ask;
  ask.set_label(kMapRows);
  *ask.mutable_recenter() = to_wire(M, radius);
  return move(ask, radius);
}

}  // namespace eigenveil::federation
