// SPDX-License-Identifier: Apache-2.0
#include "flags.hpp"

#include <algorithm>
#include <map>

namespace eigenveil::app {
namespace {

// By the library's name. Here is what does not follow from the names of options.
std::map<std::string, std::string, std::less<>>& flags() {
  static std::map<std::string, std::string, std::less<>> flags = {
      {"ranges", "--range"},  // given once per range
      {"eigenveil ledger create", "eigenveil ledger create NAME --epsilon E --delta D"},
      {"eigenveil ledger accept-restore", "eigenveil ledger accept-restore NAME --spent EPSILON"}};
  return flags;
}

}  // namespace

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> commands_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* one : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(one->get_name());
  return names;
}

void remember_flags(const CLI::App& program) {
  for (const std::string& flag : flags_of(program)) {
    std::string name = flag.substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    flags().emplace(std::move(name), flag);
  }
  for (const std::string& name : commands_of(program)) remember_flags(*program.get_subcommand(name));
}

std::string with_flags(std::string_view text) {
  std::string said;
  while (true) {
    const std::size_t begin = text.find('`');
    said += text.substr(0, begin);
    if (begin == std::string_view::npos) return said;
    const std::size_t end = text.find('`', begin + 1);
    const auto flag = flags().find(text.substr(begin + 1, end - begin - 1));
    const bool known = end != std::string_view::npos && flag != flags().end();
    said += known ? flag->second : "`";
    text.remove_prefix(known ? end + 1 : begin + 1);
  }
}

}  // namespace eigenveil::app
