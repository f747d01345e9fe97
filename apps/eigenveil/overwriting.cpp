// SPDX-License-Identifier: Apache-2.0
#include "overwriting.hpp"

#include <filesystem>
#include <set>

#include "eigenveil/job/file_uses.hpp"

namespace eigenveil::app {
namespace {

// Every other value that names a file or folder is something that the command may read: nothing to forget there.
const std::set<std::string> kWrittenOptions = {"--out", "--report", "--truth", "--plot", "--journal", "--checkpoint"};

std::vector<std::string> values_of(const CLI::Option& option) {
  if (!option.empty()) return option.results();
  return option.get_default_str().empty() ? std::vector<std::string>() : std::vector{option.get_default_str()};
}

// The file in `torchscript:FILE`, `COLUMN=...` and plain values.
std::vector<std::string> paths_in(const std::string& value) {
  std::vector<std::string> paths = {value};
  if (const auto colon = value.find(':'); colon != std::string::npos) paths.push_back(value.substr(colon + 1));
  return paths;
}

}  // namespace

Status check_overwriting(const CLI::App& command) {
  std::vector<FileUse> read;
  std::vector<FileUse> written;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    for (const std::string& value : values_of(*option)) {
      if (value.empty()) continue;
      if (kWrittenOptions.count(name) > 0) {
        written.push_back({name, value});
        continue;
      }
      std::error_code ignored;
      for (const std::string& path : paths_in(value))
        if (!path.empty() && std::filesystem::exists(path, ignored)) read.push_back({name, path});
    }
    if (name == "--ledger")
      for (FileUse& file : ledger_files(option->empty() ? "" : option->as<std::string>()))
        read.push_back(std::move(file));
  }
  return check_file_uses(read, written);
}

}  // namespace eigenveil::app
