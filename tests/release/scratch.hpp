#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace eigenveil::testing {

/// A folder of its own for one test, removed at the end.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "eigenveil-test-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) found.push_back(entry.path().filename());
    return found;
  }

 private:
  std::filesystem::path folder_;
};

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

struct Ran {
  int exit_code;
  std::string output;  ///< stdout and stderr together
};

/// Runs a Python program (numpy is there) with arguments; the program is written to a file, so quotes are free.
inline Ran run_python(const Scratch& scratch, const std::string& program, const std::vector<std::string>& arguments) {
  const std::string script = scratch.path("program.py");
  write_bytes(script, program);
  std::string command = "/usr/bin/python3 '" + script + "'";
  for (const auto& argument : arguments) command += " '" + argument + "'";
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");  // NOLINT(cert-env33-c)
  std::string output;
  std::array<char, 4096> block{};
  while (const std::size_t got = fread(block.data(), 1, block.size(), pipe)) output.append(block.data(), got);
  const int status = pclose(pipe);
  std::filesystem::remove(script);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

}  // namespace eigenveil::testing
