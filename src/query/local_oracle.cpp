#include "eigenveil/query/local_oracle.hpp"

#include <fmt/format.h>

#include <cmath>

namespace eigenveil {

double Oracle::noise_of(const SumQuery& query, double mu) const {
  const RowsShape facts = shape();
  const auto noise = GaussianMechanism::noise_for(sensitivity(query, facts.lattice, facts.adjacency), mu);
  if (!noise) return 0;  // mu = infinity, or a noise that `ask` will refuse in words
  return facts.noise_factor *
         std::ldexp(static_cast<double>(symmetric(query) ? noise->sigma_off : noise->sigma), -noise->shift) *
         unit(query, facts.lattice);
}

double Oracle::noise_of(const FilteredApply& query, std::size_t chosen, double mu) const {
  const RowsShape facts = shape();
  const auto noise = GaussianMechanism::noise_for(sensitivity(query, chosen, facts.lattice, facts.adjacency), mu);
  if (!noise) return 0;
  return facts.noise_factor * std::ldexp(static_cast<double>(noise->sigma), -noise->shift) * facts.lattice.unit() *
         facts.lattice.unit();
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
                                        lattice().unit() * lattice().unit(), random_);
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

Status LocalOracle::recenter(const Vector& mean, RowBound radius) { return sums_->recenter(mean, radius); }
Status LocalOracle::remap(const LinearMap& M, RowBound radius) { return sums_->remap(M, radius); }

}  // namespace eigenveil
