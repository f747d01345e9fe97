// SPDX-License-Identifier: Apache-2.0
#include "suggest.hpp"

#include <algorithm>
#include <numeric>

#include "flags.hpp"

namespace eigenveil::app {
namespace {

/// How many letters must be added, left out, changed or swapped with their neighbour to get from one word to the other.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  std::iota(d[0].begin(), d[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = d[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

/// The known word that a person most likely meant.
std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 100;  // of a word worth comparing
  if (word.size() > kLongest) return "";
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& one : known)
    if (const std::size_t far = distance(word, one); far < least) {
      least = far;
      best = one;
    }
  return best;
}

std::string hint(const std::string& word, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return "";
  const std::string meant = nearest(word, known);
  return meant.empty() ? "" : "there is no " + word + "; did you mean " + meant + "?";
}

}  // namespace

std::string did_you_mean(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* app = &program;
  for (const std::string& word : words) {
    std::string found;
    if (word.starts_with("--"))
      found = hint(word.substr(0, word.find('=')), flags_of(*app));
    else if (const auto commands = commands_of(*app); !commands.empty()) {
      if (std::find(commands.begin(), commands.end(), word) != commands.end())
        app = app->get_subcommand(word);
      else
        found = hint(word, commands);
    }
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace eigenveil::app
