// SPDX-License-Identifier: Apache-2.0
#include "model_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace eigenveil {
namespace {

/// A file without names numbers its columns "1", "2", ...
bool has_no_names(const std::vector<std::string>& columns) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] != fmt::format("{}", i + 1)) return false;
  }
  return true;
}

std::vector<std::string> missing_from(const std::vector<std::string>& columns, const std::vector<ColumnSpec>& specs) {
  const std::unordered_set<std::string> present(columns.begin(), columns.end());
  std::vector<std::string> missing;
  for (const auto& spec : specs) {
    if (!present.contains(spec.name)) missing.push_back(spec.name);
  }
  return missing;
}

Error refusal(const std::string& path, std::size_t file_columns, std::size_t model_columns,
              const std::vector<std::string>& missing) {
  constexpr std::size_t kListed = 10;
  std::string list;
  for (std::size_t i = 0; i < std::min(kListed, missing.size()); ++i) {
    list += fmt::format("{}'{}'", i == 0 ? "" : ", ", missing[i]);
  }
  if (missing.size() > kListed) list += fmt::format(" and {} more", missing.size() - kListed);
  return bad_input(fmt::format(
      "{}: its {} columns are not those of the model, which has {}. Missing: {}. Give a file that has these "
      "columns, or one without column names that has exactly {} columns in the model's order.",
      path, file_columns, model_columns, list, model_columns));
}

}  // namespace

SourceOptions options_for_file(const std::vector<ColumnSpec>& specs, const SourceOptions& given) {
  SourceOptions options = given;
  options.categories.clear();
  if (options.header == HeaderRule::kUnstated && given.columns.empty())
    options.header = header_named_by(Schema{specs}.names());
  if (options.header == HeaderRule::kNo && given.columns.empty() && options.fields == 0) options.fields = specs.size();
  return options;
}

Result<SourceOptions> options_for_columns(const std::vector<ColumnSpec>& specs, const std::vector<std::string>& columns,
                                          const std::string& path, const SourceOptions& given) {
  SourceOptions options = given;
  const auto missing = missing_from(columns, specs);
  const bool by_position = columns.size() == specs.size() && (has_no_names(columns) || !given.columns.empty());
  if (!missing.empty() && !by_position) return refusal(path, columns.size(), specs.size(), missing);
  options.columns.clear();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    options.columns.push_back(missing.empty() ? specs[i].name : columns[i]);
    if (const auto* categorical = std::get_if<CategoricalColumn>(&specs[i].kind)) {
      options.categories.push_back({options.columns.back(), categorical->values, categorical->other});
    }
  }
  return options;
}

}  // namespace eigenveil
