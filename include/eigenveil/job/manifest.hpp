#pragma once

#include "eigenveil/job/privacy.hpp"

namespace eigenveil {

/// What every model's manifest says: version, kind, method, guarantee, rows, features. `rows` is public or released.
nlohmann::json manifest_json(const std::string& model, const std::string& method, const PrivacyOptions& privacy,
                             const ChargedOracle& charged, const BoundedData& data, double rows);

/// How the rows were made, for the manifest's options.
nlohmann::json row_options_json(const RowOptions& rows, double row_bound);

/// Options of a PCA program, for the manifest.
nlohmann::json program_json(const PcaProgram& program);

/// The version of this library.
const char* version();

}  // namespace eigenveil
