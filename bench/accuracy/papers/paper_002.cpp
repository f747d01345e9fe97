// SPDX-License-Identifier: Apache-2.0
// 002's theorems 1 and 2 in the Schatten norms 1, 2 and infinity over epsilon, its corollary 1 over the condition
// number of the spikes, and its corollary 2 over laws of the entries, with sizes at which there is something to learn.
#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <random>

#include "eigenveil/linalg/subspace.hpp"
#include "eigenveil/papers/as_printed.hpp"
#include "page.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil::bench {
namespace {

constexpr Eigen::Index kRows = 5000, kColumns = 40, kRank = 3;
constexpr double kSpike = 20, kDelta = 1e-6;

enum class Law { kGaussian, kUniform, kSigns, kStudent };

struct Spikes {
  Vector lambda = Vector::Constant(kRank, kSpike);
  Law law = Law::kGaussian;
};

double entry(std::mt19937_64& random, Law law) {
  std::normal_distribution<double> normal;
  switch (law) {
    case Law::kGaussian:
      break;
    case Law::kUniform:
      return std::uniform_real_distribution<double>(-std::sqrt(3.0), std::sqrt(3.0))(random);
    case Law::kSigns:
      return random() >> 63 == 0 ? 1 : -1;
    case Law::kStudent:  // five degrees of freedom, variance 1: not sub-Gaussian
      return std::student_t_distribution<double>(5)(random) * std::sqrt(0.6);
  }
  return normal(random);
}

struct Made {
  BoundedRows rows;
  Matrix U;
  Matrix covariance;
};

/// x = (U diag(sqrt(lambda + 1) - 1) U^T + I) z with independent entries of z.
Made make_rows(const Spikes& spikes, int seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  const Matrix U = orthonormal(test::normal_matrix(random, kColumns, kRank));
  RowMajorMatrix rows(kRows, kColumns);
  for (double& value : rows.reshaped()) value = entry(random, spikes.law);
  const Matrix stretch = ((spikes.lambda.array() + 1).sqrt() - 1).matrix().asDiagonal();
  rows += (rows * U * stretch * U.transpose()).eval();
  const Matrix covariance = U * spikes.lambda.asDiagonal() * U.transpose() + Matrix::Identity(kColumns, kColumns);
  return {test::bound_matrix(rows, 1.5 * std::sqrt(covariance.trace())), U, covariance};
}

/// Schatten 1, 2 and infinity, each over r^(1/q).
struct Norms {
  std::array<double, 3> value = {};
  void add(const Matrix& difference, double weight) {
    const Vector s = Eigen::SelfAdjointEigenSolver<Matrix>(difference, Eigen::EigenvaluesOnly).eigenvalues().cwiseAbs();
    const auto r = static_cast<double>(kRank);
    value[0] += weight * s.sum() / r;
    value[1] += weight * s.norm() / std::sqrt(r);
    value[2] += weight * s.maxCoeff();
  }
  std::string text() const { return fmt::format("{} / {} / {}", number(value[0]), number(value[1]), number(value[2])); }
};
struct Errors {
  Norms projector;
  Norms covariance;
};

enum class Kind { kQuiet, kStrict, kModel, kPaper };

Errors errors_of(const Spikes& spikes, Kind kind, double epsilon, int seeds) {
  SpikedOptions options;
  options.rank = kRank;
  if (kind == Kind::kModel || kind == Kind::kPaper) {
    options.guarantee = Guarantee::kModel;
    options.noise_variance = 1;
    options.spike = kSpike;
  }
  const CovarianceProgram program{PcaMethod::kSpiked, {}, options};
  const Budget spent = budget(kind == Kind::kQuiet ? 1000 : epsilon, kDelta);
  Errors errors;
  for (int seed = 0; seed < seeds; ++seed) {
    const Made made = make_rows(spikes, seed);
    const auto planned =
        kind == Kind::kPaper ? Result<PrivacyPlan>(papers::plan(pca_program(program), spent)) : plan(program, spent);
    if (!planned) throw std::runtime_error(planned.error().message);
    LocalOracle oracle(made.rows, reserve_without_ledger(*planned),
                       SecureRandom::insecure(static_cast<std::uint64_t>(seed)));
    const auto done = fit(program, oracle);
    if (!done) throw std::runtime_error(done.error().message);
    const Matrix& V = done->pca.components;
    errors.projector.add(V * V.transpose() - made.U * made.U.transpose(), 1.0 / seeds);
    errors.covariance.add(done->dense() - made.covariance, 1.0 / seeds);
  }
  return errors;
}

/// Theorem 1 and corollary 1 with constant 1, over r^(1/q).
double projector_rate(double least, double kappa0, double epsilon) {
  const auto n = static_cast<double>(kRows), p = static_cast<double>(kColumns), r = static_cast<double>(kRank);
  return (1 / least + std::sqrt(kappa0 / least)) *
         (std::sqrt(p / n) + p * std::sqrt(r + std::log(n)) / (n * epsilon) * std::sqrt(std::log(2.5 / kDelta)));
}
double covariance_rate(double largest, double epsilon) {
  return spiked_rate(kRows, kColumns, kRank, largest, 1, *Epsilon::of(epsilon), *Delta::of(kDelta));
}

}  // namespace

void paper_002(const Setting& all) {
  const int seeds = std::min(all.seeds, 5);
  Page page("paper-002", "Paper 002 (spiked covariance): projector and covariance in three Schatten norms");
  page.say(fmt::format(
      "n = {}, p = {}, r = {}, sigma^2 = 1, spikes of {} unless said otherwise, row bound 1.5 typical rows, "
      "delta = {:g}, mean over {} seeds. Cells are the Schatten norms 1 / 2 / infinity of the error, each "
      "divided by r^(1/q) as the theorems do; rates have constant 1. A projector error of 1 or a covariance "
      "error of the spike is what knowing nothing gives. \"no noise\" is epsilon 1000.",
      kRows, kColumns, kRank, kSpike, kDelta, seeds));

  Table by_epsilon("", "Over epsilon",
                   {"epsilon", "projector: strict", "model", "model, paper's noise", "rate of theorem 1",
                    "covariance: strict", "model", "model, paper's noise", "rate of theorem 2"});
  LineChart projector{"Projector, spectral norm", "epsilon", "error", {}};
  projector.lines = {{"strict", {}}, {"model", {}}, {"model, paper's noise", {}}, {"rate, constant 1", {}, true}};
  LineChart covariance = projector;
  covariance.title = "Covariance, spectral norm";
  for (const double epsilon : {0.5, 1.0, 2.0, 4.0}) {
    std::vector<Errors> found;
    for (const Kind kind : {Kind::kStrict, Kind::kModel, Kind::kPaper})
      found.push_back(errors_of({}, kind, epsilon, seeds));
    std::vector<std::string> cells = {number(epsilon)};
    for (const Errors& errors : found) cells.push_back(errors.projector.text());
    cells.push_back(number(projector_rate(kSpike, 1, epsilon)));
    for (const Errors& errors : found) cells.push_back(errors.covariance.text());
    cells.push_back(number(covariance_rate(kSpike, epsilon)));
    by_epsilon.add(cells);
    for (std::size_t i = 0; i < 3; ++i) {
      projector.lines[i].points.emplace_back(epsilon, found[i].projector.value[2]);
      covariance.lines[i].points.emplace_back(epsilon, found[i].covariance.value[2]);
    }
    projector.lines[3].points.emplace_back(epsilon, projector_rate(kSpike, 1, epsilon));
    covariance.lines[3].points.emplace_back(epsilon, covariance_rate(kSpike, epsilon));
  }
  const Errors quiet = errors_of({}, Kind::kQuiet, 0, seeds);
  by_epsilon.add({"no noise", quiet.projector.text(), "", "", "", quiet.covariance.text(), "", "", ""});
  page.add(by_epsilon);
  page.add(projector);
  page.add(covariance);

  Table by_condition(
      "",
      "Over the condition number kappa_0 = lambda_1 / lambda_r of the spikes, the least of them 20, strict, "
      "epsilon = 1 (the row bound grows with the trace)",
      {"kappa_0", "projector: no noise", "epsilon 1", "rate of corollary 1", "covariance: no noise", "epsilon 1",
       "rate of corollary 1"});
  for (const double kappa0 : {1.0, 2.0, 5.0, 10.0}) {
    Spikes spikes;
    spikes.lambda << kSpike * kappa0, kSpike * std::sqrt(kappa0), kSpike;
    const Errors still = errors_of(spikes, Kind::kQuiet, 0, seeds), noisy = errors_of(spikes, Kind::kStrict, 1, seeds);
    by_condition.add({number(kappa0), still.projector.text(), noisy.projector.text(),
                      number(projector_rate(kSpike, kappa0, 1)), still.covariance.text(), noisy.covariance.text(),
                      number(covariance_rate(kSpike * kappa0, 1))});
  }
  page.add(by_condition);

  Table by_law(
      "", "Over the law of the independent entries, epsilon = 1; Student's t with five degrees is not sub-Gaussian",
      {"law", "projector: no noise", "strict", "model", "covariance: no noise", "strict", "model"});
  for (const auto& [law, name] : {std::pair(Law::kGaussian, "normal"),
                                  {Law::kUniform, "uniform"},
                                  {Law::kSigns, "signs"},
                                  {Law::kStudent, "Student, 5 degrees"}}) {
    Spikes spikes;
    spikes.law = law;
    const Errors still = errors_of(spikes, Kind::kQuiet, 0, seeds), strict = errors_of(spikes, Kind::kStrict, 1, seeds),
                 model = errors_of(spikes, Kind::kModel, 1, seeds);
    by_law.add({name, still.projector.text(), strict.projector.text(), model.projector.text(), still.covariance.text(),
                strict.covariance.text(), model.covariance.text()});
  }
  page.add(by_law);
  page.finish(all);
}

}  // namespace eigenveil::bench
