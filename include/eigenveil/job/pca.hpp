#pragma once

#include "eigenveil/job/privacy.hpp"
#include "eigenveil/release/model.hpp"
#include "eigenveil/release/report.hpp"

namespace eigenveil {

/// Private PCA from a data file to a released model.
struct PcaJob {
  RowOptions rows;
  PrivacyOptions privacy;
  RunOptions run;
  std::size_t components;
  std::string out;     ///< model.npz
  std::string report;  ///< report.html; empty: none
  ReportOptions report_options;
};

struct PcaOutcome {
  Model model;
  BoundingDiagnostics diagnostics;  ///< private: for the operator's terminal alone
};

/// Reads, bounds, charges, fits, writes; in that order, so that a bad file or an unwritable folder costs nothing.
Result<PcaOutcome> run_pca(const PcaJob& job, Observer& observer);

/// The version of this library.
const char* version();

}  // namespace eigenveil
