// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/clip/training.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <random>

#include "eigenveil/linalg/subspace.hpp"
#include "eigenveil/privacy/noisy_vector.hpp"
#include "eigenveil/privacy/poisson_sample.hpp"
#include "prompt.hpp"

namespace eigenveil {
namespace {

constexpr const char* kBatchLabel = "batch gradient";
constexpr const char* kPairLabel = "pair gradient";

std::unique_ptr<BatchQuery> query_at(const LinearHeads& heads, const ClipOptions& options, const CornerTexts& texts) {
  const ClipTraining& train = options.training;
  if (options.method == ClipMethod::kPair)
    return std::make_unique<PairGradient>(heads, train.temperature, train.clip, options.x_columns, texts.corners);
  return std::make_unique<ClippedBatch>(
      [heads, &options, &texts](const Batch& batch) {
        const PairViews pairs = pair_views(batch, options.x_columns, texts.corners);
        return flat(options.training.linear ? linear_batch_gradient(heads, pairs, options.alpha)
                                            : contrastive_gradient(heads, pairs, options.training.temperature));
      },
      train.clip);
}

const char* label_of(const ClipOptions& options) {
  return options.method == ClipMethod::kPair ? kPairLabel : kBatchLabel;
}

}  // namespace

Result<CornerTexts> corner_texts(const ClipOptions& options) {
  if (options.captions.rows() == 0) return CornerTexts{};
  auto side = EIGENVEIL_TRY(simplex_of(options.captions, options.captions.rows() - 1));
  Matrix corners = (options.captions.rowwise() - side.mean.transpose()) * side.weights.transpose();
  corners.rowwise().normalize();
  return CornerTexts{std::move(corners), std::move(side.weights), std::move(side.mean)};
}

Vector flat(const LinearHeads& heads) {
  Vector theta(heads.G1.size() + heads.G2.size());
  theta << heads.G1.reshaped(), heads.G2.reshaped();
  return theta;
}

LinearHeads from_flat(const Vector& theta, const LinearHeads& shape) {
  const Eigen::Index first = shape.G1.size();
  return {theta.head(first).reshaped(shape.G1.rows(), shape.G1.cols()),
          theta.tail(theta.size() - first).reshaped(shape.G2.rows(), shape.G2.cols())};
}

LinearHeads starting_heads(std::size_t r, std::size_t d1, std::size_t d2) {
  std::mt19937_64 random(20230613);
  std::normal_distribution<double> normal;
  const auto draw = [&](std::size_t d) {
    const Matrix A = Matrix::NullaryExpr(d, r, [&] { return normal(random); });
    return Matrix(orthonormal(A).transpose());
  };
  Matrix first = draw(d1);
  return {std::move(first), draw(d2)};
}

Status check_training(const ClipOptions& options, std::size_t d1, std::size_t d2) {
  const ClipTraining& train = options.training;
  if (train.steps < 1) return usage_error("`steps` must be at least 1");
  if (!(train.rate > 0) || !std::isfinite(train.rate))
    return usage_error(fmt::format("`lr` must be finite and positive, but is {}", train.rate));
  if (!(train.temperature >= 0.01) || !(train.temperature <= 100))
    return usage_error(fmt::format("`temperature` must be from 0.01 to 100 here, but is {}", train.temperature));
  if (train.linear && options.method == ClipMethod::kPair)
    return usage_error("`method` pair has the objective infonce, not linear");
  if (const auto sample = PoissonSample::of(train.sample_rate); !sample) return sample.error();
  if (const auto texts = corner_texts(options); !texts) return texts.error();
  return NoisyVector::check(train.clip, options.dim * (d1 + d2), static_cast<long long>(train.steps));
}

PrivacyPlan plan_training(const ClipOptions& options) {
  // sigma in units of the sensitivity: 2 clip of a whole batch, or pair.proof.md's bound
  return PrivacyPlan(Adjacency::kAddRemoveOne,
                     {{label_of(options), PoissonGaussianEvent{options.training.sample_rate, 1},
                       static_cast<long long>(options.training.steps)}});
}

Result<ClipResult> fit_training(Oracle& oracle, const ClipOptions& options) {
  const auto texts = EIGENVEIL_TRY(corner_texts(options));
  const bool classed = texts.corners.rows() > 0;
  const std::size_t d1 = classed ? oracle.shape().columns : options.x_columns;
  const std::size_t d2 =
      classed ? static_cast<std::size_t>(texts.corners.cols()) : oracle.shape().columns - options.x_columns;
  LinearHeads heads = options.start.G1.size() > 0 ? options.start : starting_heads(options.dim, d1, d2);
  // pair: a sum over the batch, whose size is private, in units of what one pair can do to it at C = 1
  const double scale =
      options.method == ClipMethod::kPair ? 1 / PairGradient::bound(options.training.temperature, 1) : 1.0;
  const Descent descent(options.training.optimizer, options.training.rate);
  Vector theta = flat(heads);
  DescentState state;
  for (std::size_t step = 0; step < options.training.steps; ++step) {
    const auto gradient = EIGENVEIL_TRY(oracle.ask_batch(label_of(options), *query_at(heads, options, texts)));
    descent.step(theta, state, scale * gradient.value().col(0));
    heads = from_flat(theta, heads);
  }
  Matrix text_weights = classed ? Matrix(heads.G2 * texts.weights) : heads.G2;
  Vector text_mean = classed ? texts.mean : Vector(Vector::Zero(d2));
  return ClipResult{std::move(heads.G1), Vector::Zero(d1), std::move(text_weights), std::move(text_mean), 0};
}

}  // namespace eigenveil
