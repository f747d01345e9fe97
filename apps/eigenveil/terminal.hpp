// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "eigenveil/base/observer.hpp"
#include "eigenveil/base/result.hpp"
#include "stop.hpp"

namespace eigenveil::app {

/// A text as terminals may have it: names, paths, purposes and labels may come from anywhere, and hold escapes, line
/// feeds and worse. One line, unless `lines` keeps line feeds.
std::string shown(std::string_view text, bool lines = false);

enum class Colour { kRed, kGreen, kYellow };
/// A text as `shown` makes it, in a colour where there is one.
struct Painted {
  std::string text;
};
/// Colour is for terminals alone (`descriptor` is one), and for whoever did not say NO_COLOR, TERM=dumb or --json.
Painted painted(std::string_view text, Colour colour, int descriptor = 1);

/// What a format of `tell` takes: numbers as they are, texts as `shown` makes them, and nothing else, so that no other
/// way for a text to come in exists.
template <class T>
auto for_terminal(const T& value) {
  if constexpr (std::is_same_v<T, Painted>) {
    return value.text;
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return shown(value);
  } else {
    static_assert(std::is_arithmetic_v<T>, "make a text or a number of it first");
    return value;
  }
}

/// Checked when it is compiled, with the types that are written in the end.
template <class... Args>
using Format = fmt::format_string<std::decay_t<decltype(for_terminal(std::declval<const Args&>()))>...>;

void write_out(const std::string& text);
void write_error(const std::string& text);

/// Everything that the program says goes through here: `tell` on standard output, `complain` on standard error.
template <class... Args>
void tell(Format<Args...> format, const Args&... args) {
  const auto made = [&](const auto&... safe) { return fmt::vformat(format, fmt::make_format_args(safe...)); };
  write_out(made(for_terminal(args)...));
}
template <class... Args>
void complain(Format<Args...> format, const Args&... args) {
  const auto made = [&](const auto&... safe) { return fmt::vformat(format, fmt::make_format_args(safe...)); };
  write_error(made(for_terminal(args)...));
}
/// Several lines of our own making.
void say_lines(std::string_view text);
/// One JSON object on one line, in ASCII.
void say_json(const nlohmann::json& object);

/// Shows steps and a progress bar on stderr, the bar only on a terminal; nothing at all when quiet. As long as it
/// lives, whoever stops the program learns what was charged.
class Terminal final : public Observer {
 public:
  /// `discreet`: nothing that rows decide is said.
  explicit Terminal(bool quiet, Bearings bearings = {}, bool discreet = false);
  ~Terminal() override;
  void step(std::string_view name) override;
  void progress(double share) override;
  void remark(std::string_view words) override;

 private:
  void clear_line();
  bool quiet_;
  bool discreet_;
  bool is_terminal_;
  bool line_open_ = false;
  int last_percent_ = -1;
  std::string step_;
  bool asking_ = false;  ///< of several steps that ask, the first began it all
  std::chrono::steady_clock::time_point step_began_;
  StopSignals stop_;
};

/// Prints "eigenveil: ..." on stderr, and under --json an object {"error", "kind", "exit_code"} on stdout; returns the
/// exit code of the error.
int fail(const Error& error);

/// Keeps the command line, to show it again with something added.
void remember_command(int argc, char** argv);
/// A word as a shell takes it.
std::string for_shell(const std::string& word);
/// The command line as a shell takes it, followed by `added`.
std::string command_with(std::string_view added);

/// A person's answer to a question of yes or no; nothing if nobody sits there.
std::optional<bool> ask_yes_or_no(std::string_view question);

/// 60000 -> "60,000"
std::string with_commas(std::size_t value);

}  // namespace eigenveil::app
