#include "eigenveil/query/local_oracle.hpp"

#include <cmath>

namespace eigenveil {

double Oracle::noise_of(const SumQuery& query, double mu) const {
  const RowsShape facts = shape();
  const auto noise = GaussianMechanism::noise_for(sensitivity(query, facts.lattice, facts.adjacency), mu);
  if (!noise) return 0;  // mu = infinity, or a noise that `ask` will refuse in words
  const bool symmetric = std::holds_alternative<Gram>(query);
  return std::ldexp(static_cast<double>(symmetric ? noise->sigma_off : noise->sigma), -noise->shift) *
         unit(query, facts.lattice);
}

LocalOracle::LocalOracle(BoundedRows rows, Adjacency adjacency, std::unique_ptr<Reservation> reservation,
                         SecureRandom random)
    : rows_(std::move(rows)),
      adjacency_(adjacency),
      reservation_(std::move(reservation)),
      meter_(reservation_->plan()),
      random_(std::move(random)) {}

LocalOracle::~LocalOracle() {
  if (!answering_) reservation_->close_unused();
}

RowsShape LocalOracle::shape() const {
  RowsShape shape{rows_.columns(), std::nullopt, rows_.lattice(), adjacency_};
  if (adjacency_ == Adjacency::kReplaceOne) shape.rows = rows_.rows();
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
  EIGENVEIL_TRY(validate(query, rows_, adjacency_));
  const Sensitivity moved = sensitivity(query, rows_.lattice(), adjacency_);
  if (!std::isinf(mu))
    if (const auto noise = GaussianMechanism::noise_for(moved, mu); !noise) return noise.error();
  EIGENVEIL_TRY(admit(label, GaussianEvent{mu}));
  auto sum = exact_sum(query, rows_);
  if (!sum) return sum.error();
  return GaussianMechanism::release(*std::move(sum), moved, mu, unit(query, rows_.lattice()), random_);
}

Result<Released<std::size_t>> LocalOracle::first_at_most(const std::string& label, const CountQuery& query,
                                                         std::int64_t target, double epsilon) {
  EIGENVEIL_TRY(validate(query, rows_));
  if (!std::isinf(epsilon)) EIGENVEIL_TRY(SparseVector::check(epsilon));
  EIGENVEIL_TRY(admit(label, PureEvent{epsilon}));
  const auto counts = exact_counts(query, rows_);
  if (!counts) return counts.error();
  return SparseVector::first_at_most(*counts, target, epsilon, random_);
}

Status LocalOracle::recenter(const Vector& mean, RowBound radius) { return rows_.recenter(mean, radius); }

}  // namespace eigenveil
