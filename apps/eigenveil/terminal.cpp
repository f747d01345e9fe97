// SPDX-License-Identifier: Apache-2.0
#include "terminal.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "eigenveil/base/printable.hpp"
#include "flags.hpp"

namespace eigenveil::app {
namespace {

struct KeptCommand {
  std::string line;
  bool json = false;  ///< --json is among its words
};
KeptCommand& kept_command() {
  static KeptCommand command;
  return command;
}

const char* kind_in_words(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return "wrong usage";
    case ErrorCode::kBadInput:
      return "bad input";
    case ErrorCode::kBudgetRefused:
      return "budget refused";
    case ErrorCode::kInternal:
      return "internal error";
  }
  return "";
}

/// "40 s left", "3 min left": nothing while it is too early to tell.
std::string time_left(std::chrono::steady_clock::time_point began, double share) {
  constexpr double kEarly = 2;
  const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (spent < kEarly || share <= 0.0005) return "";
  const double left = spent / share * (1 - share);
  return left < 90 ? fmt::format(", {:.0f} s left", left) : fmt::format(", {:.0f} min left", left / 60);
}

bool has_colour(int descriptor) {
  const char* none = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  const char* kind = std::getenv("TERM");      // NOLINT(concurrency-mt-unsafe)
  if (none != nullptr && *none != '\0') return false;
  if (kind != nullptr && std::string_view(kind) == "dumb") return false;
  return !kept_command().json && isatty(descriptor) != 0;
}

}  // namespace

std::string for_shell(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+-@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Painted painted(std::string_view text, Colour colour, int descriptor) {
  if (!has_colour(descriptor)) return {shown(text)};
  const int number = colour == Colour::kRed ? 31 : colour == Colour::kGreen ? 32 : 33;
  return {fmt::format("\033[{}m{}\033[0m", number, shown(text))};
}

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
// A terminal that has gone away (SIGHUP) is no reason to stop short of telling the ledger.
void write_error(const std::string& text) { (void)!std::fwrite(text.data(), 1, text.size(), stderr); }

void say_lines(std::string_view text) { write_out(shown(text, true)); }

void say_json(const nlohmann::json& object) {
  write_out(object.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
}

void remember_command(int argc, char** argv) {
  kept_command() = {};
  for (int i = 0; i < argc; ++i) {
    kept_command().line += (i == 0 ? "" : " ") + for_shell(argv[i]);
    kept_command().json |= std::string_view(argv[i]) == "--json";
  }
}

std::string command_with(std::string_view added) { return kept_command().line + " " + std::string(added); }

std::optional<bool> ask_yes_or_no(std::string_view question) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) return std::nullopt;
  std::string answer;
  do {
    complain("{} [yes/no] ", question);
    if (!std::getline(std::cin, answer)) return std::nullopt;
  } while (answer != "yes" && answer != "no");
  return answer == "yes";
}

Terminal::Terminal(bool quiet, Bearings bearings, bool discreet)
    : quiet_(quiet), discreet_(discreet), is_terminal_(isatty(STDERR_FILENO) != 0), stop_(std::move(bearings)) {}

Terminal::~Terminal() { clear_line(); }

void Terminal::clear_line() {
  if (line_open_) write_error("\r\033[K");
  line_open_ = false;
}

void Terminal::step(std::string_view name) {
  clear_line();
  stop_.step(name);
  step_ = shown(name);
  last_percent_ = -1;
  const bool asks = name.starts_with("asking: ") || name == "recentring rows" || name == "mapping rows";
  if (!(asks && std::exchange(asking_, asks))) step_began_ = std::chrono::steady_clock::now();
  asking_ = asks;
  if (quiet_ || name == "done") return;
  if (is_terminal_) {
    write_error(step_ + " ...");
    line_open_ = true;
  } else {
    write_error("eigenveil: " + step_ + "\n");
  }
  std::fflush(stderr);
}

void Terminal::remark(std::string_view words) {
  if (quiet_ || discreet_) return;
  clear_line();
  complain("eigenveil: {}\n", with_flags(words));
}

void Terminal::progress(double share) {
  constexpr int kWidth = 30;
  stop_.check();
  const int percent = static_cast<int>(share * 100);
  if (quiet_ || !is_terminal_ || percent == last_percent_) return;
  last_percent_ = percent;
  const int filled = percent * kWidth / 100;
  write_error(fmt::format("\r\033[K{} [{:#<{}}{:.<{}}] {:3d}%{}", step_, "", filled, "", kWidth - filled, percent,
                          time_left(step_began_, share)));
  std::fflush(stderr);
  line_open_ = true;
}

int fail(const Error& error) {
  const std::string message = with_flags(error.message);
  complain("{} {}\n", painted("eigenveil:", Colour::kRed, STDERR_FILENO), message);
  // What is wrong with a file may quote a row: that is for the operator's eyes, and stdout goes further.
  const bool quotes_rows = error.code == ErrorCode::kBadInput || error.code == ErrorCode::kInternal;
  if (kept_command().json)
    say_json({{"error", quotes_rows ? "what is wrong, and where, is said on stderr, for the operator alone" : message},
              {"kind", kind_in_words(error.code)},
              {"exit_code", static_cast<int>(error.code)}});
  return static_cast<int>(error.code);
}

void say_stopped(const std::string& words, int exit_code) {
  // What a progress bar left of its line goes first.
  complain("{}eigenveil: {}\n", Painted{isatty(STDERR_FILENO) != 0 ? "\r\033[K" : ""}, words);
  if (kept_command().json) say_json({{"error", words}, {"kind", "stopped"}, {"exit_code", exit_code}});
  std::fflush(stdout);
  std::fflush(stderr);
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
