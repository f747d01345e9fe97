// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "eigenveil/data/npz.hpp"
#include "npy.hpp"
#include "text.hpp"
#include "zip_archive.hpp"

namespace eigenveil {
namespace {

/// What a file may take in memory once it is read. Models are noise, which does not pack: one that unpacks to many
/// times its size was made to do so.
class Allowance {
 public:
  explicit Allowance(std::uint64_t file_bytes)
      : left_(std::min(kMost, kAlways + kTimes * std::min(file_bytes, kMost / kTimes))) {}

  Status take(std::uint64_t bytes, const std::string& name) {
    if (bytes > left_)
      return bad_input(
          fmt::format("{}: takes {} bytes of memory, more than a model of this file's size can have", name, bytes));
    left_ -= bytes;
    return {};
  }
  Status take_text(std::uint64_t bytes, const std::string& name) {
    return take(bytes > kMost / kTimes ? kMost + 1 : kTimes * bytes, name);
  }

 private:
  static constexpr std::uint64_t kAlways = std::uint64_t{64} << 20U;
  static constexpr std::uint64_t kTimes = 16;
  static constexpr std::uint64_t kMost = std::uint64_t{8} << 30U;
  std::uint64_t left_;
};

/// Text becomes a tree of values: `[],` is three bytes, and about fifty in memory. No more than what the file's own
/// bytes are allowed, so that a text that was not packed always has room.
Result<std::string> read_text(const data::ZipArchive& archive, std::size_t index, const std::string& name,
                              Allowance& allowance) {
  const auto member = EIGENVEIL_TRY(archive.open_member(index, name));
  EIGENVEIL_TRY(allowance.take_text(member.size, name));
  std::string text(member.size, '\0');
  EIGENVEIL_TRY(data::read_exactly(*member.stream, text.data(), text.size(), "text"));
  EIGENVEIL_TRY(data::expect_end(*member.stream));
  return text;
}

Result<Matrix> read_matrix(const data::NpzArray& array, Allowance& allowance) {
  const auto& stream = array.stream;
  const auto& header = array.header;
  const Eigen::Index rows = header.shape.rows;
  const Eigen::Index columns = header.shape.columns;
  EIGENVEIL_TRY(
      allowance.take(std::uint64_t{header.shape.rows} * header.shape.columns * sizeof(double), stream->name()));
  Matrix values(rows, columns);
  Eigen::Index done = 0;
  // Entry `done` of the file is in column done / rows of a column-major array, in row done / columns of another.
  EIGENVEIL_TRY(data::for_each_number(*stream, header, [&](double value) {
    if (header.fortran_order)
      values.data()[done] = value;
    else
      values(done / columns, done % columns) = value;
    ++done;
  }));
  return values;
}

}  // namespace

Result<NpzContents> read_npz(const std::string& path) {
  const auto file = EIGENVEIL_TRY(data::File::open(path));
  const auto archive = EIGENVEIL_TRY(data::ZipArchive::open(*file));
  Allowance allowance(file->size());
  NpzContents contents;
  for (std::size_t i = 0; i < archive.members().size(); ++i) {
    const std::string& member = archive.members()[i];
    if (auto name = data::array_name(member)) {
      const auto array = EIGENVEIL_TRY(data::open_npz_array(archive, i, path, {.no_columns = true}));
      auto values = EIGENVEIL_TRY(read_matrix(array, allowance));
      contents.arrays.push_back({*std::move(name), std::move(values), array.header.dimensions.size() == 1});
    } else {
      auto text =
          EIGENVEIL_TRY(read_text(archive, i, fmt::format("{} (member {})", path, data::in_quotes(member)), allowance));
      contents.texts.push_back({member, std::move(text)});
    }
  }
  return contents;
}

}  // namespace eigenveil
