// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace eigenveil::front {

Result<std::size_t> count(Eigen::Index value, const char* option) {
  if (value >= 1) return value;
  return usage_error(fmt::format("`{}` must be a whole number from 1, but is {}", option, value));
}

Result<std::optional<std::size_t>> count(std::optional<Eigen::Index> value, const char* option) {
  if (!value) return std::optional<std::size_t>();
  return std::optional(EIGENVEIL_TRY(count(*value, option)));
}

std::vector<std::string> range_texts(const std::vector<ColumnRange>& ranges) {
  std::vector<std::string> texts;
  for (const ColumnRange& range : ranges)
    texts.push_back(fmt::format("{}{}{}:{}", range.column, range.column.empty() ? "" : "=", range.lower, range.upper));
  return texts;
}

Result<PrivacyOptions> privacy_of(const Spending& spending) {
  const LedgerChoice& ledger = spending.ledger.value();
  if (ledger.used && ledger.path.empty()) return usage_error("`ledger`: the path of its file is empty");
  // Before the file would be made: a name that was mistyped would be an empty ledger.
  std::error_code ignored;
  if (ledger.used && !ledger.dataset.empty() && !std::filesystem::exists(ledger.path, ignored))
    return bad_input(
        fmt::format("there is no ledger at '{}': give the right file, or create the data set '{}' in it first",
                    ledger.path, ledger.dataset));
  auto epsilon = EIGENVEIL_TRY(Epsilon::of(spending.epsilon.value()));
  auto delta = EIGENVEIL_TRY(Delta::of(spending.delta.value()));
  return PrivacyOptions{.epsilon = std::move(epsilon),
                        .delta = std::move(delta),
                        .adjacency = spending.adjacency,
                        .accounting = spending.accounting,
                        .use_ledger = ledger.used,
                        .ledger = ledger.path,
                        .dataset = ledger.dataset,
                        .auto_delta = spending.auto_delta};
}

void Watch::step(std::string_view name) {
  if (observer_ != nullptr) observer_->step(name);
  // Whoever stops a call when it is told that the budget is reserved stops it before.
  charged_ = charged_ || name == "reserving budget";
  asked_ += name.starts_with("asking: ") ? 1 : 0;
}

void Watch::progress(double share) {
  if (observer_ != nullptr) observer_->progress(share);
}

void Watch::concern(std::string_view words) {
  if (observer_ != nullptr) observer_->concern(words);
}

void Watch::remark(std::string_view words) {
  if (observer_ != nullptr) observer_->remark(words);
}

Error Watch::stopped() const {
  if (!charged_) return internal_error("stopped: nothing was charged");
  if (asked_ == 0)
    return internal_error(
        "stopped after the charge and before the first answer: a ledger keeps it as unused and can give it back");
  return internal_error("stopped after the charge: all of it stays spent, since an answer may have been computed");
}

Result<Model> read_kind(const std::string& path, const std::string& kind) {
  auto model = EIGENVEIL_TRY(read_model(path));
  const std::string found = model.manifest["model"];
  if (found == kind) return model;
  return usage_error(fmt::format("{}: is a model of kind '{}', not '{}'", path, found, kind));
}

}  // namespace eigenveil::front
