// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/rows/chunk_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace eigenveil {

struct ChunkStore::File {
  int descriptor;
  explicit File(int d) : descriptor(d) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(descriptor); }
};

namespace {

std::string default_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/var/tmp";
}

Error spill_error(const char* what, const std::string& folder) {
  return internal_error(
      fmt::format("cannot {} the temporary file for bounded rows in {}: {}; free some space there, name another folder "
                  "in TMPDIR, or raise `memory`",
                  what, folder, std::strerror(errno)));
}

// An unnamed file: nobody can open it, and it is gone when the process is.
int open_unnamed(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return descriptor;
  std::string path = folder + "/eigenveil-XXXXXX";
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

bool write_all(int descriptor, const void* data, std::size_t bytes, std::size_t offset) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::pwrite(descriptor, from, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    from += done;
    offset += done;
    bytes -= done;
  }
  return true;
}

bool read_all(int descriptor, void* data, std::size_t bytes, std::size_t offset) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::pread(descriptor, to, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    to += done;
    offset += done;
    bytes -= done;
  }
  return true;
}

}  // namespace

ChunkStore::ChunkStore(std::size_t columns, Options options)
    : columns_(columns), chunk_rows_(options.chunk_rows), options_(std::move(options)) {
  constexpr std::size_t kChunkBytes = std::size_t{2} << 20;
  if (chunk_rows_ == 0)
    chunk_rows_ = std::clamp<std::size_t>(kChunkBytes / (std::max<std::size_t>(columns_, 1) * 4), 8, 4096);
  if (options_.spill_folder.empty()) options_.spill_folder = default_folder();
}

std::size_t ChunkStore::rows_in(std::size_t chunk) const { return std::min(chunk_rows_, rows_ - chunk * chunk_rows_); }

Status ChunkStore::append(const std::int32_t* rows, std::size_t count) {
  while (count > 0) {
    const std::size_t filled = rows_ % chunk_rows_;
    if (filled == 0) {
      if (rows_ > 0) EIGENVEIL_TRY(flush_open_chunk());
      if (spilled() && count > chunk_rows_) {  // a whole chunk that is not the last one goes as it lies
        if (!write_all(file_->descriptor, rows, chunk_bytes(), rows_ * columns_ * sizeof(std::int32_t)))
          return spill_error("write", options_.spill_folder);
        rows += chunk_rows_ * columns_;
        rows_ += chunk_rows_;
        count -= chunk_rows_;
        continue;
      }
      memory_.emplace_back();
      memory_.back().reserve(chunk_rows_ * columns_);
    }
    const std::size_t taken = std::min(count, chunk_rows_ - filled);
    memory_.back().insert(memory_.back().end(), rows, rows + taken * columns_);
    rows += taken * columns_;
    rows_ += taken;
    count -= taken;
  }
  return {};
}

Status ChunkStore::open_file() {
  const int descriptor = open_unnamed(options_.spill_folder);
  if (descriptor < 0) return spill_error("make", options_.spill_folder);
  file_ = std::make_shared<File>(descriptor);
  return {};
}

Status ChunkStore::allot(std::size_t rows) {
  if (rows_ > 0) return internal_error("a store that has rows cannot be allotted again");
  rows_ = rows;
  if (rows == 0) return {};
  if (chunks() * chunk_bytes() > options_.memory_bytes) {
    EIGENVEIL_TRY(open_file());
    // Zeros, as in memory: what was never put can be read.
    if (::ftruncate(file_->descriptor, static_cast<off_t>(chunks() * chunk_bytes())) != 0)
      return spill_error("enlarge", options_.spill_folder);
    memory_.resize(1);
  } else {
    memory_.resize(chunks());
  }
  return {};
}

// A chunk in memory: of a spilled store that is the last one.
std::int32_t* ChunkStore::held(std::size_t chunk) {
  auto& values = spilled() ? memory_.back() : memory_[chunk];
  if (values.empty()) values.resize(chunk_rows_ * columns_);
  return values.data();
}

Status ChunkStore::put(std::size_t first, const std::int32_t* rows, std::size_t count) {
  while (count > 0) {
    const std::size_t chunk = first / chunk_rows_;
    const std::size_t within = first % chunk_rows_;
    const std::size_t taken = std::min(count, chunk_rows_ - within);
    if (spilled() && chunk + 1 < chunks()) {
      if (!write_all(file_->descriptor, rows, taken * columns_ * sizeof(std::int32_t),
                     chunk * chunk_bytes() + within * columns_ * sizeof(std::int32_t)))
        return spill_error("write", options_.spill_folder);
    } else {
      std::copy_n(rows, taken * columns_, held(chunk) + within * columns_);
    }
    rows += taken * columns_;
    first += taken;
    count -= taken;
  }
  return {};
}

// Before a new chunk is opened: once memory is full, all full chunks move to the file.
Status ChunkStore::flush_open_chunk() {
  if (!spilled() && (memory_.size() + 1) * chunk_bytes() <= options_.memory_bytes) return {};
  if (!spilled()) EIGENVEIL_TRY(open_file());
  std::size_t chunk = rows_ / chunk_rows_ - memory_.size();
  for (auto& values : memory_)
    if (!write_all(file_->descriptor, values.data(), chunk_bytes(), chunk++ * chunk_bytes()))
      return spill_error("write", options_.spill_folder);
  memory_.clear();
  return {};
}

Result<const std::int32_t*> ChunkStore::read(std::size_t chunk, std::vector<std::int32_t>& buffer) const {
  if (!spilled() || (chunk + 1 == chunks() && !memory_.empty())) {
    const auto& values = spilled() ? memory_.back() : memory_[chunk];
    if (!values.empty()) return values.data();
    buffer.assign(chunk_rows_ * columns_, 0);
    return buffer.data();
  }
  buffer.resize(chunk_rows_ * columns_);
  if (!read_all(file_->descriptor, buffer.data(), rows_in(chunk) * columns_ * sizeof(std::int32_t),
                chunk * chunk_bytes()))
    return spill_error("read", options_.spill_folder);
  return buffer.data();
}

Status ChunkStore::write(std::size_t chunk, const std::int32_t* rows) {
  const std::size_t count = rows_in(chunk) * columns_;
  if (!spilled() || chunk + 1 == chunks()) {
    std::copy_n(rows, count, held(chunk));
    return {};
  }
  if (!write_all(file_->descriptor, rows, count * sizeof(std::int32_t), chunk * chunk_bytes()))
    return spill_error("write", options_.spill_folder);
  return {};
}

}  // namespace eigenveil
