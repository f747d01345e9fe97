// SPDX-License-Identifier: Apache-2.0
#include "format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "image_file.hpp"
#include "npy.hpp"

namespace eigenveil::data {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kGzipMagic = "\x1f\x8b"sv;
constexpr std::string_view kHdf5Magic = "\x89HDF\r\n\x1a\n"sv;
constexpr std::uint64_t kMatlabUserBlock = 512;  // MATLAB v7.3 puts HDF5 behind its own header

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool is_idx(std::string_view head) {
  if (head.size() < 4 || head[0] != 0 || head[1] != 0) return false;
  const auto type = static_cast<unsigned char>(head[2]);
  return type >= 0x08 && type <= 0x0e && type != 0x0a && head[3] != 0;
}

std::optional<Format> by_content(std::string_view head) {
  if (head.starts_with(kNpyMagic)) return Format::kNpy;
  if (head.starts_with("PK\3\4"sv) || head.starts_with("PK\5\6"sv)) return Format::kNpz;
  if (head.starts_with(kHdf5Magic)) return Format::kHdf5;
  if (is_idx(head)) return Format::kIdx;
  return std::nullopt;
}

struct Named {
  std::string_view ending;
  std::string_view called;
};

/// A name that promises a binary format which the content does not keep.
Status check_name(const std::string& path, const std::string& name) {
  static constexpr std::array<Named, 8> kBinary = {{{".npy", "NPY"},
                                                    {".npz", "NPZ"},
                                                    {".h5", "HDF5"},
                                                    {".hdf5", "HDF5"},
                                                    {".idx", "IDX"},
                                                    {"-ubyte", "IDX"},
                                                    {".gz", "gzip"},
                                                    {".zip", "zip"}}};
  for (const Named& one : kBinary)
    if (name.ends_with(one.ending))
      return bad_input(
          fmt::format("{}: is named like {} but does not begin like it; the file is damaged, or give it the "
                      "right ending",
                      path, one.called));
  return {};
}

Result<std::string> head_of(ByteStream& stream) {
  std::array<char, 16> bytes{};
  const Result<std::size_t> count = read_up_to(stream, bytes.data(), bytes.size());
  if (!count.ok()) return count.error();
  return std::string(bytes.data(), *count);
}

Result<bool> has_hdf5_behind_user_block(const File& file) {
  std::array<char, kHdf5Magic.size()> bytes{};
  const Result<std::size_t> count = file.read_some(kMatlabUserBlock, bytes.data(), bytes.size());
  if (!count.ok()) return count.error();
  return std::string_view(bytes.data(), *count) == kHdf5Magic;
}

Result<Recognised> recognise_packed(Recognised found) {
  found.gzip = true;
  const std::string& path = found.file->path();
  const Result<std::string> head = head_of(*found.stream());
  if (!head.ok()) return head.error();
  found.format = by_content(*head).value_or(Format::kCsv);
  if (found.format == Format::kNpz || found.format == Format::kHdf5 || head->starts_with(kGzipMagic))
    return bad_input(
        fmt::format("{}: another packed format lies inside the gzip file; unpack it with gunzip first", path));
  std::string name = lower(path);
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (found.format == Format::kCsv) EIGENVEIL_TRY(check_name(path, name));
  return found;
}

}  // namespace

Result<Recognised> recognise(const std::string& path) {
  Result<FilePtr> file = File::open(path, File::Pipes::kRead);
  if (!file.ok()) return file.error();
  Recognised found{*file, Format::kCsv, false};
  const Result<std::string> head = head_of(*found.stream());
  if (!head.ok()) return head.error();
  if (head->starts_with(kGzipMagic)) return recognise_packed(found);
  if (const std::optional<Format> format = by_content(*head)) {
    found.format = *format;
    return found;
  }
  if (is_image_name(path))
    return bad_input(fmt::format("{}: is a single image; images are read from a folder: name that", path));
  const Result<bool> matlab = has_hdf5_behind_user_block(**file);
  if (!matlab.ok()) return matlab.error();
  if (*matlab) {
    found.format = Format::kHdf5;
    return found;
  }
  EIGENVEIL_TRY(check_name(path, lower(path)));
  return found;
}

}  // namespace eigenveil::data

namespace eigenveil {
namespace {

using data::Format;

Result<Table> open_recognised(const data::Recognised& found, const SourceOptions& options) {
  const bool by_offset = found.format == Format::kNpz || found.format == Format::kHdf5;
  if (by_offset && found.file->is_pipe())
    return bad_input(
        fmt::format("{}: is a pipe, but NPZ and HDF5 are not read from their beginning to their end: copy it "
                    "to a file, or send CSV, NPY or IDX",
                    found.file->path()));
  if (!options.member.empty() && !by_offset)
    return usage_error(fmt::format("{}: holds a single table; a member ('{}') can be chosen in NPZ and HDF5 files only",
                                   found.file->path(), options.member));
  switch (found.format) {
    case Format::kNpy:
      return data::open_npy(found);
    case Format::kNpz:
      return data::open_npz(found, options);
    case Format::kIdx:
      return data::open_idx(found);
    case Format::kHdf5:
      return data::open_hdf5(found, options);
    case Format::kCsv:
      break;
  }
  return data::open_csv(found, options);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace

Result<std::optional<std::string>> unstated_first_line(const std::string& path, const SourceOptions& options) {
  if (options.header != HeaderRule::kUnstated || is_pipe(path)) return std::optional<std::string>();
  std::string file = path;
  if (is_folder(path)) {
    const auto first = data::first_part(path);
    if (!first.ok()) return first.error();
    if (!*first) return std::optional<std::string>();
    file = **first;
  }
  const Result<data::Recognised> found = data::recognise(file);
  if (!found.ok()) return found.error();
  if (found->format != Format::kCsv) return std::optional<std::string>();
  std::string line(512, '\0');
  const Result<std::size_t> count = data::read_up_to(*found->stream(), line.data(), line.size());
  if (!count.ok()) return count.error();
  line.resize(std::min(*count, line.find_first_of("\r\n")));
  return std::optional(std::move(line));
}

bool is_plain_text(const std::string& path) {
  if (is_folder(path)) return false;
  const Result<data::Recognised> found = data::recognise(path);
  return found.ok() && found->format == Format::kCsv && !found->gzip;
}

Result<Table> Table::open(const std::string& path, const SourceOptions& options) {
  if (is_folder(path)) return data::open_folder(path, options);
  const auto found = EIGENVEIL_TRY(data::recognise(path));
  if (found.file->is_pipe() && options.share.count > 1)
    return usage_error(fmt::format("{}: is a pipe, which one process reads alone: copy it to a file", path));
  auto table = EIGENVEIL_TRY(open_recognised(found, options));
  const bool cut = options.share.cut_text && found.format == Format::kCsv && !found.gzip;
  return cut ? std::move(table) : data::shared(std::move(table), options.share);
}

bool is_pipe(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_fifo(path, ignored);
}

}  // namespace eigenveil
