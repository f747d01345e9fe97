#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "eigenveil/estimators/pca/method.hpp"
#include "eigenveil/job/engine.hpp"
#include "eigenveil/release/model.hpp"

namespace eigenveil {

/// What every release says about itself, whatever the model: version, guarantee, events, ledger, columns, warnings.
/// `rows` is public, or a released noisy count.
nlohmann::json common_manifest(std::string_view model, std::string_view method, nlohmann::json options,
                               const PrivacyOptions& privacy, const Charge& charge, double rows);

/// The public map of the columns.
void add_columns(nlohmann::json& manifest, const ColumnMap& map);

/// The options that say how rows were read.
nlohmann::json row_options_json(const RowOptions& rows, double row_bound);

/// Options of a PCA program.
nlohmann::json program_json(const PcaProgram& program, Calibration calibration);

/// What the ledger remembers of a spiked fit whose guarantee rests on a model.
const char* guarantee_flag(const SpikedOptions& spiked);

/// The paper's rates for the error of a spiked covariance, from what was released.
/// What a guarantee that rests on the spiked model assumes, in numbers and in a warning.
void add_assumed(nlohmann::json& manifest, const AssumedSensitivity& assumed);

nlohmann::json spiked_rates_json(const PcaResult& pca, double noise_variance, const Budget& budget);

/// The version of this library.
const char* version();

}  // namespace eigenveil
