// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "format.hpp"
#include "unread_rows.hpp"

namespace eigenveil::data {
namespace {

Result<std::vector<std::string>> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failure;
  for (std::filesystem::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with('.') || name.starts_with('_')) continue;  // what tools leave there: .crc, _SUCCESS
    if (!at->is_regular_file(failure))
      return bad_input(fmt::format(
          "{}: has '{}' in it, which is no regular file; a folder of part files has files only", folder, name));
    files.push_back(at->path().string());
  }
  if (failure) return bad_input(fmt::format("{}: this folder cannot be read: {}", folder, failure.message()));
  if (files.empty())
    return bad_input(fmt::format("{}: is a directory without data files; name a file, or a folder of files", folder));
  std::sort(files.begin(), files.end());
  return files;
}

/// Part files one after the other.
class FolderSource final : public RowSource {
 public:
  /// `first`: the model, if it is among the files.
  FolderSource(std::vector<std::string> files, std::string model, SourceOptions options,
               std::vector<std::string> columns, std::unique_ptr<RowSource> first)
      : files_(std::move(files)),
        model_(std::move(model)),
        options_(std::move(options)),
        names_(std::move(columns)),
        current_(std::move(first)) {}

  const std::vector<std::string>& columns() const override { return names_; }
  std::optional<std::size_t> rows_announced() const override { return std::nullopt; }
  std::string part() const override { return current_ ? files_[at_] : std::string(); }
  double progress() const override {
    if (at_ == files_.size()) return 1.0;
    const double within = current_ ? current_->progress() : 0.0;
    return (static_cast<double>(at_) + within) / static_cast<double>(files_.size());
  }

  Status next(RawBatch& batch, std::size_t max_rows) override {
    batch.rows = 0;
    batch.values.clear();
    while (at_ < files_.size()) {
      if (!current_) EIGENVEIL_TRY(open());
      EIGENVEIL_TRY(current_->next(batch, max_rows));
      if (batch.rows > 0) return {};
      current_.reset();
      ++at_;
    }
    return {};
  }

 private:
  Status open() {
    auto source = open_source(files_[at_], options_);
    if (!source.ok()) return source.error();
    if ((*source)->columns() != names_)
      return bad_input(
          fmt::format("{}: has other columns than {}; all files of a folder must have the same ones, in the same order",
                      files_[at_], model_));
    current_ = *std::move(source);
    return {};
  }

  std::vector<std::string> files_;
  std::string model_;  ///< the file whose columns all must have
  SourceOptions options_;
  std::vector<std::string> names_;
  std::size_t at_ = 0;
  std::unique_ptr<RowSource> current_;
};

}  // namespace

Result<std::optional<std::string>> first_part(const std::string& folder) {
  const auto images = image_files_in(folder);
  if (!images.ok()) return images.error();
  if (!images->empty()) return std::optional<std::string>();
  const auto files = files_in(folder);
  if (!files.ok()) return files.error();
  return std::optional(files->front());
}

Result<Table> open_folder(const std::string& path, const SourceOptions& options) {
  auto images = EIGENVEIL_TRY(image_files_in(path));
  if (!images.empty()) return shared(EIGENVEIL_TRY(open_images(path, std::move(images), options)), options.share);
  const auto files = EIGENVEIL_TRY(files_in(path));
  SourceOptions whole = options;
  whole.share = {};
  auto first = EIGENVEIL_TRY(Table::open(files.front(), whole));
  std::vector<std::string> own;
  for (std::size_t i = options.share.index; i < files.size(); i += options.share.count) own.push_back(files[i]);
  const std::string name = first.name();
  FileColumns columns = first.columns();
  return table_of(
      name, std::move(columns),
      [first = std::move(first), own = std::move(own), model = files.front(), whole](
          const Selection& selection, const SourceOptions& chosen) mutable -> Result<std::unique_ptr<RowSource>> {
        whole.columns = chosen.columns;
        whole.categories = chosen.categories;
        whole.person = chosen.person;
        whole.bad_rows = chosen.bad_rows;
        std::unique_ptr<RowSource> rows;
        if (!own.empty() && own.front() == model) rows = EIGENVEIL_TRY(first.take(whole));
        return Result<std::unique_ptr<RowSource>>(std::make_unique<FolderSource>(
            std::move(own), std::move(model), std::move(whole), selection.names, std::move(rows)));
      });
}

}  // namespace eigenveil::data
