// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

namespace eigenveil::python {
namespace {

/// A call of any kind: `fit` for a model, `cost` for what it would be charged.
struct Call {
  std::string kind;
  Given given;
  Spending spending;
  std::vector<Rows> rows;

  Call(const std::string& name, const std::vector<Source*>& sources, nb::dict options, nb::dict what)
      : kind(name), given(std::move(options)), spending([&] {
          Given of(std::move(what));
          Spending found = spending_of(of);
          of.finish();
          return found;
        }()) {
    const std::size_t tables = kind == "gep" || kind == "clip" ? 2 : 1;
    if (sources.size() != tables)
      raise(usage_error("`" + kind + "` takes " + std::to_string(tables) + " tables of rows, but got " +
                        std::to_string(sources.size())));
    for (Source* source : sources) rows.push_back(source->take());
  }

  template <class Options>
  Options ready(Options options, Observer& observer) {
    given.finish();
    options.observer = &observer;
    return options;
  }
};

template <class Kind>
Result<AnyModel> as_any(Result<Kind> released) {
  if (!released) return released.error();
  return AnyModel(*released);
}

template <class Options, class Run>
auto run(Call& call, Options options, Observer& observer, const Run& work) {
  const Options ready = call.ready(std::move(options), observer);
  return without_lock([&] { return work(ready); });
}

Result<AnyModel> release_of(Call& call, Observer& hearing) {
  const std::vector<Rows>& rows = call.rows;
  const Spending& spending = call.spending;
  if (call.kind == "pca")
    return run(call, pca_options(call.given), hearing,
               [&](const auto& options) { return as_any(pca(rows[0], options, spending)); });
  if (call.kind == "covariance")
    return run(call, covariance_options(call.given), hearing,
               [&](const auto& options) { return as_any(covariance(rows[0], options, spending)); });
  if (call.kind == "regress")
    return run(call, regress_options(call.given), hearing,
               [&](const auto& options) { return as_any(regress(rows[0], options, spending)); });
  if (call.kind == "cca")
    return run(call, cca_options(call.given), hearing,
               [&](const auto& options) { return as_any(cca(rows[0], options, spending)); });
  if (call.kind == "fda")
    return run(call, fda_options(call.given), hearing,
               [&](const auto& options) { return as_any(fda(rows[0], options, spending)); });
  if (call.kind == "sir")
    return run(call, sir_options(call.given), hearing,
               [&](const auto& options) { return as_any(sir(rows[0], options, spending)); });
  if (call.kind == "gep")
    return run(call, gep_options(call.given), hearing,
               [&](const auto& options) { return as_any(gep(rows[0], rows[1], options, spending)); });
  if (call.kind == "clip")
    return run(call, clip_options(call.given), hearing,
               [&](const auto& options) { return as_any(clip(rows[0], rows[1], options, spending)); });
  return usage_error("there is no call '" + call.kind + "'");
}

AnyModel fit(const std::string& kind, const std::vector<Source*>& sources, nb::dict options, nb::dict spending,
             nb::object callback, nb::object warn) {
  Call call(kind, sources, std::move(options), std::move(spending));
  Hearing hearing(std::move(callback), std::move(warn));
  auto released = release_of(call, hearing);
  if (!released) hearing.raise(released.error());
  return *std::move(released);
}

nb::list cost(const std::string& kind, const std::vector<Source*>& sources, nb::dict options, nb::dict spending,
              std::optional<Eigen::Index> expected) {
  Call call(kind, sources, std::move(options), std::move(spending));
  const std::vector<Rows>& rows = call.rows;
  const Spending& spent = call.spending;
  Observer silent;
  const auto costs = [&]() -> Result<std::vector<Cost>> {
    if (kind == "pca")
      return run(call, pca_options(call.given), silent,
                 [&](const auto& o) { return pca_cost(rows[0], o, spent, expected); });
    if (kind == "covariance")
      return run(call, covariance_options(call.given), silent,
                 [&](const auto& o) { return covariance_cost(rows[0], o, spent, expected); });
    if (kind == "regress")
      return run(call, regress_options(call.given), silent,
                 [&](const auto& o) { return regress_cost(rows[0], o, spent, expected); });
    if (kind == "cca")
      return run(call, cca_options(call.given), silent,
                 [&](const auto& o) { return cca_cost(rows[0], o, spent, expected); });
    if (kind == "fda")
      return run(call, fda_options(call.given), silent,
                 [&](const auto& o) { return fda_cost(rows[0], o, spent, expected); });
    if (kind == "sir")
      return run(call, sir_options(call.given), silent,
                 [&](const auto& o) { return sir_cost(rows[0], o, spent, expected); });
    if (kind == "clip")
      return run(call, clip_options(call.given), silent,
                 [&](const auto& o) { return clip_cost(rows[0], rows[1], o, spent, expected); });
    return usage_error("there is no cost of '" + kind + "'");
  }();
  nb::list list;
  for (const Cost& one : checked(costs)) {
    nb::list events;
    for (const Cost::Answer& answer : one.answers) events.append(nb::make_tuple(answer.label, answer.mechanism));
    nb::dict entry;
    entry["method"] = one.method;
    entry["purpose"] = one.purpose;
    entry["epsilon"] = one.epsilon;
    entry["delta"] = one.delta;
    entry["answers"] = events;
    entry["model_based"] = one.model_based;
    list.append(entry);
  }
  return list;
}

}  // namespace

void bind_calls(nb::module_& m) {
  m.def("fit", &fit, nb::arg("kind"), nb::arg("sources"), nb::arg("options"), nb::arg("spending"),
        nb::arg("callback").none(), nb::arg("warn").none());
  m.def("cost", &cost, nb::arg("kind"), nb::arg("sources"), nb::arg("options"), nb::arg("spending"),
        nb::arg("expected").none());
}

}  // namespace eigenveil::python
