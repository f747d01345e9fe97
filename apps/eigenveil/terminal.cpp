#include "terminal.hpp"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "eigenveil/base/printable.hpp"

namespace eigenveil::app {
namespace {

std::string& kept_command() {
  static std::string command;
  return command;
}

std::string for_shell(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+-@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string shown(std::string_view text, bool lines) {
  const std::size_t kMost = lines ? std::string::npos : 20000;
  // Backslashes stay single: what was escaped before is not escaped again.
  const std::string_view kept = lines ? "\\\n" : "\\";
  std::string safe;
  while (safe.size() < kMost) {
    const std::size_t end = text.find_first_of(kept);
    safe += printable(text.substr(0, end), kMost);
    if (end == std::string_view::npos) return safe;
    safe += text[end];
    text.remove_prefix(end + 1);
  }
  return safe + "...";
}

void write_out(const std::string& text) { fmt::print("{}", text); }
void write_error(const std::string& text) { fmt::print(stderr, "{}", text); }

void say_lines(std::string_view text) { write_out(shown(text, true)); }

void say_json(const nlohmann::json& object) {
  write_out(object.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
}

void remember_command(int argc, char** argv) {
  kept_command().clear();
  for (int i = 0; i < argc; ++i) kept_command() += (i == 0 ? "" : " ") + for_shell(argv[i]);
}

std::string command_with(std::string_view added) { return kept_command() + " " + std::string(added); }

std::optional<bool> ask_yes_or_no(std::string_view question) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) return std::nullopt;
  std::string answer;
  do {
    complain("{} [yes/no] ", question);
    if (!std::getline(std::cin, answer)) return std::nullopt;
  } while (answer != "yes" && answer != "no");
  return answer == "yes";
}

Terminal::Terminal(bool quiet) : quiet_(quiet), is_terminal_(isatty(STDERR_FILENO) != 0) {}

Terminal::~Terminal() { clear_line(); }

void Terminal::clear_line() {
  if (line_open_) fmt::print(stderr, "\r\033[K");
  line_open_ = false;
}

void Terminal::step(std::string_view name) {
  clear_line();
  step_ = shown(name);
  last_percent_ = -1;
  if (quiet_ || name == "done") return;
  if (is_terminal_) {
    fmt::print(stderr, "{} ...", step_);
    line_open_ = true;
  } else {
    fmt::print(stderr, "eigenveil: {}\n", step_);
  }
  std::fflush(stderr);
}

void Terminal::progress(double share) {
  constexpr int kWidth = 30;
  const int percent = static_cast<int>(share * 100);
  if (quiet_ || !is_terminal_ || percent == last_percent_) return;
  last_percent_ = percent;
  const int filled = percent * kWidth / 100;
  fmt::print(stderr, "\r\033[K{} [{:#<{}}{:.<{}}] {:3d}%", step_, "", filled, "", kWidth - filled, percent);
  std::fflush(stderr);
  line_open_ = true;
}

int fail(const Error& error) {
  complain("eigenveil: {}\n", error.message);
  return static_cast<int>(error.code);
}

std::string with_commas(std::size_t value) {
  const std::string digits = std::to_string(value);
  std::string result;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) result += ',';
    result += digits[i];
  }
  return result;
}

}  // namespace eigenveil::app
