// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace eigenveil::test {

/// A temporary directory that deletes itself with all that is in it.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "eigenveil-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary directory");
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

  /// Names of what is in it.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) found.push_back(entry.path().filename());
    return found;
  }

  /// Writes the bytes and returns the path.
  std::string write_file(const std::string& name, std::string_view bytes) const {
    std::string where = file(name);
    std::filesystem::remove(where);  // a new file: truncating an old one makes some file systems write to the disk
    std::ofstream out(where, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) throw std::runtime_error("cannot write " + where);
    return where;
  }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::string& path);

/// Public data sets that a checkout may lie beside; empty if they are not there.
std::string shared_data(const std::string& name);

}  // namespace eigenveil::test
