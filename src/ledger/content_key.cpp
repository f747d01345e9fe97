// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/ledger/content_key.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "keyed_hash.hpp"

namespace eigenveil {

using ledger::Checksum;
using ledger::KeyedHash;

namespace {

constexpr std::size_t kPiece = 1 << 20;

Error cannot_hash(const std::string& path, const std::string& why) {
  return bad_input(fmt::format("{}: cannot be read ({}). Give a file or a folder of files that can be.", path, why));
}

Result<Checksum> hash_file(const std::string& path, std::string_view key) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return cannot_hash(path, std::strerror(errno));
  KeyedHash hash(key);
  std::vector<char> piece(kPiece);
  ssize_t got = 0;
  do {
    got = ::read(descriptor, piece.data(), piece.size());
    if (got > 0) hash.stream({piece.data(), static_cast<std::size_t>(got)});
  } while (got > 0 || (got < 0 && errno == EINTR));
  const int failure = errno;
  ::close(descriptor);
  if (got < 0) return cannot_hash(path, std::strerror(failure));
  return hash.finish();
}

enum class Names { kIgnored, kHashed };

// What stands for a file of a folder that cannot be read: a row that nobody reads decides nothing.
Checksum unreadable(std::string_view key) { return KeyedHash(key).field("unreadable").finish(); }

// Not what every reader passes over: names that begin with a dot, those with an underscore that are no images (what
// tools leave beside part files), and empty files.
bool holds_rows(const std::filesystem::directory_entry& file) {
  const std::string name = file.path().filename().string();
  std::string ending = file.path().extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool image = ending == ".png" || ending == ".jpg" || ending == ".jpeg";
  std::error_code failed;
  const auto size = file.file_size(failed);
  return !name.starts_with('.') && (image || !name.starts_with('_')) && !failed && size > 0;
}

// A link that leads nowhere, or around, is a file that cannot be read.
bool is_member(const std::filesystem::directory_entry& entry) {
  std::error_code failed;
  return entry.is_regular_file(failed) || failed;
}

Result<ContentKeys> hash_folder(const std::string& path, std::string_view key, Names names) {
  std::error_code failed;
  std::vector<std::pair<std::string, Checksum>> members;
  ContentKeys keys;
  for (std::filesystem::recursive_directory_iterator entry(path, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (!is_member(*entry)) continue;
    const auto hash = hash_file(entry->path().string(), key);
    const Checksum member = hash ? *hash : unreadable(key);
    members.emplace_back(names == Names::kHashed ? entry->path().lexically_relative(path).string() : "", member);
    if (hash && holds_rows(*entry)) keys.parts.push_back({entry->path().string(), ledger::to_hex(member)});
  }
  if (failed) return cannot_hash(path, failed.message());
  std::sort(members.begin(), members.end());
  KeyedHash hash(key);
  hash.field(names == Names::kHashed ? "named folder" : "folder");
  for (const auto& [name, member] : members) {
    if (names == Names::kHashed) hash.field(name);
    hash.field(ledger::to_bytes(member));
  }
  keys.whole = ledger::to_hex(hash.finish());
  return keys;
}

Result<ContentKeys> keys_of(const std::string& path, std::string_view key, Names names) {
  if (key.size() < crypto_generichash_KEYBYTES_MIN || key.size() > crypto_generichash_KEYBYTES_MAX)
    return internal_error("The key of a content hash has 16 to 64 bytes");
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (failed) return cannot_hash(path, failed.message());
  if (!std::filesystem::is_regular_file(status) && !std::filesystem::is_directory(status))
    return cannot_hash(path, "it is neither a file nor a folder");
  if (std::filesystem::is_directory(status)) return hash_folder(path, key, names);
  const auto checksum = EIGENVEIL_TRY(hash_file(path, key));
  return ContentKeys{ledger::to_hex(checksum), {}};
}

}  // namespace

Result<ContentKeys> content_keys(const std::string& path, std::string_view key) {
  return keys_of(path, key, Names::kIgnored);
}

Result<std::string> named_content_key(const std::string& path, std::string_view key) {
  auto keys = EIGENVEIL_TRY(keys_of(path, key, Names::kHashed));
  return std::move(keys.whole);
}

}  // namespace eigenveil
