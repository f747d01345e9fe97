// SPDX-License-Identifier: Apache-2.0
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
  LocalOracle(std::unique_ptr<RowSums> sums, std::unique_ptr<Reservation> reservation, SecureRandom random);
  /// Rows of this process, on threads.
  LocalOracle(BoundedRows rows, std::unique_ptr<Reservation> reservation, SecureRandom random)
      : LocalOracle(sums_of(std::move(rows)), std::move(reservation), std::move(random)) {}
  ~LocalOracle() override;
  LocalOracle(const LocalOracle&) = delete;
  LocalOracle& operator=(const LocalOracle&) = delete;

  RowsShape shape() const override;
  const PrivacyPlan& plan() const override { return meter_.plan(); }
  Result<Answer> ask(const std::string& label, const SumQuery& query) override;
  Result<Answer> ask_rest(const std::string& label, const SumQuery& query) override;
  Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                              std::int64_t target) override;
  Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product, const FilteredApply& query,
                                      std::int64_t target) override;
  Result<Answer> ask_model(const std::string& label, const ModelQuery& query) override;
  Result<Answer> ask_batch(const std::string& label, const BatchQuery& query) override;
  Status recenter(const Vector& mean, RowBound radius) override;
  Status remap(const LinearMap& M, RowBound radius) override;
  bool complete() const override { return meter_.complete(); }

 private:
  const Lattice& lattice() const { return sums_->here().lattice(); }
  Adjacency adjacency() const { return plan().adjacency; }
  Status begin();
  /// The only way to sums and to other rows: what was kept of these is gone.
  RowSums& afresh();
  Result<Answer> release(PrivateSum sum, Mu mu);
  Result<Answer> answer(const SumQuery& query, Mu mu);
  std::vector<std::size_t> rows_of_people(const std::vector<std::size_t>& people);
  Result<Batch> gather(const std::vector<std::size_t>& chosen) const;

  std::unique_ptr<RowSums> sums_;        // const but through `afresh`
  std::optional<PrivateSum> last_gram_;  // exact, of these rows: it may be asked for again
  std::unique_ptr<Reservation> reservation_;
  Meter meter_;
  SecureRandom random_;
  bool answering_ = false;
  // Where the rows of a person lie: those of p from first_[p] on. Made for the first batch.
  std::vector<std::size_t> first_;
  std::vector<std::uint32_t> lying_;
};

}  // namespace eigenveil
