#include "terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace eigenveil::app {

Terminal::Terminal(bool quiet) : quiet_(quiet), is_terminal_(isatty(STDERR_FILENO) != 0) {}

Terminal::~Terminal() { clear_line(); }

void Terminal::clear_line() {
  if (line_open_) fmt::print(stderr, "\r\033[K");
  line_open_ = false;
}

void Terminal::step(std::string_view name) {
  clear_line();
  step_ = name;
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
  fmt::print(stderr, "eigenveil: {}\n", error.message);
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
