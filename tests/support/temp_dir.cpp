// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_dir.hpp"

#include <fstream>
#include <stdexcept>

namespace eigenveil::test {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string shared_data(const std::string& name) {
  const char* given = ::getenv("EIGENVEIL_DATA");
  const std::filesystem::path root =
      given != nullptr ? std::filesystem::path(given) : std::filesystem::path(EIGENVEIL_SOURCE_DIR) / "../shared/data";
  const std::filesystem::path path = root / name;
  return std::filesystem::exists(path) ? path.string() : std::string();
}

}  // namespace eigenveil::test
