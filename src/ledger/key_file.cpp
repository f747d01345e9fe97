// SPDX-License-Identifier: Apache-2.0
#include "key_file.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "eigenveil/base/atomic_file.hpp"

namespace eigenveil::ledger {
namespace {

constexpr std::size_t kKeyBytes = 32;

// Another process may have made one meanwhile: that one counts.
Status make_key(const std::string& path) {
  if (sodium_init() < 0) return internal_error("libsodium could not be started");
  std::string key(kKeyBytes, '\0');
  randombytes_buf(key.data(), key.size());
  const Status made = write_file(path, key, {Readers::kOwner, Existing::kRefuse});
  sodium_memzero(key.data(), key.size());
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? Status() : made;
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
  Result<std::string> key = std::string(kKeyBytes + 1, '\0');  // one more would be seen
  key->resize(in.read(key->data(), std::ssize(*key)).gcount());
  if (key->size() != kKeyBytes)
    return bad_input(fmt::format(
        "The ledger's key '{}' cannot be read or does not have {} bytes. Bring it back from a backup; until "
        "then nothing can be charged.",
        path, kKeyBytes));
  return key;
}

}  // namespace eigenveil::ledger
