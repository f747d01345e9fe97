// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>

namespace eigenveil {

/// An option that has no default: leaving it out does not compile.
template <class T>
class Required {
 public:
  /// Whatever becomes a T, but for fractions that would lose something.
  template <class U>
  requires std::convertible_to<U, T> &&(!(std::integral<T> && std::floating_point<std::remove_cvref_t<U>>))
      Required(U&& value)                                  // NOLINT(bugprone-forwarding-reference-overload)
      : value_(static_cast<T>(std::forward<U>(value))) {}  // NOLINT(google-explicit-constructor)

  /// A list in braces, where T is one.
  template <class List = T>
  requires(!std::same_as<List, std::string>) Required(std::initializer_list<typename List::value_type> list)
      : value_(list) {}  // NOLINT(google-explicit-constructor)

  const T& value() const { return value_; }

 private:
  T value_;
};

}  // namespace eigenveil
