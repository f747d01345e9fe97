// SPDX-License-Identifier: Apache-2.0
#pragma once

// The experiments of paper 004 on Dota2 and Covertype: the first d columns, rows of the first n, epsilon 1/8 .. 4,
// delta = n^-1.1, 15 rounds, one vector, error 1 - |cos| against the solution without noise. Rows are bounded by a
// public bound, the longest row that the columns' ranges allow, not by the longest one in the data.
//   once       our default: sums released once, solved exactly
//   each-step  the flow through products (PCA: the power method), noise calibrated to the same budget
//   paper      the paper's flow and noise on the same matrices, with its constants C_1, C_2 and steps

#include <Eigen/Eigenvalues>
#include <cmath>
#include <optional>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/estimators/gep/cca.hpp"
#include "eigenveil/estimators/gep/classes.hpp"
#include "eigenveil/estimators/gep/matrices.hpp"
#include "eigenveil/estimators/gep/solve.hpp"
#include "eigenveil/estimators/pca/gram.hpp"
#include "eigenveil/estimators/pca/power.hpp"
#include "eigenveil/papers/as_printed.hpp"
#include "eigenveil/papers/noise.hpp"
#include "lines.hpp"
#include "tables.hpp"

namespace eigenveil::bench {

enum class Problem { kPca, kCca, kFda };
inline const char* name(Problem problem) {
  return problem == Problem::kPca ? "PCA" : problem == Problem::kCca ? "CCA" : "FDA";
}

struct Case {
  Problem problem;
  Eigen::Index n;
  Eigen::Index d;
  std::optional<std::size_t> sparsity;
};

/// The matrices of a case as averages, rows of norm at most 1.
struct Exact {
  Matrix A;
  Matrix B;
  double C1;
  double C2;
  double step;
};

inline Exact exact_pair(const RowMajorMatrix& rows, const std::vector<int>& classes, Problem problem) {
  const auto n = static_cast<double>(rows.rows());
  const Eigen::Index d = rows.cols();
  const Vector mean = rows.colwise().mean();
  const Matrix S = rows.transpose() * rows / n - mean * mean.transpose();
  if (problem == Problem::kPca) return {S, Matrix::Identity(d, d), 1, 1, 1};
  if (problem == Problem::kCca) {
    Exact pair{S, S, 12, 12, 0.1};
    const Eigen::Index x = d / 2;
    pair.A.topLeftCorner(x, x).setZero();
    pair.A.bottomRightCorner(d - x, d - x).setZero();
    pair.B.topRightCorner(x, d - x).setZero();
    pair.B.bottomLeftCorner(d - x, x).setZero();
    return pair;
  }
  Matrix between = Matrix::Zero(d, d);
  for (int c = 0; c < 2; ++c) {
    Vector sum = Vector::Zero(d);
    double count = 0;
    for (Eigen::Index i = 0; i < rows.rows(); ++i)
      if (classes[static_cast<std::size_t>(i)] == c) {
        sum += rows.row(i).transpose();
        ++count;
      }
    if (count > 0) between += count / n * (sum / count - mean) * (sum / count - mean).transpose();
  }
  return {between, S - between, 4, 7, 1};
}

/// One experiment: rows on the lattice, the matrices without noise and their solution.
class Experiment {
 public:
  Experiment(const LabelledRows& table, const Case& one)
      : case_(one),
        n_(std::min(one.n, table.rows.rows())),
        rows_(bounded(table, one, n_)),
        pair_(exact_pair(normed(table, one, n_), table.classes, one.problem)) {
    const std::optional<Eigen::Index> view = one.problem == Problem::kCca ? std::optional(one.d / 2) : std::nullopt;
    const auto solved = solve_matrices({pair_.A, pair_.B, 0, 0, 0, one.problem != Problem::kCca, view},
                                       {.components = 1, .sparsity = one.sparsity});
    truth_ = solved->vectors.col(0);
  }

  Errors at(double epsilon_value, int seeds) const {
    const Epsilon epsilon = *Epsilon::of(epsilon_value);
    const Delta delta = *Delta::of(std::pow(static_cast<double>(n_), -1.1));
    Errors errors;
    for (int seed = 0; seed < seeds; ++seed) {
      const auto key = static_cast<std::uint64_t>(seed);
      errors.once += error(ours(GepNoise::kOnce, epsilon, delta, key)) / seeds;
      errors.each_step += error(ours(GepNoise::kEachStep, epsilon, delta, key)) / seeds;
      errors.paper += error(paper(epsilon, delta, key)) / seeds;
    }
    return errors;
  }

 private:
  static RowMajorMatrix normed(const LabelledRows& table, const Case& one, Eigen::Index n) {
    return table.rows.topLeftCorner(n, one.d) / std::sqrt(static_cast<double>(one.d));
  }
  static BoundedRows bounded(const LabelledRows& table, const Case& one, Eigen::Index n) {
    return test::bound_classed(normed(table, one, n), table.classes, 1);
  }
  double error(const Vector& v) const { return test::misalignment(v, truth_); }
  LocalOracle oracle(const PrivacyPlan& plan, std::uint64_t key) const {
    return {rows_, reserve_without_ledger(plan), SecureRandom::insecure(key)};
  }

  Vector ours(GepNoise noise, Epsilon epsilon, Delta delta, std::uint64_t key) const {
    GepOptions gep{.components = 1, .noise = noise, .sparsity = case_.sparsity};
    gep.preparation = {.mean = case_.problem != Problem::kFda ? MeanBy::kOnce : MeanBy::kNone};
    if (case_.problem == Problem::kPca) {
      const PcaOptions options{.components = 1, .preparation = gep.preparation, .sparsity = case_.sparsity};
      // with B = I and eta = 1 the flow is the power method
      const PowerOptions power{.rounds = 15, .filter = RowFilter::kOff};
      const bool once = noise == GepNoise::kOnce;
      const auto plan = calibrate(
          once ? plan_gram(Adjacency::kReplaceOne, options) : plan_power(Adjacency::kReplaceOne, options, power),
          epsilon, delta);
      auto answers = oracle(*plan, key);
      return (once ? fit_gram(answers, options) : fit_power(answers, options, power))->components.col(0);
    }
    if (case_.problem == Problem::kCca) {
      const CcaOptions options{gep, static_cast<std::size_t>(case_.d / 2)};
      const auto plan = calibrate(plan_cca(Adjacency::kReplaceOne, options), epsilon, delta);
      auto answers = oracle(*plan, key);
      const auto fit = fit_cca(answers, options);
      return test::stacked(fit->x_weights.col(0), fit->y_weights.col(0));
    }
    const ClassOptions options{gep, ClassProblem::kFisher, 2};
    const auto plan = calibrate(plan_classes(Adjacency::kReplaceOne, options), epsilon, delta);
    auto answers = oracle(*plan, key);
    return fit_classes(answers, options)->solution.vectors.col(0);
  }

  Vector paper(Epsilon epsilon, Delta delta, std::uint64_t key) const {
    GepOptions literal{.components = 1, .noise = GepNoise::kEachStep, .sparsity = case_.sparsity, .step = pair_.step};
    literal = papers::as_printed(literal);
    const PrivacyPlan plan = papers::matrices(plan_matrices(Adjacency::kReplaceOne, literal), epsilon, delta);
    const auto n = static_cast<double>(n_);
    // PCA has a known B = I: no noise there
    const double of_b = case_.problem == Problem::kPca ? 1e-9 : pair_.C2 / n;
    auto answers = MatrixOracle::make({pair_.A, pair_.B, pair_.C1 / n, of_b}, static_cast<std::size_t>(n_),
                                      reserve_without_ledger(plan), SecureRandom::insecure(key));
    return fit_matrices(**answers, literal)->vectors.col(0);
  }

  Case case_;
  Eigen::Index n_;
  BoundedRows rows_;
  Exact pair_;
  Vector truth_;
};

inline void run_table(const LabelledRows& table, bool covertype_sizes, int seeds, const std::string& folder) {
  const double epsilons[] = {0.125, 0.25, 0.5, 1, 2, 4};
  const auto width = table.rows.cols();
  for (const Problem problem : {Problem::kPca, Problem::kCca, Problem::kFda}) {
    std::vector<Eigen::Index> sizes = {30000, 50000, 70000, 90000};
    if (problem == Problem::kCca)
      sizes = covertype_sizes ? std::vector<Eigen::Index>{1500, 2900, 4300, 5700}
                              : std::vector<Eigen::Index>{3000, 5000, 7000, 9000};
    const Eigen::Index low = problem == Problem::kPca ? 20 : problem == Problem::kCca ? 30 : 10;
    std::vector<std::pair<std::string, Case>> cases;
    for (const Eigen::Index n : sizes) cases.push_back({"low-dimensional", {problem, n, low, {}}});
    for (const Eigen::Index n : sizes) cases.push_back({"sparse", {problem, n, width, 30}});
    for (const std::size_t s : {10, 20, 40, 50}) cases.push_back({"sparse", {problem, sizes.back(), width, s}});
    std::vector<LineChart> charts;
    print_head(fmt::format("{} {}, at epsilon 1", table.name, name(problem)).c_str());
    for (const auto& [kind, one] : cases) {
      std::map<double, Errors> by_epsilon;
      const Experiment experiment(table, one);
      for (const double epsilon : epsilons) by_epsilon[epsilon] = experiment.at(epsilon, seeds);
      const std::string title = fmt::format("{} {} {}: n = {}, d = {}{}", table.name, name(problem), kind, one.n, one.d,
                                            one.sparsity ? fmt::format(", s = {}", *one.sparsity) : "");
      charts.push_back(chart(title, by_epsilon));
      print_row(fmt::format("{}, n = {}{}", kind, one.n, one.sparsity ? fmt::format(", s = {}", *one.sparsity) : ""),
                by_epsilon[1]);
    }
    const std::string file = fmt::format("{}/{}-{}.svg", folder, table.name, name(problem));
    if (write_file(file, line_charts_svg(charts)).ok()) fmt::print("  all epsilons: {}\n", file);
  }
}

inline void paper_experiments(int seeds, const std::string& folder) {
  if (const auto table = dota2())
    run_table(ranged(*table), false, seeds, folder);
  else
    fmt::print("\nDota2: SKIPPED, dota2Dataset.zip is not in ../shared/data or $EIGENVEIL_DATA\n");
  if (const auto table = covertype())
    run_table(ranged(*table), true, seeds, folder);
  else
    fmt::print("\nCovertype: SKIPPED, covertype-93k.csv.gz is not in ../shared/data or $EIGENVEIL_DATA\n");
}

}  // namespace eigenveil::bench
