// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "eigenveil/release/report.hpp"

namespace eigenveil {

// Each returns one part of the page, or nothing when the model has nothing to show there.
std::string head_section(const Model& model);  ///< title, what must not be overlooked, the release at a glance
std::string found_section(const Model& model, const ReportOptions& options);
std::string promise_section(const Model& model);  ///< the guarantee, its limits and what it rests on
std::string budget_section(const Model& model);   ///< before, this release, what remains
std::string fixed_section(const Model& model);    ///< what was fixed in advance
std::string made_section(const Model& model);     ///< every answer with its noise, and how to check them
std::string use_section(const Model& model);
std::string glossary_section(const std::string& page);  ///< the words that the page uses

// Parts of what was found.
std::string verdicts_part(const Model& model);
std::string pictures_part(const Model& model);
std::string estimates_part(const Model& model);
std::string directions_part(const Model& model, const ReportOptions& options);

/// The epsilon that the guarantee states: what was certified, where a paper prescribed the noise.
std::optional<double> stated_epsilon(const nlohmann::json& manifest);
/// What the guarantee protects one of: "row", "patient". Escaped.
std::string unit_of(const nlohmann::json& manifest);
/// The name of a feature, or its number. Not escaped.
std::string feature_name(const Model& model, std::size_t feature);
/// A whole number with its thousands apart.
std::string whole(double value);

}  // namespace eigenveil
