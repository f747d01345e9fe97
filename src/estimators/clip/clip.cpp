// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/clip/clip.hpp"

#include <fmt/format.h>

#include <cmath>

#include "eigenveil/estimators/clip/training.hpp"
#include "eigenveil/linalg/decompositions.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/privacy/gaussian_dp.hpp"
#include "prompt.hpp"

namespace eigenveil {
namespace {

constexpr const char* kCountsLabel = "class counts";
constexpr const char* kSumsLabel = "class sums";
constexpr const char* kGramLabel = "second moments";
constexpr const char* kGradientLabel = "softmax gradient";
// whitened: shares of the work's mu^2
constexpr double kCountsShare = 0.02;
constexpr double kSumsShare = 0.3;

// Pairs: the noise of S_xy, whitened on both sides, must stay well below a correlation of one, also along directions
// that a view does not have at all.
constexpr double kPairFloor = 4;

// Rows are as long as this after the mean is gone: far below their own length, so that all become equally long.
constexpr double kCentredLength = 0.02;

// batch, pair: share of mu^2 that start_by has
constexpr double kStartShare = 0.3;

bool trains(const ClipOptions& options) {
  return options.method == ClipMethod::kBatch || options.method == ClipMethod::kPair;
}

bool has_classes(const ClipOptions& options) { return options.captions.rows() > 0; }

PreparationOptions preparation(const ClipOptions& options) {
  PreparationOptions prepared{.mean = MeanBy::kOnce, .count_rows = options.count_rows};
  if (has_classes(options)) prepared.bound = *RowBound::of(kCentredLength);
  return prepared;
}

// The estimator's own events; weights^2 add up to one.
std::vector<PrivacyEvent> own_events(const ClipOptions& options) {
  const auto event = [](const char* label, double share) {
    return PrivacyEvent{label, GaussianEvent{std::sqrt(share)}};
  };
  if (options.method == ClipMethod::kPrompt) {
    PrivacyEvent sweeps = event(kGradientLabel, (1 - options.gram_share) / static_cast<double>(options.sweeps));
    sweeps.count = static_cast<long long>(options.sweeps);
    return {event(kGramLabel, options.gram_share), sweeps};
  }
  if (!has_classes(options)) return {event(kGramLabel, 1)};
  if (options.method == ClipMethod::kCross) return {event(kSumsLabel, 1)};
  return {event(kCountsLabel, kCountsShare), event(kSumsLabel, kSumsShare),
          event(kGramLabel, 1 - kCountsShare - kSumsShare)};
}

// Averages that the linear methods need, of centred views.
struct Moments {
  Matrix xx, xy, yy;
  double noise_xx = 0;  // of an entry
  double noise_yy = 0;
};

struct NoisyAverage {
  Matrix value;
  double noise;  // of an entry
};

Result<NoisyAverage> ask_average(Oracle& oracle, const char* label, const SumQuery& query, double rows) {
  const auto sum = EIGENVEIL_TRY(oracle.ask(label, query));
  return NoisyAverage{sum.value() / rows, sum.deviation() / rows};
}

Result<Moments> ask_pairs(Oracle& oracle, double rows, Eigen::Index d1) {
  const auto gram = EIGENVEIL_TRY(ask_average(oracle, kGramLabel, Gram{}, rows));
  const Matrix& S = gram.value;
  const Eigen::Index d2 = S.rows() - d1;
  return Moments{S.topLeftCorner(d1, d1), S.topRightCorner(d1, d2), S.bottomRightCorner(d2, d2), gram.noise,
                 gram.noise};
}

// With sums s_k over the rows of class k: S_xy = sum s_k y_k^T / n, S_yy = sum (n_k / n) y_k y_k^T
Result<Moments> ask_classes(Oracle& oracle, double rows, const Matrix& captions, bool whitened) {
  const std::size_t K = captions.rows();
  Moments moments;
  Vector shares = Vector::Constant(captions.rows(), 1.0 / static_cast<double>(K));
  if (whitened) {
    const auto counts = EIGENVEIL_TRY(ask_average(oracle, kCountsLabel, ClassCounts{K}, rows));
    shares = counts.value.col(0).cwiseMax(1e-3 / static_cast<double>(K));
  }
  const auto sums = EIGENVEIL_TRY(ask_average(oracle, kSumsLabel, ClassSums{K}, rows));
  moments.xy = sums.value * captions;
  moments.yy = captions.transpose() * shares.asDiagonal() * captions;
  if (whitened) {
    const auto gram = EIGENVEIL_TRY(ask_average(oracle, kGramLabel, Gram{}, rows));
    moments.xx = gram.value;
    moments.noise_xx = gram.noise;
  }
  return moments;
}

// Canonical directions: U^T S_xx^(-1/2) and V^T S_yy^(-1/2) for S_xx^(-1/2) S_xy S_yy^(-1/2) = U D V^T
Result<LinearHeads> whitened_heads(const Moments& moments, std::size_t r, double floor) {
  const auto X = EIGENVEIL_TRY(whitener(moments.xx, moments.noise_xx, floor));
  const auto Y = EIGENVEIL_TRY(whitener(moments.yy, moments.noise_yy, floor));
  const Svd svd = thin_svd_large(X.transpose() * moments.xy * Y);
  const Eigen::Index rank = r;
  const Vector weight = svd.values.head(rank).array().sqrt();
  return LinearHeads{weight.asDiagonal() * svd.U.leftCols(rank).transpose() * X.transpose(),
                     weight.asDiagonal() * svd.V.leftCols(rank).transpose() * Y.transpose()};
}

Result<ClipResult> fit_linear(Oracle& oracle, const Preparation& prepared, const ClipOptions& options) {
  const bool whitened = options.method == ClipMethod::kWhitened;
  const Eigen::Index d1 = has_classes(options) ? prepared.mean.size() : static_cast<Eigen::Index>(options.x_columns);
  const Vector text_mean = has_classes(options) ? Vector(options.captions.colwise().mean())
                                                : Vector(prepared.mean.tail(prepared.mean.size() - d1));
  const auto moments =
      EIGENVEIL_TRY(has_classes(options) ? ask_classes(oracle, prepared.rows,
                                                       options.captions.rowwise() - text_mean.transpose(), whitened)
                                         : ask_pairs(oracle, prepared.rows, d1));
  auto heads =
      EIGENVEIL_TRY(whitened ? whitened_heads(moments, options.dim, has_classes(options) ? options.floor : kPairFloor)
                             : solve_linear(moments.xy, options.dim, options.alpha));
  return ClipResult{std::move(heads.G1), prepared.mean.head(d1), std::move(heads.G2), text_mean, prepared.rows};
}

Result<ClipResult> fit_prompt(Oracle& oracle, const Preparation& prepared, const ClipOptions& options) {
  const auto gram = EIGENVEIL_TRY(ask_average(oracle, kGramLabel, Gram{}, prepared.rows));
  const auto A = EIGENVEIL_TRY(whitener(gram.value, gram.noise, options.floor));
  const auto map = EIGENVEIL_TRY(LinearMap::quantise(A));
  // A whitened row is about sqrt(d) long: all of them become one long.
  EIGENVEIL_TRY(oracle.remap(map, *RowBound::of(1)));

  const auto text = EIGENVEIL_TRY(simplex_of(options.captions, options.dim));
  const auto theta = EIGENVEIL_TRY(descend(oracle, kGradientLabel, prepared.rows, text.allowed, options));
  // theta = G W + 1 c^T: the captions' embeddings carry the scores, up to what is the same for all of them
  const Matrix W = text.solve * theta.transpose();
  return ClipResult{W * map.matrix().transpose(), prepared.mean, text.weights, text.mean, prepared.rows};
}

// The sums that the training starts from, as a fit of their own: of the texts that batches see.
Result<ClipOptions> start_options(const ClipOptions& options) {
  auto texts = EIGENVEIL_TRY(corner_texts(options));
  ClipOptions first = options;
  first.method = *options.start_by;
  first.captions = std::move(texts.corners);
  return first;
}

// As long as random heads would be: similarities do not see lengths, but steps do.
Matrix as_long_as_random(const Matrix& G, bool linear) {
  const double length = G.norm();
  return length > 0 ? Matrix(G * (std::sqrt(static_cast<double>(G.rows()) / (linear ? 2 : 1)) / length)) : G;
}

Result<ClipResult> fit_from_start(Oracle& oracle, const ClipOptions& options) {
  const auto first = EIGENVEIL_TRY(start_options(options));
  const auto prepared = EIGENVEIL_TRY(prepare(oracle, preparation(options)));
  auto heads = EIGENVEIL_TRY(fit_linear(oracle, prepared, first));
  ClipOptions rest = options;
  rest.start = {as_long_as_random(heads.image_weights, options.training.linear),
                as_long_as_random(heads.text_weights, options.training.linear)};
  // Rows are centred from here on.
  auto fit = EIGENVEIL_TRY(fit_training(oracle, rest));
  fit.image_mean = std::move(heads.image_mean);
  if (!has_classes(options)) fit.text_mean = std::move(heads.text_mean);
  fit.rows = prepared.rows;
  return fit;
}

}  // namespace

Result<Matrix> whitener(const Matrix& S, double noise, double floor) {
  const auto pairs = EIGENVEIL_TRY(top_eigenpairs(S, S.rows()));
  // Noise of deviation s alone has eigenvalues up to 2 s sqrt(d).
  const double edge = 2 * noise * std::sqrt(static_cast<double>(S.rows()));
  const double least = std::max({floor * edge, 1e-9 * pairs.values.cwiseAbs().maxCoeff(), 1e-300});
  const Vector roots = pairs.values.cwiseMax(least).cwiseSqrt().cwiseInverse();
  return Matrix(pairs.vectors * roots.asDiagonal());
}

Status check(const RowsShape& shape, const ClipOptions& options) {
  const Eigen::Index K = options.captions.rows();
  if (options.method == ClipMethod::kPrompt && K == 0)
    return usage_error("`method` prompt needs classes with captions: give `labels` and `class_names`");
  if (has_classes(options) && K < 2) return usage_error("there must be at least two classes");
  if (!has_classes(options) && (options.x_columns == 0 || options.x_columns >= shape.columns))
    return usage_error("both views must have columns");
  const std::size_t d1 = has_classes(options) ? shape.columns : options.x_columns;
  const std::size_t other = has_classes(options) ? static_cast<std::size_t>(K) - 1 : shape.columns - d1;
  if (options.dim < 1 || options.dim > std::min(d1, other))
    return usage_error(fmt::format("`dim` must be from 1 to {} here, but is {}", std::min(d1, other), options.dim));
  if (!(options.alpha > 0) || !(options.clip > 0) || !(options.clip <= 1) || options.sweeps < 1)
    return usage_error("alpha, the clip (at most 1) and the number of sweeps must be positive");
  if (options.start_by &&
      (!trains(options) || (options.start_by != ClipMethod::kCross && options.start_by != ClipMethod::kWhitened)))
    return usage_error("`start` is for `method` batch and pair, and is cross or whitened");
  if (trains(options)) return check_training(options, d1, other);
  if (options.method == ClipMethod::kPrompt)
    if (const auto text = simplex_of(options.captions, options.dim); !text) return text.error();
  return {};
}

void follow_budget(ClipOptions& options, Epsilon epsilon, Delta delta) {
  options.step = std::clamp(180 * std::pow(epsilon.value(), 0.75), 20.0, 1000.0);
  // T batches have about mu^2 = q^2 T (e^(1/sigma^2) - 1) (Bu, Dong, Long and Su 2020): near enough to divide a budget.
  const double mu = gaussian_mu(epsilon, delta), q = options.training.sample_rate;
  const double rest = (1 - kStartShare) * mu * mu / (q * q * static_cast<double>(options.training.steps));
  options.start_weight = std::sqrt(kStartShare / std::log1p(rest)) * mu;
}

std::optional<std::string> hopeless(const RowsShape& shape, const Budget& budget, const ClipOptions& options) {
  if (trains(options)) return std::nullopt;  // their number of rows is private
  if (!has_classes(options)) return drowned_before(shape, budget, preparation(options));
  const std::size_t classes = options.captions.rows();
  const double sums = options.method == ClipMethod::kCross    ? 1
                      : options.method == ClipMethod::kPrompt ? 1 - options.gram_share
                                                              : kSumsShare;
  return classes_drowned_before(shape, budget, preparation(options),
                                {.counted = classes, .groups = classes, .counts_share = 0, .sums_share = sums});
}

std::size_t public_directions(Epsilon epsilon) { return epsilon.value() < 5 ? 500 : 800; }

PrivacyPlan plan_clip(Adjacency adjacency, const ClipOptions& options) {
  if (trains(options) && !options.start_by) return plan_training(options);
  PrivacyPlan plan(adjacency, plan_preparation(adjacency, preparation(options), 1));
  ClipOptions sums = options;
  sums.method = options.start_by.value_or(options.method);
  for (PrivacyEvent& event : own_events(sums)) plan.events.push_back(std::move(event));
  if (!options.start_by) return plan;
  double squares = 0;
  const auto mu_of = [](PrivacyEvent& event) -> Mu& { return std::get<GaussianEvent>(event.mechanism).mu; };
  for (PrivacyEvent& event : plan.events) squares += mu_of(event) * mu_of(event);
  for (PrivacyEvent& event : plan.events) mu_of(event) *= options.start_weight / std::sqrt(squares);
  plan.events.push_back(plan_training(options).events.front());
  return plan;
}

Result<ClipResult> fit_clip(Oracle& oracle, const ClipOptions& options) {
  EIGENVEIL_TRY(check(oracle.shape(), options));
  if (options.start_by) return fit_from_start(oracle, options);
  if (trains(options)) return fit_training(oracle, options);
  const auto prepared = EIGENVEIL_TRY(prepare(oracle, preparation(options)));
  return options.method == ClipMethod::kPrompt ? fit_prompt(oracle, prepared, options)
                                               : fit_linear(oracle, prepared, options);
}

}  // namespace eigenveil
