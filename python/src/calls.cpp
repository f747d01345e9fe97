// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "core.hpp"

namespace eigenveil::python {
namespace {

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

const std::map<std::string, PcaMethod> kPcaMethods = {{"gram", PcaMethod::kGram},
                                                      {"power", PcaMethod::kPower},
                                                      {"sparse-power", PcaMethod::kSparsePower},
                                                      {"adaptive-power", PcaMethod::kAdaptivePower},
                                                      {"spiked", PcaMethod::kSpiked}};
const std::map<std::string, Adjacency> kAdjacencies = {{"replace-one", Adjacency::kReplaceOne},
                                                       {"add-remove-one", Adjacency::kAddRemoveOne}};
const std::map<std::string, Accounting> kAccountings = {{"tight", Accounting::kTight}, {"zcdp", Accounting::kZcdp}};

// "auto": the best forecast.
void take_method(Given& given, std::optional<PcaMethod>& method) {
  if (given.has("method") && given.cast<std::string>("method") == "auto")
    method.reset();
  else
    given.choose("method", method, kPcaMethods);
}

/// (name, lower, upper) or (name, values, other): a column of a schema.
Schema schema_of(nb::handle columns) {
  Schema schema;
  for (nb::handle one : columns) {
    const auto name = nb::cast<std::string>(one[0]);
    if (nb::isinstance<nb::list>(one[1])) {
      CategoricalColumn column{nb::cast<std::vector<std::string>>(one[1]), {}};
      if (!nb::object(one[2]).is_none()) column.other = nb::cast<std::size_t>(one[2]);
      schema.columns.push_back({name, std::move(column)});
    } else {
      schema.columns.push_back({name, NumericColumn{nb::cast<double>(one[1]), nb::cast<double>(one[2])}});
    }
  }
  return schema;
}

template <class Options>
void take_run(Given& given, Options& options) {
  given.take("threads", options.threads);
  given.take("memory", options.memory);
}

template <class Options>
void take_rows(Given& given, Options& options) {
  given.take("row_bound", options.row_bound);
  given.take("private_row_bound", options.private_row_bound);
  if (given.has("ranges"))
    for (auto& [lower, upper, column] : given.cast<std::vector<std::tuple<double, double, std::string>>>("ranges"))
      options.ranges.push_back({lower, upper, column});
  given.take("schema", options.schema);
  if (given.has("bounds")) options.bounds = schema_of(given.cast<nb::object>("bounds"));
  given.choose<Center>(
      "center", options.center,
      {{"none", Center::kNone}, {"range", Center::kRange}, {"mean", Center::kMean}, {"private", Center::kPrivate}});
  given.choose<MissingPolicy>("missing", options.missing,
                              {{"error", MissingPolicy::kError}, {"zero-row", MissingPolicy::kZeroRow}});
  given.take("columns", options.columns);
  given.choose<HeaderRule>("header", options.header, {{"yes", HeaderRule::kYes}, {"no", HeaderRule::kNo}});
  if (given.has("delimiter")) {
    const auto word = given.cast<std::string>("delimiter");
    const auto found = delimiter_from_name(word);
    if (!found) raise(usage_error("`delimiter` must be one character or its name, but is '" + word + "'"));
    options.delimiter = *found;
  }
  given.take("fields", options.fields);
  given.take("member", options.member);
  take_run(given, options);
}

template <class Options>
void take_gep(Given& given, Options& options) {
  given.choose<GepNoise>("noise", options.noise, {{"once", GepNoise::kOnce}, {"each-step", GepNoise::kEachStep}});
  given.take("sparsity", options.sparsity);
  given.choose<GepStart>("init", options.init,
                         {{"auto", GepStart::kAuto}, {"random", GepStart::kRandom}, {"admm", GepStart::kAdmm}});
  given.take("step", options.step);
  given.take("rounds", options.rounds);
  given.take("ridge", options.ridge);
}

template <class Options>
void take_spectrum(Given& given, Options& options) {
  take_method(given, options.method);
  given.take("rank", options.rank);
  given.choose<Guarantee>("guarantee", options.guarantee,
                          {{"strict", Guarantee::kStrict}, {"model", Guarantee::kModel}});
  given.take("noise_variance", options.noise_variance);
  given.take("spike", options.spike);
  given.take("spectrum", options.spectrum);
  given.take("expected_rows", options.expected_rows);
  given.take("signal_share", options.signal_share);
}

Pca::Options pca_options(Given& given) {
  Pca::Options options{.components = given.required<Eigen::Index>("components")};
  take_rows(given, options);
  take_spectrum(given, options);
  given.take("sparsity", options.sparsity);
  given.take("rounds", options.rounds);
  given.choose<RowFilter>("filter", options.filter,
                          {{"off", RowFilter::kOff}, {"shrink", RowFilter::kShrink}, {"drop", RowFilter::kDrop}});
  given.take("grid_ratio", options.grid_ratio);
  return options;
}

Covariance::Options covariance_options(Given& given) {
  Covariance::Options options;
  take_rows(given, options);
  take_spectrum(given, options);
  given.take("dense", options.dense);
  return options;
}

Regress::Options regress_options(Given& given) {
  Regress::Options options{.target = given.required<std::string>("target")};
  given.take("ridge", options.ridge);
  take_rows(given, options);
  return options;
}

Cca::Options cca_options(Given& given) {
  Cca::Options options{.components = given.required<Eigen::Index>("components"),
                       .x_columns = given.required<std::vector<std::string>>("x_columns"),
                       .y_columns = given.required<std::vector<std::string>>("y_columns")};
  take_rows(given, options);
  take_gep(given, options);
  return options;
}

Fda::Options fda_options(Given& given) {
  Fda::Options options{.components = given.required<Eigen::Index>("components"),
                       .label = given.required<std::string>("label")};
  given.take("classes", options.classes);
  given.take("drop_unlisted", options.drop_unlisted);
  take_rows(given, options);
  take_gep(given, options);
  return options;
}

Sir::Options sir_options(Given& given) {
  Sir::Options options{.components = given.required<Eigen::Index>("components"),
                       .response = given.required<std::string>("response")};
  if (given.has("response_range")) {
    const auto [lower, upper] = given.cast<std::pair<double, double>>("response_range");
    options.response_range = NumericColumn{lower, upper};
  }
  given.take("slices", options.slices);
  given.take("private_slices", options.private_slices);
  given.take("cuts", options.cuts);
  take_rows(given, options);
  take_gep(given, options);
  return options;
}

Gep::Options gep_options(Given& given) {
  Gep::Options options{.components = given.required<Eigen::Index>("components"),
                       .sensitivity_a = given.required<double>("sensitivity_a"),
                       .sensitivity_b = given.required<double>("sensitivity_b"),
                       .rows = given.required<Eigen::Index>("rows")};
  take_gep(given, options);
  take_run(given, options);
  return options;
}

Clip::Options clip_options(Given& given) {
  Clip::Options options;
  given.take("dim", options.dim);
  const std::map<std::string, ClipMethod> methods = {{"cross", ClipMethod::kCross},
                                                     {"whitened", ClipMethod::kWhitened},
                                                     {"batch", ClipMethod::kBatch},
                                                     {"pair", ClipMethod::kPair}};
  given.choose("method", options.method, methods);
  given.take("objective", options.objective);
  given.take("temperature", options.temperature);
  given.take("clip", options.clip);
  given.take("sample_rate", options.sample_rate);
  given.take("steps", options.steps);
  given.choose<Optimizer>("optimizer", options.optimizer, {{"sgd", Optimizer::kSgd}, {"adam", Optimizer::kAdam}});
  given.take("lr", options.lr);
  given.choose("start", options.start, methods);
  take_run(given, options);
  return options;
}

Spending spending_of(Given& given) {
  LedgerChoice ledger = Ledger::none();
  if (given.has("ledger")) {
    const auto path = given.cast<std::string>("ledger");
    ledger = path.empty() ? Ledger::standard() : Ledger::at(path, {});
    given.take("dataset", ledger.dataset);
  } else if (given.has("dataset")) {
    raise(usage_error("`dataset` names who pays, but there is no `ledger`"));
  }
  Spending spending{.epsilon = given.required<double>("epsilon"),
                    .delta = given.required<double>("delta"),
                    .ledger = std::move(ledger)};
  given.choose("adjacency", spending.adjacency, kAdjacencies);
  given.choose("accounting", spending.accounting, kAccountings);
  given.take("insecure_seed", spending.insecure_seed);
  return spending;
}

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
             nb::object callback) {
  Call call(kind, sources, std::move(options), std::move(spending));
  Hearing hearing(std::move(callback));
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
    nb::dict answers;
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

void bind_calls(nb::module_& m) {
  m.def("fit", &fit, nb::arg("kind"), nb::arg("sources"), nb::arg("options"), nb::arg("spending"),
        nb::arg("callback").none());
  m.def("cost", &cost, nb::arg("kind"), nb::arg("sources"), nb::arg("options"), nb::arg("spending"),
        nb::arg("expected").none());
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
