// SPDX-License-Identifier: Apache-2.0
#include "help.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace eigenveil::app {

const char* const kWelcome = R"(Eigenveil learns the structure of rows about people - principal components, covariances,
regressions, correlations between two views, discriminant directions, joint embeddings -
and releases it with differential privacy, so that no one person is given away.

  eigenveil demo                                                a tour on pictures of clothes (Fashion-MNIST)
  eigenveil schema init DATA.csv --header yes > schema.toml     describe your columns, then fill in the bounds
  eigenveil pca DATA.csv --schema schema.toml --components 5 --epsilon 1 --delta 1e-6 --report report.html

'eigenveil --help' lists all commands, 'eigenveil help COMMAND' tells about one.
)";

namespace {

std::size_t terminal_width() {
  constexpr std::size_t kPlain = 100, kLeast = 60, kMost = 140;
  if (const char* columns = std::getenv("COLUMNS"))
    if (const int value = std::atoi(columns); value > 0)
      return std::clamp(static_cast<std::size_t>(value), kLeast, kMost);
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kPlain;
  return std::clamp<std::size_t>(size.ws_col, kLeast, kMost);
}

/// "  name      what it is, over as many
///             lines as it takes"
std::string entry(const std::string& name, const std::string& text, std::size_t column) {
  std::string out = "  " + name;
  std::size_t at = out.size();
  if (text.empty()) return out + "\n";
  if (at + 2 > column) {
    out += "\n";
    at = 0;
  }
  out += std::string(column - at, ' ');
  at = column;
  const std::size_t width = terminal_width();
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (at > column && at + 1 + word.size() > width) {
      out += "\n" + std::string(column, ' ');
      at = column;
    }
    if (at > column) out += " ";
    at += word.size() + (at > column ? 1 : 0);
    out += word;
  }
  return out + "\n";
}

/// Prose is wrapped; a command, which is indented, goes on in the next line as a shell has it.
std::string wrapped_line(const std::string& line) {
  const std::size_t width = terminal_width();
  const bool command = line.starts_with("  ") && line.find('#') == std::string::npos;
  const std::string next = command ? " \\\n      " : "\n";
  if (line.starts_with("  ") && !command) return line;
  std::string out;
  std::size_t at = 0;
  std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string::npos) return line;
  out = line.substr(0, begin);
  at = begin;
  for (bool first = true; begin < line.size(); first = false) {
    // An option stays with its value.
    std::size_t end = line.find(' ', begin);
    if (command && line.compare(begin, 2, "--") == 0 && end != std::string::npos && line.compare(end + 1, 2, "--") != 0)
      end = line.find(' ', end + 1);
    const std::string word = line.substr(begin, end == std::string::npos ? end : end - begin);
    const std::size_t room = command ? 2 : 0;  // for the backslash
    if (!first && at + 1 + word.size() + room > width) {
      out += next;
      at = command ? 6 : 0;
    } else if (!first) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
    if (end == std::string::npos) break;
    begin = line.find_first_not_of(' ', end);
    if (begin == std::string::npos) break;
  }
  return out;
}

class WrappedHelp final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool positional) const override {
    return entry(make_option_name(option, positional) + make_option_opts(option), make_option_desc(option), kOptions);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_name(), command->get_description(), kCommands);
  }

  std::string make_footer(const CLI::App* app) const override {
    std::istringstream lines(app->get_footer());
    std::string out;
    for (std::string line; std::getline(lines, line);) out += wrapped_line(line) + "\n";
    return out.empty() || out.front() == '\n' ? out : "\n" + out;
  }

 private:
  static constexpr std::size_t kOptions = 32;
  static constexpr std::size_t kCommands = 16;
};

}  // namespace

std::shared_ptr<CLI::Formatter> wrapped_help() { return std::make_shared<WrappedHelp>(); }

CLI::App* command_named(CLI::App& program, const std::vector<std::string>& words) {
  CLI::App* app = &program;
  for (const std::string& word : words) {
    const auto below = app->get_subcommands([&](CLI::App* one) { return one->get_name() == word; });
    if (below.empty()) return nullptr;
    app = below.front();
  }
  return app;
}

std::vector<const CLI::App*> commands_below(const CLI::App& app) {
  std::vector<const CLI::App*> all;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    all.push_back(one);
    const auto below = commands_below(*one);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

}  // namespace eigenveil::app
