// SPDX-License-Identifier: Apache-2.0
#include "first_line.hpp"

#include "eigenveil/base/printable.hpp"
#include "terminal.hpp"

namespace eigenveil::app {
namespace {

constexpr std::size_t kShownOfLine = 160;

Error unstated(const std::string& data) {
  complain("If it holds names:        {}\nIf it is a row of data:   {}\n", command_with("--header yes"),
           command_with("--header no"));
  return usage_error(
      fmt::format("{}: say whether its first line holds the names of the columns. It is not guessed: a record that was "
                  "taken for names would be published",
                  data));
}

void show_line(const std::string& data, const std::string& line) {
  complain("The first line of {}, for your eyes alone: {}\n", data, quote(line, kShownOfLine));
}

}  // namespace

Status header_stated(const std::string& data, const SourceOptions& options) {
  const auto line = unstated_first_line(data, options);
  if (!line || !*line) return {};  // a file that cannot be read is refused, in better words, where it is opened
  show_line(data, **line);
  return unstated(data);
}

Status state_header(const std::string& data, SourceOptions& options) {
  const auto line = unstated_first_line(data, options);
  if (!line || !*line) return {};
  show_line(data, **line);
  const auto names = ask_yes_or_no("Does this line hold the names of the columns?");
  if (!names) return unstated(data);
  options.header = *names ? HeaderRule::kYes : HeaderRule::kNo;
  return {};
}

}  // namespace eigenveil::app
