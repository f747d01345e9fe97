// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/image_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <mutex>
#include <utility>

#include "array.hpp"
#include "eigenveil/base/parallel.hpp"
#include "format.hpp"
#include "image_file.hpp"
#include "selection.hpp"

namespace eigenveil::data {
namespace {

using Shape = std::optional<std::pair<std::size_t, std::size_t>>;  ///< height and width

/// An image per row.
class ImageFiles final : public ArrayReader {
 public:
  ImageFiles(std::vector<std::string> files, Shape shape, std::size_t pixels, const SourceOptions& options)
      : files_(std::move(files)),
        shape_(shape),
        pixels_(pixels),
        colour_(options.colour),
        bad_rows_(options.bad_rows),
        threads_(std::max(1, options.threads)) {}

  std::size_t rows_at_once(std::size_t most) const override { return std::max(most, std::size_t{4} * threads_); }
  Status read(std::size_t rows, const std::vector<std::size_t>& columns, double* out) override {
    std::mutex mutex;
    std::size_t first_bad = rows;
    Status failure;
    Tickets tickets(rows);
    on_threads(std::min(threads_, static_cast<int>(rows)), [&] {
      std::vector<double> pixels(pixels_ * (colour_ ? 3 : 1));
      for (auto row = tickets.next(); row; row = tickets.next()) {
        auto status = read_image(files_[done_ + *row], shape_, pixels_, colour_, pixels.data());
        double* to = out + *row * columns.size();
        if (!status.ok() && bad_rows_ == BadRows::kMissing) {
          std::fill_n(to, columns.size(), std::numeric_limits<double>::quiet_NaN());
          continue;
        }
        if (status.ok()) {
          for (const std::size_t column : columns) *to++ = pixels[column];
          continue;
        }
        const std::lock_guard lock(mutex);
        if (*row < first_bad) failure = std::move(status);
        first_bad = std::min(first_bad, *row);
      }
    });
    done_ += rows;
    return failure;
  }
  Status skip(std::size_t rows) override {
    done_ += rows;
    return {};
  }
  double progress() const override { return static_cast<double>(done_) / static_cast<double>(files_.size()); }

 private:
  std::vector<std::string> files_;
  Shape shape_;  // none: any that has so many pixels
  std::size_t pixels_;
  bool colour_;
  BadRows bad_rows_;
  int threads_;
  std::size_t done_ = 0;
};

}  // namespace

Result<std::vector<std::string>> image_files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failure;
  bool images = false;
  for (std::filesystem::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    if (at->path().filename().string().starts_with('.')) continue;
    files.push_back(at->path().string());
    images = images || is_image_name(files.back());
  }
  if (failure) return bad_input(fmt::format("{}: this folder cannot be read: {}", folder, failure.message()));
  if (!images) return std::vector<std::string>();
  std::sort(files.begin(), files.end());  // by bytes
  for (const std::string& file : files)
    if (!is_image_name(file))
      return bad_input(
          fmt::format("{}: is not named .png, .jpg or .jpeg, but lies in a folder of images; take it away", file));
  return files;
}

Result<Table> open_images(const std::string& path, std::vector<std::string> files, const SourceOptions& options) {
  const std::size_t channels = options.colour ? 3 : 1;
  Shape shape = options.image_shape;
  // Where an image that cannot be read is a row like any other, none of them may decide what becomes of all others.
  if (!shape && options.bad_rows == BadRows::kMissing && (options.fields == 0 || options.fields % channels != 0))
    return usage_error(
        fmt::format("{}: with `missing` zero-row no file may decide how large the images are: state how many values "
                    "each has with `fields` N",
                    path));
  if (!shape && options.bad_rows == BadRows::kError) {
    const auto first = EIGENVEIL_TRY(image_header(files.front()));
    shape = {first.height, first.width};
  }
  const ArrayShape size{files.size(), shape ? shape->first * shape->second * channels : options.fields};
  if (shape && size.columns > kMostColumns)
    return bad_input(fmt::format("{}: is {}x{} in three colours; an image has at most {} values here: scale it down",
                                 files.front(), shape->first, shape->second, kMostColumns));
  if (size.columns > kMostColumns)
    return usage_error(fmt::format("`fields` {}: an image has at most {} values here", size.columns, kMostColumns));
  if (options.fields != 0 && options.fields != size.columns)
    return bad_input(fmt::format("{}: has {} values, but {} were stated", files.front(), size.columns, options.fields));
  return array_table(path, size,
                     std::make_unique<ImageFiles>(std::move(files), shape, size.columns / channels, options));
}

}  // namespace eigenveil::data

namespace eigenveil {

Result<std::optional<ImageFolder>> image_folder(const std::string& path, const SourceOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return std::optional<ImageFolder>();
  const auto files = EIGENVEIL_TRY(data::image_files_in(path));
  if (files.empty()) return std::optional<ImageFolder>();
  if (options.bad_rows == BadRows::kMissing) {
    if (!options.image_shape)
      return usage_error(fmt::format(
          "{}: with `missing` zero-row no file may decide how large the images are: state it with `image_shape` HxW",
          path));
    return std::optional<ImageFolder>({options.image_shape->first, options.image_shape->second, files.size()});
  }
  std::optional<ImageFolder> folder;
  for (const std::string& file : files) {
    const auto header = EIGENVEIL_TRY(data::image_header(file));
    if (!folder) folder = {header.height, header.width, files.size()};
    if (header.height != folder->height || header.width != folder->width)
      return bad_input(
          fmt::format("{}: is {}x{} (height x width), but {} is {}x{}: all images of a folder must have "
                      "the same size; scale them first",
                      file, header.height, header.width, files.front(), folder->height, folder->width));
  }
  return folder;
}

}  // namespace eigenveil
