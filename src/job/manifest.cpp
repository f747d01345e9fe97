// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../release/manifest_types.hpp"
#include "eigenveil/base/figures.hpp"
#include "eigenveil/base/version.hpp"
#include "eigenveil/estimators/pca/model_sensitivity.hpp"
#include "eigenveil/papers/as_printed.hpp"

namespace eigenveil {
namespace {

const char* name(Center center) {
  return center == Center::kNone      ? "none"
         : center == Center::kPrivate ? "private"
         : center == Center::kMean    ? "mean"
                                      : "range";
}

// Who paid, and whether anything limits what is paid. Each site of a federation has a ledger of its own.
void add_ledger(nlohmann::json& manifest, const PrivacyOptions& privacy, const Charge& charge) {
  nlohmann::json& ledger = manifest["ledger"] = {{"used", privacy.use_ledger}};
  // The name of a data set is the analyst's own; the path of a file is nobody else's business.
  if (charge.limited || !privacy.dataset.empty()) ledger["dataset"] = charge.dataset;
  if (charge.federation) return;
  ledger["limited"] = charge.limited;
  if (const auto& entry = charge.entry) {
    ledger.update(
        {{"entry", entry->id}, {"mark", entry->mark}, {"generation", entry->generation}, {"unit", entry->unit}});
    if (entry->limit)
      ledger.update({{"epsilon", entry->limit->epsilon.value()},
                     {"delta", entry->limit->delta.value()},
                     {"spent_before", entry->spent_before},
                     {"spent_after", entry->spent_after},
                     {"remaining", entry->remaining}});
    manifest["released"] = entry->created.substr(0, entry->created.find('T'));
    manifest["purpose"] = entry->purpose;
  }
  auto& warnings = manifest["warnings"];
  if (charge.limited && privacy.dataset.empty())
    warnings.push_back(fmt::format("Charged to the data set '{}', which this data belongs to.", charge.dataset));
  if (!charge.limited)
    warnings.push_back(fmt::format("This release is outside any budget: no budget limits releases of this data{}.",
                                   privacy.use_ledger ? ", they are only recorded" : ", and no ledger counts them"));
}

}  // namespace

std::string_view name(MissingPolicy missing) {
  switch (missing) {
    case MissingPolicy::kError:
      return "error";
    case MissingPolicy::kZeroRow:
      return "zero-row";
    case MissingPolicy::kValue:
      return "value";
    case MissingPolicy::kCategory:
      return "category";
  }
  return "";
}

nlohmann::json row_options_json(const RowOptions& rows, double row_bound) {
  return {{"center", name(rows.center)},
          {"missing", name(rows.missing)},
          {"row_bound", row_bound},
          {"row_bound_kind", finds_row_bound(rows) ? "private" : "public"}};
}

namespace {

// Spare rounds count whether or not a site was lost.
std::vector<PrivacyEvent> charged_events(const Charge& charge) {
  std::vector<PrivacyEvent> events = charge.plan.events;
  events.insert(events.end(), charge.spares.begin(), charge.spares.end());
  return events;
}

}  // namespace

nlohmann::json common_manifest(std::string_view model, std::string_view method, nlohmann::json options,
                               const PrivacyOptions& privacy, const Charge& charge, std::optional<double> rows) {
  nlohmann::json manifest = {
      {"eigenveil", version()},
      {"model", model},
      {"method", method},
      {"options", std::move(options)},
      {"adjacency", name(privacy.adjacency)},
      {"epsilon", privacy.epsilon.value()},
      {"delta", privacy.delta.value()},
      {"certified_epsilon", charge.certified_epsilon},
      {"accounting", privacy.accounting == Accounting::kTight ? "tight" : "zcdp"},
      {"events", events_to_json(charged_events(charge))},
      {"guarantee", guarantee_in_words(privacy, charge)},
      {"private", charge.secure},
      {"warnings", nlohmann::json::array()},
  };
  add_ledger(manifest, privacy, charge);
  if (charge.federation) manifest["federation"] = *charge.federation;
  if (rows)
    manifest[privacy.adjacency == Adjacency::kReplaceOne ? "rows" : "noisy_rows"] = static_cast<long long>(*rows);
  if (privacy.calibration == Calibration::kPaper) papers::stamp(manifest, privacy.epsilon, charge.certified_epsilon);
  manifest["guarantee_kind"] = charge.plan.model_based ? "model" : "strict";
  if (!charge.secure) manifest["warnings"].push_back("The noise was seeded: this release is NOT PRIVATE.");
  return manifest;
}

nlohmann::json common_manifest(const Estimator& estimator, nlohmann::json options, const PrivacyOptions& privacy,
                               const Charge& charge, std::optional<double> rows) {
  return common_manifest(estimator.name(), estimator.method(), std::move(options), privacy, charge, rows);
}

void add_said(nlohmann::json& manifest, Fit fit) {
  manifest.update(fit.facts);
  if (!fit.beside.empty()) manifest["guarantee"] = manifest["guarantee"].get<std::string>() + " " + fit.beside;
  for (std::string& warning : fit.warnings) manifest["warnings"].push_back(std::move(warning));
}

Result<nlohmann::json> promises_of(const nlohmann::json& manifest, const std::string& path, const std::string& sha256,
                                   bool people) {
  const auto number = [&](const char* key) {
    const auto found = manifest.find(key);
    return found != manifest.end() && found->is_number() ? *found : nlohmann::json();
  };
  if (manifest.value("private", false) != true)
    return bad_input(fmt::format("'{}' is NOT PRIVATE, and what begins with it would not be either", path));
  if (manifest.value("guarantee_kind", "") != "strict")
    return bad_input(fmt::format(
        "'{}' is private under a model of its rows alone, and what begins with it would promise no more", path));
  // With a paper's noise: what that was certified for.
  const nlohmann::json epsilon = number(manifest.contains("calibration") ? "certified_epsilon" : "epsilon");
  const std::string adjacency = manifest.value("adjacency", "");
  if (epsilon.is_null() || number("delta").is_null() || adjacency.empty())
    return bad_input(
        fmt::format("'{}' does not say what it promises: its manifest has no epsilon, delta or adjacency", path));
  const bool of_people = manifest.contains("person");
  if (people && !of_people)
    return bad_input(fmt::format(
        "'{}' promises something for one row, and this release for one person: it would promise them less", path));
  nlohmann::json promises = nlohmann::json::array();
  promises.push_back({{"sha256", sha256},
                      {"epsilon", epsilon},
                      {"delta", number("delta")},
                      {"adjacency", adjacency},
                      {"unit", of_people ? "person" : "row"}});
  const auto before = manifest.value("start", nlohmann::json::array());
  promises.insert(promises.end(), before.begin(), before.end());
  return promises;
}

Result<nlohmann::json> promises_in(const std::optional<std::string>& manifest, const std::string& path,
                                   const std::string& sha256, bool people) {
  if (!manifest) return nlohmann::json::array();
  return promises_of(EIGENVEIL_TRY(manifest_from_text(*manifest, path)), path, sha256, people);
}

Status add_promises(nlohmann::json& promises, const nlohmann::json& more) {
  for (const auto& promise : more)
    if (std::find(promises.begin(), promises.end(), promise) == promises.end()) promises.push_back(promise);
  // What will be written has this key whatever comes of the fit: whoever reads it is asked before it is paid for.
  const auto key = nlohmann::json{{"start", promises}};
  if (manifest_from_text(key.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "")) return {};
  return bad_input(fmt::format(
      "what this release would use is at the end of {} releases that used each other, or says what nobody could read: "
      "nothing can be made with it",
      promises.size()));
}

std::string weight_in_words(const PersonOptions& person) {
  return person.least_rows == 1 ? "equal" : fmt::format("rows:{}", person.least_rows);
}

void add_person(nlohmann::json& manifest, const PersonOptions& person, const std::string& column,
                std::optional<double> people) {
  const bool alike = person.least_rows == 1;
  if (person.stated) {
    manifest["person"] = {
        {"column", column},
        {"estimand",
         "The matrices are as they were given, and how much a person counts in them is theirs to say. The "
         "two sensitivities were stated as those of a person, with all their rows."}};
    manifest["people"] = manifest["rows"];
    manifest.erase("rows");
    return;
  }
  nlohmann::json& said = manifest["person"] = {
      {"column", column},
      {"weight", weight_in_words(person)},
      {"missing", person.missing_is_own ? "own" : "error"},
      {"estimand",
       alike ? "Every person counts alike: a row of a person who has m of them weighs 1 / m. If the number of rows "
               "goes with the values, this is another question than what an average row is like."
             : fmt::format("Every row counts, up to {} of a person: a row of a person who has m of them weighs 1 / "
                           "max({}, m). If the number of rows goes with the values, this is another question than what "
                           "an average person is like.",
                           person.least_rows, person.least_rows)}};
  if (person.most_rows) said["max_rows"] = *person.most_rows;
  if (person.missing_is_own)
    manifest["warnings"].push_back(
        "A row without an id counts as a person of its own: somebody with several such rows is protected as several "
        "people.");
  const bool exact = manifest.contains("rows") && alike;
  manifest.erase("rows");
  manifest.erase("noisy_rows");
  if (people) manifest[exact ? "people" : "noisy_people"] = static_cast<long long>(*people);
}

void add_columns(nlohmann::json& manifest, const ColumnMap& map) {
  manifest["features"] = map.feature_names();
  manifest["columns"] = columns_to_json(map.specs());
}

std::string guarantee_in_words(const PrivacyOptions& privacy, const Charge& charge) {
  if (!charge.secure)
    return "NOT PRIVATE: the noise was made from a given seed, and whoever knows the seed can subtract it. For tests "
           "and demonstrations only.";
  const bool paper = privacy.calibration == Calibration::kPaper;
  const double epsilon = paper ? charge.certified_epsilon : privacy.epsilon.value();
  const bool model = charge.plan.model_based;
  const bool people = !charge.plan.person.empty();
  if (people)
    return fmt::format(
               "This release is ({:.6g}, {})-differentially private when {}. Even someone who knows all rows of "
               "everybody else and all of this software can change their odds about any one person by at most a factor "
               "e^{:.6g} = {:.3g} through it, except with probability {}. It holds for every data set and however "
               "many "
               "rows a person has.",
               epsilon, plain(privacy.delta.value()),
               privacy.adjacency == Adjacency::kReplaceOne
                   ? "one person, with all their rows, is replaced by any other with any number of rows; the number of "
                     "people is public, that of rows is private"
                   : "one person, with all their rows, is added or removed; the numbers of people and of rows are "
                     "private",
               epsilon, std::exp(epsilon), chance(privacy.delta.value())) +
           (charge.federation ? " " + charge.federation->value("condition", "") : "");
  const std::string words = fmt::format(
      "This release is ({:.6g}, {})-differentially private when {}. Even someone who knows every other row and "
      "all of this software can change their odds about any one row by at most a factor e^{:.6g} = {:.3g} through it, "
      "except with probability {}. ",
      epsilon, plain(privacy.delta.value()),
      model ? "one row is replaced by an independent copy; the number of rows is public"
      : privacy.adjacency == Adjacency::kReplaceOne ? "one row is replaced by any other; the number of rows is public"
                                                    : "one row is added or removed; the number of rows is private",
      epsilon, std::exp(epsilon), chance(privacy.delta.value()));
  return words +
         (model ? fmt::format("This is a model-based guarantee: for rows that are independent draws of the "
                              "spiked model, and neighbours that replace one by an independent copy, the "
                              "sensitivity bound holds with probability at least {:g} (confidence {:g}). For "
                              "other rows or neighbours nothing is promised.",
                              1 - kModelFailure, kModelConfidence)
                : "It holds for every data set; it does not depend on how the rows were drawn.") +
         (charge.federation ? " " + charge.federation->value("condition", "") : "");
}

}  // namespace eigenveil
