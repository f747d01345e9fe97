// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"

namespace eigenveil::test {

struct Ran {
  int exit_code;
  std::string output;  ///< stdout and stderr together
};

/// Runs a Python program (numpy is there) with arguments; the program is written to a file, so quotes are free.
inline Ran run_python(const TempDir& folder, const std::string& program, const std::vector<std::string>& arguments) {
  const std::string script = folder.write_file("program.py", program);
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

}  // namespace eigenveil::test
