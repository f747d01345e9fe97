// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/intake/charge.hpp"
#include "eigenveil/query/row_sums.hpp"

namespace eigenveil {

/// What a charge is for.
struct ChargeRequest {
  PrivacyPlan draft;  ///< to be calibrated (a paper's plan is taken as it is)
  PrivacyOptions privacy;
  RunOptions run;
  PrivateFiles data;    ///< that the rows come from
  std::string purpose;  ///< what the ledger will remember
};

/// Rows that were bounded and wait for a charge, whoever holds them.
class HeldRows {
 public:
  virtual ~HeldRows() = default;
  virtual std::size_t columns() const = 0;
  virtual Lattice lattice() const = 0;
  /// Their number, if it is known before the charge; public under replace-one only.
  virtual std::optional<std::size_t> rows() const = 0;
  virtual BoundingDiagnostics diagnostics() const = 0;  ///< private
  /// Charges the plan, and only then gives an oracle. Called once.
  virtual Result<ChargedOracle> charge(const ChargeRequest& request, Observer& observer) = 0;
};

/// Who holds the rows, if it is not this process alone.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Has the rows that were opened here read and bounded, wherever they are.
  virtual Result<std::unique_ptr<HeldRows>> hold(const RowOptions& options, OpenedData& opened, const RunOptions& run,
                                                 std::size_t reserved, Observer& observer) = 0;
};

/// Rows of one owner, whose ledger is charged and whose noise is drawn here.
std::unique_ptr<HeldRows> own_rows(std::unique_ptr<RowSums> sums, BoundingDiagnostics diagnostics);

/// Has the rows read and bounded, by the engine of `run` or here. `reserved` bytes of the memory are left for the
/// estimator's own sums.
Result<std::unique_ptr<HeldRows>> hold(const RowOptions& options, OpenedData& opened, const RunOptions& run,
                                       std::size_t reserved, Observer& observer);

/// Charges a plan, and only then gives an oracle, whose asks the observer hears of.
Result<ChargedOracle> charge(HeldRows& rows, const ChargeRequest& request, Observer& observer);

}  // namespace eigenveil
