// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "eigenveil/base/printable.hpp"
#include "eigenveil/base/result.hpp"

namespace eigenveil::federation {

/// One table of a TOML file. Takes its keys one by one, remembers the first thing that is wrong, and at the end refuses
/// keys that nobody took: a misspelt limit is no limit.
class Section {
 public:
  Section(const toml::table* table, std::string where) : table_(table), where_(std::move(where)) {}

  void take(const char* key, std::string& to, bool required = false) {
    const toml::node* node = find(key);
    if (node == nullptr) {
      if (required) wrong(key, "is missing");
      return;
    }
    const auto value = node->value_exact<std::string>();
    if (!value || value->empty()) return wrong(key, "must be a text in quotes");
    to = *value;
  }
  /// A positive, finite number.
  void take(const char* key, double& to) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !std::isfinite(*value) || !(*value > 0)) return wrong(key, "must be a positive number");
    to = *value;
  }
  /// A whole number between bounds; nothing wraps around.
  template <class Integer>
  void take(const char* key, Integer& to, std::int64_t least, std::int64_t most) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const auto value = node->value_exact<std::int64_t>();
    if (!value || *value < least || *value > most)
      return wrong(key, fmt::format("must be a whole number from {} to {}", least, most));
    to = static_cast<Integer>(*value);
  }
  void take(const char* key, std::vector<std::string>& to) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    if (!texts(*node, to)) wrong(key, "must be a list of texts in quotes");
  }
  /// One of the words; `to` is its place among them.
  void take_word(const char* key, const std::vector<std::string>& words, std::size_t& to) {
    std::string text = words[to];
    take(key, text);
    const auto found = std::find(words.begin(), words.end(), text);
    if (found == words.end()) return wrong(key, fmt::format("must be one of {}", fmt::join(words, ", ")));
    to = found - words.begin();
  }
  const toml::table* table(const char* key, bool required = false) {
    const toml::node* node = find(key);
    if (node == nullptr && required) wrong(key, "is missing: a table of its own, [" + std::string(key) + "]");
    if (node != nullptr && !node->is_table()) wrong(key, "must be a table, [" + std::string(key) + "]");
    return node != nullptr ? node->as_table() : nullptr;
  }

  static bool texts(const toml::node& node, std::vector<std::string>& to) {
    if (!node.is_array()) return false;
    for (const toml::node& one : *node.as_array()) {
      const auto value = one.value_exact<std::string>();
      if (!value) return false;
      to.push_back(*value);
    }
    return true;
  }

  void wrong(const std::string& key, const std::string& what) {
    if (status_.ok()) status_ = bad_input(fmt::format("{}: {} {}", where_, quote(key), what));
  }

  /// What was wrong so far.
  const Status& status() const { return status_; }

  Status finish() const {
    if (!status_ || table_ == nullptr) return status_;
    for (const auto& [key, node] : *table_)
      if (std::find(known_.begin(), known_.end(), std::string(key.str())) == known_.end())
        return bad_input(
            fmt::format("{}: {} is not known; known are {}", where_, quote(key.str()), fmt::join(known_, ", ")));
    return {};
  }

 private:
  const toml::node* find(const char* key) {
    known_.emplace_back(key);
    return table_ != nullptr ? table_->get(key) : nullptr;
  }

  const toml::table* table_;
  std::string where_;
  std::vector<std::string> known_;
  Status status_;
};

}  // namespace eigenveil::federation
