// SPDX-License-Identifier: Apache-2.0
// What comes before a release: forecasts and accounts.
#include "options.hpp"

namespace eigenveil::python {
namespace {

std::pair<std::string, std::string> made_forecast(nb::dict what, nb::object callback) {
  Given given(std::move(what));
  ForecastOptions options{.task = given.required<std::string>("task"),
                          .rows = given.required<Eigen::Index>("rows"),
                          .epsilon = given.required<double>("epsilon"),
                          .delta = given.required<double>("delta")};
  given.choose("adjacency", options.adjacency, kAdjacencies);
  given.take("columns", options.columns);
  given.take("x_columns", options.x_columns);
  given.take("y_columns", options.y_columns);
  given.take("components", options.components);
  given.take("sparsity", options.sparsity);
  given.take("row_bound", options.row_bound);
  given.take("spectrum", options.spectrum);
  given.take("gap", options.gap);
  given.take("decay", options.decay);
  given.take("signal_share", options.signal_share);
  given.take("rank", options.rank);
  given.take("correlation", options.correlation);
  given.take("classes", options.classes);
  given.take("separation", options.separation);
  given.take("slices", options.slices);
  given.take("explained", options.explained);
  given.take("spread", options.spread);
  given.take("ridge", options.ridge);
  given.take("batch", options.batch);
  given.take("steps", options.steps);
  given.take("target_error", options.target_error);
  given.take("curves", options.curves);
  given.take("threads", options.threads);
  given.finish();
  Hearing hearing(std::move(callback));
  options.observer = &hearing;
  auto found = without_lock([&] { return forecast(options); });
  if (!found) hearing.raise(found.error());
  return {found->json, found->svg};
}

Accounting accounting_of(const std::string& word) {
  const auto found = kAccountings.find(word);
  if (found == kAccountings.end()) raise(usage_error("`accounting` must be tight or zcdp, but is '" + word + "'"));
  return found->second;
}

}  // namespace

void bind_planning(nb::module_& m) {
  m.def("forecast", &made_forecast, nb::arg("options"), nb::arg("callback").none());
  m.def("account_epsilon", [](const std::vector<std::string>& events, double delta, const std::string& accounting) {
    const Accounting chosen = accounting_of(accounting);
    return checked(without_lock([&] { return account_epsilon(events, delta, chosen); }));
  });
  m.def("account_delta", [](const std::vector<std::string>& events, double epsilon, const std::string& accounting) {
    const Accounting chosen = accounting_of(accounting);
    return checked(without_lock([&] { return account_delta(events, epsilon, chosen); }));
  });
  m.def("calibrate",
        [](const std::vector<std::string>& events, double epsilon, double delta, const std::string& accounting) {
          const Accounting chosen = accounting_of(accounting);
          return checked(without_lock([&] { return calibrate_events(events, epsilon, delta, chosen); }));
        });
}

}  // namespace eigenveil::python
