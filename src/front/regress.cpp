// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/front/regress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "call.hpp"
#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/estimators/regress/regress.hpp"
#include "eigenveil/front/any_model.hpp"
#include "eigenveil/front/covariance.hpp"
#include "eigenveil/job/described.hpp"
#include "eigenveil/job/manifest.hpp"
#include "eigenveil/release/kinds.hpp"

namespace eigenveil {
namespace {

/// What a regression is asked for.
struct RegressJob {
  FitJob fit;          ///< a row bound is that of the whole row: the columns, the weighted target and the constant
  std::string target;  ///< column
  std::optional<double> ridge = {};  ///< added to the mean squares of the scaled columns; none: auto
};

/// The first category of each column, with its sisters, adds up to the constant.
void add_categories(RegressOptions& options, const std::vector<ColumnSpec>& specs) {
  Eigen::Index feature = 0;
  for (const ColumnSpec& spec : specs) {
    const auto* categorical = std::get_if<CategoricalColumn>(&spec.kind);
    const Eigen::Index count = categorical != nullptr ? categorical->values.size() : 1;
    if (categorical != nullptr) options.baselines.push_back(feature);
    for (Eigen::Index i = 1; i < count; ++i) options.categories.push_back(feature + i);
    feature += count;
  }
}

/// `map`: of rows (x, y, constant).
RegressOptions options_for(const ColumnMap& map, double constant, std::optional<double> ridge) {
  const auto& names = map.feature_names();
  RegressOptions options{constant, map.offset(), map.scale(), {names.begin(), names.end() - 1}, {}};
  options.ridge = ridge;
  add_categories(options, map.specs());
  return options;
}

Result<Rivals> rivals_of(const RegressJob& job, const OpenedData& opened) {
  const ColumnMap& map = opened.map;
  const Eigen::Index d = map.scale().size() - 1;
  const auto bound = EIGENVEIL_TRY(first_bound(job.fit.rows, map));
  RegressOptions options = options_for(map, opened.shares->constant, job.ridge);
  options.complete = job.fit.rows.missing == MissingPolicy::kError;
  options.whole = bound.value() >= map.largest_norm();
  Rivals rivals;
  rivals.estimators.push_back(estimator(std::move(options)));
  std::vector<ColumnSpec> explaining(map.specs().begin(), map.specs().end() - 1);
  rivals.columns = ColumnMap::from_parts(std::move(explaining), map.offset().head(d), map.scale().head(d));
  return rivals;
}

Result<Study> study(RegressJob job) {
  RowOptions& rows = job.fit.rows;
  if (job.target.empty()) return usage_error("`target` COLUMN says which column is to be explained");
  settle_center(job.fit, false);
  if (moves_rows(rows.center))
    return usage_error(fmt::format("`center` {}: regress needs none, its constant column measures the mean",
                                   rows.center == Center::kMean ? "mean" : "private"));
  if (rows.find_row_bound.value_or(false))
    return usage_error("`row_bound` auto: regress takes the row bound that is stated, or what the ranges allow");
  rows.find_row_bound = false;
  rows.response = Response{job.target};
  const FitJob fit = job.fit;
  return Study{fit, [job = std::move(job)](const OpenedData& data) { return rivals_of(job, data); }};
}

std::optional<double> number_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

/// What a covariance says about its own noise.
Result<ReleasedMoments> moments_of(const Model& covariance) {
  const auto refused = [](const char* why) { return usage_error(fmt::format("`from`: {}", why)); };
  const auto& manifest = covariance.manifest;
  // Of a kind that has this array, so that it fits the others: a model of a kind that nobody knows may hold anything.
  const auto& arrays = kind_of(manifest).arrays;
  const bool proper =
      validate(covariance, "`from`").ok() && std::any_of(arrays.begin(), arrays.end(), [](const ModelArray& array) {
        return array.name == std::string_view("second_moments");
      });
  const Matrix* S = covariance.array("second_moments");
  if (!proper || S == nullptr || !manifest.contains("second_moments"))
    return refused(
        "the model is no covariance that holds its second moments as they were released. Those of method gram do; a "
        "spiked one is a model and has none");
  const auto& facts = manifest["second_moments"];
  const auto deviation = number_in(facts, "deviation");
  const auto mean_deviation = number_in(facts, "mean_deviation");
  const auto rows = number_in(facts, "rows");
  const Matrix& mean = *covariance.array("mean");
  if (!deviation || !mean_deviation || !rows || !(*deviation > 0) || !(*mean_deviation >= 0) || !(*rows >= 1) ||
      S->rows() != mean.size() || S->cols() != mean.size())
    return bad_input("`from`: 'second_moments' of the model are damaged; make it again");
  if (*mean_deviation == 0)
    return refused(
        "this covariance was released without a mean, and regress needs one: use covariance `center` "
        "mean");
  return ReleasedMoments{(*S + S->transpose()) / 2, *deviation, *rows, {mean.reshaped(), *mean_deviation}};
}

/// The target among the model's columns: its position there and among the features.
struct Target {
  std::size_t column;
  Eigen::Index feature;
};
Result<Target> target_among(const std::vector<ColumnSpec>& specs, const std::string& name) {
  Target target{0, 0};
  for (const ColumnSpec& spec : specs) {
    const auto* categorical = std::get_if<CategoricalColumn>(&spec.kind);
    if (spec.name == name && categorical == nullptr) return target;
    if (spec.name == name)
      return usage_error(fmt::format("`target` {}: it is categorical, and regress explains numbers; see fda", name));
    target.feature += categorical != nullptr ? categorical->values.size() : 1;
    ++target.column;
  }
  return usage_error(fmt::format("`target` {}: the covariance has no such column", name));
}

Vector without(const Vector& all, Eigen::Index position) {
  Vector rest(all.size() - 1);
  rest << all.head(position), all.tail(all.size() - position - 1);
  return rest;
}

/// Everything that the covariance was, and cost, the model is and costs.
nlohmann::json manifest_from(const nlohmann::json& covariance, const Fit& fit, std::optional<double> ridge) {
  nlohmann::json manifest = covariance;
  for (const char* key : {"second_moments", "noise_edge", "mean_deviation", "planner", "error_rates", "verdicts"})
    manifest.erase(key);
  manifest["model"] = "regress";
  manifest["method"] = ridge ? "ridge" : "shrunk";
  manifest["from"] = "covariance";
  if (ridge) manifest["options"]["ridge"] = *ridge;
  manifest.update(fit.facts);
  for (const std::string& warning : fit.warnings) manifest["warnings"].push_back(warning);
  return manifest;
}

/// From a covariance that was released before, by method gram and about a released mean.
Result<Model> regress_from(const Model& covariance, const std::string& target, std::optional<double> ridge) {
  if (ridge && !(*ridge >= 0)) return usage_error("`ridge` must be auto or at least 0");
  const auto moments = EIGENVEIL_TRY(moments_of(covariance));
  if (!covariance.manifest.contains("columns")) return bad_input("`from`: the model does not say what its columns are");
  auto specs = EIGENVEIL_TRY(columns_from_json(covariance.manifest["columns"]));
  const Target found = EIGENVEIL_TRY(target_among(specs, target));
  RegressOptions options{0,
                         covariance.array("offset")->reshaped(),
                         covariance.array("scale")->reshaped(),
                         covariance.manifest["features"],
                         {}};
  options.ridge = ridge;
  add_categories(options, specs);
  options.whole = false;  // about a mean that was not known before, any row may be too long
  Fit fit = EIGENVEIL_TRY(fit_from(moments, options, found.feature));
  specs.erase(specs.begin() + found.column);
  const auto map = ColumnMap::from_parts(std::move(specs), without(options.offset, found.feature),
                                         without(options.scale, found.feature));
  Model model{std::move(fit.arrays), manifest_from(covariance.manifest, fit, ridge)};
  model.arrays.push_back({"offset", map.offset(), true});
  model.arrays.push_back({"scale", map.scale(), true});
  add_columns(model.manifest, map);
  if (const auto valid = validate(model, "`from`"); !valid)
    return bad_input(
        "`from`: the numbers of this covariance are too large or too small to compute with; make it again");
  return model;
}

/// A guess of what the rows are like: Gaussian columns of which the target is a sum, and a rest that they do not
/// explain.
struct RegressModel {
  std::size_t rows;
  std::size_t columns;              ///< besides the target
  double explained;                 ///< share of the target's variance: R^2
  double spread;                    ///< deviation of a column, and of the target, over half of its range
  std::optional<double> row_bound;  ///< of the whole row; none: nothing that the ranges allow is shortened
};

/// How rows of the model are mapped and bounded: as a fit of such columns does it.
struct RegressRowsMap {
  ColumnMap map;
  RowBound bound;
  double constant;
};

Result<RegressRowsMap> rows_map(const RegressModel& model) {
  Schema schema;
  for (std::size_t j = 0; j <= model.columns; ++j)
    schema.columns.push_back({std::to_string(j + 1), NumericColumn{-1, 1}});
  RowOptions rows;
  if (model.row_bound) rows.row_bound = EIGENVEIL_TRY(RowBound::of(*model.row_bound));
  const auto plain = EIGENVEIL_TRY(ColumnMap::from_schema(schema, Centering::kRange));
  const ResponseShares shares = default_shares(rows, plain);
  auto map = EIGENVEIL_TRY(map_with(shares, plain));
  const auto bound = EIGENVEIL_TRY(first_bound(rows, map));
  return RegressRowsMap{std::move(map), bound, shares.constant};
}

class RegressRows final : public PublicModel {
 public:
  explicit RegressRows(const RegressModel& model) : model_(model) {}
  std::size_t rows() const override { return model_.rows; }
  std::size_t columns() const override { return model_.columns + 2; }  // and the target, and the constant

  Status check() const override {
    if (model_.rows < 2) return usage_error("`rows` must be at least 2");
    if (model_.columns < 1) return usage_error("`columns` must be at least 1");
    if (!(model_.explained > 0 && model_.explained < 1))
      return usage_error(fmt::format("`explained` must lie in (0, 1), but is {}", model_.explained));
    if (!(model_.spread > 0 && model_.spread <= 1))
      return usage_error(fmt::format("`spread` must lie in (0, 1], but is {}", model_.spread));
    const auto mapped = rows_map(model_);
    if (!mapped) return mapped.error();
    return {};
  }

  // The truth is what the same rows say without noise: there is no sampling error in a forecast.
  Result<Sample> draw(std::size_t rows, int threads) const override {
    constexpr std::size_t kNumbers = std::size_t{1} << 21;
    const std::size_t count =
        std::clamp<std::size_t>(kNumbers / (model_.columns + 1), std::min<std::size_t>(rows, 200), rows);
    const auto mapped = EIGENVEIL_TRY(rows_map(model_));
    BoundingOptions options{.bound = mapped.bound};
    options.threads = threads;
    Sample sample{.seeds = {0, 1, 2, 3}};
    MemorySource source(drawn(count));
    auto bounded = EIGENVEIL_TRY(BoundedRows::read(source, mapped.map, options));
    sample.draws.push_back({std::move(bounded)});
    return sample;
  }

 private:
  // y = s (sqrt(r) sum_k g_k / sqrt(d) + sqrt(1 - r) g), x_k = s g_k
  RowMajorMatrix drawn(Eigen::Index n) const {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    const Eigen::Index d = model_.columns;
    RowMajorMatrix rows = RowMajorMatrix::NullaryExpr(n, d + 1, [&] { return normal(random); });
    rows.col(d) = std::sqrt(model_.explained / static_cast<double>(d)) * rows.leftCols(d).rowwise().sum() +
                  std::sqrt(1 - model_.explained) * rows.col(d);
    return model_.spread * rows;
  }

  RegressModel model_;
};

/// How far the coefficients will be from those of the same rows without privacy noise.
Result<ForecastRequest> forecast_of(std::size_t rows, std::size_t columns, const Budget& budget, const Stated& stated) {
  const double explained = EIGENVEIL_TRY(stated.number("explained"));
  const double spread = EIGENVEIL_TRY(stated.number("spread"));
  const auto row_bound = EIGENVEIL_TRY(stated.number_unless("row_bound", ""));
  const RegressModel model{rows, columns, explained, spread, row_bound};
  const auto ridge = EIGENVEIL_TRY(stated.number_unless("ridge", "auto"));
  ForecastRequest request{.task = "regress", .model = std::make_shared<RegressRows>(model), .budget = budget};
  request.remedies = "Gather more rows, use fewer columns, spend more epsilon, or tighten the ranges.";
  request.subject = "The coefficients";
  request.facts = {{"columns", model.columns}, {"explained", model.explained}, {"spread", model.spread}};
  request.contenders.push_back({[model, ridge](std::size_t) {
    const auto mapped = rows_map(model);  // which `check` has seen
    return estimator(options_for(mapped->map, mapped->constant, ridge));
  }});
  return request;
}

Result<Study> study_of(FitJob fit, const Stated& stated) {
  const auto ridge = EIGENVEIL_TRY(stated.number_unless("ridge", "auto"));
  return study({std::move(fit), stated.text("target"), ridge});
}

Result<Model> model_from(const Model& covariance, const Stated& stated) {
  return regress_from(covariance, stated.text("target"), EIGENVEIL_TRY(stated.number_unless("ridge", "auto")));
}

}  // namespace

DescribedFit regress_fit() {
  return {
      .name = "regress",
      .title = "Private linear regression of one column on the others",
      .options = {{"target", "Column to explain: a number with a public range"},
                  {"ridge",
                   "Added to the mean squares of the scaled columns, or auto: coefficients shrink as noise and data "
                   "ask",
                   "auto"}},
      .examples =
          "Examples:\n"
          "  eigenveil regress examples/patients.csv `schema` examples/patients.toml `target` systolic \\\n"
          "      `epsilon` 1 `delta` 1e-6\n"
          "  eigenveil regress `from` covariance.npz `target` weight\n"
          "Intervals count privacy noise and sampling error: docs/methods/regress.md.",
      .study = study_of,
      .from_meaning = "Covariance that was released with a private mean, instead of DATA: any target, free",
      .from = model_from,
      .guesses = {{"explained", "A public guess: share of the target that the columns explain", "0.5"},
                  {"spread", "A public guess: deviation of a column over half of its range", "0.3"},
                  {"ridge", "As for a fit", "auto"},
                  {"row_bound", "Bound on the norm of a whole row (default: none is needed)", ""}},
      .no_feature = "target",
      .plan_title = "The same for a linear regression",
      .plan_examples =
          "The regression itself is run on rows as you guess them, against the same rows without privacy noise.\n"
          "Example:\n"
          "  eigenveil plan regress `rows` 50000 `columns` 8 `epsilon` 1 `delta` 1e-6",
      .forecast = forecast_of};
}

namespace {

std::optional<Estimated> estimated_in(const nlohmann::json& object) {
  const auto number = [&](const char* key) -> std::optional<double> {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
  const auto value = number("value"), lower = number("lower"), upper = number("upper");
  if (!value) return std::nullopt;
  return Estimated{*value, lower && upper ? std::optional(Interval{*lower, *upper}) : std::nullopt};
}

}  // namespace

Regress::Regress(std::shared_ptr<const Model> model)
    : PublishedDirections(std::move(model)),
      coefficients(array("coefficients").reshaped()),
      intercept(array("intercept")(0, 0)) {
  const nlohmann::json& manifest = this->model().manifest;
  target = manifest.value("target", "");
  for (const auto& one : manifest.value("coefficients", nlohmann::json::array()))
    if (const auto found = estimated_in(one); found && one.contains("name") && one["name"].is_string())
      intervals.push_back({one["name"], *found});
  residual_variance = estimated_in(manifest.value("residual_variance", nlohmann::json()));
  r_squared = estimated_in(manifest.value("r_squared", nlohmann::json()));
}

Result<Regress> Regress::load(const std::string& path) { return front::load<Regress>(path, "regress"); }

Result<Vector> Regress::predict(const Rows& rows) const {
  const Matrix scores = EIGENVEIL_TRY(transform(rows));
  return Vector(scores.reshaped());
}

namespace {

Result<Study> study_of(const Rows& rows, const Regress::Options& options, const Spending& spending) {
  auto fit = EIGENVEIL_TRY(front::fit_job(rows, options, spending));
  return study({std::move(fit), options.target.value(), options.ridge});
}

}  // namespace

Result<Regress> regress(const Rows& rows, const Regress::Options& options, const Spending& spending) {
  return front::publish_study<Regress>(options.observer, [&] { return study_of(rows, options, spending); });
}

Result<std::vector<Cost>> regress_cost(const Rows& rows, const Regress::Options& options, const Spending& spending,
                                       std::optional<Eigen::Index> expected) {
  return front::costs(study_of(rows, options, spending), expected);
}

Result<Regress> Covariance::regress(const std::string& target, std::optional<double> ridge) const {
  return Regress(std::make_shared<const Model>(EIGENVEIL_TRY(regress_from(model(), target, ridge))));
}

Result<AnyModel> AnyModel::regress(const std::string& target, std::optional<double> ridge) const {
  return AnyModel(Regress(std::make_shared<const Model>(EIGENVEIL_TRY(regress_from(model(), target, ridge)))));
}

}  // namespace eigenveil
