// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/federation/stored.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/federation/chain.hpp"
#include "eigenveil/wire/convert.hpp"

namespace eigenveil::federation {
namespace {

constexpr std::size_t kPartBytes = std::size_t{1} << 20;

template <class Use>
Status for_each_part(const std::vector<Int128>& values, bool narrow, const Use& use) {
  const std::size_t most = kPartBytes / integer_bytes(narrow);
  for (std::size_t first = 0; first < values.size(); first += most) {
    std::string bytes;
    append_integers(&values[first], std::min(most, values.size() - first), narrow, bytes);
    EIGENVEIL_TRY(use(std::move(bytes)));
  }
  return {};
}

std::string framed(const google::protobuf::Message& message) {
  const std::string bytes = canonical_bytes(message);
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

Error cannot_write(const std::string& path) {
  return internal_error(fmt::format("{}: could not be written ({})", path, std::strerror(errno)));
}

bool read_at(int file, std::uint64_t at, void* into, std::size_t size) {
  auto* next = static_cast<char*>(into);
  while (size > 0) {
    const ssize_t got = ::pread(file, next, size, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    at += static_cast<std::uint64_t>(got);
    size -= got;
  }
  return true;
}

bool write_at(int file, std::uint64_t at, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += static_cast<std::uint64_t>(written);
    bytes.remove_prefix(written);
  }
  return true;
}

bool zeros(int file, std::uint64_t from, std::uint64_t to) {
  for (std::string bytes; from < to; from += bytes.size()) {
    bytes.resize(std::min<std::uint64_t>(to - from, kPartBytes));
    if (!read_at(file, from, bytes.data(), bytes.size()) || bytes.find_first_not_of('\0') != std::string::npos)
      return false;
  }
  return true;
}

using Checksum = std::uint32_t;
Checksum checksum(Checksum before, const void* bytes, std::size_t size) {
  if (size == 0) return before;  // crc32_z begins anew where there is no address
  return static_cast<Checksum>(::crc32_z(before, static_cast<const Bytef*>(bytes), size));
}

// A record: this, ask, answer, integers, and a checksum of all of it.
struct Head {
  std::uint64_t length;  // of ask, answer and integers
  std::uint64_t check;   // of the length and of where the record is, so that a length can be trusted
};
std::uint64_t check_of(std::uint64_t length, std::uint64_t at) {
  const std::array<std::uint64_t, 2> known = {length, at};
  return (std::uint64_t{1} << 32) | checksum(0, known.data(), sizeof known);  // never zero
}

}  // namespace

Status make_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (fs::create_directories(path, failure)) fs::permissions(path, fs::perms::owner_all, failure);
  if (!failure && fs::is_directory(path, failure)) return {};
  return bad_input(fmt::format("{}: the folder cannot be made: {}", path, failure.message()));
}

Result<AnswerLog> AnswerLog::open(const std::string& path) {
  AnswerLog log(path, ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (log.file_ < 0) return bad_input(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  if (::flock(log.file_, LOCK_EX | LOCK_NB) != 0)
    return bad_input(fmt::format("{}: another process uses this file", path));
  EIGENVEIL_TRY(log.scan());
  EIGENVEIL_TRY(sync_folder_of(path));
  return log;
}

AnswerLog::~AnswerLog() {
  if (file_ >= 0) ::close(file_);
}

Status AnswerLog::scan() {
  const auto size = static_cast<std::uint64_t>(::lseek(file_, 0, SEEK_END));
  std::string bytes;
  while (starts_.back() < size) {
    const std::uint64_t at = starts_.back();
    Head head{};
    if (size - at < sizeof head) break;
    if (!read_at(file_, at, &head, sizeof head)) return damaged(path_);
    if (head.length == 0 && head.check == 0 && zeros(file_, at, size)) break;  // space that was never filled
    if (head.check != check_of(head.length, at)) return damaged(path_);
    if (size - at < sizeof head + head.length + sizeof(Checksum)) break;
    Checksum sum = checksum(0, &head, sizeof head);
    std::uint64_t next = at + sizeof head;
    for (std::uint64_t left = head.length; left > 0; left -= bytes.size(), next += bytes.size()) {
      bytes.resize(std::min<std::uint64_t>(left, kPartBytes));
      if (!read_at(file_, next, bytes.data(), bytes.size())) return damaged(path_);
      sum = checksum(sum, bytes.data(), bytes.size());
    }
    Checksum kept = 0;
    if (!read_at(file_, next, &kept, sizeof kept) || kept != sum) return damaged(path_);
    starts_.push_back(next + sizeof kept);
  }
  if (::ftruncate(file_, static_cast<off_t>(starts_.back())) != 0) return cannot_write(path_);
  return sync();
}

Result<Stored> AnswerLog::read(std::size_t index) const {
  if (index >= size()) return internal_error(fmt::format("{} has no record {}", path_, index));
  Stored stored{{}, {}, file_, starts_[index] + sizeof(Head)};
  for (google::protobuf::Message* message : {static_cast<google::protobuf::Message*>(&stored.ask),
                                             static_cast<google::protobuf::Message*>(&stored.answer)}) {
    std::uint32_t length = 0;
    if (!read_at(file_, stored.offset, &length, sizeof length)) return damaged(path_);
    stored.offset += sizeof length;
    if (length > starts_[index + 1] - stored.offset) return damaged(path_);
    std::string bytes(length, '\0');
    if (!read_at(file_, stored.offset, bytes.data(), length) || !message->ParseFromString(bytes)) return damaged(path_);
    stored.offset += length;
  }
  const std::uint64_t integers = integer_bytes(stored.answer.narrow()) * stored.answer.entries();
  if (stored.offset + integers + sizeof(Checksum) != starts_[index + 1]) return damaged(path_);
  return stored;
}

Result<Stored> AnswerLog::append(const wire::v2::Ask& ask, const wire::v2::Answer& answer,
                                 const std::vector<Int128>& values) {
  const std::uint64_t at = starts_.back();
  const std::string messages = framed(ask) + framed(answer);
  Head head{messages.size() + integer_bytes(answer.narrow()) * values.size(), 0};
  head.check = check_of(head.length, at);
  Checksum sum = 0;
  std::uint64_t end = at;
  const auto write = [&](std::string_view part) -> Status {
    sum = checksum(sum, part.data(), part.size());
    if (!write_at(file_, end, part)) return cannot_write(path_);
    end += part.size();
    return {};
  };
  EIGENVEIL_TRY(write({reinterpret_cast<const char*>(&head), sizeof head}));
  EIGENVEIL_TRY(write(messages));
  Stored stored{ask, answer, file_, end};
  EIGENVEIL_TRY(for_each_part(values, answer.narrow(), write));
  const Checksum all = sum;
  EIGENVEIL_TRY(write({reinterpret_cast<const char*>(&all), sizeof all}));
  starts_.push_back(end);
  return stored;
}

Status AnswerLog::sync() const { return ::fdatasync(file_) == 0 ? Status() : cannot_write(path_); }

Status store(const std::string& path, const google::protobuf::Message& message) {
  return write_file(path, framed(message));
}

Result<bool> load(const std::string& path, google::protobuf::Message& message) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  if (!read_framed(in, message)) return damaged(path);
  return true;
}

Status for_each_part(const Stored& stored, const std::function<Status(std::string bytes)>& use) {
  if (!stored.values.empty()) return for_each_part(stored.values, stored.answer.narrow(), use);
  const std::uint64_t size = integer_bytes(stored.answer.narrow()) * stored.answer.entries();
  for (std::uint64_t done = 0; done < size; done += kPartBytes) {
    std::string bytes(std::min<std::uint64_t>(size - done, kPartBytes), '\0');
    if (!read_at(stored.file, stored.offset + done, bytes.data(), bytes.size()))
      return bad_input("a stored answer cannot be read again");
    EIGENVEIL_TRY(use(std::move(bytes)));
  }
  return {};
}

}  // namespace eigenveil::federation
