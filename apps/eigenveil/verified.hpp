// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "eigenveil/ledger/ledger.hpp"

namespace eigenveil::app {

/// Whether a file is the one that was written for an entry of a ledger. Only its hash says yes.
enum class SameFile { kYes, kNo, kUnknown };

/// true, false and null.
nlohmann::json to_json(SameFile same);

/// What a ledger knows of a model's file.
struct Verified {
  SameFile same;
  std::string words;  ///< to follow the file's name
};

Result<Verified> verify_model(Ledger& ledger, const std::string& path);

}  // namespace eigenveil::app
