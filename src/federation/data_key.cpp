#include "data_key.hpp"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>

#include <fstream>

namespace eigenveil::federation {

Result<std::string> data_key(const std::string& path, const Secret& key) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return bad_input(path + ": the file cannot be read");
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), Secret::kBytes, Secret::kBytes);
  std::string buffer(std::size_t{1} << 20, '\0');
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(buffer.data()),
                              static_cast<unsigned long long>(in.gcount()));
  }
  if (!in.eof()) return bad_input(path + ": the file cannot be read to its end");
  std::string digest(Secret::kBytes, '\0');
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(digest.data()), digest.size());
  return hex(digest);
}

std::string file_state(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return "";
  return fmt::format("{} {} {} {} {}", facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtim.tv_sec,
                     facts.st_mtim.tv_nsec);
}

}  // namespace eigenveil::federation
