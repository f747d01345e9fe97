// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/torch/kept.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <unordered_map>

#include "eigenveil/base/printable.hpp"
#include "eigenveil/data/sha256.hpp"

namespace eigenveil {
namespace {

constexpr std::string_view kMagic = "eigenveil embeddings 1\n";
constexpr std::size_t kKey = 64;  // SHA-256 in hex

// A record: the key, the features, and the SHA-256 of both, so that half a record or a damaged one is none.
class KeptFile {
 public:
  KeptFile(std::string path, std::size_t features) : path_(std::move(path)), features_(features) {}
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;
  ~KeptFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  Status open() {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat found {};
    if (descriptor_ < 0 || fstat(descriptor_, &found) != 0)
      return bad_input(fmt::format("{}: embeddings cannot be kept there ({})", printable(path_), std::strerror(errno)));
    if (!S_ISREG(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 077U) != 0)
      return bad_input(fmt::format(
          "{}: kept embeddings are as private as their rows: expected a file of yours that nobody else may read or "
          "write (mode 600)",
          printable(path_)));
    const std::lock_guard lock(mutex_);
    if (!locked()) return unreadable();
    if (found.st_size == 0 && write(descriptor_, kMagic.data(), kMagic.size()) != static_cast<ssize_t>(kMagic.size()))
      return unreadable();
    Status read = read_index();
    flock(descriptor_, LOCK_UN);
    return read;
  }

  bool find(const std::string& key, double* features) const {
    const std::lock_guard lock(mutex_);
    const auto at = places_.find(key);
    if (at == places_.end()) return false;
    std::string record(record_size(), '\0');
    if (pread(descriptor_, record.data(), record.size(), at->second) != static_cast<ssize_t>(record.size()) ||
        record.compare(0, kKey, key) != 0 || !whole(record))
      return false;
    std::memcpy(features, record.data() + kKey, features_ * sizeof(double));
    return true;
  }

  // All at once, behind whatever others have written; a disk that is full keeps nothing.
  void add(const std::vector<std::pair<std::string, const double*>>& rows) {
    std::string bytes;
    for (const auto& [key, features] : rows) {
      std::string record = key;
      record.append(reinterpret_cast<const char*>(features), features_ * sizeof(double));
      bytes += record + sha256_of(record);
    }
    const std::lock_guard lock(mutex_);
    if (!locked()) return;
    const off_t end = trimmed();
    const bool written =
        end > 0 && write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (written)
      for (std::size_t i = 0; i < rows.size(); ++i)
        places_.emplace(rows[i].first, end + static_cast<off_t>(i * record_size()));
    else if (end > 0)
      static_cast<void>(ftruncate(descriptor_, end) == 0);
    flock(descriptor_, LOCK_UN);
  }

 private:
  std::size_t record_size() const { return 2 * kKey + features_ * sizeof(double); }
  bool whole(const std::string& record) const {
    return sha256_of(record.substr(0, record.size() - kKey)) == record.substr(record.size() - kKey);
  }
  bool locked() const {
    while (flock(descriptor_, LOCK_EX) != 0)
      if (errno != EINTR) return false;
    return true;
  }
  Error unreadable() const {
    return bad_input(
        fmt::format("{}: is no file of kept embeddings; delete it, or name another folder", printable(path_)));
  }
  // Where the next record goes: behind the last whole one. 0: it cannot be told.
  off_t trimmed() const {
    struct stat found {};
    if (fstat(descriptor_, &found) != 0 || found.st_size < static_cast<off_t>(kMagic.size())) return 0;
    const auto size = static_cast<std::size_t>(found.st_size) - kMagic.size();
    const auto end = static_cast<off_t>(kMagic.size() + size / record_size() * record_size());
    return end == found.st_size || ftruncate(descriptor_, end) == 0 ? end : 0;
  }
  Status read_index() {
    std::string head(kMagic.size(), '\0');
    if (pread(descriptor_, head.data(), head.size(), 0) != static_cast<ssize_t>(head.size()) || head != kMagic)
      return unreadable();
    const off_t end = trimmed();
    std::string key(kKey, '\0');
    for (auto at = static_cast<off_t>(kMagic.size()); at < end; at += static_cast<off_t>(record_size()))
      if (pread(descriptor_, key.data(), kKey, at) == static_cast<ssize_t>(kKey)) places_[key] = at;
    return {};
  }

  std::string path_;
  std::size_t features_;
  int descriptor_ = -1;
  std::unordered_map<std::string, off_t> places_;
  mutable std::mutex mutex_;
};

class KeepingEncoder final : public TorchEncoder {
 public:
  KeepingEncoder(std::unique_ptr<TorchEncoder> encoder, std::unique_ptr<KeptFile> file)
      : encoder_(std::move(encoder)), file_(std::move(file)) {}

  std::size_t features() const override { return encoder_->features(); }

  Result<RowMajorMatrix> encode(const Tensor& rows) const override {
    const std::size_t count = rows.rows();
    RowMajorMatrix features(rows.rows(), this->features());
    std::vector<std::size_t> unknown;
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < count; ++i) {
      std::string key = key_of(rows, i);
      auto to = features.row(i);
      if (file_->find(key, to.data()) && to.allFinite()) continue;
      unknown.push_back(i);
      keys.push_back(std::move(key));
    }
    if (unknown.empty()) return features;
    const auto fresh = EIGENVEIL_TRY(encoder_->encode(rows.take(unknown)));
    std::vector<std::pair<std::string, const double*>> found;
    for (std::size_t i = 0; i < unknown.size(); ++i) {
      const auto from = fresh.row(i);
      features.row(unknown[i]) = from;
      found.emplace_back(keys[i], from.data());
    }
    file_->add(found);
    return features;
  }

 private:
  static std::string key_of(const Tensor& rows, std::size_t row) {
    const std::size_t size = rows.row_size();
    const char* from = rows.whole ? reinterpret_cast<const char*>(rows.integers.data() + row * size)
                                  : reinterpret_cast<const char*>(rows.floats.data() + row * size);
    return sha256_of({from, size * (rows.whole ? sizeof(std::int64_t) : sizeof(float))});
  }

  std::unique_ptr<TorchEncoder> encoder_;
  std::unique_ptr<KeptFile> file_;
};

}  // namespace

Result<std::unique_ptr<TorchEncoder>> keeping(std::unique_ptr<TorchEncoder> encoder, const std::string& folder,
                                              const std::string& encoder_sha256, const std::string& method,
                                              const Tensor& like) {
  std::error_code failure;
  if (std::filesystem::create_directories(folder, failure))
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failure);
  std::string shape;
  for (std::size_t i = 1; i < like.shape.size(); ++i) shape += fmt::format("{}{}", i > 1 ? "x" : "", like.shape[i]);
  const auto name = fmt::format("{}-{}-{}.embeddings", encoder_sha256.substr(0, 32), method, shape);
  auto file = std::make_unique<KeptFile>((std::filesystem::path(folder) / name).string(), encoder->features());
  EIGENVEIL_TRY(file->open());
  return std::unique_ptr<TorchEncoder>(std::make_unique<KeepingEncoder>(std::move(encoder), std::move(file)));
}

}  // namespace eigenveil
