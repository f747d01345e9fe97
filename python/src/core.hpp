// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>

#include "eigenveil/eigenveil.hpp"

namespace nb = nanobind;

namespace eigenveil::python {

/// Raises the exception of an error's code, with its sentence (eigenveil/_errors.py).
[[noreturn]] void raise(const Error& error);

template <class T>
T checked(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(result).value();
}
inline void checked(const Status& status) {
  if (!status) raise(status.error());
}

/// A buffer of Python's that nobody frees while rows are read from it.
class Buffer {
 public:
  Buffer(nb::handle object, int flags);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_ = {};
};

/// Rows for one call: a path, or a source that is read once and whatever it looks at.
struct Source {
  std::string path;
  std::unique_ptr<RowSource> rows;
  std::vector<std::shared_ptr<Buffer>> buffers;
  RowFiles files = {};  ///< that `rows` reads, for the ledger

  std::vector<std::string> columns() const { return rows ? rows->columns() : std::vector<std::string>(); }
  Rows take();
};

/// Tells a callable how far a call is, and stops the call at a signal (Ctrl-C) or when the callable raises.
class Hearing final : public Observer {
 public:
  explicit Hearing(nb::object callback, nb::object warn = nb::none())
      : callback_(std::move(callback)), warn_(std::move(warn)) {}
  void step(std::string_view name) override;
  void progress(double share) override;
  void concern(std::string_view words) override;
  void remark(std::string_view words) override;
  /// Raises what stopped the call, with `error`, which says what was charged; else the error itself.
  [[noreturn]] void raise(const Error& error);

 private:
  void tell(std::string_view name, double share);
  template <class Call>
  void with_lock(const Call& call);
  nb::object callback_;
  nb::object warn_;  ///< told of concerns; what it raises stops the call before the charge
  std::string step_;
  std::optional<nb::python_error> stopped_;
  std::chrono::steady_clock::time_point told_ = {};
};

/// What `call` gives, computed without the interpreter's lock.
template <class Call>
auto without_lock(const Call& call) {
  const nb::gil_scoped_release released;
  return call();
}

nb::object to_numpy(const Matrix& values, bool is_vector);
Matrix to_matrix(const nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& values);

void bind_sources(nb::module_& m);
void bind_calls(nb::module_& m);
void bind_planning(nb::module_& m);
void bind_models(nb::module_& m);
void bind_ledger(nb::module_& m);

}  // namespace eigenveil::python
