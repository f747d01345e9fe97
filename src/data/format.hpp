// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "eigenveil/data/table.hpp"
#include "stream.hpp"

namespace eigenveil::data {

enum class Format : std::uint8_t { kCsv, kNpy, kNpz, kIdx, kHdf5 };

/// An open file and what its first bytes (then its name) say that it is.
struct Recognised {
  FilePtr file;
  Format format = Format::kCsv;
  bool gzip = false;

  std::unique_ptr<ByteStream> stream() const { return gzip ? gzip_stream(file) : file_stream(file); }
  /// Whether its bytes can only be read one after the other, and their number is not known.
  bool in_order() const { return gzip || file->is_pipe(); }
};

Result<Recognised> recognise(const std::string& path);

// One opener per format, each in the file of that name.
Result<Table> open_csv(const Recognised& from, const SourceOptions& options);
Result<Table> open_npy(const Recognised& from);
Result<Table> open_npz(const Recognised& from, const SourceOptions& options);
Result<Table> open_idx(const Recognised& from);
Result<Table> open_hdf5(const Recognised& from, const SourceOptions& options);
Result<Table> open_folder(const std::string& path, const SourceOptions& options);

/// The first of a folder's part files; none: it is a folder of images.
Result<std::optional<std::string>> first_part(const std::string& folder);

/// The files of a folder of PNG and JPEG images, in the order of their names; none: it is no such folder.
Result<std::vector<std::string>> image_files_in(const std::string& folder);
Result<Table> open_images(const std::string& path, std::vector<std::string> files, const SourceOptions& options);

/// A table of the rows of a share.
Table shared(Table table, const Share& share);
/// The rows of a share: a range where the number of rows is known, every count-th block of rows otherwise.
std::unique_ptr<RowSource> share_of(std::unique_ptr<RowSource> source, const Share& share);
/// The bytes of a share of a text file, which begin and end behind a line feed.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
Result<ByteRange> lines_of(const File& file, const Share& share);

}  // namespace eigenveil::data
