// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "eigenveil/estimators/estimator.hpp"
#include "eigenveil/intake/charge.hpp"
#include "eigenveil/release/model.hpp"

namespace eigenveil {

/// What every release says about itself, whatever the model: version, guarantee, events, ledger, warnings.
/// `rows` is public, or a released noisy count.
nlohmann::json common_manifest(std::string_view model, std::string_view method, nlohmann::json options,
                               const PrivacyOptions& privacy, const Charge& charge, std::optional<double> rows);
nlohmann::json common_manifest(const Estimator& estimator, nlohmann::json options, const PrivacyOptions& privacy,
                               const Charge& charge, std::optional<double> rows);

/// What a fit says of itself: facts, warnings, and what its guarantee comes on top of.
void add_said(nlohmann::json& manifest, Fit fit);

/// What a release promised whose numbers another one uses, and then what those promised that it had used itself: for
/// the list `start` in the manifest of the other one. Refuses one that is not private, or is so under a model alone, or
/// that protects rows where `people` are to be protected: what uses it would promise no more.
Result<nlohmann::json> promises_of(const nlohmann::json& manifest, const std::string& path, const std::string& sha256,
                                   bool people);

/// The same of a module by the manifest that `clip train` put in its file. Without one it promises nothing: whoever
/// names it says that it is public.
Result<nlohmann::json> promises_in(const std::optional<std::string>& manifest, const std::string& path,
                                   const std::string& sha256, bool people);

/// Adds promises that are not there yet, as two encoders may be one module. Refuses a list that nobody could read
/// afterwards.
Status add_promises(nlohmann::json& promises, const nlohmann::json& more);

/// "equal", or "rows:20".
std::string weight_in_words(const PersonOptions& person);

/// Whose rows they are and what they count for, in place of how many rows there are. `people`: public, or a released
/// noisy count of what all rows weigh.
void add_person(nlohmann::json& manifest, const PersonOptions& person, const std::string& column,
                std::optional<double> people);

/// The public map of the columns.
void add_columns(nlohmann::json& manifest, const ColumnMap& map);

/// The options that say how rows were read.
std::string_view name(MissingPolicy missing);
nlohmann::json row_options_json(const RowOptions& rows, double row_bound);

/// The guarantee in plain words. A paper's noise guarantees what it was certified for, not what the paper claims.
std::string guarantee_in_words(const PrivacyOptions& privacy, const Charge& charge);

}  // namespace eigenveil
