// SPDX-License-Identifier: Apache-2.0
// 000's algorithm as printed, one provider: Q <- qr(truncate(qr(S Q + G / n))), sigma = 2 T sqrt(2 ln(2 T / delta)) /
// epsilon for rows of length 1: its error by round beside rho^(t/4), from a random and from a warm start, and over d.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "eigenveil/linalg/subspace.hpp"
#include "page.hpp"
#include "tests/support/fit.hpp"

namespace eigenveil::bench {
namespace {

constexpr Eigen::Index kSupport = 10;
constexpr std::size_t kKept = 40, kRounds = 8;
constexpr double kDelta = 1e-6;

/// Rows of length at most 1, k = 1: lambda_1 along the first columns, lambda_2 along the next ones, `rest` elsewhere.
struct Instance {
  RowMajorMatrix rows;
  Vector truth;
};

Instance draw_instance(Eigen::Index n, Eigen::Index d, double first, double second, double rest,
                       std::mt19937_64& random) {
  Vector truth = Vector::Zero(d), other = Vector::Zero(d);
  truth.head(kSupport).setConstant(1 / std::sqrt(static_cast<double>(kSupport)));
  other.segment(kSupport, kSupport).setConstant(1 / std::sqrt(static_cast<double>(kSupport)));
  RowMajorMatrix rows = std::sqrt(rest) * test::normal_matrix(random, n, d);
  for (const auto& [u, lambda] : {std::pair(truth, first), std::pair(other, second)}) {
    const Vector along = (std::sqrt(lambda / rest) - 1) * (rows * u);
    rows += along * u.transpose();
  }
  for (Eigen::Index i = 0; i < n; ++i) rows.row(i) /= std::max(1.0, rows.row(i).norm());
  return {std::move(rows), truth};
}

double sine(const Vector& a, const Vector& b) {
  const double cosine = a.normalized().dot(b.normalized());
  return std::sqrt(std::max(0.0, 1 - cosine * cosine));
}

/// Sines after each round, the start's first.
std::vector<double> by_round(const Instance& instance, Vector v, double deviation, std::mt19937_64& random) {
  std::vector<double> errors = {sine(v, instance.truth)};
  const auto n = static_cast<double>(instance.rows.rows());
  for (std::size_t t = 0; t < kRounds; ++t) {
    Vector product = instance.rows.transpose() * (instance.rows * v) / n;
    product += deviation * test::normal_matrix(random, v.size(), 1).col(0);
    v = truncate_rows(orthonormal(Matrix(product)), kKept).col(0);
    errors.push_back(sine(v, instance.truth));
  }
  return errors;
}

double printed_deviation(double n) {
  const auto T = static_cast<double>(kRounds);
  return 2 * T * std::sqrt(2 * std::log(2 * T / kDelta)) / n;
}

Vector random_start(std::mt19937_64& random, Eigen::Index d) {
  return test::normal_matrix(random, d, 1).col(0).normalized();
}

/// The truth, turned by an angle of this sine towards a random direction.
Vector warm_start(std::mt19937_64& random, const Vector& truth, double sine) {
  Vector aside = random_start(random, truth.size());
  aside = (aside - truth * truth.dot(aside)).normalized();
  return std::sqrt(1 - sine * sine) * truth + sine * aside;
}

void rounds(Page& page, int seeds) {
  constexpr Eigen::Index d = 500, n = 60000;
  constexpr double first = 0.3, start = 0.25;
  std::vector<std::string> head = {"lambda_2 / lambda_1", "start", "noise"};
  for (std::size_t t = 0; t <= kRounds; ++t) head.push_back(fmt::format("t = {}", t));
  Table table("", fmt::format("Sine by round, n = {}, d = {}, lambda_1 = {}", n, d, first), head);
  for (const double gamma : {0.3, 0.8}) {
    LineChart chart{fmt::format("Sine by round, lambda_2 / lambda_1 = {}", gamma), "round", "sine", {}, false, true};
    struct Line {
      const char* start;
      bool noisy;
      std::vector<double> mean = std::vector<double>(kRounds + 1);
    };
    std::vector<Line> lines = {{"random", false}, {"random", true}, {"warm", false}, {"warm", true}};
    for (int seed = 0; seed < seeds; ++seed) {
      std::mt19937_64 random(static_cast<std::uint64_t>(seed));
      const Instance instance = draw_instance(n, d, first, gamma * first, 0.2 / static_cast<double>(d), random);
      const Vector cold = random_start(random, d), warm = warm_start(random, instance.truth, start);
      for (Line& line : lines) {
        const auto errors =
            by_round(instance, line.start[0] == 'r' ? cold : warm, line.noisy ? printed_deviation(n) : 0, random);
        for (std::size_t t = 0; t <= kRounds; ++t) line.mean[t] += errors[t] / seeds;
      }
    }
    for (const Line& line : lines) {
      std::vector<std::string> cells = {number(gamma), line.start, line.noisy ? "epsilon 1" : "none"};
      ChartLine drawn{fmt::format("{} start, {}", line.start, line.noisy ? "epsilon 1" : "no noise"), {}};
      for (std::size_t t = 0; t <= kRounds; ++t) {
        cells.push_back(number(line.mean[t]));
        drawn.points.emplace_back(t, line.mean[t]);
      }
      table.add(cells);
      chart.lines.push_back(drawn);
    }
    ChartLine rate{"0.25 gamma^(t/4), the theorem's first term", {}, true};
    std::vector<std::string> cells = {number(gamma), "0.25 gamma^(t/4)", ""};
    for (std::size_t t = 0; t <= kRounds; ++t) {
      rate.points.emplace_back(t, start * std::pow(gamma, static_cast<double>(t) / 4));
      cells.push_back(number(rate.points.back().second));
    }
    table.add(cells);
    chart.lines.push_back(rate);
    page.add(chart);
  }
  page.add(table);
}

void columns(Page& page, int seeds) {
  constexpr Eigen::Index n = 30000;
  constexpr double start = 0.25, gamma = 0.3;
  Table table("",
              fmt::format("Sine after {} rounds over d, n = {}, warm start of sine {}, lambda_2 / lambda_1 = {}",
                          kRounds, n, start, gamma),
              {"d", "background of total variance 0.2: no noise", "epsilon 1", "added by noise",
               "background of variance 0.0008 per column, rows then divided by their typical length: no noise",
               "epsilon 1", "added by noise"});
  LineChart chart{"What noise adds to the sine, by columns", "columns", "sine with noise less sine without", {}};
  chart.lines = {{"background of a fixed total", {}}, {"background of a fixed variance per column", {}}};
  for (const Eigen::Index d : {125, 250, 500, 1000, 2000}) {
    std::vector<std::string> cells = {fmt::to_string(d)};
    for (const bool fixed : {true, false}) {
      const double rest = fixed ? 0.2 / static_cast<double>(d) : 0.0008;
      const double total = 0.3 * (1 + gamma) + rest * static_cast<double>(d);
      const double shrink = fixed ? 1 : std::max(1.0, total / 0.59);  // as long as the rows of the first kind
      double quiet = 0, noisy = 0;
      for (int seed = 0; seed < seeds; ++seed) {
        std::mt19937_64 random(static_cast<std::uint64_t>(seed));
        const Instance instance = draw_instance(n, d, 0.3 / shrink, gamma * 0.3 / shrink, rest / shrink, random);
        const Vector warm = warm_start(random, instance.truth, start);
        quiet += by_round(instance, warm, 0, random).back() / seeds;
        noisy += by_round(instance, warm, printed_deviation(n), random).back() / seeds;
      }
      cells.insert(cells.end(), {number(quiet), number(noisy), number(noisy - quiet)});
      chart.lines[fixed ? 0 : 1].points.emplace_back(d, noisy - quiet);
    }
    table.add(cells);
  }
  page.add(table);
  page.add(chart);
}

}  // namespace

void paper_000(const Setting& setting) {
  const int seeds = std::min(setting.seeds, 5);
  Page page("paper-000", "Paper 000 (distributed sparse PCA): its theorem round by round");
  page.say(fmt::format(
      "The algorithm as printed with one provider, k = 1, {} true loadings, {} kept, T = {} rounds with its noise at "
      "epsilon = 1 and delta = {:g}, rows shortened to length 1, mean over {} seeds. The error is the sine of the "
      "angle "
      "to the truth. The theorem: rho^(t/4) times the first error, and two terms that do not fall with t; rho = gamma "
      "/ "
      "(1 - alpha) with gamma = lambda_2 / lambda_1, so gamma^(t/4) is the least that it can say. The warm start is "
      "the "
      "truth, turned by an angle of sine 0.25 towards a random direction.",
      kSupport, kKept, kRounds, kDelta, seeds));
  rounds(page, seeds);
  columns(page, seeds);
  page.finish(setting);
}

}  // namespace eigenveil::bench
