// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace eigenveil {

/// How long an array is along one axis. Arrays of a model that share an extent are equally long there.
enum class Extent : std::uint8_t {
  kNone,  ///< no second axis: a vector
  kOne,
  kDirections,  ///< K: components, pairs, dimensions
  kFeatures,    ///< d; where there are two views, d = d1 + d2
  kFirstView,   ///< d1
  kSecondView,  ///< d2
  kGroups       ///< C: as many as the manifest names under `groups`
};

/// An array that models of a kind have.
struct ModelArray {
  std::string_view name;
  Extent rows;
  Extent columns = Extent::kNone;
  bool optional = false;
};

/// What a key of a manifest holds. A number that is not finite is written as null, which therefore passes for a number.
/// Promises: of releases that one began with, newest first, each {sha256, epsilon, delta, adjacency, unit}.
enum class Holds : std::uint8_t { kText, kTexts, kNumber, kCount, kFlag, kList, kObject, kPromises };

struct ManifestKey {
  std::string_view path;  ///< "ledger.used" is the key used of the object ledger
  Holds holds;
};

/// An array of directions, and what the scores of rows along them are called: pc1, pc2, ...
struct Scores {
  std::string_view directions;
  std::string_view name;
};

/// A number of the manifest, as a sentence with {} for it.
struct Figure {
  std::string_view key;
  std::string_view sentence;
};

/// Numbers of the manifest with their 95% intervals: a list of {name, value, lower, upper}, or one of them without a
/// name. A number that is null is not known, an interval of nulls has no end.
struct Estimates {
  std::string_view key;
  std::string_view title;
};

enum class Prediction : std::uint8_t {
  kNone,
  kClass,
  kNumber  ///< the score itself: intercept + coefficients . row, in the columns' own units
};

/// All that release, report and terminal know about the models of one kind.
struct ModelKind {
  std::string_view name;   ///< "fda": what the manifest says under model
  std::string_view title;  ///< of the report
  std::string_view one;    ///< what was released, after "This page describes"
  std::string_view many;   ///< the same, with {} for K
  std::string_view rows = "rows";
  std::string_view method = "by method";  ///< what goes before the method's name

  std::vector<ModelArray> arrays;  ///< the first that has an extent fixes it, the others must agree
  std::vector<ManifestKey> keys;   ///< of manifests of this kind, beside those that all have (manifest_types.cpp)
  std::string_view groups = {};    ///< key of the manifest that lists the names of the groups

  std::vector<Scores> scores;  ///< a row's: one set, or one per view; none: rows are not projected
  Prediction prediction = Prediction::kNone;
  bool heads = false;  ///< rows are pairs of two encoded views, which heads embed (job/clip.hpp)

  std::string_view values = {};         ///< array of K numbers, one per direction
  std::string_view value = {};          ///< what one of them is called
  std::string_view meaning = {};        ///< what they say about the data, a sentence
  std::string_view number = "#";        ///< what goes before their numbers
  std::string_view item = "direction";  ///< what one of K is called
  bool of_rows = true;                  ///< it came from rows, not from matrices that somebody gave
  bool bars = false;                    ///< a terminal draws them
  std::vector<Estimates> estimates = {};
  std::string_view subject = {};                   ///< key of the manifest: what the estimates are for
  std::vector<Figure> figures = {};                ///< told below values and estimates
  std::vector<std::string_view> json_keys = {};    ///< of the manifest, for summaries in JSON
  std::vector<std::string_view> json_arrays = {};  ///< likewise
};

/// Said of directions that nobody judged.
inline constexpr std::string_view kNoVerdict =
    "This method has no verdict: how far its directions are off is not known.";

const std::vector<ModelKind>& model_kinds();

/// The kind that a manifest tells. Of any other manifest, one without arrays, scores and values.
const ModelKind& kind_of(const nlohmann::json& manifest);

/// "cca, fda, sir": the names of the kinds of which `is` holds.
std::string kinds_in_words(bool (*is)(const ModelKind& kind));

}  // namespace eigenveil
