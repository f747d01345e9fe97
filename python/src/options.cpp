// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <charconv>

namespace eigenveil::python {

const std::map<std::string, Adjacency> kAdjacencies = {{"replace-one", Adjacency::kReplaceOne},
                                                       {"add-remove-one", Adjacency::kAddRemoveOne}};
const std::map<std::string, Accounting> kAccountings = {{"tight", Accounting::kTight}, {"zcdp", Accounting::kZcdp}};

namespace {

const std::map<std::string, PcaMethod> kPcaMethods = {{"gram", PcaMethod::kGram},
                                                      {"power", PcaMethod::kPower},
                                                      {"sparse-power", PcaMethod::kSparsePower},
                                                      {"adaptive-power", PcaMethod::kAdaptivePower},
                                                      {"spiked", PcaMethod::kSpiked},
                                                      {"sphere", PcaMethod::kSphere},
                                                      {"pilot", PcaMethod::kPilot}};

// "auto": the best forecast.
void take_method(Given& given, std::optional<PcaMethod>& method) {
  if (given.has("method") && given.cast<std::string>("method") == "auto")
    method.reset();
  else
    given.choose("method", method, kPcaMethods);
}

/// (name, lower, upper[, missing]) or (name, values, other[, missing, weight]): a column of a schema.
Schema schema_of(nb::handle columns) {
  Schema schema;
  for (nb::handle one : columns) {
    const auto name = nb::cast<std::string>(one[0]);
    if (nb::isinstance<nb::list>(one[1])) {
      CategoricalColumn column{nb::cast<std::vector<std::string>>(one[1]), {}};
      if (!nb::object(one[2]).is_none()) column.other = nb::cast<std::size_t>(one[2]);
      if (nb::len(one) > 3 && !nb::object(one[3]).is_none()) column.missing = nb::cast<std::size_t>(one[3]);
      if (nb::len(one) > 4) column.weight = nb::cast<double>(one[4]);
      schema.columns.push_back({name, std::move(column)});
    } else {
      NumericColumn column{nb::cast<double>(one[1]), nb::cast<double>(one[2])};
      if (nb::len(one) > 3 && !nb::object(one[3]).is_none()) column.missing = nb::cast<double>(one[3]);
      schema.columns.push_back({name, column});
    }
  }
  return schema;
}

template <class Options>
void take_run(Given& given, Options& options) {
  given.take("threads", options.threads);
  given.take("memory", options.memory);
}

/// "equal", or "rows:M".
std::size_t least_rows(const std::string& weight) {
  std::size_t least = 0;
  const char* end = weight.data() + weight.size();
  if (weight == "equal") return 1;
  if (weight.starts_with("rows:"))
    if (const auto read = std::from_chars(weight.data() + 5, end, least); read.ec == std::errc() && read.ptr == end)
      return least;
  raise(usage_error("`person_weight` must be equal or rows:M such as rows:20, but is '" + weight + "'"));
}

template <class Options>
void take_person(Given& given, Options& options) {
  std::string weight = "equal";
  PersonOptions person;
  given.take("person_weight", weight);
  given.take("max_rows_per_person", person.most_rows);
  given.choose<bool>("missing_person", person.missing_is_own, {{"error", false}, {"own", true}});
  person.least_rows = least_rows(weight);
  if (!given.has("person")) {
    if (weight != "equal" || person.most_rows || person.missing_is_own)
      raise(usage_error("`person` must name the column that says whose a row is"));
    return;
  }
  person.column = given.cast<std::string>("person");
  options.person = std::move(person);
}

template <class Options>
void take_rows(Given& given, Options& options) {
  given.take("row_bound", options.row_bound);
  given.take("find_row_bound", options.find_row_bound);
  if (given.has("ranges"))
    for (auto& [lower, upper, column] : given.cast<std::vector<std::tuple<double, double, std::string>>>("ranges"))
      options.ranges.push_back({lower, upper, column});
  given.take("schema", options.schema);
  if (given.has("bounds")) options.bounds = schema_of(given.cast<nb::object>("bounds"));
  given.choose<Center>(
      "center", options.center,
      {{"none", Center::kNone}, {"range", Center::kRange}, {"mean", Center::kMean}, {"private", Center::kPrivate}});
  given.choose<MissingPolicy>("missing", options.missing,
                              {{"error", MissingPolicy::kError},
                               {"zero-row", MissingPolicy::kZeroRow},
                               {"value", MissingPolicy::kValue},
                               {"category", MissingPolicy::kCategory}});
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
  take_person(given, options);
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
  given.choose<Scale>("scale", options.scale, {{"range", Scale::kRange}, {"correlation", Scale::kCorrelation}});
  given.take("rank", options.rank);
  given.choose<Guarantee>("guarantee", options.guarantee,
                          {{"strict", Guarantee::kStrict}, {"model", Guarantee::kModel}});
  given.take("noise_variance", options.noise_variance);
  given.take("spike", options.spike);
  given.take("spectrum", options.spectrum);
  given.take("expected_rows", options.expected_rows);
  given.take("signal_share", options.signal_share);
}

}  // namespace

Pca::Options pca_options(Given& given) {
  Pca::Options options{.components = given.required<Eigen::Index>("components")};
  take_rows(given, options);
  take_spectrum(given, options);
  given.take("sparsity", options.sparsity);
  given.take("rounds", options.rounds);
  given.choose<RowFilter>("filter", options.filter,
                          {{"off", RowFilter::kOff}, {"shrink", RowFilter::kShrink}, {"drop", RowFilter::kDrop}});
  given.take("grid_ratio", options.grid_ratio);
  given.take("start", options.start);
  given.take("score_plot", options.score_plot);
  given.take("label", options.label);
  given.take("classes", options.classes);
  given.take("drop_unlisted", options.drop_unlisted);
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
  given.take("person", options.person);
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
  take_person(given, options);
  take_run(given, options);
  return options;
}

Spending spending_of(Given& given) {
  LedgerChoice ledger = Ledger::none();
  if (given.has("ledger")) {
    const auto path = given.cast<std::string>("ledger");
    ledger = path.empty() ? Ledger::standard() : Ledger::at(path, {});
    given.take("dataset", ledger.dataset);
    if (given.has("dataset") && ledger.dataset.empty())
      raise(usage_error("`dataset` is empty: say who pays, or leave it out altogether"));
  } else if (given.has("dataset")) {
    raise(usage_error("`dataset` names who pays, but there is no `ledger`"));
  }
  Spending spending{.epsilon = given.required<double>("epsilon"),
                    .delta = given.required<double>("delta"),
                    .ledger = std::move(ledger)};
  given.take("auto_delta", spending.auto_delta);
  given.choose("adjacency", spending.adjacency, kAdjacencies);
  given.choose("accounting", spending.accounting, kAccountings);
  given.take("insecure_seed", spending.insecure_seed);
  return spending;
}

}  // namespace eigenveil::python
