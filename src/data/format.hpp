#pragma once

#include <memory>

#include "eigenveil/data/source.hpp"
#include "stream.hpp"

namespace eigenveil::data {

enum class Format : std::uint8_t { kCsv, kNpy, kNpz, kIdx, kHdf5 };

/// An open file and what its first bytes (then its name) say that it is.
struct Recognised {
  FilePtr file;
  Format format = Format::kCsv;
  bool gzip = false;

  std::unique_ptr<ByteStream> stream() const { return gzip ? gzip_stream(file) : file_stream(file); }
};

Result<Recognised> recognise(const std::string& path);

// One opener a format, each in the file of that name.
Result<std::unique_ptr<RowSource>> open_csv(const Recognised& from, const SourceOptions& options);
Result<std::unique_ptr<RowSource>> open_npy(const Recognised& from, const SourceOptions& options);
Result<std::unique_ptr<RowSource>> open_npz(const Recognised& from, const SourceOptions& options);
Result<std::unique_ptr<RowSource>> open_idx(const Recognised& from, const SourceOptions& options);
Result<std::unique_ptr<RowSource>> open_hdf5(const Recognised& from, const SourceOptions& options);

}  // namespace eigenveil::data
