#include "key_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace eigenveil::ledger {
namespace {

constexpr std::size_t kKeyBytes = 32;

Error cannot_make_key(const std::string& path) {
  return internal_error(fmt::format("Cannot create '{}' for the ledger: {}.", path, std::strerror(errno)));
}

bool store_whole(int descriptor, const std::string& bytes) {
  return ::write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
         ::fsync(descriptor) == 0;
}

// A link to a finished file appears whole, and never in the place of another.
Status make_key(const std::string& path) {
  if (sodium_init() < 0) return internal_error("libsodium could not be started");
  std::string key(kKeyBytes, '\0');
  randombytes_buf(key.data(), key.size());
  const std::string temporary = fmt::format("{}.{}-{:016x}", path, ::getpid(), randombytes_random());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return cannot_make_key(path);
  const bool stored = store_whole(descriptor, key);
  const bool linked = stored && (::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const Error failure = cannot_make_key(path);
  ::close(descriptor);
  ::unlink(temporary.c_str());
  sodium_memzero(key.data(), key.size());
  return linked ? Status() : Status(failure);
}

}  // namespace

Result<std::string> load_key(const std::string& path, bool make) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    if (!make)
      return bad_input(fmt::format(
          "The ledger's key '{}' is gone, and without it nobody can tell whether the ledger is whole. Bring "
          "it back from a backup; until then nothing can be charged.",
          path));
    EIGENVEIL_TRY(make_key(path));
  }
  std::ifstream in(path, std::ios::binary);
  std::string key(std::istreambuf_iterator<char>(in), {});
  if (key.size() != kKeyBytes)
    return bad_input(fmt::format(
        "The ledger's key '{}' cannot be read or does not have {} bytes. Bring it back from a backup; until "
        "then nothing can be charged.",
        path, kKeyBytes));
  return key;
}

}  // namespace eigenveil::ledger
