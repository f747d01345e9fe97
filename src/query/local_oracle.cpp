// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/local_oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "eigenveil/privacy/poisson_sample.hpp"

namespace eigenveil {

Result<Answer> Oracle::ask_rest(const std::string& label, const SumQuery& /*query*/) {
  return usage_error(fmt::format("'{}' stands for other answers; this engine gives every answer of the plan", label));
}

Result<Answer> Oracle::ask_model(const std::string& label, const ModelQuery& /*query*/) {
  return usage_error(fmt::format(
      "'{}' rests on a model of the rows, which needs all of them in one place: use `guarantee` strict", label));
}

Result<Answer> Oracle::ask_batch(const std::string& label, const BatchQuery& /*query*/) {
  return usage_error(
      fmt::format("'{}' needs whole batches in one place; this engine gives sums over rows only", label));
}

bool Oracle::plans(const std::string& label) const {
  const auto& events = plan().events;
  return std::any_of(events.begin(), events.end(), [&](const PrivacyEvent& event) { return event.label == label; });
}

Result<Mu> Oracle::planned_mu(const std::string& label) const {
  for (const PrivacyEvent& event : plan().events)
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism); gaussian && event.label == label)
      return gaussian->mu;
  return internal_error(fmt::format("the plan has no Gaussian answer '{}'", label));
}

Result<PureEpsilon> Oracle::planned_epsilon(const std::string& label) const {
  for (const PrivacyEvent& event : plan().events) {
    if (event.label != label) continue;
    if (const auto* pure = std::get_if<PureEvent>(&event.mechanism)) return pure->epsilon;
    // Sites count with Gaussian noise: deviations of about 1 / mu, as those of an epsilon of that size.
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism))
      return PureEpsilon::of(std::min<double>(gaussian->mu, 100));
  }
  return internal_error(fmt::format("the plan has no search '{}'", label));
}

double Oracle::total_mu() const {
  double sum = 0;
  for (const PrivacyEvent& event : plan().events)
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism))
      sum += gaussian->mu * gaussian->mu * static_cast<double>(event.count);
  return std::sqrt(sum);
}

LocalOracle::LocalOracle(std::unique_ptr<RowSums> sums, std::unique_ptr<Reservation> reservation, SecureRandom random)
    : sums_(std::move(sums)),
      reservation_(std::move(reservation)),
      meter_(reservation_->plan()),
      random_(std::move(random)) {}

LocalOracle::~LocalOracle() {
  if (!answering_) reservation_->close_unused();
}

RowsShape LocalOracle::shape() const {
  RowsShape shape{sums_->here().columns(), std::nullopt, lattice(), adjacency()};
  if (adjacency() == Adjacency::kReplaceOne && !sums_->here().facts().total_private) shape.rows = sums_->rows();
  return shape;
}

// The ledger knows that answers begin before the first one is computed.
Status LocalOracle::begin() {
  if (!answering_) EIGENVEIL_TRY(reservation_->begin_answering());
  answering_ = true;
  return {};
}

RowSums& LocalOracle::afresh() {
  last_gram_.reset();
  return *sums_;
}

Result<Answer> LocalOracle::release(PrivateSum sum, Mu mu) {
  const double deviation = deviation_of(sum, mu);
  auto released = EIGENVEIL_TRY(GaussianMechanism::release(std::move(sum), mu, random_));
  return Answer(std::move(released), deviation);
}

Result<Answer> LocalOracle::answer(const SumQuery& query, Mu mu) {
  const PrivateSum asked = empty_sum(query, sums_->here().columns(), lattice(), adjacency());
  if (const auto noise = GaussianMechanism::noise_for(asked, mu); !noise) return noise.error();
  EIGENVEIL_TRY(begin());
  const bool gram = std::holds_alternative<Gram>(query);
  if (gram && last_gram_) return release(*std::exchange(last_gram_, std::nullopt), mu);
  auto sum = EIGENVEIL_TRY(afresh().sum(query, adjacency()));
  if (gram && !meter_.complete()) last_gram_ = sum;
  return release(std::move(sum), mu);
}

Result<Answer> LocalOracle::ask(const std::string& label, const SumQuery& query) {
  EIGENVEIL_TRY(validate(query, sums_->here().facts(), adjacency()));
  const auto mu = EIGENVEIL_TRY(meter_.gaussian(label));
  return answer(query, mu);
}

Result<Answer> LocalOracle::ask_rest(const std::string& label, const SumQuery& query) {
  EIGENVEIL_TRY(validate(query, sums_->here().facts(), adjacency()));
  const auto mu = EIGENVEIL_TRY(meter_.rest(label));
  return answer(query, mu);
}

Result<Released<std::size_t>> LocalOracle::first_at_most(const std::string& label, const NormExceedance& query,
                                                         std::int64_t target) {
  EIGENVEIL_TRY(validate(query, sums_->here().facts()));
  const auto epsilon = EIGENVEIL_TRY(meter_.pure(label));
  EIGENVEIL_TRY(SparseVector::check(epsilon));
  EIGENVEIL_TRY(begin());
  const auto counts = EIGENVEIL_TRY(afresh().counts(query));
  return SparseVector::first_at_most(counts, target, epsilon, random_);
}

Result<FilteredAnswer> LocalOracle::ask_filtered(const std::string& search, const std::string& product,
                                                 const FilteredApply& query, std::int64_t target) {
  EIGENVEIL_TRY(validate(query, sums_->here().facts()));
  const auto epsilon = EIGENVEIL_TRY(meter_.pure(search));
  const auto mu = EIGENVEIL_TRY(meter_.gaussian(product));
  // Nothing that cannot be drawn is begun: the widest threshold needs the most noise.
  const PrivateSum widest = empty_sum(query, query.grid.size() - 1, lattice(), adjacency());
  if (const auto noise = GaussianMechanism::noise_for(widest, mu); !noise) return noise.error();
  EIGENVEIL_TRY(SparseVector::check(epsilon));
  EIGENVEIL_TRY(begin());
  const auto cells = EIGENVEIL_TRY(afresh().cells(query));
  const auto chosen = EIGENVEIL_TRY(SparseVector::first_at_most(cells.above(), target, epsilon, random_));
  auto sum = EIGENVEIL_TRY(release(cells.sum(*chosen, adjacency()), mu));
  return FilteredAnswer{chosen, std::move(sum)};
}

Result<Answer> LocalOracle::ask_model(const std::string& label, const ModelQuery& query) {
  if (!plan().model_based)
    return internal_error(fmt::format("'{}' rests on a model of the rows, and the plan does not say so", label));
  if (sums_->here().weighted())
    return usage_error(
        fmt::format("'{}' rests on independent rows, and those of one person are not: leave `person` out, or use "
                    "`guarantee` strict",
                    label));
  EIGENVEIL_TRY(query.validate(sums_->here().columns(), adjacency()));
  const auto mu = EIGENVEIL_TRY(meter_.gaussian(label));
  if (const auto noise = GaussianMechanism::noise_for(query.assumed(lattice()), mu); !noise) return noise.error();
  EIGENVEIL_TRY(begin());
  auto sum = EIGENVEIL_TRY(afresh().sum(query.behind(lattice()), adjacency()));
  auto value = EIGENVEIL_TRY(query.value(std::move(sum), lattice()));
  return release(std::move(value), mu);
}

// Of each person one row, any of theirs with the same probability; of a person of m < M rows with probability m / M
// one, else none.
std::vector<std::size_t> LocalOracle::rows_of_people(const std::vector<std::size_t>& people) {
  const BoundedRows& rows = sums_->here();
  if (first_.empty()) {
    first_.assign(rows.units() + 1, 0);
    for (const std::uint32_t p : rows.person()) ++first_[p + 1];
    for (std::size_t p = 0; p < rows.units(); ++p) first_[p + 1] += first_[p];
    lying_.resize(rows.rows());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (std::size_t i = 0; i < rows.rows(); ++i) lying_[next[rows.person()[i]]++] = static_cast<std::uint32_t>(i);
  }
  std::vector<std::size_t> chosen;
  for (const std::size_t p : people) {
    const std::size_t m = first_[p + 1] - first_[p];
    const std::size_t of = std::max(m, rows.least_rows());
    const std::size_t i = of > 1 ? random_.below(of) : 0;
    if (i < m) chosen.push_back(lying_[first_[p] + i]);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// Rows in the features' units.
Result<Batch> LocalOracle::gather(const std::vector<std::size_t>& chosen) const {
  const BoundedRows& rows = sums_->here();
  const std::size_t per_chunk = rows.store().chunk_rows();
  Batch batch{RowMajorMatrix(chosen.size(), rows.columns()), {}};
  std::vector<std::int32_t> buffer;
  const std::int32_t* from = nullptr;
  std::size_t chunk = SIZE_MAX;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] / per_chunk != chunk) {
      chunk = chosen[i] / per_chunk;
      from = EIGENVEIL_TRY(rows.store().read(chunk, buffer));
    }
    const std::int32_t* u = from + chosen[i] % per_chunk * rows.columns();
    for (std::size_t j = 0; j < rows.columns(); ++j) batch.rows(i, j) = u[j] * lattice().unit();
    if (!rows.classes().empty()) batch.classes.push_back(rows.classes()[chosen[i]]);
  }
  return batch;
}

// How many rows there are, and so how large a batch came out, decides nothing before the charge. Afterwards a query may
// fail for a batch that is too large for it; the operator hears it, and what was charged stays charged.
Result<Answer> LocalOracle::ask_batch(const std::string& label, const BatchQuery& query) {
  if (adjacency() != Adjacency::kAddRemoveOne)
    return usage_error(
        fmt::format("'{}' samples its rows, which hides one row more or less: say `adjacency` "
                    "add-remove-one",
                    label));
  if (!sums_->alone()) return Oracle::ask_batch(label, query);
  if (const BoundedRows& here = sums_->here(); here.weighted() && here.person().size() != here.rows())
    return internal_error("the rows do not tell whose they are");
  const auto planned = EIGENVEIL_TRY(meter_.poisson(label));
  const auto sample = EIGENVEIL_TRY(PoissonSample::of(planned.q));
  const Mu mu = 1 / planned.sigma;
  if (const auto noise = GaussianMechanism::noise_for(query.sensitivity(), mu); !noise) return noise.error();
  EIGENVEIL_TRY(begin());
  std::vector<std::size_t> chosen;
  sample.draw(sums_->rows(), random_, chosen);
  if (sums_->here().weighted()) chosen = rows_of_people(chosen);
  const auto batch = EIGENVEIL_TRY(gather(chosen));
  auto value = EIGENVEIL_TRY(query.exact(batch));
  return release(std::move(value), mu);
}

Status LocalOracle::recenter(const Vector& mean, RowBound radius) { return afresh().recenter(mean, radius); }
Status LocalOracle::remap(const LinearMap& M, RowBound radius) { return afresh().remap(M, radius); }

}  // namespace eigenveil
