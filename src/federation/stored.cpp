#include "eigenveil/federation/stored.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "../release/atomic_file.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

constexpr std::size_t kPartIntegers = std::size_t{1} << 16;

std::string framed(const google::protobuf::Message& message) {
  const std::string bytes = message.SerializeAsString();
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::string result(4, '\0');
  std::memcpy(result.data(), &size, 4);
  return result + bytes;
}

bool read_framed(std::istream& in, google::protobuf::Message& message) {
  std::uint32_t size = 0;
  in.read(reinterpret_cast<char*>(&size), 4);
  if (!in || size > (1U << 30)) return false;
  std::string bytes(size, '\0');
  in.read(bytes.data(), size);
  return in && message.ParseFromString(bytes);
}

Error damaged(const std::string& path) { return bad_input(path + ": the file is damaged"); }

}  // namespace

Status make_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (fs::create_directories(path, failure)) fs::permissions(path, fs::perms::owner_all, failure);
  if (!failure && fs::is_directory(path, failure)) return {};
  return bad_input(fmt::format("{}: the folder cannot be made: {}", path, failure.message()));
}

Result<FolderLock> FolderLock::take(const std::string& folder) {
  FolderLock lock(::open((folder + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (lock.descriptor_ >= 0 && ::flock(lock.descriptor_, LOCK_EX | LOCK_NB) == 0) return lock;
  return bad_input(fmt::format("{}: another process uses this folder", folder));
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status store(const std::string& path, const wire::v1::Ask& ask, const wire::v1::Answer& answer,
             const std::vector<Int128>& values) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  EIGENVEIL_TRY(file->append(framed(ask) + framed(answer)));
  for (std::size_t first = 0; first < values.size(); first += kPartIntegers) {
    std::string bytes;
    append_integers(&values[first], std::min(kPartIntegers, values.size() - first), bytes);
    EIGENVEIL_TRY(file->append(bytes));
  }
  return file->commit();
}

Status store(const std::string& path, const google::protobuf::Message& message) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  EIGENVEIL_TRY(file->append(framed(message)));
  return file->commit();
}

Result<std::optional<Stored>> load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::optional<Stored>();
  Stored stored{{}, {}, path, 0};
  if (!read_framed(in, stored.ask) || !read_framed(in, stored.answer)) return damaged(path);
  stored.offset = static_cast<std::uint64_t>(in.tellg());
  std::error_code failure;
  if (std::filesystem::file_size(path, failure) != stored.offset + 16 * stored.answer.entries()) return damaged(path);
  return std::optional<Stored>(std::move(stored));
}

Result<bool> load(const std::string& path, google::protobuf::Message& message) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  if (!read_framed(in, message)) return damaged(path);
  return true;
}

Status for_each_part(const Stored& stored, const std::function<Status(const std::string& bytes)>& use) {
  std::ifstream in(stored.path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(stored.offset));
  std::string bytes;
  for (std::uint64_t left = stored.answer.entries(); left > 0;) {
    const std::uint64_t count = std::min<std::uint64_t>(left, kPartIntegers);
    bytes.resize(16 * count);
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!in) return damaged(stored.path);
    EIGENVEIL_TRY(use(bytes));
    left -= count;
  }
  return {};
}

}  // namespace eigenveil::federation
