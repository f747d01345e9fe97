// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace eigenveil {

/// Who has to act on an error. The values are the program's exit codes.
enum class ErrorCode : int {
  kUsage = 2,          ///< an option is wrong: the caller changes the call
  kBadInput = 3,       ///< a file is wrong: the caller changes the data or the schema
  kBudgetRefused = 4,  ///< the privacy budget does not allow it
  kInternal = 5,       ///< the machine or our own code failed
};

/// What was wrong, where, what was expected, what to do: one or two plain sentences. An option stands in backticks
/// under the name of its field, `row_bound`; the program says --row-bound instead (apps/eigenveil/flags.hpp).
struct Error {
  ErrorCode code;
  std::string message;
};

inline Error usage_error(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }
inline Error bad_input(std::string message) { return {ErrorCode::kBadInput, std::move(message)}; }
inline Error budget_refused(std::string message) { return {ErrorCode::kBudgetRefused, std::move(message)}; }
inline Error internal_error(std::string message) { return {ErrorCode::kInternal, std::move(message)}; }

/// A value, or the reason why there is none. Ask `ok()` before `value()`.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // The analyzer does not see that a variant knows its index.
  // NOLINTBEGIN(clang-analyzer-core.*)
  T& value() & { return assert(ok()), *std::get_if<0>(&state_); }
  const T& value() const& { return assert(ok()), *std::get_if<0>(&state_); }
  T&& value() && { return assert(ok()), std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return assert(!ok()), *std::get_if<1>(&state_); }
  // NOLINTEND(clang-analyzer-core.*)

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  void value() const { assert(ok()); }
  const Error& error() const { return assert(!ok()), *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace eigenveil

/// The value of a Result; leaves the current function with its error, if it has one. For whole initialisers, arguments
/// and statements, not within braces: of an aggregate that is half made, g++ destroys nothing when a statement returns.
///   const auto rows = EIGENVEIL_TRY(read(path));
///   EIGENVEIL_TRY(check(options));
#define EIGENVEIL_TRY(...)                                         \
  __extension__({                                                  \
    auto eigenveil_result_ = (__VA_ARGS__);                        \
    if (!eigenveil_result_.ok()) return eigenveil_result_.error(); \
    std::move(eigenveil_result_).value();                          \
  })
