#pragma once

#include "eigenveil/estimators/pca/power.hpp"
#include "eigenveil/job/manifest.hpp"
#include "eigenveil/release/model.hpp"
#include "eigenveil/release/report.hpp"

namespace eigenveil {

enum class PcaMethod {
  kGram,           ///< one noisy covariance matrix: n d^2 time, d^2 memory
  kPower,          ///< noisy subspace iteration
  kSparsePower,    ///< the same with few loadings, filtered
  kAdaptivePower,  ///< the same with a filter that adapts to the rows: for many columns
};

std::string_view name(PcaMethod method);
Result<PcaMethod> pca_method_from_name(std::string_view text);

/// Private PCA from a data file to a released model.
struct PcaJob {
  RowOptions rows;
  PrivacyOptions privacy;
  RunOptions run;
  std::size_t components;
  PcaMethod method = PcaMethod::kGram;
  std::optional<std::size_t> sparsity;  ///< gram, sparse-power (which needs it)
  PowerOptions power;                   ///< the power methods; `power` itself takes no filter
  std::string out;                      ///< model.npz
  std::string report;                   ///< report.html; empty: none
  ReportOptions report_options;
};

struct PcaOutcome {
  Model model;
  BoundingDiagnostics diagnostics;  ///< private: for the operator's terminal alone
};

/// Reads, bounds, charges, fits, writes; in that order, so that a bad file or an unwritable folder costs nothing.
Result<PcaOutcome> run_pca(const PcaJob& job, Observer& observer);

}  // namespace eigenveil
