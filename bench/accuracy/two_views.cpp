// SPDX-License-Identifier: Apache-2.0
// Contrastive heads in the spiked two-view model of paper 003 (its eq. 5.2): x = U_1 z + xi, y = U_2 z + xi', against
// n, epsilon and r. The error is the paper's: max over the views of min_A ||A G - G*||_F. Its theorem 5.1 has a cost of
// privacy and a statistical error that both fall as n^(-1/2).
#include <fmt/format.h>

#include <Eigen/QR>
#include <cmath>
#include <limits>
#include <random>

#include "accuracy.hpp"
#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/estimators/clip/training.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "eigenveil/query/local_oracle.hpp"

namespace eigenveil::bench {
namespace {

constexpr Eigen::Index kColumns = 20;  // of each view
constexpr double kNoise = 0.25;        // variance of xi; z has 1

struct Views {
  BoundedRows rows;
  Matrix U1, U2;
};

Matrix normals(std::mt19937_64& random, Eigen::Index rows, Eigen::Index columns) {
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, columns, [&] { return normal(random); });
}

Views draw_views(Eigen::Index n, Eigen::Index r, int seed, int threads) {
  std::mt19937_64 random(static_cast<std::uint64_t>(1000 + seed));
  const Matrix U1 = orthonormal(normals(random, kColumns, r)), U2 = orthonormal(normals(random, kColumns, r));
  const Matrix z = normals(random, n, r);
  RowMajorMatrix rows(n, 2 * kColumns);
  rows << z * U1.transpose() + std::sqrt(kNoise) * normals(random, n, kColumns),
      z * U2.transpose() + std::sqrt(kNoise) * normals(random, n, kColumns);
  MemorySource source(rows);
  const double typical = std::sqrt(2 * (static_cast<double>(r) + kNoise * static_cast<double>(kColumns)));
  BoundingOptions bounding{.bound = *RowBound::of(1.3 * typical)};
  bounding.threads = threads;
  return {*BoundedRows::read(source, ColumnMap::identity(source.columns()), bounding), U1, U2};
}

// min_A ||A G - G*||_F: what of G* = U^T (up to its scale, which is 1 for alpha = 1 and Sigma_z = I) lies outside the
// rows of G.
double lost(const Matrix& U, const Matrix& G) {
  const Matrix Q = orthonormal(G.transpose());
  return (U - Q * (Q.transpose() * U)).norm();
}

struct Program {
  std::string name;
  ClipMethod method;
  double batch;  // expected; below 1: a share of the rows
  std::size_t steps;
  bool noiseless = false;
};

const std::vector<Program>& programs() {
  static const std::vector<Program> all = {{"cross", ClipMethod::kCross, 0, 0},
                                           {"cross, no noise", ClipMethod::kCross, 0, 0, true},
                                           {"pair, b = 128", ClipMethod::kPair, 128, 500},
                                           {"batch, b = 64", ClipMethod::kBatch, 64, 2000},
                                           {"batch, b = n/20 (theorem 5.1)", ClipMethod::kBatch, 0.05, 200}};
  return all;
}

ClipOptions options_for(const Program& program, std::size_t n, std::size_t r) {
  ClipOptions options{.method = program.method, .dim = r};
  options.x_columns = kColumns;
  options.training.steps = std::max<std::size_t>(1, program.steps);
  options.training.sample_rate =
      program.batch == 0 ? 1.0
                         : std::min(1.0, program.batch < 1 ? program.batch : program.batch / static_cast<double>(n));
  if (program.method != ClipMethod::kBatch) return options;
  // The theorem's objective, and a start with G G^T = I.
  options.training.linear = true;
  options.training.optimizer = Optimizer::kSgd;
  options.start = starting_heads(r, kColumns, kColumns);
  options.start.G1 /= std::sqrt(2.0);
  options.start.G2 /= std::sqrt(2.0);
  return options;
}

double error_of(const Program& program, const Views& views, double epsilon, std::size_t n, std::size_t r, int seed) {
  ClipOptions options = options_for(program, n, r);
  auto plan = calibrate(plan_clip(Adjacency::kAddRemoveOne, options), *Epsilon::of(epsilon), *Delta::of(1e-5));
  if (!plan) throw std::runtime_error(plan.error().message);
  if (program.noiseless)
    for (PrivacyEvent& event : plan->events) event.mechanism = GaussianEvent{0x1p55};
  if (program.method == ClipMethod::kBatch) {
    // eta = 1 / (sigma sqrt(T (r d + log(T (n + d))))), the noise being sigma c = 2 c (plan's sigma)
    const double sigma = 2 * std::get<PoissonGaussianEvent>(plan->events[0].mechanism).sigma;
    const auto T = static_cast<double>(program.steps), d = 2.0 * kColumns;
    options.training.rate =
        1 / (sigma * std::sqrt(T * (static_cast<double>(r) * d + std::log(T * (static_cast<double>(n) + d)))));
  }
  LocalOracle oracle(views.rows, reserve_without_ledger(*plan),
                     SecureRandom::insecure(static_cast<std::uint64_t>(seed)));
  const auto fit = fit_clip(oracle, options);
  if (!fit) throw std::runtime_error(fit.error().message);
  return std::max(lost(views.U1, fit->image_weights), lost(views.U2, fit->text_weights));
}

// Mean errors of every program at one setting.
std::vector<double> errors_at(std::size_t n, double epsilon, std::size_t r, const Setting& setting) {
  std::vector<double> means(programs().size());
  for (int seed = 0; seed < setting.seeds; ++seed) {
    const Views views = draw_views(static_cast<Eigen::Index>(n), static_cast<Eigen::Index>(r), seed, setting.threads);
    for (std::size_t p = 0; p < means.size(); ++p)
      means[p] += error_of(programs()[p], views, epsilon, n, r, seed) / setting.seeds;
  }
  return means;
}

}  // namespace

void two_views(const Setting& setting) {
  const std::vector<std::size_t> sizes = {1000, 2000, 4000, 8000, 16000, 32000, 64000};
  const std::vector<double> epsilons = {0.25, 0.5, 1, 2, 4, 8};
  const std::vector<std::size_t> ranks = {1, 2, 4, 8};
  std::vector<std::string> columns = {"against"};
  for (const Program& program : programs()) columns.push_back(program.name);
  Table table(
      "two_views",
      fmt::format("Spiked two-view model of paper 003, {} columns a view, noise variance {}: error max_views min_A "
                  "||A G - G*||_F, mean over {} seeds; delta 1e-5, add-remove-one. n is varied at epsilon 1 and r = 2, "
                  "epsilon and r at n = 16,000",
                  kColumns, kNoise, setting.seeds),
      columns);
  std::vector<LineChart> charts = {{"Against pairs (epsilon 1, r = 2)", "pairs", "error", {}},
                                   {"Against epsilon (n = 16,000, r = 2)", "epsilon", "error", {}},
                                   {"Against r (n = 16,000, epsilon 1)", "r", "error", {}}};
  for (LineChart& chart : charts)
    for (const Program& program : programs()) chart.lines.push_back({program.name, {}});
  const auto measure = [&](std::size_t chart, const std::string& what, double x, std::size_t n, double epsilon,
                           std::size_t r) {
    const std::vector<double> errors = errors_at(n, epsilon, r, setting);
    std::vector<std::string> cells = {what};
    for (std::size_t p = 0; p < errors.size(); ++p) {
      charts[chart].lines[p].points.emplace_back(x, errors[p]);
      cells.push_back(number(errors[p]));
    }
    table.add(cells);
  };
  const auto add_slopes = [&](std::size_t chart, const char* what) {
    std::vector<std::string> cells = {what};
    for (const ChartLine& line : charts[chart].lines) {
      const auto& points = line.points;
      cells.push_back(fmt::format("{:.2f}", slope({points.end() - 4, points.end()})));
    }
    table.add(cells);
  };
  for (const std::size_t n : sizes) measure(0, fmt::format("n = {}", n), static_cast<double>(n), n, 1, 2);
  add_slopes(0, "slope in n, last four (theorem 5.1: -0.5)");
  for (const double epsilon : epsilons) measure(1, fmt::format("epsilon = {}", epsilon), epsilon, 16000, epsilon, 2);
  add_slopes(1, "slope in epsilon, last four (theorem 5.1: -0.5)");
  for (const std::size_t r : ranks) measure(2, fmt::format("r = {}", r), static_cast<double>(r), 16000, 1, r);
  // The rate of the theorem, through the first point of cross
  const auto& cross = charts[0].lines[0].points;
  ChartLine rate{"n^(-1/2)", {}, true};
  for (const auto& [n, error] : cross) rate.points.emplace_back(n, cross[0].second * std::sqrt(cross[0].first / n));
  charts[0].lines.push_back(rate);
  table.finish(setting, charts);
}

}  // namespace eigenveil::bench
