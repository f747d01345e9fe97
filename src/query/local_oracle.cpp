#include "eigenveil/query/local_oracle.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/privacy/poisson_sample.hpp"

namespace eigenveil {

double Oracle::noise_of(const SumQuery& query, double mu) const {
  const RowsShape facts = shape();
  const auto noise = GaussianMechanism::noise_for(sensitivity(query, facts.lattice, facts.adjacency), mu);
  if (!noise) return 0;  // mu = infinity, or a noise that `ask` will refuse in words
  return facts.noise_factor * (symmetric(query) ? noise->deviation_off() : noise->deviation()) *
         unit(query, facts.lattice);
}

double Oracle::noise_of(const FilteredApply& query, std::size_t chosen, double mu) const {
  const RowsShape facts = shape();
  const auto noise = GaussianMechanism::noise_for(sensitivity(query, chosen, facts.lattice, facts.adjacency), mu);
  if (!noise) return 0;
  return facts.noise_factor * noise->deviation() * filtered_unit(facts.lattice);
}

Result<Released<Matrix>> Oracle::ask_batch(const std::string& label, const BatchQuery& /*query*/, double /*q*/,
                                           double /*sigma*/) {
  return usage_error(
      fmt::format("'{}' needs whole batches in one place; this engine gives sums over rows only", label));
}

LocalOracle::LocalOracle(std::unique_ptr<RowSums> sums, Adjacency adjacency, std::unique_ptr<Reservation> reservation,
                         SecureRandom random)
    : sums_(std::move(sums)),
      adjacency_(adjacency),
      reservation_(std::move(reservation)),
      meter_(reservation_->plan()),
      random_(std::move(random)) {}

LocalOracle::~LocalOracle() {
  if (!answering_) reservation_->close_unused();
}

RowsShape LocalOracle::shape() const {
  RowsShape shape{sums_->here().columns(), std::nullopt, sums_->here().lattice(), adjacency_};
  if (adjacency_ == Adjacency::kReplaceOne) shape.rows = sums_->rows();
  return shape;
}

// The ledger knows that answers begin before the first one is computed.
Status LocalOracle::admit(const std::string& label, const Mechanism& asked) {
  EIGENVEIL_TRY(meter_.admit(label, asked));
  if (!answering_) EIGENVEIL_TRY(reservation_->begin_answering());
  answering_ = true;
  return {};
}

Result<Released<Matrix>> LocalOracle::ask(const std::string& label, const SumQuery& query, double mu) {
  EIGENVEIL_TRY(validate(query, sums_->here(), adjacency_));
  const Sensitivity moved = sensitivity(query, lattice(), adjacency_);
  if (!std::isinf(mu))
    if (const auto noise = GaussianMechanism::noise_for(moved, mu); !noise) return noise.error();
  EIGENVEIL_TRY(admit(label, GaussianEvent{mu}));
  auto sum = sums_->sum(query);
  if (!sum) return sum.error();
  return GaussianMechanism::release(*std::move(sum), moved, mu, unit(query, lattice()), random_);
}

Result<Released<std::size_t>> LocalOracle::first_at_most(const std::string& label, const NormExceedance& query,
                                                         std::int64_t target, double epsilon) {
  EIGENVEIL_TRY(validate(query, sums_->here()));
  if (!std::isinf(epsilon)) EIGENVEIL_TRY(SparseVector::check(epsilon));
  EIGENVEIL_TRY(admit(label, PureEvent{epsilon}));
  const auto counts = sums_->counts(query);
  if (!counts) return counts.error();
  return SparseVector::first_at_most(*counts, target, epsilon, random_);
}

Result<FilteredAnswer> LocalOracle::ask_filtered(const std::string& search, const std::string& product,
                                                 const FilteredApply& query, std::int64_t target, double epsilon,
                                                 double mu) {
  EIGENVEIL_TRY(validate(query, sums_->here()));
  // Nothing that cannot be drawn is begun: the widest threshold needs the most noise.
  const Sensitivity widest = sensitivity(query, query.grid.size() - 1, lattice(), adjacency_);
  if (!std::isinf(mu))
    if (const auto noise = GaussianMechanism::noise_for(widest, mu); !noise) return noise.error();
  if (!std::isinf(epsilon)) EIGENVEIL_TRY(SparseVector::check(epsilon));
  EIGENVEIL_TRY(admit(search, PureEvent{epsilon}));
  EIGENVEIL_TRY(admit(product, GaussianEvent{mu}));
  const auto cells = sums_->cells(query);
  if (!cells) return cells.error();
  auto chosen = SparseVector::first_at_most(cells->above, target, epsilon, random_);
  if (!chosen) return chosen.error();
  auto sum = GaussianMechanism::release(filtered_sum(*cells, query, lattice(), **chosen),
                                        sensitivity(query, **chosen, lattice(), adjacency_), mu,
                                        filtered_unit(lattice()), random_);
  if (!sum) return sum.error();
  return FilteredAnswer{*std::move(chosen), *std::move(sum)};
}

Result<Released<Matrix>> LocalOracle::ask_model(const std::string& label, const ModelQuery& query, double mu) {
  if (!meter_.plan().model_based)
    return internal_error(fmt::format("'{}' rests on a model of the rows, and the plan does not say so", label));
  EIGENVEIL_TRY(validate(query, sums_->here(), adjacency_));
  const Sensitivity moved = assumed_sensitivity(query, lattice());
  if (!std::isinf(mu))
    if (const auto noise = GaussianMechanism::noise_for(moved, mu); !noise) return noise.error();
  EIGENVEIL_TRY(admit(label, GaussianEvent{mu}));
  auto sum = sums_->sum(sum_behind(query, lattice()));
  if (!sum) return sum.error();
  auto value = exact_value(query, *std::move(sum));
  if (!value) return value.error();
  return GaussianMechanism::release(*std::move(value), moved, mu, unit(query, lattice()), random_);
}

// Rows in the features' units.
Result<Batch> LocalOracle::gather(const std::vector<std::size_t>& chosen) const {
  const BoundedRows& rows = sums_->here();
  const std::size_t per_chunk = rows.store().chunk_rows();
  Batch batch{RowMajorMatrix(static_cast<Eigen::Index>(chosen.size()), static_cast<Eigen::Index>(rows.columns())), {}};
  std::vector<std::int32_t> buffer;
  const std::int32_t* from = nullptr;
  std::size_t chunk = SIZE_MAX;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] / per_chunk != chunk) {
      chunk = chosen[i] / per_chunk;
      const auto read = rows.store().read(chunk, buffer);
      if (!read) return read.error();
      from = *read;
    }
    const std::int32_t* u = from + chosen[i] % per_chunk * rows.columns();
    for (std::size_t j = 0; j < rows.columns(); ++j)
      batch.rows(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = u[j] * lattice().unit();
    if (!rows.classes().empty()) batch.classes.push_back(rows.classes()[chosen[i]]);
  }
  return batch;
}

Result<Released<Matrix>> LocalOracle::ask_batch(const std::string& label, const BatchQuery& query, double q,
                                                double sigma) {
  if (adjacency_ != Adjacency::kAddRemoveOne)
    return usage_error(
        fmt::format("'{}' samples its rows, which hides one row more or less: say --adjacency "
                    "add-remove-one",
                    label));
  if (sums_->rows() != sums_->here().rows()) return Oracle::ask_batch(label, query, q, sigma);
  const auto sample = PoissonSample::of(q);
  if (!sample) return sample.error();
  if (q * static_cast<double>(sums_->rows()) > kLargestExpectedBatch)
    return usage_error(
        fmt::format("batches of more than {} rows are expected; lower --sample-rate {}", kLargestExpectedBatch, q));
  if (sigma != 0)
    if (const auto noise = GaussianMechanism::noise_for(query.sensitivity(), 1 / sigma); !noise) return noise.error();
  EIGENVEIL_TRY(admit(label, PoissonGaussianEvent{q, sigma}));
  std::vector<std::size_t> chosen;
  sample->draw(sums_->rows(), random_, chosen);
  if (chosen.size() > kLargestBatch) return internal_error("a batch came out far larger than can happen");
  const auto batch = gather(chosen);
  if (!batch) return batch.error();
  auto value = query.exact(*batch);
  if (!value) return value.error();
  return GaussianMechanism::release(*std::move(value), query.sensitivity(), 1 / sigma, query.unit(), random_);
}

Status LocalOracle::recenter(const Vector& mean, RowBound radius) { return sums_->recenter(mean, radius); }
Status LocalOracle::remap(const LinearMap& M, RowBound radius) { return sums_->remap(M, radius); }

}  // namespace eigenveil
