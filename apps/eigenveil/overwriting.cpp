// SPDX-License-Identifier: Apache-2.0
#include "overwriting.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>

namespace eigenveil::app {
namespace {

// What a command makes. Every other value that names a file or folder is something that it may read: nothing to forget
// there.
const std::set<std::string> kNewFiles = {"--out", "--report", "--truth", "--plot", "BACKUP"};
// Folders that a command goes on with.
const std::set<std::string> kKeptFolders = {"--journal", "--checkpoint"};

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

void add_force(CLI::App& command) {
  const auto options = command.get_options();
  const bool writes = std::any_of(options.begin(), options.end(),
                                  [](const CLI::Option* option) { return kNewFiles.contains(option->get_name()); });
  const bool has_one = command.get_option_no_throw("--force") != nullptr;
  // A key that somebody made is never replaced.
  const bool keys = command.get_parent() != nullptr && command.get_parent()->get_name() == "federation";
  if (writes && !has_one && !keys) command.add_flag("--force", kForceHelp);
}

Status check_new(const std::vector<FileUse>& written) {
  for (const FileUse& file : written) {
    std::error_code ignored;
    const auto there = std::filesystem::symlink_status(file.path, ignored).type();
    if (there == std::filesystem::file_type::regular || there == std::filesystem::file_type::symlink)
      return usage_error(
          fmt::format("{} {}: is there already. Nothing was read or charged; choose another name, or say --force to "
                      "replace it.",
                      file.option, file.path));
  }
  return {};
}

Status check_overwriting(const CLI::App& command) {
  std::vector<FileUse> read;
  std::vector<FileUse> written;
  std::vector<FileUse> made;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    for (const std::string& value : values_of(*option)) {
      if (value.empty()) continue;
      if (kNewFiles.contains(name)) made.push_back({name, value});
      if (kNewFiles.contains(name) || kKeptFolders.contains(name)) {
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
  EIGENVEIL_TRY(check_file_uses(read, written));
  const CLI::Option* force = command.get_option_no_throw("--force");
  return force != nullptr && force->empty() ? check_new(made) : Status();
}

}  // namespace eigenveil::app
