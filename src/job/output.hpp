#pragma once

#include "eigenveil/job/observer.hpp"
#include "eigenveil/release/report.hpp"

namespace eigenveil {

/// Where a model and its report go.
struct Outputs {
  const std::string& model;
  const std::string& report;  ///< empty: none
  const ReportOptions& report_options;
};

/// Refuses what could not be written, and pictures that do not fit the columns, before anything is charged.
Status check_outputs(const Outputs& outputs, std::size_t columns);
Status write_outputs(const Model& model, const Outputs& outputs, Observer& observer);

}  // namespace eigenveil
