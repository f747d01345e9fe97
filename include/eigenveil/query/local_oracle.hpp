#pragma once

#include <memory>

#include "eigenveil/ledger/ledger.hpp"
#include "eigenveil/query/meter.hpp"
#include "eigenveil/query/oracle.hpp"
#include "eigenveil/query/row_sums.hpp"

namespace eigenveil {

/// Rows of one owner, who adds the noise: exact sums, wherever they come from, and the noise of a charged plan.
class LocalOracle final : public Oracle {
 public:
  /// The reservation is the proof that the plan was charged: there is no oracle without one.
  LocalOracle(std::unique_ptr<RowSums> sums, Adjacency adjacency, std::unique_ptr<Reservation> reservation,
              SecureRandom random);
  /// Rows of this process, on threads.
  LocalOracle(BoundedRows rows, Adjacency adjacency, std::unique_ptr<Reservation> reservation, SecureRandom random)
      : LocalOracle(sums_of(std::move(rows)), adjacency, std::move(reservation), std::move(random)) {}
  ~LocalOracle() override;
  LocalOracle(const LocalOracle&) = delete;
  LocalOracle& operator=(const LocalOracle&) = delete;

  RowsShape shape() const override;
  Result<Released<Matrix>> ask(const std::string& label, const SumQuery& query, double mu) override;
  Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                              std::int64_t target, double epsilon) override;
  Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product, const FilteredApply& query,
                                      std::int64_t target, double epsilon, double mu) override;
  Result<Released<Matrix>> ask_model(const std::string& label, const ModelQuery& query, double mu) override;
  Result<Released<Matrix>> ask_batch(const std::string& label, const BatchQuery& query, double q,
                                     double sigma) override;
  Status recenter(const Vector& mean, RowBound radius) override;
  Status remap(const LinearMap& M, RowBound radius) override;
  bool complete() const override { return meter_.complete(); }

 private:
  const Lattice& lattice() const { return sums_->here().lattice(); }
  Status admit(const std::string& label, const Mechanism& asked);
  Result<Batch> gather(const std::vector<std::size_t>& chosen) const;

  std::unique_ptr<RowSums> sums_;
  Adjacency adjacency_;
  std::unique_ptr<Reservation> reservation_;
  Meter meter_;
  SecureRandom random_;
  bool answering_ = false;
};

}  // namespace eigenveil
