// SPDX-License-Identifier: Apache-2.0
// Completions of shells and a man page, from the same text as the help.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "flags.hpp"
#include "help.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

/// Every command with what may follow it: "pca" -> "--components --method ...".
std::vector<const CLI::App*> all_commands(const CLI::App& program) {
  std::vector<const CLI::App*> all = {&program};
  const auto below = commands_below(program);
  all.insert(all.end(), below.begin(), below.end());
  return all;
}

/// The words of a command line that name commands, and those that may come next. Files otherwise.
std::string bash(const CLI::App& program) {
  std::string cases;
  for (const CLI::App* one : all_commands(program))
    cases += fmt::format("    '{}') known='{} {}' ;;\n", full_name(*one), fmt::join(commands_of(*one), " "),
                         fmt::join(flags_of(*one), " "));
  return fmt::format(R"(_eigenveil() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path=eigenveil word known
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in
      {}) path="$path $word" ;;
    esac
  done
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$known" -- "$current"))
  [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -F _eigenveil eigenveil
)",
                     [&] {
                       std::vector<std::string> paths;
                       for (const CLI::App* one : commands_below(program)) paths.push_back("'" + full_name(*one) + "'");
                       return fmt::format("{}", fmt::join(paths, " | "));
                     }(),
                     cases);
}

/// Within single quotes, for fish: what would end them, or begin something, is escaped.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return "'" + safe + "'";
}

std::string fish(const CLI::App& program) {
  std::string lines;
  for (const CLI::App* one : all_commands(program)) {
    // Below a command: each of the words that lead to it has been said.
    std::string condition;
    for (const CLI::App* up = one; up->get_parent() != nullptr; up = up->get_parent())
      condition = fmt::format("__fish_seen_subcommand_from {}{}{}", up->get_name(), condition.empty() ? "" : "; and ",
                              condition);
    if (condition.empty()) condition = "__fish_use_subcommand";
    for (const CLI::App* below : one->get_subcommands([](const CLI::App*) { return true; }))
      lines += fmt::format("complete -c eigenveil -n '{}' -a {} -d {}\n", condition, below->get_name(),
                           quoted(below->get_description()));
    for (const CLI::Option* option : one->get_options())
      for (const std::string& name : option->get_lnames())
        lines += fmt::format("complete -c eigenveil -n '{}' -l {} -d {}\n", condition, name,
                             quoted(option->get_description()));
  }
  return lines;
}

/// A line of a man page: what groff would take for a command is escaped.
std::string roff(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '\\' ? "\\\\" : c == '-' ? "\\-" : std::string(1, c);
  std::string lines;
  for (std::size_t i = 0; i < safe.size(); ++i) {
    if ((i == 0 || safe[i - 1] == '\n') && (safe[i] == '.' || safe[i] == '\'')) lines += "\\&";
    lines += safe[i];
  }
  return lines;
}

std::string man(const CLI::App& program) {
  std::string page =
      fmt::format(".TH EIGENVEIL 1\n.SH NAME\neigenveil \\- {}\n.SH SYNOPSIS\n.B eigenveil\nCOMMAND ...\n",
                  roff("differentially private spectral learning"));
  page += ".SH DESCRIPTION\n.nf\n" + roff(kWelcome) + ".fi\n";
  for (const CLI::App* one : commands_below(program)) {
    if (!commands_of(*one).empty()) continue;
    page += fmt::format(".SH {}\n{}\n", roff(full_name(*one)), roff(one->get_description()));
    for (const CLI::Option* option : one->get_options())
      page += fmt::format(".TP\n.B {}\n{}\n", roff(option->get_name(option->get_positional())),
                          roff(option->get_description()));
    if (!one->get_footer().empty()) page += ".PP\n.nf\n" + roff(one->get_footer()) + "\n.fi\n";
  }
  return page +
         ".SH EXIT STATUS\n0 done, 2 wrong usage, 3 bad input, 4 budget refused, 5 internal error, 128 + N stopped by "
         "signal N "
         "(130: Ctrl-C).\n";
}

}  // namespace

Command completions_command(CLI::App& program) {
  auto* app = program.add_subcommand("completions", "Print completions for a shell, or a man page");
  auto what = std::make_shared<std::string>();
  app->add_option("SHELL", *what, "bash, zsh, fish or man")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
  app->footer(
      "\nExamples:\n  eigenveil completions bash > ~/.local/share/bash-completion/completions/eigenveil\n"
      "  eigenveil completions zsh >> ~/.zshrc\n"
      "  eigenveil completions fish > ~/.config/fish/completions/eigenveil.fish\n"
      "  eigenveil completions man > eigenveil.1");
  return {app, [what, &program] {
            const std::string zsh = "autoload -U +X bashcompinit && bashcompinit\n";
            say_lines(*what == "fish"  ? fish(program)
                      : *what == "man" ? man(program)
                      : *what == "zsh" ? zsh + bash(program)
                                       : bash(program));
            return 0;
          }};
}

}  // namespace eigenveil::app
