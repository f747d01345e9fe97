// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/base/named_array.hpp"
#include "eigenveil/base/types.hpp"
#include "eigenveil/data/column_map.hpp"
#include "eigenveil/privacy/event.hpp"

namespace eigenveil {

/// What a fit releases. Arrays and manifest hold released values and public facts, nothing else.
/// Manifest keys: eigenveil (version), model ("pca"), method, options, adjacency, epsilon, delta, accounting,
/// events [{label, mechanism, count}], noise [{label, entries, deviation}] of the answers as sums, guarantee (words),
/// private (false when seeded), warnings [words], ledger {used, dataset, and of the entry that was charged: entry,
/// mark, generation, unit, epsilon, delta, spent_before, spent_after, remaining}, released (day, UTC) and purpose of
/// that entry, rows (replace-one only), features [names], columns [specs of the public column map]; optional:
/// noise_edge (the largest eigenvalue that noise alone would typically produce). The arrays of each kind of model, and
/// the keys that only it has, are in release/kinds.cpp.
struct Model {
  std::vector<NamedArray> arrays;
  nlohmann::json manifest;
  /// Hears of every file that `write_model` made of it: whoever keeps the books records its hash. None: nobody does.
  std::function<void(const std::string& path)> written = {};

  const Matrix* array(const std::string& name) const;  ///< nullptr if the model has none of that name
};

/// Only a manifest that says so in as many words is private.
bool is_private(const Model& model);
/// "3 principal components", "the covariance": as far as its arrays tell.
std::string released_in_words(const Model& model);
/// A sentence to follow "they are NOT private." of what was made with the model.
std::string privacy_in_words(const Model& model);

/// Refuses a model whose arrays are not finite, or do not fit together as its kind says. `where` begins the message.
Status validate(const Model& model, const std::string& where);

/// Of parts that came from anywhere: checked as a whole, the types of what the manifest says included.
Result<Model> model_from(std::vector<NamedArray> arrays, const std::string& manifest, const std::string& where);

/// Both validate: a model that cannot be read back is not written.
Status write_model(const Model& model, const std::string& path, FileModes modes = {});
Result<Model> read_model(const std::string& path);

/// The public column map, as manifest entries and back.
nlohmann::json columns_to_json(const std::vector<ColumnSpec>& specs);
Result<std::vector<ColumnSpec>> columns_from_json(const nlohmann::json& json);

/// The privacy events, as manifest entries {label, mechanism: "gaussian:mu=0.2", count} and back.
nlohmann::json events_to_json(const std::vector<PrivacyEvent>& events);
Result<std::vector<PrivacyEvent>> events_from_json(const nlohmann::json& json);

}  // namespace eigenveil
