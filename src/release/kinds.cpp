// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/release/kinds.hpp"

#include <fmt/format.h>

namespace eigenveil {
namespace {
namespace rows_of_table {

constexpr Extent K = Extent::kDirections;
constexpr Extent d = Extent::kFeatures;
constexpr Extent d1 = Extent::kFirstView;
constexpr Extent d2 = Extent::kSecondView;
constexpr Extent C = Extent::kGroups;

/// What every projection of rows has beside its directions.
std::vector<ModelArray> with_map(std::vector<ModelArray> arrays) {
  arrays.insert(arrays.end(), {{"mean", d}, {"offset", d}, {"scale", d}});
  return arrays;
}

/// What a verdict adds (job/verdicts.hpp): `estimate`, `low` and `high` of the values; how many degrees a direction is
/// expected to be off; its standing (verdict/standing.hpp) and the run of directions that it was found with.
std::vector<ModelArray> with_verdict(std::vector<ModelArray> arrays, std::vector<ModelArray> own) {
  for (ModelArray& array : own) array.optional = true;
  arrays.insert(arrays.end(), own.begin(), own.end());
  for (const char* name : {"angle", "verdict", "verdict_first", "verdict_last", "variance_share", "variance_share_low",
                           "variance_share_high"})
    arrays.push_back({name, K, Extent::kNone, true});
  return arrays;
}

/// Sigma = components^T (diag(eigenvalues) - noise_variance I) components + noise_variance I.
ModelKind of_covariance() {
  return {.arrays = with_verdict(with_map({{"components", K, d},
                                           {"eigenvalues", K},
                                           {"noise_variance", Extent::kOne, Extent::kNone, true},
                                           {"covariance", d, d, true},
                                           {"correlation", d, d, true},
                                           {"spread", d, Extent::kNone, true}}),
                                 {{"eigenvalues_estimate", K},
                                  {"eigenvalues_low", K},
                                  {"eigenvalues_high", K},
                                  {"components_deviation", K, d}}),
          .keys = {{"noise_edge", Holds::kNumber},
                   {"mean_deviation", Holds::kNumber},
                   {"verdicts", Holds::kObject},
                   {"verdicts.sentence", Holds::kText},
                   {"verdicts.standing", Holds::kTexts},
                   {"verdicts.how", Holds::kText},
                   {"verdicts.explained", Holds::kObject},
                   {"second_moments", Holds::kObject},
                   {"second_moments.deviation", Holds::kNumber},
                   {"second_moments.mean_deviation", Holds::kNumber},
                   {"second_moments.rows", Holds::kNumber},
                   {"left_out", Holds::kList},
                   {"classes", Holds::kTexts},
                   {"score_plot", Holds::kObject},
                   {"score_plot.sentence", Holds::kText},
                   {"score_plot.deviation", Holds::kNumber},
                   {"options.scale", Holds::kText},
                   {"pilot", Holds::kObject},
                   {"pilot.chosen", Holds::kText},
                   {"pilot.sentence", Holds::kText},
                   {"planner", Holds::kObject},
                   {"planner.chosen", Holds::kText},
                   {"planner.forecasts", Holds::kList},
                   {"error_rates", Holds::kObject}},
          .scores = {{"components", "pc"}},
          .values = "eigenvalues",
          .value = "eigenvalue",
          .meaning = "The eigenvalue of a component is the variation of the rows along it, after noise.",
          .number = "PC",
          .item = "component",
          .bars = true,
          .figures = {{"noise_edge", "Noise alone would give eigenvalues up to about {:.4g}."}},
          .json_keys = {"guarantee_kind", "planner", "pilot", "calibration", "error_rates", "assumed_sensitivity",
                        "noise_edge", "verdicts", "left_out", "score_plot"},
          .json_arrays = {"noise_variance", "eigenvalues", "eigenvalues_estimate", "eigenvalues_low",
                          "eigenvalues_high", "angle", "variance_share", "variance_share_low", "variance_share_high"}};
}

ModelKind pca_kind() {
  ModelKind kind = of_covariance();
  kind.name = "pca";
  kind.title = "Principal components";
  kind.one = "1 principal component";
  kind.many = "{} principal components";
  return kind;
}

ModelKind covariance_kind() {
  ModelKind kind = of_covariance();
  kind.name = "covariance";
  kind.arrays.push_back({"second_moments", d, d, true});
  kind.title = "Covariance matrix";
  kind.one = kind.many = "the covariance";
  return kind;
}

/// A V = B V diag(values)
ModelKind of_two_matrices(std::vector<ModelArray> arrays, std::vector<ModelArray> judged, std::vector<Scores> scores) {
  return {.method = "noise",
          .arrays = with_verdict(with_map(std::move(arrays)), std::move(judged)),
          .keys = {{"noise_edge", Holds::kNumber},
                   {"ridge", Holds::kNumber},
                   {"verdicts", Holds::kObject},
                   {"verdicts.sentence", Holds::kText},
                   {"verdicts.standing", Holds::kTexts},
                   {"verdicts.how", Holds::kText}},
          .scores = std::move(scores),
          .values = "eigenvalues",
          .value = "eigenvalue",
          .figures = {{"noise_edge", "Noise alone would give values up to about {:.4g}."},
                      {"ridge", "Ridge on B: {:.4g}."}},
          .json_keys = {"calibration", "ridge", "noise_edge", "verdicts"},
          .json_arrays = {"eigenvalues", "eigenvalues_estimate", "eigenvalues_low", "eigenvalues_high", "angle"}};
}

ModelKind cca_kind() {
  ModelKind kind = of_two_matrices({{"x_weights", d1, K}, {"y_weights", d2, K}, {"correlations", K}},
                                   {{"correlations_estimate", K},
                                    {"correlations_low", K},
                                    {"correlations_high", K},
                                    {"x_weights_deviation", d1, K},
                                    {"y_weights_deviation", d2, K}},
                                   {{"x_weights", "x"}, {"y_weights", "y"}});
  kind.name = "cca";
  kind.title = "Canonical correlations";
  kind.one = "1 canonical pair";
  kind.many = "{} canonical pairs";
  kind.keys.push_back({"x_features", Holds::kCount});
  kind.keys.push_back({"mean_deviation", Holds::kNumber});
  kind.values = "correlations";
  kind.value = "correlation";
  kind.meaning = "The correlation between the two views along a pair of directions, after noise.";
  kind.item = "pair";
  kind.json_arrays = {"correlations", "correlations_estimate", "correlations_low", "correlations_high", "angle"};
  return kind;
}

ModelKind fda_kind() {
  ModelKind kind = of_two_matrices(
      {{"scalings", d, K}, {"eigenvalues", K}, {"class_means", C, d}, {"priors", C}},
      {{"eigenvalues_estimate", K}, {"eigenvalues_low", K}, {"eigenvalues_high", K}, {"scalings_deviation", d, K}},
      {{"scalings", "ld"}});
  kind.name = "fda";
  kind.title = "Discriminant directions";
  kind.one = "1 discriminant direction";
  kind.many = "{} discriminant directions";
  kind.keys.push_back({"classes", Holds::kTexts});
  kind.groups = "classes";
  kind.prediction = Prediction::kClass;
  kind.meaning =
      "The eigenvalue of a direction is how far classes lie apart along it, over how far rows of one class spread, "
      "after noise.";
  kind.json_keys.emplace_back("classes");
  return kind;
}

ModelKind sir_kind() {
  ModelKind kind = of_two_matrices(
      {{"directions", d, K}, {"eigenvalues", K}, {"slice_means", C, d, true}, {"priors", C, Extent::kNone, true}},
      {{"eigenvalues_estimate", K}, {"eigenvalues_low", K}, {"eigenvalues_high", K}, {"directions_deviation", d, K}},
      {{"directions", "sir"}});
  kind.name = "sir";
  kind.title = "Sliced inverse regression";
  kind.one = "1 regression direction";
  kind.many = "{} regression directions";
  kind.keys.push_back({"slices", Holds::kTexts});
  kind.groups = "slices";
  kind.meaning =
      "The eigenvalue of a direction is the share of its variation that the slices of the response explain, after "
      "noise.";
  kind.json_keys.emplace_back("slices");
  return kind;
}

ModelKind gep_kind() {
  ModelKind kind = of_two_matrices(
      {{"vectors", d, K}, {"eigenvalues", K}},
      {{"eigenvalues_estimate", K}, {"eigenvalues_low", K}, {"eigenvalues_high", K}, {"vectors_deviation", d, K}},
      {{"vectors", "v"}});
  kind.name = "gep";
  kind.of_rows = false;
  kind.title = "Generalized eigenvectors";
  kind.one = "1 generalized eigenvector";
  kind.many = "{} generalized eigenvectors";
  kind.item = "vector";
  kind.meaning = "The generalized eigenvalue of a vector, after noise.";
  return kind;
}

ModelKind regress_kind() {
  return {
      .name = "regress",
      .title = "Linear regression",
      .one = "a linear regression",
      .many = "a linear regression",
      .method = "coefficients",
      .arrays = with_map({{"coefficients", d}, {"intercept", Extent::kOne}}),
      .keys = {{"target", Holds::kText},
               {"from", Holds::kText},
               {"coefficients", Holds::kList},
               {"residual_variance", Holds::kObject},
               {"r_squared", Holds::kObject},
               {"noise_edge", Holds::kNumber},
               {"least_variation", Holds::kNumber},
               {"widening", Holds::kNumber}},
      .scores = {{"coefficients", "prediction"}},
      .prediction = Prediction::kNumber,
      .meaning =
          "Coefficients are in the columns' own units. They are shrunk where noise asks for it, and predict "
          "best so; intervals are about what was not shrunk, and a coefficient may lie outside its own.",
      .estimates = {{"coefficients", "Coefficients"}, {"residual_variance", "Residual variance"}, {"r_squared", "R^2"}},
      .subject = "target",
      .figures = {{"widening", "Privacy noise makes intervals about {:.1f} times as wide as without it."}},
      .json_keys = {"target", "coefficients", "residual_variance", "r_squared", "widening", "noise_edge",
                    "least_variation", "from"}};
}

ModelKind clip_kind() {
  return {.name = "clip",
          .title = "Joint embedding",
          .one = "a joint embedding in 1 dimension",
          .many = "a joint embedding in {} dimensions",
          .rows = "pairs",
          .method = "method",
          .arrays = {{"image_weights", K, d1}, {"image_offset", K}, {"text_weights", K, d2}, {"text_offset", K}},
          .keys = {{"classes", Holds::kTexts},
                   {"prompts", Holds::kTexts},
                   {"encoders", Holds::kObject},
                   {"encoders.image", Holds::kText},
                   {"encoders.text", Holds::kText},
                   {"encoders.height", Holds::kCount},
                   {"encoders.width", Holds::kCount},
                   {"encoders.channels", Holds::kCount},
                   {"encoders.lower", Holds::kNumber},
                   {"encoders.upper", Holds::kNumber}},
          .heads = true,
          .json_keys = {"options", "classes"}};
}

}  // namespace rows_of_table
}  // namespace

const std::vector<ModelKind>& model_kinds() {
  using namespace rows_of_table;  // NOLINT(google-build-using-namespace)
  static const std::vector<ModelKind> kinds = {pca_kind(), covariance_kind(), cca_kind(),     fda_kind(),
                                               sir_kind(), gep_kind(),        regress_kind(), clip_kind()};
  return kinds;
}

const ModelKind& kind_of(const nlohmann::json& manifest) {
  static const ModelKind unknown{.title = "Model", .one = "a model", .many = "a model"};
  const auto name = manifest.is_object() ? manifest.find("model") : manifest.end();
  if (!manifest.is_object() || name == manifest.end() || !name->is_string()) return unknown;
  for (const ModelKind& kind : model_kinds())
    if (name->get_ref<const std::string&>() == kind.name) return kind;
  return unknown;
}

std::string kinds_in_words(bool (*is)(const ModelKind& kind)) {
  std::vector<std::string_view> names;
  for (const ModelKind& kind : model_kinds())
    if (is(kind)) names.push_back(kind.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace eigenveil
