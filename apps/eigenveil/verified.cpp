// SPDX-License-Identifier: Apache-2.0
#include "verified.hpp"

#include <fmt/format.h>

#include <limits>

#include "eigenveil/data/sha256.hpp"
#include "eigenveil/release/model.hpp"

namespace eigenveil::app {
namespace {

// What a mark says about the ledger, before what it says about the entry.
std::string ledger_in(const std::string& mark) { return mark.substr(0, mark.find('-')); }

// `own`: the mark of any entry of this ledger, if it has one.
Verified of_another(const std::string& number, const std::string& own, const std::string& mark) {
  const bool known = !own.empty() && !mark.empty(), same = known && ledger_in(own) == ledger_in(mark);
  return {SameFile::kNo,
          fmt::format("its {} is not in this ledger: {}", number,
                      same    ? "this is an OLDER copy of the one that was charged, and lacks what was charged since"
                      : known ? "another ledger was charged"
                              : "this is an OLDER copy of the one that was charged, or another ledger")};
}

// NaN where there is none, which keeps no comparison.
double number_in(const nlohmann::json& manifest, const char* key) {
  const auto found = manifest.find(key);
  return found != manifest.end() && found->is_number() ? found->get<double>()
                                                       : std::numeric_limits<double>::quiet_NaN();
}

// The answers that were paid for, between the same neighbours and for the same unit, at an epsilon that they keep.
bool promises_what_was_charged(const nlohmann::json& manifest, const PrivacyPlan& plan) {
  if (manifest.value("events", nlohmann::json()) != events_to_json(plan.events)) return false;
  if (manifest.value("adjacency", "") != name(plan.adjacency)) return false;
  if (manifest.contains("person") != !plan.person.empty()) return false;
  constexpr double kRounding = 1 + 1e-9;
  const auto delta = Delta::of(number_in(manifest, "delta"));
  if (!delta) return false;
  const auto epsilon = epsilon_of(plan.events, *delta);
  const char* const stated = manifest.contains("calibration") ? "certified_epsilon" : "epsilon";
  return epsilon.ok() && *epsilon <= number_in(manifest, stated) * kRounding;
}

// An entry decides by the hash that it has, and whatever the model says of itself never makes a yes.
Verified verified(const nlohmann::json& manifest, const std::string& own, const std::optional<Ledger::Entry>& entry) {
  const nlohmann::json& named = manifest["ledger"];
  const std::string number = fmt::format("entry {}", named["entry"].get<std::int64_t>());
  const std::string mark = named.value("mark", "");
  if (!entry || (!mark.empty() && entry->record.mark != mark)) return of_another(number, own, mark);
  const std::string whose = fmt::format("{} of '{}'", number, entry->dataset);
  if (!entry->record.model.empty())
    return {SameFile::kNo,
            fmt::format("is NOT the file that was written for {}: it was changed, or made from that", whose)};
  if (!promises_what_was_charged(manifest, entry->record.plan))
    return {SameFile::kNo, fmt::format("promises something else than was charged for {}", whose)};
  return {
      SameFile::kUnknown,
      fmt::format("names {}, and it cannot be told whether it is its file: the ledger took note of none (nothing was "
                  "saved, or the run ended before)",
                  whose)};
}

}  // namespace

nlohmann::json to_json(SameFile same) {
  return same == SameFile::kUnknown ? nlohmann::json() : nlohmann::json(same == SameFile::kYes);
}

Result<Verified> verify_model(Ledger& ledger, const std::string& path) {
  const auto sha256 = EIGENVEIL_TRY(sha256_of_files({path}));
  const auto statuses = EIGENVEIL_TRY(ledger.list());
  std::string own;
  for (const DatasetStatus& status : statuses)
    for (const ReservationRecord& record : status.reservations) {
      if (record.model == sha256)
        return Verified{SameFile::kYes, fmt::format("is the file that was written for entry {} of '{}'", record.id,
                                                    status.budget.name)};
      own = record.mark;
    }
  const auto model = EIGENVEIL_TRY(read_model(path));
  const auto named = model.manifest.find("ledger");
  if (named == model.manifest.end() || !named->contains("entry"))
    return Verified{SameFile::kNo, "names no entry of a ledger: none was charged, its noise was seeded, or sites were"};
  const auto entry = EIGENVEIL_TRY(ledger.find_entry((*named)["entry"].get<std::int64_t>()));
  return verified(model.manifest, own, entry);
}

}  // namespace eigenveil::app
