// SPDX-License-Identifier: Apache-2.0
// eigenveil._core: include/eigenveil/eigenveil.hpp for Python. Arguments become structs, errors become exceptions, and
// nothing else happens here; eigenveil/*.py gives it the manners of scikit-learn.
#include <omp.h>

#include "core.hpp"
#include "eigenveil/base/version.hpp"

namespace eigenveil::python {

void raise(const Error& error) {
  const char* kind = error.code == ErrorCode::kUsage           ? "UsageError"
                     : error.code == ErrorCode::kBadInput      ? "BadInput"
                     : error.code == ErrorCode::kBudgetRefused ? "BudgetRefused"
                                                               : "InternalError";
  const nb::object type = nb::module_::import_("eigenveil._errors").attr(kind);
  PyErr_SetString(type.ptr(), error.message.c_str());
  throw nb::python_error();
}

void Hearing::step(std::string_view name) {
  step_ = name;
  tell(step_, 0);
}

void Hearing::progress(double share) {
  constexpr auto kPause = std::chrono::milliseconds(50);
  if (std::chrono::steady_clock::now() - told_ >= kPause) tell(step_, share);
}

// Signals are handled by Python's main thread alone; in others this only looks.
void Hearing::tell(std::string_view name, double share) {
  told_ = std::chrono::steady_clock::now();
  with_lock([&] {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!callback_.is_none()) callback_(nb::str(name.data(), name.size()), share);
  });
}

void Hearing::concern(std::string_view words) {
  with_lock([&] {
    if (!warn_.is_none()) warn_(nb::str(words.data(), words.size()));
  });
}

// To the log, not a warning: whoever makes errors of warnings would let rows decide how a run ends.
void Hearing::remark(std::string_view words) {
  with_lock([&] {
    nb::module_::import_("logging").attr("getLogger")("eigenveil").attr("warning")(nb::str(words.data(), words.size()));
  });
}

template <class Call>
void Hearing::with_lock(const Call& call) {
  const nb::gil_scoped_acquire acquired;
  try {
    call();
    return;
  } catch (nb::python_error& error) {
    stopped_.emplace(std::move(error));
  }
  throw Interrupted();
}

void Hearing::raise(const Error& error) {
  if (!stopped_) python::raise(error);
  if (stopped_->matches(PyExc_KeyboardInterrupt)) {
    PyErr_SetString(PyExc_KeyboardInterrupt, error.message.c_str());
    throw nb::python_error();
  }
  nb::borrow(stopped_->value()).attr("add_note")(error.message);
  throw std::move(*stopped_);
}

}  // namespace eigenveil::python

NB_MODULE(_core, m) {
  using namespace eigenveil::python;
  m.attr("version") = eigenveil::version();
  // GNU's OpenMP does not survive a fork: a child goes on with one thread of it. Threads of ours are new ones always.
  m.def("after_fork", [] { omp_set_num_threads(1); });
  bind_sources(m);
  bind_calls(m);
  bind_planning(m);
  bind_models(m);
  bind_ledger(m);
}
