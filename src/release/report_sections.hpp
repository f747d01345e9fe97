// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "eigenveil/release/report.hpp"

namespace eigenveil {

// Each returns one section of the page, or nothing when the model has nothing to show there.
std::string summary_section(const Model& model);
std::string facts_section(const Model& model);
std::string budget_section(const Model& model);
std::string scree_section(const Model& model);
std::string components_section(const Model& model, const ReportOptions& options);
std::string estimates_section(const Model& model);
std::string use_section(const Model& model);
std::string check_section(const Model& model);

/// The epsilon that the guarantee states: what was certified, where a paper prescribed the noise.
std::optional<double> stated_epsilon(const nlohmann::json& manifest);

}  // namespace eigenveil
