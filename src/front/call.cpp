// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <fmt/format.h>

#include <cctype>

namespace eigenveil::front {
namespace {

// Where a flag of the program and an option of a call have different names.
std::string option_of(const std::string& flag) {
  if (flag == "range") return "ranges";
  if (flag == "no-ledger") return "Ledger::none()";
  if (flag == "matrix-a") return "A";
  if (flag == "matrix-b") return "B";
  std::string name = flag;
  for (char& letter : name)
    if (letter == '-') letter = '_';
  return name;
}

}  // namespace

Result<std::size_t> count(Eigen::Index value, const char* option) {
  if (value >= 1) return static_cast<std::size_t>(value);
  return usage_error(fmt::format("{} must be a whole number from 1, but is {}", option, value));
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
  if (ledger.used && ledger.path.empty()) return usage_error("ledger: the path of its file is empty");
  auto epsilon = EIGENVEIL_TRY(Epsilon::of(spending.epsilon.value()));
  auto delta = EIGENVEIL_TRY(Delta::of(spending.delta.value()));
  return PrivacyOptions{.epsilon = std::move(epsilon),
                        .delta = std::move(delta),
                        .adjacency = spending.adjacency,
                        .accounting = spending.accounting,
                        .use_ledger = ledger.used,
                        .ledger = ledger.path,
                        .dataset = ledger.dataset};
}

// The library names options as the program does.
Error spoken(Error error) {
  std::string said;
  const std::string& text = error.message;
  for (std::size_t i = 0; i < text.size();) {
    const bool begins = i == 0 || text[i - 1] == ' ' || text[i - 1] == '(';
    std::size_t end = i + 2;
    while (end < text.size() &&
           (std::islower(static_cast<unsigned char>(text[end])) != 0 || (text[end] == '-' && end > i + 2)))
      ++end;
    if (begins && text.compare(i, 2, "--") == 0 && end > i + 2) {
      said += option_of(text.substr(i + 2, end - i - 2));
      i = end;
    } else {
      said += text[i++];
    }
  }
  error.message = std::move(said);
  return error;
}

Result<Model> read_kind(const std::string& path, const std::string& kind) {
  auto model = EIGENVEIL_TRY(read_model(path));
  const std::string found = model.manifest["model"];
  if (found == kind) return model;
  return usage_error(fmt::format("{}: is a model of kind '{}', not '{}'", path, found, kind));
}

}  // namespace eigenveil::front
