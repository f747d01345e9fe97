// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/clip/clip.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eigenveil/encoders/text.hpp"
#include "tests/support/views.hpp"

namespace eigenveil {
namespace {

using test::without_noise;
using ::testing::HasSubstr;

double norm_of(const LinearHeads& G) { return std::sqrt(G.G1.squaredNorm() + G.G2.squaredNorm()); }

double objective(const LinearHeads& G, const Matrix& S, double alpha) {
  const Matrix excess = G.G1 * G.G1.transpose() + G.G2 * G.G2.transpose() - Matrix::Identity(G.G1.rows(), G.G1.rows());
  return -(G.G1 * S * G.G2.transpose()).trace() + alpha / 4 * excess.squaredNorm();
}

TEST(SolveLinear, GradientIsThatOfTheObjective) {
  std::mt19937_64 random(1);
  const Matrix S = test::normal_matrix(random, 6, 5);
  const LinearHeads G{test::normal_matrix(random, 3, 6), test::normal_matrix(random, 3, 5)};
  const LinearHeads along{test::normal_matrix(random, 3, 6), test::normal_matrix(random, 3, 5)};
  const auto at = [&](double h) { return objective({G.G1 + h * along.G1, G.G2 + h * along.G2}, S, 0.7); };
  const LinearHeads gradient = linear_gradient(G, S, 0.7);
  const double slope = gradient.G1.cwiseProduct(along.G1).sum() + gradient.G2.cwiseProduct(along.G2).sum();
  EXPECT_NEAR((at(1e-5) - at(-1e-5)) / 2e-5, slope, 1e-6 * std::abs(slope));
}

TEST(SolveLinear, IsWhereGradientDescentEnds) {
  std::mt19937_64 random(2);
  const Matrix S = test::normal_matrix(random, 8, 5) / 3;
  for (const double alpha : {0.5, 1.0, 4.0}) {
    const auto exact = solve_linear(S, 3, alpha);
    ASSERT_TRUE(exact.ok());
    EXPECT_LT(norm_of(linear_gradient(*exact, S, alpha)), 1e-12);
    LinearHeads G{test::normal_matrix(random, 3, 8), test::normal_matrix(random, 3, 5)};
    for (int i = 0; i < 60000; ++i) {
      const LinearHeads step = linear_gradient(G, S, alpha);
      G.G1 -= 0.01 * step.G1;
      G.G2 -= 0.01 * step.G2;
    }
    EXPECT_LT(norm_of(linear_gradient(G, S, alpha)), 1e-8);
    EXPECT_NEAR(objective(G, S, alpha), objective(*exact, S, alpha), 1e-10);
    // Up to a rotation: G^T G is the same.
    EXPECT_LT((G.G1.transpose() * G.G2 - exact->G1.transpose() * exact->G2).norm(), 1e-6);
  }
  EXPECT_FALSE(solve_linear(S, 6, 1).ok());
}

struct Fixed {
  RowMajorMatrix rows;
  std::vector<int> classes;
  Matrix captions;
};

// Four classes around corners in the first columns; the others are wider noise.
Fixed four_classes(Eigen::Index n) {
  std::mt19937_64 random(5);
  Fixed data{0.05 * test::normal_matrix(random, n, 10), {}, {}};
  data.rows.rightCols(6) *= 3;
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto k = static_cast<int>(random() % 4);
    data.classes.push_back(k);
    data.rows(i, k) += 0.15;
  }
  data.rows.array() += 0.1;
  data.captions = *encode_prompts(TextEncoder::hash(), {"cat", "dog", "ship", "horse"}, default_prompts());
  return data;
}

double accuracy(const ClipResult& fit, const Fixed& data) {
  const Matrix texts =
      ((data.captions.rowwise() - fit.text_mean.transpose()) * fit.text_weights.transpose()).rowwise().normalized();
  const Matrix scores =
      (data.rows.rowwise() - fit.image_mean.transpose()) * fit.image_weights.transpose() * texts.transpose();
  double right = 0;
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    Eigen::Index best = 0;
    scores.row(i).maxCoeff(&best);
    right += best == data.classes[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  return right / static_cast<double>(scores.rows());
}

ClipOptions options_for(ClipMethod method, const Fixed& data, std::size_t dim = 3) {
  ClipOptions options{.method = method, .dim = dim};
  options.captions = data.captions;
  return options;
}

ClipResult fit_on(const Fixed& data, const ClipOptions& options, const PrivacyPlan& plan, int threads = 2) {
  LocalOracle oracle(test::bound_classed(data.rows, data.classes, 1, threads), reserve_without_ledger(plan),
                     SecureRandom::insecure(7));
  auto fit = fit_clip(oracle, options);
  EXPECT_TRUE(fit.ok()) << (fit.ok() ? "" : fit.error().message);
  EXPECT_TRUE(oracle.complete()) << "all that is planned is asked";
  return *std::move(fit);
}

TEST(FitClip, EveryMethodFindsTheClassesOfTheirCaptions) {
  const Fixed data = four_classes(8000);
  for (const auto adjacency : {Adjacency::kReplaceOne, Adjacency::kAddRemoveOne})
    for (const auto method : {ClipMethod::kCross, ClipMethod::kWhitened, ClipMethod::kPrompt}) {
      const ClipOptions options = options_for(method, data);
      const auto plan = calibrate(plan_clip(adjacency, options), *Epsilon::of(1), *Delta::of(1e-6));
      ASSERT_TRUE(plan.ok());
      EXPECT_LE(*epsilon_of(plan->events, *Delta::of(1e-6)), 1);
      EXPECT_GT(accuracy(fit_on(data, options, *plan), data), method == ClipMethod::kCross ? 0.6 : 0.9)
          << static_cast<int>(method);
    }
}

TEST(FitClip, IsTheSameWhateverTheThreads) {
  const Fixed data = four_classes(3000);
  const ClipOptions options = options_for(ClipMethod::kPrompt, data);
  const auto plan = calibrate(plan_clip(Adjacency::kReplaceOne, options), *Epsilon::of(1), *Delta::of(1e-6));
  const ClipResult one = fit_on(data, options, *plan, 1);
  EXPECT_TRUE(one.image_weights == fit_on(data, options, *plan, 7).image_weights);
}

// The minimiser of the mean loss over the captions: without noise or clipping the sweeps get there.
TEST(FitClip, PromptDescendsToWhereTheContrastiveLossIsFlat) {
  const Fixed data = four_classes(2000);
  ClipOptions options = options_for(ClipMethod::kPrompt, data);
  options.clip = 1;
  options.sweeps = 600;
  options.step = 20;
  options.average = 0;
  const auto fit = fit_on(data, options, without_noise(plan_clip(Adjacency::kReplaceOne, options)));
  EXPECT_GT(accuracy(fit, data), 0.95);
}

TEST(FitClip, CrossSolvesItsObjectiveOnWhatWasReleased) {
  const Fixed data = four_classes(2000);
  const ClipOptions options = options_for(ClipMethod::kCross, data);
  const auto fit = fit_on(data, options, without_noise(plan_clip(Adjacency::kReplaceOne, options)));
  // S from the same rows: centred, made equally long, with the caption of their class
  Matrix S = Matrix::Zero(10, data.captions.cols());
  const auto n = static_cast<double>(data.rows.rows());
  for (Eigen::Index i = 0; i < data.rows.rows(); ++i) {
    const Vector x = (data.rows.row(i).transpose() - fit.image_mean).normalized() * 0.02;
    S += x * (data.captions.row(data.classes[static_cast<std::size_t>(i)]) - fit.text_mean.transpose()) / n;
  }
  const LinearHeads gradient = linear_gradient({fit.image_weights, fit.text_weights}, S, 1);
  EXPECT_LT(norm_of(gradient), 1e-8);  // rows are exact to 2^-20 of their length
}

TEST(FitClip, PairsShareTheirCanonicalDirection) {
  std::mt19937_64 random(3);
  const auto views = test::correlated_views(random, 20000, 6, 5, 0.9);
  const RowMajorMatrix rows = views.rows / 6;
  for (const auto method : {ClipMethod::kCross, ClipMethod::kWhitened}) {
    ClipOptions options{.method = method, .dim = 1};
    options.x_columns = 6;
    const auto plan = calibrate(plan_clip(Adjacency::kReplaceOne, options), *Epsilon::of(1), *Delta::of(1e-6));
    auto oracle = test::oracle_over(rows, 1.5, *plan, 3);
    const auto fit = fit_clip(oracle, options);
    ASSERT_TRUE(fit.ok());
    EXPECT_LT(test::misalignment(fit->image_weights.row(0), views.u), 0.01);
    EXPECT_LT(test::misalignment(fit->text_weights.row(0), views.w), 0.01);
  }
}

TEST(FitClip, RefusesWhatDoesNotGoTogether) {
  const Fixed data = four_classes(10);
  const RowsShape shape{10, 10, {1, 20}, Adjacency::kReplaceOne};
  const auto refusal = [&](const ClipOptions& options) {
    const auto status = check(shape, options);
    return status.ok() ? std::string("accepted") : status.error().message;
  };
  EXPECT_EQ(refusal(options_for(ClipMethod::kPrompt, data)), "accepted");
  EXPECT_THAT(refusal(options_for(ClipMethod::kPrompt, data, 4)), HasSubstr("`dim` must be from 1 to 3"));
  EXPECT_THAT(refusal({.method = ClipMethod::kPrompt, .dim = 1}), HasSubstr("`labels`"));
  EXPECT_THAT(refusal({.method = ClipMethod::kCross, .dim = 1}), HasSubstr("both views"));
  // Two classes whose captions say the same
  Fixed twins = four_classes(50);
  twins.captions.row(1) = twins.captions.row(0);
  const ClipOptions options = options_for(ClipMethod::kPrompt, twins);
  const auto plan = without_noise(plan_clip(Adjacency::kReplaceOne, options));
  LocalOracle oracle(test::bound_classed(twins.rows, twins.classes, 1), reserve_without_ledger(plan),
                     SecureRandom::insecure(1));
  EXPECT_THAT(fit_clip(oracle, options).error().message, HasSubstr("say the same"));
}

}  // namespace
}  // namespace eigenveil
