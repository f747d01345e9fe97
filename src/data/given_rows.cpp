// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/given_rows.hpp"

#include <fmt/format.h>

#include "columnar_source.hpp"

namespace eigenveil {
namespace {

data::FileColumns as_of_file(const std::vector<std::string>& names) { return {names.size(), names}; }

// A header, a delimiter and the like are facts about a file.
Status check_options(const SourceOptions& options, const std::string& name) {
  const char* stated = options.header != HeaderRule::kUnstated ? "`header`"
                       : options.delimiter != '\0'             ? "`delimiter`"
                       : options.fields != 0                   ? "`fields`"
                       : !options.member.empty()               ? "`member`"
                                                               : nullptr;
  if (stated == nullptr) return {};
  return usage_error(fmt::format("{} describes a file, but these are {}: leave it out", stated, name));
}

}  // namespace

RowFiles RowFiles::unknown() {
  RowFiles files;
  files.told = false;
  return files;
}

void RowFiles::add(const RowFiles& more) {
  paths.insert(paths.end(), more.paths.begin(), more.paths.end());
  told = told && more.told;
}

RowFiles files_of(const std::shared_ptr<GivenRows>& given, const std::string& path) {
  if (given) return given->files();
  return path.empty() ? RowFiles() : RowFiles({path});
}

GivenRows::GivenRows(std::unique_ptr<RowSource> source, std::string name, RowFiles files)
    : source_(std::move(source)), name_(std::move(name)), files_(std::move(files)) {
  if (source_) columns_ = source_->columns();
}

Result<std::vector<std::string>> GivenRows::column_names(const std::vector<std::string>& columns) const {
  return EIGENVEIL_TRY(data::select_columns(name_, as_of_file(columns_), {.columns = columns})).names;
}

Result<std::unique_ptr<RowSource>> GivenRows::take(const SourceOptions& options) {
  EIGENVEIL_TRY(check_options(options, name_));
  if (columns_.empty()) return usage_error(fmt::format("{}: there are no columns", name_));
  if (!source_) return usage_error(fmt::format("{} are read once, and were read already: give them again", name_));
  auto selection = EIGENVEIL_TRY(data::select_columns(name_, as_of_file(columns_), options));
  return data::chosen_from(std::move(source_), columns_.size(), std::move(selection), options.bad_rows, name_);
}

}  // namespace eigenveil
