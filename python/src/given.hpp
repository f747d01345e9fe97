// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>

#include "core.hpp"

namespace eigenveil::python {

/// Options by name, as Python's keyword arguments. What is None keeps the library's default; a name that no option has
/// is an error.
class Given {
 public:
  explicit Given(nb::dict options) : options_(std::move(options)) {}

  bool has(const char* key) {
    known_.emplace_back(key);
    return options_.contains(key) && !options_[key].is_none();
  }
  template <class T>
  T cast(const char* key) {
    try {
      return nb::cast<T>(options_[key]);
    } catch (const nb::cast_error&) {
      nb::object kind = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(nb::object(options_[key]).ptr())));
      raise(usage_error(std::string("`") + key + "` cannot be a " + nb::cast<std::string>(kind.attr("__name__"))));
    }
  }
  template <class T>
  void take(const char* key, T& into) {
    if (has(key)) into = cast<T>(key);
  }
  template <class T>
  void take(const char* key, std::optional<T>& into) {
    if (has(key)) into = cast<T>(key);
  }
  /// One of a few words.
  template <class T, class Into>
  void choose(const char* key, Into& into, const std::map<std::string, T>& words) {
    if (!has(key)) return;
    const auto word = cast<std::string>(key);
    const auto found = words.find(word);
    if (found != words.end()) {
      into = found->second;
      return;
    }
    std::string known;
    for (const auto& [one, value] : words) known += (known.empty() ? "" : ", ") + one;
    raise(usage_error(std::string("`") + key + "` must be one of " + known + ", but is '" + word + "'"));
  }
  template <class T>
  T required(const char* key) {
    if (!has(key)) raise(usage_error(std::string("`") + key + "` has no default: it must be given"));
    return cast<T>(key);
  }
  void finish() const {
    for (const auto& [key, value] : options_) {
      const auto name = nb::cast<std::string>(key);
      if (std::find(known_.begin(), known_.end(), name) == known_.end())
        raise(usage_error("`" + name + "` is no option of this call"));
    }
  }

 private:
  nb::dict options_;
  std::vector<std::string> known_;
};

}  // namespace eigenveil::python
