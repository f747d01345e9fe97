// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/clip/training.hpp"

#include <gtest/gtest.h>

#include "eigenveil/privacy/gaussian_dp.hpp"
#include "tests/support/views.hpp"

namespace eigenveil {
namespace {

using test::normal_matrix;

PairViews random_pairs(std::mt19937_64& random, Eigen::Index m, Eigen::Index d1, Eigen::Index d2) {
  return {normal_matrix(random, m, d1), normal_matrix(random, m, d2)};
}

LinearHeads random_heads(std::mt19937_64& random, Eigen::Index r, Eigen::Index d1, Eigen::Index d2) {
  return {normal_matrix(random, r, d1), normal_matrix(random, r, d2)};
}

Batch batch_of(const PairViews& pairs) {
  Batch batch{RowMajorMatrix(pairs.x.rows(), pairs.x.cols() + pairs.y.cols()), {}};
  batch.rows << pairs.x, pairs.y;
  return batch;
}

// Two pairs of orthogonal unit vectors, q = 1.
ClipOptions two_steps() {
  ClipOptions options{.method = ClipMethod::kBatch, .dim = 2};
  options.x_columns = 2;
  options.training = {.clip = 0.2, .sample_rate = 1, .steps = 2, .optimizer = Optimizer::kSgd, .rate = 1};
  options.start = LinearHeads{Matrix::Identity(2, 2), Matrix::Identity(2, 2)};
  return options;
}

LocalOracle quiet_oracle(const RowMajorMatrix& rows, const ClipOptions& options) {
  return test::oracle_over(rows, 2, test::without_noise(plan_clip(Adjacency::kAddRemoveOne, options)), 1);
}

// ---- batch

TEST(ClipTraining, TheContrastiveGradientIsTheDerivativeOfTheLoss) {
  std::mt19937_64 random(1);
  const PairViews pairs = random_pairs(random, 6, 4, 3);
  const LinearHeads heads = random_heads(random, 2, 4, 3);
  const Vector gradient = flat(contrastive_gradient(heads, pairs, 0.4));
  const Vector theta = flat(heads);
  for (Eigen::Index k = 0; k < theta.size(); ++k) {
    Vector up = theta, down = theta;
    up[k] += 1e-5;
    down[k] -= 1e-5;
    const double slope =
        (contrastive_loss(from_flat(up, heads), pairs, 0.4) - contrastive_loss(from_flat(down, heads), pairs, 0.4)) /
        2e-5;
    EXPECT_NEAR(gradient[k], slope, 1e-8 * gradient.norm() + 1e-9) << k;
  }
}

// By hand. G = I: s_12 = s_21 = 0, ds_12/dG_1 = e_2 e_1^T, weights w = 1/(1+e): every off-diagonal entry of both
// gradients is w, the norm is 2 w = 0.54, clipped to 0.2: entries 0.1. Then f_1 = (1, -0.1) / |.|, g_2 = (-0.1, 1) /
// |.|; a_12 = g_2 - s_12 f_1 is along (0.1, 1), so the gradient is along [0.1 1; 1 0.1], and clipped to 0.2 its entries
// are 0.01 / sqrt(1.01) and 0.1 / sqrt(1.01).
TEST(ClipTraining, TwoStepsAreThoseOfAlgorithmOne) {
  const RowMajorMatrix rows = (RowMajorMatrix(2, 4) << 1, 0, 1, 0, 0, 1, 0, 1).finished();
  const ClipOptions options = two_steps();
  auto oracle = quiet_oracle(rows, options);
  const auto fit = fit_clip(oracle, options);
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  const double root = std::sqrt(1.01);
  Matrix expected(2, 2);
  expected << 1 - 0.01 / root, -0.1 - 0.1 / root, -0.1 - 0.1 / root, 1 - 0.01 / root;
  EXPECT_LE((fit->image_weights - expected).norm(), 1e-11);
  EXPECT_LE((fit->text_weights - expected).norm(), 1e-11);
  EXPECT_TRUE(oracle.complete());
}

// eq. 5.1 of the same pairs: S = sum (x - mean)(y - mean)^T = [1 -1; -1 1] / 2, G G^T - I = I, so dG_1 = -S + I = [1 1;
// 1 1] / 2, dG_2 the same.
TEST(ClipTraining, TheLinearObjectiveIsThatOfThePaper) {
  const PairViews pairs{RowMajorMatrix::Identity(2, 2), RowMajorMatrix::Identity(2, 2)};
  const LinearHeads heads{Matrix::Identity(2, 2), Matrix::Identity(2, 2)};
  const LinearHeads gradient = linear_batch_gradient(heads, pairs, 1);
  EXPECT_LE((gradient.G1 - Matrix::Constant(2, 2, 0.5)).norm(), 1e-15);
  EXPECT_LE((gradient.G2 - Matrix::Constant(2, 2, 0.5)).norm(), 1e-15);
  const PairViews one{pairs.x.topRows(1), pairs.y.topRows(1)};
  EXPECT_EQ(linear_batch_gradient(heads, one, 1).G1, Matrix(Matrix::Identity(2, 2))) << "the penalty alone";
}

TEST(ClipTraining, AdamStepsByTheRateAtFirst) {
  Vector theta = Vector::Zero(2);
  const Descent adam(Optimizer::kAdam, 0.1);
  DescentState state;
  adam.step(theta, state, Vector{{3.0, -0.01}});
  EXPECT_NEAR(theta[0], -0.1, 1e-6);
  EXPECT_NEAR(theta[1], 0.1, 1e-6);
  // m = 0.9 * 0.3 + 0.1 * 1, v = 0.999 * 0.009 + 0.001 * 1, bias-corrected by 0.19 and 0.001999
  adam.step(theta, state, Vector{{1.0, 0.0}});
  EXPECT_NEAR(theta[0], -0.1 - 0.1 * (0.37 / 0.19) / std::sqrt(0.009991 / 0.001999), 1e-6);
}

TEST(ClipTraining, AdamWShrinksWhatItMoves) {
  Vector theta = Vector::Constant(1, 2.0);
  const Descent adamw(DescentOptions{
      .optimizer = Optimizer::kAdamW, .rate = 0.1, .beta1 = 0.5, .beta2 = 0.75, .adam_eps = 0.25, .decay = 0.2});
  DescentState state;
  adamw.step(theta, state, Vector{{3.0}});
  // 2 (1 - 0.1 * 0.2) - 0.1 * 3 / (3 + 0.25)
  EXPECT_NEAR(theta[0], 1.96 - 0.3 / 3.25, 1e-12);
  adamw.step(theta, state, Vector{{1.0}});
  // m = 0.5 * 1.5 + 0.5, v = 0.75 * 2.25 + 0.25, corrected by 0.75 and 0.4375
  EXPECT_NEAR(theta[0], 0.98 * (1.96 - 0.3 / 3.25) - 0.1 * (1.25 / 0.75) / (std::sqrt(1.9375 / 0.4375) + 0.25), 1e-12);
}

TEST(ClipTraining, RatesWarmUpAndComeDownAlongACosine) {
  const DescentOptions options{.rate = 2, .warmup = 4, .cosine = 12};
  EXPECT_DOUBLE_EQ(options.rate_at(0), 0.5);
  EXPECT_DOUBLE_EQ(options.rate_at(3), 2);
  EXPECT_DOUBLE_EQ(options.rate_at(4), 2);
  EXPECT_NEAR(options.rate_at(8), 1, 1e-12);
  EXPECT_NEAR(options.rate_at(12), 0, 1e-12);
  EXPECT_DOUBLE_EQ((DescentOptions{.rate = 2, .warmup = 4}.rate_at(900)), 2);
  EXPECT_DOUBLE_EQ((DescentOptions{.rate = 2}.rate_at(0)), 2);
}

TEST(ClipTraining, AnEmptyBatchOrOnePairHasNoGradientAndIsNoisedAllTheSame) {
  std::mt19937_64 random(3);
  const LinearHeads heads = random_heads(random, 2, 3, 3);
  for (const Eigen::Index m : {0, 1}) {
    const PairViews pairs = random_pairs(random, m, 3, 3);
    EXPECT_EQ(flat(contrastive_gradient(heads, pairs, 0.1)), Vector::Zero(12)) << m;
    const auto sum = PairGradient(heads, 1, 1, 3, {}).exact(batch_of(pairs));
    EXPECT_EQ(sum->values, std::vector<Int128>(12)) << m;
  }
  ClipOptions options = two_steps();
  options.training.sample_rate = 1e-12;
  const PrivacyPlan plan = plan_clip(Adjacency::kAddRemoveOne, options);
  auto oracle = test::oracle_over(RowMajorMatrix::Ones(3, 4), 2, plan, 1);
  const auto gradient = oracle.ask_batch(
      plan.events[0].label,
      ClippedBatch([](const Batch& batch) { return Vector::Constant(5, static_cast<double>(batch.rows.rows())); }, 1));
  ASSERT_TRUE(gradient.ok());
  EXPECT_TRUE((gradient->value().array() != 0).all());
}

TEST(ClipTraining, BatchesAreChargedWithTwiceTheClip) {
  const ClipOptions options = two_steps();
  const auto event =
      std::get<PoissonGaussianEvent>(plan_clip(Adjacency::kAddRemoveOne, options).events.at(0).mechanism);
  // The plan's sigma is in sensitivities, and a clipped batch's sensitivity is 2c: the paper's sigma is twice that.
  EXPECT_EQ(event, (PoissonGaussianEvent{1, 1}));
  const ClippedBatch query([](const Batch&) { return Vector(1); }, 0.2);
  EXPECT_EQ(query.sensitivity().value() * query.exact({})->unit, 2 * 0.2);
}

TEST(ClipTraining, ALabelThatIsNoClassHasNoText) {
  std::mt19937_64 random(3);
  const Matrix texts = normal_matrix(random, 3, 4);
  const Batch batch{normal_matrix(random, 4, 2), {2, -1, 3, 0}};
  const PairViews pairs = pair_views(batch, 2, texts);
  EXPECT_EQ(pairs.y.row(0), texts.row(2));
  EXPECT_TRUE(pairs.y.row(1).isZero(0));
  EXPECT_TRUE(pairs.y.row(2).isZero(0));
  EXPECT_EQ(pairs.y.row(3), texts.row(0));
}

// An audit: a batch whose gradient is -u, and u once a pair is added. W = [I 0] makes x = (., ., 1) nearly invisible,
// so that such a pair's derivative is as large as one likes.
TEST(ClipTraining, OnePairMoreTurnsTheClippedGradientRightRound) {
  Matrix W = Matrix::Zero(2, 3);
  W.leftCols(2).setIdentity();
  const LinearHeads heads{W, W};
  PairViews more{RowMajorMatrix(3, 3), RowMajorMatrix(3, 3)};
  more.x << 1e-6, 0, 1, /**/ 0, 1, 0, /**/ 1e-10, 0, 1;
  more.y << 0, 1, 0, /**/ 0, -1, 0, /**/ 0, -1, 0;
  const PairViews fewer{more.x.topRows(2), more.y.topRows(2)};
  for (const double clip : {1.0, 0.01}) {
    const ClippedBatch query(
        [&](const Batch& batch) { return flat(contrastive_gradient(heads, pair_views(batch, 3, {}), 0.5)); }, clip);
    const auto with = query.exact(batch_of(more)), without = query.exact(batch_of(fewer));
    double squares = 0;
    for (std::size_t k = 0; k < with->values.size(); ++k) {
      const auto difference = static_cast<double>(with->values[k] - without->values[k]);
      squares += difference * difference;
    }
    EXPECT_GE(std::sqrt(squares), 0.9999 * query.sensitivity().value());
    EXPECT_LE(std::sqrt(squares), query.sensitivity().value());
  }
}

// ---- pair

// Each pair's derivative as a matrix of its own, clipped, weighted and added: slow and plain.
Vector slow_pair_sum(const LinearHeads& heads, const PairViews& pairs, double temperature, double clip) {
  const Eigen::Index m = pairs.x.rows();
  const RowMajorMatrix F = (pairs.x * heads.G1.transpose()).rowwise().normalized();
  const RowMajorMatrix G = (pairs.y * heads.G2.transpose()).rowwise().normalized();
  const Matrix e = (F * G.transpose() / temperature).array().exp();
  Vector total = Vector::Zero(heads.G1.size() + heads.G2.size());
  for (Eigen::Index i = 0; i < m; ++i)
    for (Eigen::Index j = 0; j < m; ++j) {
      const double s = F.row(i).dot(G.row(j));
      const Vector a = (G.row(j) - s * F.row(i)).transpose() / (heads.G1 * pairs.x.row(i).transpose()).norm();
      const Vector b = (F.row(i) - s * G.row(j)).transpose() / (heads.G2 * pairs.y.row(j).transpose()).norm();
      const Vector h = flat({a * pairs.x.row(i), b * pairs.y.row(j)});
      const double R = (e(i, j) / e.row(i).sum() + e(i, j) / e.col(j).sum()) / 2 - (i == j ? 1 : 0);
      total += R * std::min(1.0, clip / h.norm()) * h;
    }
  return total;
}

TEST(PairGradient, IsTheContrastiveGradientWhenNothingIsClipped) {
  std::mt19937_64 random(4);
  const PairViews pairs = random_pairs(random, 7, 4, 5);
  const LinearHeads heads = random_heads(random, 3, 4, 5);
  const Vector expected = flat(contrastive_gradient(heads, pairs, 0.5));
  const Vector sum = flat(PairGradient(heads, 0.5, 1e6, 4, {}).sum(pairs)) * 2 / (0.5 * 7);
  EXPECT_LE((sum - expected).norm(), 1e-12 * expected.norm());
}

TEST(PairGradient, ClosedFormAgreesWithAMatrixForEachPair) {
  std::mt19937_64 random(5);
  for (const double clip : {0.05, 0.4, 3.0}) {
    const PairViews pairs = random_pairs(random, 6, 4, 3);
    const LinearHeads heads = random_heads(random, 2, 4, 3);
    const Vector expected = slow_pair_sum(heads, pairs, 0.7, clip);
    const Vector sum = flat(PairGradient(heads, 0.7, clip, 4, {}).sum(pairs));
    EXPECT_LE((sum - expected).norm(), 1e-12 * (expected.norm() + clip)) << clip;
  }
}

// The distance of two neighbours' integers, and what may be: no tolerance but the slack of pair.proof.md.
struct Moved {
  double steps;  // rounded down
  double bound;  // D(m), in steps
};

Moved moved(const PairGradient& query, const PairViews& more, Eigen::Index added, double temperature, double clip) {
  PairViews fewer{RowMajorMatrix(more.x.rows() - 1, more.x.cols()), RowMajorMatrix(more.y.rows() - 1, more.y.cols())};
  for (Eigen::Index i = 0; i < fewer.x.rows(); ++i) {
    fewer.x.row(i) = more.x.row(i < added ? i : i + 1);
    fewer.y.row(i) = more.y.row(i < added ? i : i + 1);
  }
  const auto with = query.exact(batch_of(more)), without = query.exact(batch_of(fewer));
  Int128 squares = 0;
  for (std::size_t k = 0; k < with->values.size(); ++k) {
    const Int128 difference = with->values[k] - without->values[k];
    squares += difference * difference;
  }
  const auto limit = static_cast<Int128>(query.sensitivity().value());
  EXPECT_LE(squares, limit * limit) << "the stated sensitivity, in integers";
  const auto m = static_cast<std::size_t>(fewer.x.rows());
  return {std::floor(std::sqrt(static_cast<double>(squares))),
          PairGradient::bound(m, temperature, clip) / with->unit + 0x1p22};
}

// All similarities at their extremes and all derivatives in line: pair.proof.md, "It is reached".
PairViews worst_pairs(Eigen::Index m) {
  PairViews pairs{RowMajorMatrix(m + 1, 3), RowMajorMatrix(m + 1, 3)};
  const double angle = 0.02;
  for (Eigen::Index i = 0; i <= m; ++i) {
    const double sign = i == 0 ? -1 : 1;
    pairs.x.row(i) << sign * 1e-6 * std::cos(angle), sign * 1e-6 * std::sin(angle), sign;
    pairs.y.row(i) << -sign * 1e-6, 0, -sign;
  }
  return pairs;
}

LinearHeads blind_heads() {
  Matrix W = Matrix::Zero(2, 3);
  W.leftCols(2).setIdentity();
  return {W, W};
}

TEST(PairGradient, NoNeighboursAreFurtherApartThanTheBound) {
  std::mt19937_64 random(6);
  for (int trial = 0; trial < 1500; ++trial) {
    const double temperature = std::vector{0.05, 0.3, 1.0, 4.0}[random() % 4], clip = trial % 2 == 0 ? 0.1 : 2;
    const auto m = static_cast<Eigen::Index>(random() % 12);
    const Eigen::Index r = 1 + static_cast<Eigen::Index>(random() % 3);
    PairViews pairs = random_pairs(random, m + 1, 3, 4);
    LinearHeads heads = random_heads(random, r, 3, 4);
    switch (trial % 5) {
      case 1:  // pairs that are the same, or opposite
        for (Eigen::Index i = 1; i <= m; ++i) {
          const double sign = random() % 2 == 0 ? 1 : -1;
          pairs.x.row(i) = sign * pairs.x.row(0);
          pairs.y.row(i) = (random() % 2 == 0 ? 1 : -1) * pairs.y.row(0);
        }
        break;
      case 2:  // some without an embedding, or almost
        pairs.x.row(0) *= 1e-30;
        if (m > 0) pairs.y.row(m).setZero();
        heads.G1.col(0) *= 1e-9;
        break;
      case 3:  // views that the heads hardly see: derivatives without end
        heads.G1.rightCols(2) *= 1e-8;
        heads.G2.rightCols(3) *= 1e-8;
        break;
      case 4:
        pairs = worst_pairs(m);
        heads = blind_heads();
        break;
    }
    const PairGradient query(heads, temperature, clip, static_cast<std::size_t>(pairs.x.cols()), {});
    const auto added = static_cast<Eigen::Index>(random() % static_cast<unsigned long>(m + 1));
    const Moved found = moved(query, pairs, trial % 5 == 4 ? 0 : added, temperature, clip);
    EXPECT_LE(found.steps, found.bound) << "trial " << trial << ", m = " << m << ", temperature " << temperature;
  }
}

TEST(PairGradient, TheBoundIsReached) {
  for (const double temperature : {0.5, 1.0, 2.0})
    for (const Eigen::Index m : {1, 5, 40}) {
      const PairGradient query(blind_heads(), temperature, 0.3, 3, {});
      const Moved found = moved(query, worst_pairs(m), 0, temperature, 0.3);
      EXPECT_GE(found.steps, 0.95 * found.bound) << temperature << ", m = " << m;
    }
  // ... and with large batches the bound for all sizes, from which the noise comes.
  const PairGradient query(blind_heads(), 2, 0.3, 3, {});
  EXPECT_GE(moved(query, worst_pairs(200), 0, 2, 0.3).steps, query.sensitivity().value() / 3);
}

TEST(PairGradient, TheBoundGrowsWithTheBatchUpToItsLimit) {
  double last = 0;
  for (std::size_t m = 0; m < 100000; m = m * 2 + 1) {
    const double bound = PairGradient::bound(m, 0.8, 0.1);
    EXPECT_GE(bound, last);
    EXPECT_LT(bound, PairGradient::bound(0.8, 0.1));
    last = bound;
  }
  EXPECT_EQ(PairGradient::bound(0, 0.8, 0.1), 0);
  EXPECT_NEAR(PairGradient::bound(0.8, 0.1), 0.2 * (1 + std::exp(2.5)), 1e-12);
}

// ---- fits

const char* name_of(ClipMethod method) { return method == ClipMethod::kBatch ? "batch" : "pair"; }

double correlation_found(ClipMethod method, double epsilon, std::size_t steps) {
  std::mt19937_64 random(8);
  RowMajorMatrix rows = test::correlated_views(random, 4000, 4, 4, 0.95).rows;
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    rows.row(i).head(4).normalize();
    rows.row(i).tail(4).normalize();
  }
  ClipOptions options{.method = method, .dim = 2};
  options.x_columns = 4;
  options.training.sample_rate = 0.02;
  options.training.steps = steps;
  const auto plan = calibrate(plan_clip(Adjacency::kAddRemoveOne, options), *Epsilon::of(epsilon), *Delta::of(1e-5));
  EXPECT_TRUE(plan.ok());
  auto oracle = test::oracle_over(rows, std::sqrt(2.0), *plan, 9);
  const auto fit = fit_clip(oracle, options);
  EXPECT_TRUE(fit.ok()) << fit.error().message;
  const RowMajorMatrix F = (rows.leftCols(4) * fit->image_weights.transpose()).rowwise().normalized();
  const RowMajorMatrix G = (rows.rightCols(4) * fit->text_weights.transpose()).rowwise().normalized();
  const double own = F.cwiseProduct(G).sum() / 4000;
  return own - F.colwise().mean().dot(G.colwise().mean());
}

TEST(ClipTraining, BothMethodsFindWhatTheViewsShare) {
  for (const ClipMethod method : {ClipMethod::kBatch, ClipMethod::kPair}) {
    const double found = correlation_found(method, 8, 400);
    EXPECT_LT(correlation_found(method, 8, 1), 0.15) << "at the start";
    EXPECT_GT(found, 0.2) << name_of(method);
  }
}

// With the noise off and steps of no length: the heads of the sums alone, as long as random ones, and their means.
TEST(ClipTraining, BeginsWithTheHeadsAndMeansOfItsStart) {
  std::mt19937_64 random(11);
  RowMajorMatrix rows = test::correlated_views(random, 600, 4, 3, 0.9).rows;
  rows.col(0).array() += 2;
  rows.col(5).array() -= 1;
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    rows.row(i).head(4).normalize();
    rows.row(i).tail(3).normalize();
  }
  for (const ClipMethod start : {ClipMethod::kCross, ClipMethod::kWhitened}) {
    ClipOptions options{.method = ClipMethod::kBatch, .dim = 2};
    options.x_columns = 4;
    options.training = {.sample_rate = 0.1, .steps = 2, .optimizer = Optimizer::kSgd, .rate = 1e-12};
    options.start_by = start;
    PrivacyPlan plan = test::without_noise(plan_clip(Adjacency::kAddRemoveOne, options));
    ASSERT_EQ(plan.events.back().count, 2);
    auto oracle = test::oracle_over(rows, std::sqrt(2.0), plan, 1);
    const auto fit = fit_clip(oracle, options);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    EXPECT_TRUE(oracle.complete());
    EXPECT_EQ(fit->rows, 600);
    EXPECT_LT((fit->image_mean - rows.leftCols(4).colwise().mean().transpose()).norm(), 1e-4);
    EXPECT_LT((fit->text_mean - rows.rightCols(3).colwise().mean().transpose()).norm(), 1e-4);

    options.method = start;
    options.start_by.reset();
    const PrivacyPlan sums(Adjacency::kAddRemoveOne, {plan.events.begin(), plan.events.end() - 1});
    auto again = test::oracle_over(rows, std::sqrt(2.0), sums, 1);
    const auto alone = fit_clip(again, options);
    ASSERT_TRUE(alone.ok());
    EXPECT_LT((fit->image_weights - alone->image_weights.normalized() * std::sqrt(2.0)).norm(), 1e-3);
    EXPECT_LT((fit->text_weights - alone->text_weights.normalized() * std::sqrt(2.0)).norm(), 1e-3);
  }
}

// Three tenths of mu^2 go to the start, by the central limit theorem that the division rests on.
TEST(ClipTraining, TheStartHasItsShareOfTheBudget) {
  for (const double epsilon : {0.5, 3.0, 20.0}) {
    ClipOptions options{.method = ClipMethod::kPair, .dim = 2};
    options.x_columns = 2;
    options.start_by = ClipMethod::kWhitened;
    follow_budget(options, *Epsilon::of(epsilon), *Delta::of(1e-6));
    const auto plan = calibrate(plan_clip(Adjacency::kAddRemoveOne, options), *Epsilon::of(epsilon), *Delta::of(1e-6));
    ASSERT_TRUE(plan.ok());
    double squares = 0;
    for (std::size_t i = 0; i + 1 < plan->events.size(); ++i) squares += std::pow(test::mu_of(plan->events[i]), 2);
    EXPECT_NEAR(std::sqrt(squares / 0.3) / gaussian_mu(*Epsilon::of(epsilon), *Delta::of(1e-6)), 1, 0.15) << epsilon;
  }
}

TEST(ClipTraining, RefusesWhatItCannotDo) {
  const RowsShape shape{4, {}, {1, 20}, Adjacency::kAddRemoveOne};
  const auto refused = [&](auto change, const char* word) {
    ClipOptions options = two_steps();
    change(options);
    const Status status = check(shape, options);
    ASSERT_FALSE(status.ok()) << word;
    EXPECT_NE(status.error().message.find(word), std::string::npos) << status.error().message;
  };
  EXPECT_TRUE(check(shape, two_steps()).ok());
  refused([](ClipOptions& o) { o.training.clip = 0; }, "`clip`");
  refused([](ClipOptions& o) { o.training.sample_rate = 2; }, "`sample_rate`");
  refused([](ClipOptions& o) { o.training.steps = 0; }, "`steps`");
  refused([](ClipOptions& o) { o.training.rate = -1; }, "`lr`");
  refused([](ClipOptions& o) { o.training.temperature = 0; }, "`temperature`");
  refused([](ClipOptions& o) { o.training.steps = 1000000000; }, "fewer steps");
  refused([](ClipOptions& o) { o.start_by = ClipMethod::kPair; }, "`start`");
  refused(
      [](ClipOptions& o) {
        o.method = ClipMethod::kPair;
        o.training.linear = true;
      },
      "infonce");
}

TEST(ClipTraining, BatchesAreRefusedWhereRowsAreReplacedAndBeyondThePlan) {
  const ClipOptions options = two_steps();
  const PrivacyPlan plan = plan_clip(Adjacency::kAddRemoveOne, options);
  const ClippedBatch query([](const Batch&) { return Vector(Vector::Zero(1)); }, 1);
  auto replacing =
      test::oracle_over(RowMajorMatrix::Ones(3, 4), 2, PrivacyPlan(Adjacency::kReplaceOne, plan.events), 1);
  EXPECT_FALSE(replacing.ask_batch(plan.events[0].label, query).ok());
  auto oracle = test::oracle_over(RowMajorMatrix::Ones(3, 4), 2, plan, 1);
  EXPECT_TRUE(oracle.ask_batch(plan.events[0].label, query).ok());
  EXPECT_FALSE(oracle.ask_batch("another batch", query).ok());
  EXPECT_FALSE(oracle.ask_batch(plan.events[0].label, query).ok()) << "nothing more after that";
}

// Rows of which this process has a share only, as a rank of an MPI job has.
class Share final : public RowSums {
 public:
  explicit Share(BoundedRows rows) : all_(sums_of(std::move(rows))) {}
  const BoundedRows& here() const override { return all_->here(); }
  std::size_t rows() const override { return 2 * all_->rows(); }
  bool alone() const override { return false; }
  Result<PrivateSum> sum(const SumQuery& query, Adjacency adjacency) override { return all_->sum(query, adjacency); }
  Result<PrivateCounts> counts(const NormExceedance& query) override { return all_->counts(query); }
  Result<FilteredCells> cells(const FilteredApply& query) override { return all_->cells(query); }
  Status recenter(const Vector& mean, RowBound radius) override { return all_->recenter(mean, radius); }
  Status remap(const LinearMap& M, RowBound radius) override { return all_->remap(M, radius); }

 private:
  std::unique_ptr<RowSums> all_;
};

TEST(ClipTraining, BatchesAreRefusedWhereRowsAreDivided) {
  const PrivacyPlan plan = plan_clip(Adjacency::kAddRemoveOne, two_steps());
  LocalOracle oracle(std::make_unique<Share>(test::bound_matrix(RowMajorMatrix::Ones(3, 4), 2)),
                     reserve_without_ledger(plan), SecureRandom::insecure(1));
  const auto answer =
      oracle.ask_batch(plan.events[0].label, ClippedBatch([](const Batch&) { return Vector(Vector::Zero(1)); }, 1));
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("this engine gives sums over rows only"), std::string::npos);
}

}  // namespace
}  // namespace eigenveil
