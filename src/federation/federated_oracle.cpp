#include "eigenveil/federation/federated_oracle.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/privacy/noisy_histogram.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

// The same question, whoever is asked and however often.
bool same_question(wire::v1::Ask a, wire::v1::Ask b) {
  for (wire::v1::Ask* ask : {&a, &b}) {
    ask->clear_among();
    ask->clear_repeats();
    ask->clear_number();
  }
  return a.SerializeAsString() == b.SerializeAsString();
}

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

}  // namespace

FederatedOracle::FederatedOracle(std::shared_ptr<Sites> sites, Study study, const CoordinatorOptions& options,
                                 AnswerLog journal, std::shared_ptr<nlohmann::json> told)
    : sites_(std::move(sites)),
      study_(std::move(study)),
      options_(options),
      journal_(std::move(journal)),
      told_(std::move(told)),
      meter_(study_.plan) {
  for (const auto& [name, accept] : study_.accepts) everyone_.insert(name);
  active_ = everyone_;
}

FederatedOracle::~FederatedOracle() { sites_->finish(); }

RowsShape FederatedOracle::shape() const {
  RowsShape shape{study_.columns, std::nullopt, study_.lattice, study_.adjacency};
  if (study_.adjacency == Adjacency::kReplaceOne) shape.rows = rows_of(everyone_);
  return shape;
}

// How many times the planned deviation the noise of a total has: sites' noises add up.
double FederatedOracle::noise_factor() const {
  const auto sites = static_cast<double>(active_.size());
  const bool secure = options_.aggregation == Aggregation::kSecure;
  return stands_for() *
         std::sqrt(secure ? sites / static_cast<double>(options_.sites.size() - options_.tolerate) : std::max(1.0, sites));
}

std::size_t FederatedOracle::rows_of(const std::set<std::string>& sites) const {
  std::size_t rows = 0;
  for (const std::string& name : sites) rows += study_.accepts.at(name).rows();
  return rows;
}

// How many rows of all sites one row of those who are left stands for. Under add-remove-one the released count itself
// is a total, and nothing is scaled.
double FederatedOracle::stands_for() const {
  const std::size_t left = study_.adjacency == Adjacency::kReplaceOne ? rows_of(active_) : 0;
  return left == 0 ? 1.0 : static_cast<double>(rows_of(everyone_)) / static_cast<double>(left);
}

void FederatedOracle::tell_lost() {
  nlohmann::json lost;
  for (const std::string& name : options_.sites)
    if (!active_.contains(name)) lost.push_back(name);
  if (!lost.is_null()) (*told_)["lost"] = lost;
}

bool FederatedOracle::enough(std::size_t sites, bool masked) const {
  if (masked && sites < options_.sites.size() - options_.tolerate) return false;
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

// The total that the journal has for an ask; or the ask itself as it must be sent, if it was sent again for fewer
// sites. What this process wrote itself is not read again.
Result<std::optional<std::vector<Int128>>> FederatedOracle::from_journal(wire::v1::Ask& ask, const AnswerShape& shape) {
  while (!durable_.valid() && replayed_ < journal_.size()) {
    const auto kept = journal_.read(replayed_++);
    if (!kept) return kept.error();
    if (!same_question(kept->ask, ask))
      return usage_error(
          fmt::format("{}: the journal belongs to another study or another version of eigenveil; give "
                      "--journal a new folder",
                      options_.journal));
    number_ = kept->ask.number();
    active_ = {kept->ask.among().begin(), kept->ask.among().end()};
    if (kept->answer.number() == 0) {  // without a total
      ask = kept->ask;
      ++spares_used_;
      continue;
    }
    if (kept->answer.entries() != shape.entries) return internal_error("a total of the journal has another size");
    auto values = values_of(*kept);
    if (!values) return values.error();
    return std::optional(*std::move(values));
  }
  return std::optional<std::vector<Int128>>();
}

// On disk while the sites work on the next ask; until then they would be asked for this one again, and have it.
Status FederatedOracle::write(const wire::v1::Ask& ask, const wire::v1::Answer& answer,
                              const std::vector<Int128>& values) {
  constexpr std::size_t kSmall = 1U << 16;  // of others no further copy is made
  EIGENVEIL_TRY(written());
  const auto append = [this, ask, answer](const std::vector<Int128>& total) -> Status {
    const auto appended = journal_.append(ask, answer, total);
    return appended ? Status() : Status(appended.error());
  };
  const bool small = values.size() <= kSmall;
  if (!small) EIGENVEIL_TRY(append(values));
  durable_ = std::async(std::launch::async, [=, this, total = small ? values : std::vector<Int128>()]() -> Status {
    if (small) EIGENVEIL_TRY(append(total));
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
// starts again sends the same one, under the same number. Only who is left for a spare round is not.
Result<std::vector<Int128>> FederatedOracle::perform(wire::v1::Ask ask, const AnswerShape& shape) {
  ask.set_study(study_.proposal.study());
  const bool masked = options_.aggregation == Aggregation::kSecure && (ask.has_sum() || ask.has_product());
  auto known = from_journal(ask, shape);
  if (!known) return known.error();
  tell_lost();
  if (*known) return **std::move(known);
  for (;;) {
    if (ask.number() == 0) {
      if (!enough(active_.size(), masked)) return too_few(ask.label());
      ask.set_number(number_ + 1);
      *ask.mutable_among() = {active_.begin(), active_.end()};
      if (ask.repeats() != 0) {
        EIGENVEIL_TRY(write(ask, {}, {}));
        EIGENVEIL_TRY(written());
      }
    }
    number_ = ask.number();
    Total total = sites_->ask(ask, shape);
    const bool everyone = total.from.size() == static_cast<std::size_t>(ask.among_size());
    active_ = total.from;
    tell_lost();
    if (everyone || (!masked && enough(active_.size(), masked))) {
      wire::v1::Answer answer;
      answer.set_number(ask.number());
      answer.set_entries(total.values.size());
      answer.set_narrow(ask.narrow());
      if (ask.narrow()) std::transform(total.values.begin(), total.values.end(), total.values.begin(), narrowed);
      *ask.mutable_among() = {active_.begin(), active_.end()};
      EIGENVEIL_TRY(write(ask, answer, total.values));
      if (!everyone) EIGENVEIL_TRY(written());  // who is lost must stay lost
      return std::move(total.values);
    }
    if (!masked || !enough(active_.size(), masked) || spares_used_ >= options_.spare_rounds)
      return too_few(ask.label());
    ++spares_used_;
    ask.set_repeats(ask.number());
    ask.set_number(0);
  }
}

Result<Answer> FederatedOracle::gaussian(wire::v1::Ask ask, PrivateSum sum) {
  const auto mu = meter_.gaussian(ask.label());
  if (!mu) return mu.error();
  const auto noise = GaussianMechanism::noise_for(sum.moved, *mu);
  if (!noise) return noise.error();
  const int shift = noise->shift;
  const double noisiest = 64 * noise->deviation();
  // A row moves no entry by more than the sensitivity, and no site draws more than 64 deviations (samplers.proof.md).
  // Without the number of rows nobody knows.
  const double largest =
      static_cast<double>(everyone_.size()) * noisiest + static_cast<double>(rows_of(everyone_)) * sum.moved.value();
  ask.set_narrow(study_.adjacency == Adjacency::kReplaceOne && std::ldexp(largest, shift) < 0x1p62);
  const bool packed = sum.layout == PrivateSum::Layout::kSymmetric;
  auto values = perform(ask, {static_cast<std::uint32_t>(sum.rows), static_cast<std::uint32_t>(sum.columns), packed,
                              shift, sum.entries()});
  if (!values) return values.error();
  const double deviation = deviation_of(sum, *mu) * noise_factor();
  sum.values = *std::move(values);
  return Answer(GaussianMechanism::to_matrix(NoisySum(std::move(sum), shift), stands_for()), deviation);
}

Result<Released<std::size_t>> FederatedOracle::histogram(const wire::v1::Ask& ask, std::size_t points,
                                                         std::int64_t target) {
  if (const auto planned = meter_.pure(ask.label()); !planned) return planned.error();
  const auto values = perform(ask, {static_cast<std::uint32_t>(points), 1, false, 0, points});
  if (!values) return values.error();
  return NoisyHistogram::first_at_most(std::vector<std::int64_t>(values->begin(), values->end()), target);
}

Result<Answer> FederatedOracle::ask(const std::string& label, const SumQuery& query) {
  wire::v1::Ask ask;
  ask.set_label(label);
  *ask.mutable_sum() = to_wire(query);
  return gaussian(ask, empty_sum(query, study_.columns, study_.lattice, study_.adjacency));
}

Result<Released<std::size_t>> FederatedOracle::first_at_most(const std::string& label, const NormExceedance& query,
                                                             std::int64_t target) {
  wire::v1::Ask ask;
  ask.set_label(label);
  *ask.mutable_exceedance() = to_wire(query);
  return histogram(ask, query.grid.size(), target);
}

Result<FilteredAnswer> FederatedOracle::ask_filtered(const std::string& search, const std::string& product,
                                                     const FilteredApply& query, std::int64_t target) {
  wire::v1::Ask ask;
  ask.set_label(search);
  *ask.mutable_search() = to_wire(query);
  auto chosen = histogram(ask, query.grid.size(), target);
  if (!chosen) return chosen.error();
  ask.Clear();
  ask.set_label(product);
  *ask.mutable_product() = to_wire(query);
  ask.set_chosen(static_cast<std::uint32_t>(**chosen));
  auto sum = gaussian(ask, empty_sum(query, **chosen, study_.lattice, study_.adjacency));
  if (!sum) return sum.error();
  return FilteredAnswer{*std::move(chosen), *std::move(sum)};
}

Status FederatedOracle::recenter(const Vector& mean, RowBound radius) {
  wire::v1::Ask ask;
  ask.set_label("recentre");
  *ask.mutable_recenter() = to_wire(mean, radius);
  const auto done = perform(ask, {});
  if (!done) return done.error();
  study_.lattice.radius = radius.value();
  return {};
}

Status FederatedOracle::remap(const LinearMap& M, RowBound radius) {
  wire::v1::Ask ask;
  ask.set_label("map rows");
  *ask.mutable_recenter() = to_wire(M, radius);
  const auto done = perform(ask, {});
  if (!done) return done.error();
  study_.lattice.radius = radius.value();
  return {};
}

}  // namespace eigenveil::federation
