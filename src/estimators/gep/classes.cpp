// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/gep/classes.hpp"

#include <fmt/format.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>

#include "eigenveil/estimators/gep/flow.hpp"
#include "eigenveil/estimators/gep/solve.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "eigenveil/verdict/simulated.hpp"

namespace eigenveil {
namespace {

// Shares of the work's mu^2.
constexpr double kClassCountsShare = 0.04;

std::string class_counts_label(ClassProblem problem) {
  return problem == ClassProblem::kFisher ? "class counts" : "slice counts";
}
std::string class_sums_label(ClassProblem problem) {
  return problem == ClassProblem::kFisher ? "class sums" : "slice sums";
}
std::string class_product_label(std::size_t round) { return fmt::format("product {}", round); }

// What is released of the classes, as averages.
struct Classes {
  Matrix means;     // d x C
  Matrix unshrunk;  // fda: means before they were shrunk
  Vector weights;   // n_c / n, sum 1
  Vector mean;      // sum weights m_c
  double rows;
  std::vector<std::size_t> empty;
  std::vector<std::size_t> first;
  double edge;         // largest eigenvalue of A that the noise in the sums typically makes
  Vector counts;       // as they were released
  double count_noise;  // deviations of counts and sums
  double sum_noise;
  double all_rows;  // those of classes that noise hides included

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
  Matrix merged = Matrix::Zero(fine.rows(), first.size());
  for (std::size_t group = 0, c = 0; c < static_cast<std::size_t>(fine.cols()); ++c) {
    if (group + 1 < first.size() && c >= first[group + 1]) ++group;
    merged.col(group) += fine.col(c);
  }
  return merged;
}

void set_averages(Classes& result, const Vector& counts, const Matrix& sums);

// Empirical Bayes: class means lie apart by b on average, squared and weighted, once the d tau_c^2 of their noise,
// tau_c = deviation / n_c, is taken out. Each then keeps b / (b + d tau_c^2) of its distance from the mean of all.
void shrink_means(Classes& result) {
  const auto d = static_cast<double>(result.means.rows());
  result.unshrunk = result.means;
  const auto noise = [&](Eigen::Index c) { return d * std::pow(result.sum_noise / result.counts[c], 2); };
  double apart = 0;
  for (Eigen::Index c = 0; c < result.counts.size(); ++c)
    if (result.weights[c] > 0)
      apart += result.weights[c] * ((result.means.col(c) - result.mean).squaredNorm() - noise(c));
  for (Eigen::Index c = 0; c < result.counts.size(); ++c) {
    if (!(result.weights[c] > 0)) continue;
    const double kept = std::max(apart, 0.0) / std::max(std::max(apart, 0.0) + noise(c), 1e-300);
    result.means.col(c) = result.mean + kept * (result.means.col(c) - result.mean);
  }
}

/// `rows`: how many there are, public or as released, for want of a class that counts more than noise.
Result<Classes> ask_classes(Oracle& oracle, const ClassOptions& options, double rows) {
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
  result.count_noise = count_noise;
  result.sum_noise = sum_noise;
  result.all_rows = std::max(1.0, rows);
  set_averages(result, counts, sums);
  if (options.problem == ClassProblem::kFisher) shrink_means(result);
  return result;
}

/// Averages from noisy sums; the deviations are known. It was paid for: where noise hides every class there are no
/// differences (A = 0), and the verdict is noise.
void set_averages(Classes& result, const Vector& counts, const Matrix& sums) {
  // A class that noise alone would count as many rows of has no mean to speak of: it gets the mean of all.
  const double least = std::max(1.0, 4 * result.count_noise);
  result.counts = counts;
  result.empty.clear();
  result.means = Matrix::Zero(sums.rows(), sums.cols());
  result.weights = Vector::Zero(counts.size());
  double used = 0;
  Vector total = Vector::Zero(sums.rows());
  double smallest = std::numeric_limits<double>::infinity();
  for (Eigen::Index c = 0; c < counts.size(); ++c) {
    if (counts[c] < least) {
      result.empty.push_back(c);
      continue;
    }
    used += counts[c];
    total += sums.col(c);
    smallest = std::min(smallest, counts[c]);
  }
  const bool hidden = !(used > 0);
  if (hidden) {
    used = smallest = result.all_rows;
    total = sums.rowwise().sum();
  }
  result.rows = used;
  result.mean = total / used;
  for (Eigen::Index c = 0; c < counts.size(); ++c) {
    const bool full = counts[c] >= least;
    result.weights[c] = full ? counts[c] / used : hidden ? 1 / static_cast<double>(counts.size()) : 0;
    result.means.col(c) = full ? Vector(sums.col(c) / counts[c]) : result.mean;
  }
  // Noise N (d x C) in the sums gives A the part N diag(1 / (n n_c)) N^T.
  const double width = std::sqrt(static_cast<double>(sums.rows())) + std::sqrt(static_cast<double>(sums.cols()));
  result.edge = result.sum_noise * result.sum_noise * width * width / (used * smallest);
}

/// What class sums and one noisy Gram matrix say, and what it is worth.
class ClassesOnce {
 public:
  ClassesOnce(Classes classes, Matrix gram, double gram_noise, ClassOptions options)
      : classes_(std::move(classes)), gram_(std::move(gram)), gram_noise_(gram_noise), options_(std::move(options)) {}

  Result<GepResult> solve() const {
    const Eigen::Index d = gram_.rows();
    return solve_matrices({classes_.between(Matrix::Identity(d, d)), B(), classes_.edge / static_cast<double>(d),
                           gram_noise_ / classes_.rows, classes_.edge, true},
                          options_.gep);
  }
  Result<Verdict> judge() const;

 private:
  Matrix B() const {
    const Eigen::Index d = gram_.rows();
    const Matrix B = gram_ / classes_.rows - classes_.around(options_.problem, Matrix::Identity(d, d));
    return (B + B.transpose()) / 2;
  }
  /// What B is about. Shrunk means leave some of what lies between classes in B: here it is taken away in full, and
  /// what the noise of the means takes with it is given back.
  Matrix within() const {
    if (options_.problem != ClassProblem::kFisher) return B();
    const Matrix& M = classes_.unshrunk;
    Matrix W = gram_ / classes_.rows - M * (classes_.weights.asDiagonal() * M.transpose());
    for (Eigen::Index c = 0; c < classes_.weights.size(); ++c)
      if (classes_.weights[c] > 0)
        W.diagonal().array() += classes_.weights[c] * std::pow(classes_.sum_noise / classes_.counts[c], 2);
    return (W + W.transpose()) / 2;
  }
  /// Deviation of an entry of it: the noise of the Gram matrix, and of means beside means, which is that of
  /// sum m_c e_c^T.
  double within_noise() const {
    const double means = options_.problem == ClassProblem::kFisher ? classes_.unshrunk.squaredNorm() : 0;
    return std::hypot(gram_noise_, classes_.sum_noise * std::sqrt(2 * means / static_cast<double>(gram_.rows()))) /
           classes_.rows;
  }
  /// One release of classes whose means lie along U: D = R U diag(l)^1/2 H, H = orthonormal rows over classes. `along`:
  /// how the classes lie along each direction, as it was released.
  Result<GepResult> draw(const Vector& values, const Matrix& U, const Matrix& along, const Matrix& R,
                         PublicStream& stream) const;

  Classes classes_;
  Matrix gram_;  // a sum
  double gram_noise_;
  ClassOptions options_;
};

Result<GepResult> ClassesOnce::draw(const Vector& values, const Matrix& U, const Matrix& along, const Matrix& R,
                                    PublicStream& stream) const {
  const Eigen::Index d = R.rows(), C = classes_.weights.size(), K = U.cols();
  const Vector roots = classes_.weights.cwiseSqrt();
  const Matrix H = orthonormal(along.transpose()).leftCols(std::min(K, C));
  Matrix D = Matrix::Zero(d, C);
  for (Eigen::Index i = 0; i < H.cols(); ++i) D += std::sqrt(values[i]) * (R * U.col(i)) * H.col(i).transpose();
  // sir: B is the total, so that rows of one slice spread by what is left, R (I - U diag(l) U^T) R.
  Vector left = Vector::Ones(K);
  if (options_.problem == ClassProblem::kSliced) left = (1 - values.array()).max(1e-6).sqrt();
  const auto within = [&](const Matrix& Z) -> Matrix {
    return R * (Z - U * ((1 - left.array()).matrix().asDiagonal() * (U.transpose() * Z)));
  };
  const double n = classes_.counts.cwiseMax(0.0).sum();
  const Matrix X = within(wishart_root(d, std::max(1.0, n - static_cast<double>(C)), stream));
  Matrix gram = n * (X * X.transpose());
  Matrix sums = Matrix::Zero(d, C);
  for (Eigen::Index c = 0; c < C; ++c) {
    const double count = std::max(0.0, classes_.counts[c]);
    if (!(count > 0)) continue;
    const Vector mean = classes_.mean + (roots[c] > 0 ? Vector(D.col(c) / roots[c]) : Vector(Vector::Zero(d))) +
                        within(stream.normals(d, 1)) / std::sqrt(count);
    sums.col(c) = count * mean;
    gram += count * mean * mean.transpose();
  }
  sums += classes_.sum_noise * stream.normals(d, C);
  add_noise(gram, gram_noise_, stream);
  ClassesOnce again(classes_, std::move(gram), gram_noise_, options_);
  // Sums are divided by counts that are off too: of small classes that is most of the error.
  const Vector counts = classes_.counts + classes_.count_noise * stream.normals(C, 1);
  set_averages(again.classes_, counts, sums);
  if (options_.problem == ClassProblem::kFisher) shrink_means(again.classes_);
  return again.solve();
}

Result<Verdict> ClassesOnce::judge() const {
  // Two more than are judged, if there are: the last one has a neighbour too.
  ClassesOnce wider = *this;
  std::size_t& components = wider.options_.gep.components;
  const std::size_t taking_part = (classes_.weights.array() > 0).count();
  components = std::min({components + 2, std::max<std::size_t>(taking_part, 2) - 1,
                         static_cast<std::size_t>(gram_.rows()), options_.gep.sparsity.value_or(components + 2)});
  components = std::max(components, options_.gep.components);
  const auto solved = EIGENVEIL_TRY(wider.solve());
  Rerun rerun{
      .released = {solved.values, solved.vectors}, .components = options_.gep.components, .root = {}, .draw = {}};
  if (options_.problem == ClassProblem::kSliced) rerun.most = 0.999;
  rerun.pass = 3;
  rerun.ratios = options_.problem == ClassProblem::kFisher;
  const Matrix W = within();
  const auto population = EIGENVEIL_TRY(uncertain_population({W, within_noise(), classes_.rows, 0}));
  rerun.root = population.root;
  // R^-1 (M - m) W^1/2 = U diag(l)^1/2 H. With T = R^-1 U, U^T R^-1 = T^T.
  const Matrix apart = (classes_.means.colwise() - classes_.mean) * classes_.weights.cwiseSqrt().asDiagonal();
  const Eigen::PartialPivLU<Matrix> back(rerun.root);
  // What is not known of the population is another in every draw; its directions are told as those of the mean.
  rerun.draw = [&](const Vector& values, const Matrix& truth, PublicStream& stream) -> Result<Found> {
    const Matrix R = EIGENVEIL_TRY(population.draw(stream));
    const auto again = EIGENVEIL_TRY(wider.draw(values, rerun.root * truth, truth.transpose() * apart, R, stream));
    return Found{again.values, back.solve(R * again.vectors)};
  };
  return judge_rerun(rerun);
}

Result<GepResult> solve_once(Oracle& oracle, const Classes& classes, const ClassOptions& options) {
  const auto gram = EIGENVEIL_TRY(oracle.ask(kCovarianceLabel, Gram{}));
  const ClassesOnce once(classes, gram.value(), gram.deviation(), options);
  auto solved = EIGENVEIL_TRY(once.solve());
  if (gram.value().rows() <= kMostRerun) solved.judge = [once] { return once.judge(); };
  return solved;
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
  const std::size_t d = classes.mean.size();
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
    if (c > 0 && first.size() < groups && middle >= share * static_cast<double>(first.size())) first.push_back(c);
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

// A has noise of squared length 4 d C^2 R^2 / (a nu^2), nu = n mu, against class means of length about R; B has
// spectral noise 2 sqrt(d) R^2 / (sqrt(b) nu) against eigenvalues of about R^2 / d: 4 d^3 / (b nu^2). C^2 / a + d^2 / b
// is least at a : b = C : d; doubled, since what is left of the noise of B is shrunk before it is used.
ClassOptions with_sums_share(ClassOptions options, std::size_t columns) {
  if (options.problem != ClassProblem::kFisher) return options;
  const auto C = static_cast<double>(options.classes);
  options.sums_share = std::clamp(2 * C / (2 * C + static_cast<double>(columns)), 0.22, 0.72);
  return options;
}

std::optional<std::string> hopeless(const RowsShape& shape, const Budget& budget, const ClassOptions& options) {
  const bool merges = options.merged && *options.merged < options.classes;
  return classes_drowned_before(shape, budget, options.gep.preparation,
                                {.counted = options.classes,
                                 .groups = merges ? *options.merged : options.classes,
                                 .counts_share = kClassCountsShare,
                                 .sums_share = with_sums_share(options, shape.columns).sums_share,
                                 .deviations = merges ? 3.0 : 4.0,
                                 .word = options.problem == ClassProblem::kFisher ? "classes" : "slices"});
}

PrivacyPlan plan_classes(Adjacency adjacency, const ClassOptions& options) {
  const GepOptions& gep = options.gep;
  PrivacyPlan plan(adjacency, plan_preparation(adjacency, gep.preparation, 1.0));
  plan.events.push_back({class_counts_label(options.problem), GaussianEvent{std::sqrt(kClassCountsShare)}});
  plan.events.push_back({class_sums_label(options.problem), GaussianEvent{std::sqrt(options.sums_share)}});
  const double rest = 1 - kClassCountsShare - options.sums_share;
  if (gep.noise == GepNoise::kOnce) plan.events.push_back({kCovarianceLabel, GaussianEvent{std::sqrt(rest)}});
  for (std::size_t round = 1; gep.noise == GepNoise::kEachStep && round <= gep.rounds; ++round)
    plan.events.push_back(
        {class_product_label(round), GaussianEvent{std::sqrt(rest / static_cast<double>(gep.rounds))}});
  return plan;
}

Result<ClassResult> fit_classes(Oracle& oracle, const ClassOptions& options) {
  EIGENVEIL_TRY(check(oracle.shape(), options));
  const auto prepared = EIGENVEIL_TRY(prepare(oracle, options.gep.preparation));
  const auto classes = EIGENVEIL_TRY(ask_classes(oracle, options, prepared.rows));
  auto solved = EIGENVEIL_TRY(options.gep.noise == GepNoise::kOnce ? solve_once(oracle, classes, options)
                                                                   : solve_by_flow(oracle, classes, options));
  fix_signs(solved.vectors);
  const Matrix means = (classes.means.colwise() + prepared.mean).transpose();
  return ClassResult{solved,        means,         classes.weights, classes.mean + prepared.mean,
                     prepared.rows, classes.empty, classes.first};
}

}  // namespace eigenveil
