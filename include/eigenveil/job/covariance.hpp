#pragma once

#include "eigenveil/estimators/covariance/covariance.hpp"
#include "eigenveil/job/pca.hpp"

namespace eigenveil {

/// A private covariance matrix from a data file to a released model.
struct CovarianceJob {
  RowOptions rows;
  PrivacyOptions privacy;
  RunOptions run;
  std::optional<PcaMethod> method = PcaMethod::kGram;  ///< gram or spiked; none: the planner chooses
  SpikedOptions spiked = {};
  bool dense = false;  ///< spiked: write the d x d matrix too
  PublicGuess guess = {};
  std::string out;
  std::string report;
  ReportOptions report_options;
};

/// As `run_pca`. The model has components, eigenvalues, noise_variance, mean, and for gram (or dense) covariance.
Result<PcaOutcome> run_covariance(const CovarianceJob& job, Observer& observer);

}  // namespace eigenveil
