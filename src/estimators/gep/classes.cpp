// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/gep/classes.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "eigenveil/estimators/gep/flow.hpp"
#include "eigenveil/estimators/gep/solve.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/linalg/subspace.hpp"

namespace eigenveil {
namespace {

// Shares of the work's mu^2. Means enter the directions once, the d x d matrix B through its inverse.
constexpr double kClassCountsShare = 0.04;
constexpr double kClassSumsShare = 0.22;

std::string class_counts_label(ClassProblem problem) {
  return problem == ClassProblem::kFisher ? "class counts" : "slice counts";
}
std::string class_sums_label(ClassProblem problem) {
  return problem == ClassProblem::kFisher ? "class sums" : "slice sums";
}
std::string class_product_label(std::size_t round) { return fmt::format("product {}", round); }

// What is released of the classes, as averages.
struct Classes {
  Matrix means;    // d x C
  Vector weights;  // n_c / n, sum 1
  Vector mean;     // sum weights m_c
  double rows;
  std::vector<std::size_t> empty;
  std::vector<std::size_t> first;
  double edge;  // largest eigenvalue of A that the noise in the sums typically makes

  // A V = sum w_c (m_c - m)(m_c - m)^T V
  Matrix between(const Matrix& V) const {
    const Matrix D = means.colwise() - mean;
    return D * (weights.asDiagonal() * (D.transpose() * V));
  }
  // What B takes away from G / n.
  Matrix around(ClassProblem problem, const Matrix& V) const {
    if (problem == ClassProblem::kSliced) return mean * (mean.transpose() * V);
    return means * (weights.asDiagonal() * (means.transpose() * V));
  }
};

Matrix merge_columns(const Matrix& fine, const std::vector<std::size_t>& first) {
  Matrix merged = Matrix::Zero(fine.rows(), static_cast<Eigen::Index>(first.size()));
  for (std::size_t group = 0, c = 0; c < static_cast<std::size_t>(fine.cols()); ++c) {
    if (group + 1 < first.size() && c >= first[group + 1]) ++group;
    merged.col(static_cast<Eigen::Index>(group)) += fine.col(static_cast<Eigen::Index>(c));
  }
  return merged;
}

Result<Classes> ask_classes(Oracle& oracle, const ClassOptions& options) {
  const auto counted = EIGENVEIL_TRY(oracle.ask(class_counts_label(options.problem), ClassCounts{options.classes}));
  const auto summed = EIGENVEIL_TRY(oracle.ask(class_sums_label(options.problem), ClassSums{options.classes}));
  double count_noise = counted.deviation();
  double sum_noise = summed.deviation();
  Vector counts = counted.value().col(0);
  Matrix sums = summed.value();
  Classes result;
  if (options.merged && *options.merged < options.classes) {
    // Fine slices that noise alone would count as many rows of bring nothing but noise into their group.
    double kept = 0;
    for (Eigen::Index c = 0; c < counts.size(); ++c) {
      if (counts[c] >= std::max(1.0, 3 * count_noise)) {
        ++kept;
        continue;
      }
      counts[c] = 0;
      sums.col(c).setZero();
    }
    result.first = merge_slices(counts, *options.merged);
    sums = merge_columns(sums, result.first);
    counts = merge_columns(counts.transpose(), result.first).transpose();
    const double width = std::max(1.0, kept / static_cast<double>(result.first.size()));
    count_noise *= std::sqrt(width);
    sum_noise *= std::sqrt(width);
  }
  // A class that noise alone would count as many rows of has no mean to speak of: it gets the mean of all.
  const double least = std::max(1.0, 4 * count_noise);
  result.means = Matrix::Zero(sums.rows(), sums.cols());
  result.weights = Vector::Zero(counts.size());
  double used = 0;
  Vector total = Vector::Zero(sums.rows());
  double smallest = std::numeric_limits<double>::infinity();
  for (Eigen::Index c = 0; c < counts.size(); ++c) {
    if (counts[c] < least) {
      result.empty.push_back(static_cast<std::size_t>(c));
      continue;
    }
    used += counts[c];
    total += sums.col(c);
    smallest = std::min(smallest, counts[c]);
  }
  if (!(used > 0))
    return bad_input("no class has more rows than its noise: there is nothing to tell apart. Check the class column");
  result.rows = used;
  result.mean = total / used;
  for (Eigen::Index c = 0; c < counts.size(); ++c) {
    const bool full = counts[c] >= least;
    result.weights[c] = full ? counts[c] / used : 0;
    result.means.col(c) = full ? Vector(sums.col(c) / counts[c]) : result.mean;
  }
  // Noise N (d x C) in the sums gives A the part N diag(1 / (n n_c)) N^T.
  const double width = std::sqrt(static_cast<double>(sums.rows())) + std::sqrt(static_cast<double>(sums.cols()));
  result.edge = sum_noise * sum_noise * width * width / (used * smallest);
  return result;
}

Result<GepResult> solve_once(Oracle& oracle, const Classes& classes, const ClassOptions& options) {
  const auto gram = EIGENVEIL_TRY(oracle.ask(kCovarianceLabel, Gram{}));
  const Eigen::Index d = gram.value().rows();
  const Matrix I = Matrix::Identity(d, d);
  const Matrix A = classes.between(I);
  const Matrix B = gram.value() / classes.rows - classes.around(options.problem, I);
  const double sigma = gram.deviation() / classes.rows;
  return solve_matrices({A, (B + B.transpose()) / 2, classes.edge / static_cast<double>(d), sigma, classes.edge, true},
                        options.gep);
}

Result<GepResult> solve_by_flow(Oracle& oracle, const Classes& classes, const ClassOptions& options) {
  std::size_t round = 0;
  const double ridge = options.gep.ridge.value_or(0);
  const Multiply multiply = [&](const Matrix& V) -> Result<Products> {
    // V = Q R: G V = (G Q) R
    const Matrix Q = orthonormal(V);
    const auto X = EIGENVEIL_TRY(Directions::quantise(Q));
    const auto answer = EIGENVEIL_TRY(oracle.ask(class_product_label(++round), Apply{X}));
    Matrix BV = answer.value() / classes.rows * (Q.transpose() * V) - classes.around(options.problem, V) + ridge * V;
    return Products{classes.between(V), std::move(BV)};
  };
  FlowOptions flow{.rounds = options.gep.rounds, .step = options.gep.step, .sparsity = options.gep.sparsity};
  flow.literal = options.gep.literal;
  flow.semidefinite = true;
  const auto d = static_cast<std::size_t>(classes.mean.size());
  const auto flowed = EIGENVEIL_TRY(rayleigh_flow(multiply, random_start(d, options.gep.components), flow));
  return GepResult{flowed.values, flowed.V, ridge, 0, {}};
}

}  // namespace

std::vector<std::size_t> merge_slices(const Vector& counts, std::size_t groups) {
  const double share = counts.sum() / static_cast<double>(groups);
  std::vector<std::size_t> first = {0};
  double filled = 0;  // rows in all groups before the current slice
  for (Eigen::Index c = 0; c < counts.size(); ++c) {
    // a new group begins where the middle of the slice lies beyond the share of the groups so far
    const double middle = filled + counts[c] / 2;
    if (c > 0 && first.size() < groups && middle >= share * static_cast<double>(first.size()))
      first.push_back(static_cast<std::size_t>(c));
    filled += counts[c];
  }
  return first;
}

Status check(const RowsShape& shape, const ClassOptions& options) {
  EIGENVEIL_TRY(check(options.gep));
  const char* what = options.problem == ClassProblem::kFisher ? "classes" : "slices";
  const std::size_t groups = options.merged.value_or(options.classes);
  if (groups < 2 || options.classes < 2) return usage_error(fmt::format("at least two {} are needed", what));
  if (options.gep.components > shape.columns)
    return bad_input(fmt::format("`components` is {} but there are {} columns", options.gep.components, shape.columns));
  if (options.gep.components >= groups)
    return usage_error(fmt::format("`components` {} is too many: {} {} differ along at most {} directions",
                                   options.gep.components, groups, what, groups - 1));
  if (options.gep.sparsity && *options.gep.sparsity > shape.columns)
    return usage_error(fmt::format("`sparsity` is {} but there are {} columns", *options.gep.sparsity, shape.columns));
  return {};
}

PrivacyPlan plan_classes(Adjacency adjacency, const ClassOptions& options) {
  const GepOptions& gep = options.gep;
  PrivacyPlan plan(adjacency, plan_preparation(adjacency, gep.preparation, 1.0));
  plan.events.push_back({class_counts_label(options.problem), GaussianEvent{std::sqrt(kClassCountsShare)}});
  plan.events.push_back({class_sums_label(options.problem), GaussianEvent{std::sqrt(kClassSumsShare)}});
  const double rest = 1 - kClassCountsShare - kClassSumsShare;
  if (gep.noise == GepNoise::kOnce) plan.events.push_back({kCovarianceLabel, GaussianEvent{std::sqrt(rest)}});
  for (std::size_t round = 1; gep.noise == GepNoise::kEachStep && round <= gep.rounds; ++round)
    plan.events.push_back(
        {class_product_label(round), GaussianEvent{std::sqrt(rest / static_cast<double>(gep.rounds))}});
  return plan;
}

Result<ClassResult> fit_classes(Oracle& oracle, const ClassOptions& options) {
  EIGENVEIL_TRY(check(oracle.shape(), options));
  const auto prepared = EIGENVEIL_TRY(prepare(oracle, options.gep.preparation));
  const auto classes = EIGENVEIL_TRY(ask_classes(oracle, options));
  auto solved = EIGENVEIL_TRY(options.gep.noise == GepNoise::kOnce ? solve_once(oracle, classes, options)
                                                                   : solve_by_flow(oracle, classes, options));
  fix_signs(solved.vectors);
  const Matrix means = (classes.means.colwise() + prepared.mean).transpose();
  return ClassResult{solved,        means,         classes.weights, classes.mean + prepared.mean,
                     prepared.rows, classes.empty, classes.first};
}

}  // namespace eigenveil
