// SPDX-License-Identifier: Apache-2.0
// How far a row may reach: a stated bound that is right, 3 and 10 times too loose, a bound that is found privately,
// rows of one length, and the power method that filters. Rows of several spectra, with long tails and with outliers.
#include <fmt/format.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "accuracy.hpp"
#include "eigenveil/data/memory_source.hpp"
#include "eigenveil/query/local_oracle.hpp"

namespace eigenveil::bench {
namespace {

enum class Tails { kNormal, kHeavy, kOutliers };

struct Shape {
  std::string name;
  std::size_t n;
  std::size_t d;
  Vector (*spectrum)(std::size_t d, std::size_t k);
  Tails tails = Tails::kNormal;
};

Vector gap5(std::size_t d, std::size_t k) { return gap_spectrum(d, k, 5); }
Vector gap2(std::size_t d, std::size_t k) { return gap_spectrum(d, k, 2); }
Vector decay(std::size_t d, std::size_t /*k*/) {
  Vector values = Vector::NullaryExpr(static_cast<Eigen::Index>(d), [](Eigen::Index i) { return std::pow(0.8, i); });
  values.array() += 0.01;
  return values / values.sum();
}
Vector harmonic(std::size_t d, std::size_t /*k*/) { return decay_spectrum(d, 1); }
Vector spikes(std::size_t d, std::size_t /*k*/) {
  Vector values = Vector::Ones(static_cast<Eigen::Index>(d));
  for (Eigen::Index i = 0; i < 5; ++i) values[i] = 40.0 / std::pow(1.5, i);
  return values / values.sum();
}

// Rows of trace 1 about a mean of length 1, and their true components.
struct MadeUp {
  RowMajorMatrix rows;
  Matrix truth;
};

MadeUp make(const Shape& shape, std::size_t k, int seed) {
  const SpectrumModel model{shape.n, shape.spectrum(shape.d, k), 1e9, k};
  const auto s = static_cast<std::uint64_t>(seed);
  const Eigenbasis basis(model, s);
  RowMajorMatrix rows = draw_rows(model, basis, model.rows, s);
  std::mt19937_64 random(s + 1000);
  std::chi_squared_distribution<double> chi(3);
  std::normal_distribution<double> normal;
  if (shape.tails == Tails::kHeavy)
    for (auto row : rows.rowwise()) row *= std::sqrt(3 / chi(random));
  if (shape.tails == Tails::kOutliers)
    for (Eigen::Index i = 0; i < rows.rows(); i += 200) {  // one in 200, ten times as long, wherever they point
      const double length = 10 * rows.row(i).norm();
      for (double& x : rows.row(i)) x = normal(random);
      rows.row(i) *= length / rows.row(i).norm();
    }
  Vector mean = Vector::NullaryExpr(static_cast<Eigen::Index>(shape.d), [&] { return normal(random); });
  rows.rowwise() += (mean / mean.norm()).transpose();
  return {std::move(rows), basis.top()};
}

double error_of(PcaProgram program, const MadeUp& made, double bound, const Budget& budget, int seed, int threads) {
  const auto must = [](auto result) {
    if (!result) throw std::runtime_error(result.error().message);
    return *std::move(result);
  };
  MemorySource source(made.rows);
  BoundingOptions options{.bound = must(RowBound::of(bound))};
  options.threads = threads;
  options.memory_bytes = std::size_t{8} << 30;
  const BoundedRows rows = must(BoundedRows::read(source, ColumnMap::identity(source.columns()), options));
  program.options.preparation.mean = MeanBy::kRefined;
  program.options.preparation.directions = program.options.components;
  const auto method = estimator(program);
  const RowsShape shape{rows.columns(), rows.rows(), rows.lattice(), budget.adjacency};
  const auto plan = must(calibrate(must(method->plan(shape, budget)), budget.epsilon, budget.delta));
  LocalOracle oracle(rows, reserve_without_ledger(plan), SecureRandom::insecure(static_cast<std::uint64_t>(seed)));
  const Fit fit = must(method->fit(oracle, budget));
  return sin_squared(made.truth, fit.arrays.front().values.transpose());
}

}  // namespace

void radius(const Setting& setting) {
  const std::vector<Shape> shapes = {{"gap 5", 20000, 50, gap5},
                                     {"gap 2", 20000, 200, gap2},
                                     {"decay", 20000, 200, decay},
                                     {"1/i", 20000, 200, harmonic},
                                     {"5 spikes", 20000, 200, spikes},
                                     {"5 spikes, t3", 20000, 50, spikes, Tails::kHeavy},
                                     {"5 spikes, t3", 20000, 200, spikes, Tails::kHeavy},
                                     {"5 spikes, outliers", 20000, 200, spikes, Tails::kOutliers},
                                     {"5 spikes, t3", 50000, 500, spikes, Tails::kHeavy},
                                     {"gap 5", 50000, 500, gap5}};
  Table table("radius",
              fmt::format("How far a row may reach: mean sin^2 (worst) over {} seeds, epsilon = 1, delta = 1e-6, mean "
                          "found privately. A stated bound of 2.5 is 2.5 typical rows",
                          setting.seeds),
              {"rows", "n, d", "k", "gram, stated 2.5", "stated 7.5", "stated 25", "gram, found below 2.5", "below 7.5",
               "below 25", "sphere, below 2.5", "below 25", "pilot, below 2.5", "below 25", "adaptive-power, below 2.5",
               "below 25"});
  for (const Shape& shape : shapes) {
    if (!setting.only.empty() && shape.name != setting.only) continue;
    for (const std::size_t k : {1U, 5U}) {
      struct Tried {
        PcaProgram program;
        double bound;
        double mean = 0;
        double worst = 0;
      };
      const PcaOptions stated{.components = k};
      PcaOptions found = stated;
      found.preparation.bound_by = BoundBy::kDirections;
      std::vector<Tried> all;
      for (const double bound : {2.5, 7.5, 25.0}) all.push_back({{PcaMethod::kGram, stated}, bound});
      for (const double bound : {2.5, 7.5, 25.0}) all.push_back({{PcaMethod::kGram, found}, bound});
      for (const double bound : {2.5, 25.0}) all.push_back({{PcaMethod::kSphere, found}, bound});
      for (const double bound : {2.5, 25.0}) all.push_back({{PcaMethod::kPilot, found, {.rounds = 8}}, bound});
      for (const double bound : {2.5, 25.0}) all.push_back({{PcaMethod::kAdaptivePower, found, {.rounds = 8}}, bound});
      for (int seed = 0; seed < setting.seeds; ++seed) {
        const MadeUp made = make(shape, k, seed);
        for (Tried& one : all) {
          const double error = error_of(one.program, made, one.bound, budget(1, 1e-6), seed + 1, setting.threads);
          one.mean += error / setting.seeds;
          one.worst = std::max(one.worst, error);
        }
      }
      std::vector<std::string> cells = {shape.name, fmt::format("{}, {}", shape.n, shape.d), std::to_string(k)};
      for (const Tried& one : all) cells.push_back(fmt::format("{} ({})", number(one.mean), number(one.worst)));
      table.add(cells);
    }
  }
  table.finish(setting, {});
}

}  // namespace eigenveil::bench
