#pragma once

#include "eigenveil/estimators/gep/gep.hpp"
#include "eigenveil/job/manifest.hpp"
#include "eigenveil/release/report.hpp"

namespace eigenveil {

/// What a user may choose about any of the generalized eigenproblems.
struct GepChoices {
  std::size_t components;
  std::optional<GepNoise> noise;  ///< default: once, while d^2 numbers fit half of the memory
  std::optional<std::size_t> sparsity;
  GepStart start = GepStart::kAuto;
  std::optional<double> step;
  std::size_t rounds = 15;
  std::optional<double> ridge;
};

/// Where a fit of rows reads, what it may spend, where it writes.
struct FitJob {
  RowOptions rows;
  PrivacyOptions privacy;
  RunOptions run;
  GepChoices gep;
  std::string out;     ///< model.npz
  std::string report;  ///< report.html; empty: none
  ReportOptions report_options;
};

struct FitOutcome {
  Model model;
  BoundingDiagnostics diagnostics;  ///< private: for the operator's terminal alone
};

// The parts that these jobs share.

/// The estimator's options; `columns` decides between once and each step if the user did not.
GepOptions gep_options(const GepChoices& choices, const PrivacyOptions& privacy, const RunOptions& run,
                       std::size_t columns);

/// Bytes that a fit needs besides the rows. `width`: of the largest product or of the class sums.
std::size_t gep_memory(const GepOptions& options, const RunOptions& run, std::size_t columns, std::size_t width);

/// Refuses what no row is needed to see: options that do not go together, files that cannot be written.
Status check_job(const GepOptions& options, const PrivacyOptions& privacy, const std::string& out,
                 const std::string& report);

std::string_view name(GepNoise noise);
std::string_view name(GepStart start);

/// The choices, as a manifest tells them.
void add_choices(nlohmann::json& options, const GepOptions& gep);

/// Ridge, noise edge and what the solve met, as a manifest tells them. `values`: eigenvalues or correlations.
void add_solution(nlohmann::json& manifest, double ridge, double noise_edge, const Vector& values,
                  const std::vector<std::string>& notes);

/// Writes model and report.
Status write_release(const Model& model, const std::string& out, const std::string& report,
                     const ReportOptions& report_options, Observer& observer);

}  // namespace eigenveil
