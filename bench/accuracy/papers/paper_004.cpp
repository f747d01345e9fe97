// SPDX-License-Identifier: Apache-2.0
// 004's experiments as it prints them: columns in their own units, rows divided by the longest one in the data (which
// is not private), a random start, 15 rounds with fresh symmetric noise matrices on A and B, eta = 0.1 for CCA and 1
// otherwise, its own constants, its own FDA. Then theorem 11's instance of SIR, and more columns than rows.
#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <random>

#include "../gep/tables.hpp"
#include "eigenveil/estimators/gep/cca.hpp"
#include "eigenveil/estimators/gep/classes.hpp"
#include "eigenveil/estimators/gep/solve.hpp"
#include "eigenveil/estimators/pca/gram.hpp"
#include "eigenveil/papers/noise.hpp"
#include "page.hpp"
#include "tests/support/views.hpp"

namespace eigenveil::bench {
namespace {

constexpr int kRounds = 15;
const std::vector<double> kEpsilons = {0.125, 0.25, 0.5, 1, 2, 4};

enum class Problem { kPca, kCca, kFda, kSir };
const char* name(Problem problem) {
  return problem == Problem::kPca ? "PCA" : problem == Problem::kCca ? "CCA" : problem == Problem::kFda ? "FDA" : "SIR";
}

/// Averages over rows, which is all that the algorithm sees of them.
struct Moments {
  double n = 0;
  double longest = 0;  ///< squared length
  Matrix second;
  Matrix class_sums;  ///< d x 2
  Vector counts = Vector::Zero(2);

  void add(const RowMajorMatrix& rows, const int* classes) {
    if (n == 0) {
      second = Matrix::Zero(rows.cols(), rows.cols());
      class_sums = Matrix::Zero(rows.cols(), 2);
    }
    n += static_cast<double>(rows.rows());
    longest = std::max(longest, rows.rowwise().squaredNorm().maxCoeff());
    second += rows.transpose() * rows;
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      class_sums.col(classes[i]) += rows.row(i).transpose();
      counts[classes[i]] += 1;
    }
  }
};

struct Pair {
  Matrix A;
  Matrix B;
  double C1;  ///< the paper's sensitivities, times n
  double C2;
  double eta;
};

/// As printed, for rows divided by `radius`. `right` has FDA's matrices the right way round: A between, B within.
Pair pair_of(const Moments& m, Problem problem, double radius, bool right = false) {
  const double scale = 1 / (m.n * radius * radius);
  const Eigen::Index d = m.second.rows(), x = d / 2;
  const Vector mean = m.class_sums.rowwise().sum() / m.n / radius;
  const Matrix total = m.second * scale, S = total - mean * mean.transpose();
  Matrix of_classes = Matrix::Zero(d, d);  // sum_k n_k / n u_k u_k^T
  for (int c = 0; c < 2; ++c)
    if (m.counts[c] > 0)
      of_classes += scale / m.counts[c] * m.n * m.class_sums.col(c) * m.class_sums.col(c).transpose() / m.n;
  switch (problem) {
    case Problem::kPca:
      return {S, Matrix::Identity(d, d), 1, 0, 1};
    case Problem::kCca: {
      Pair pair{S, S, 12, 12, 0.1};
      pair.A.topLeftCorner(x, x).setZero();
      pair.A.bottomRightCorner(d - x, d - x).setZero();
      pair.B.topRightCorner(x, d - x).setZero();
      pair.B.bottomLeftCorner(d - x, x).setZero();
      return pair;
    }
    case Problem::kFda:
      if (right) return {of_classes - mean * mean.transpose(), total - of_classes, 4, 7, 1};
      return {total - of_classes, of_classes, 4, 7, 1};
    case Problem::kSir:
      break;
  }
  return {of_classes - mean * mean.transpose(), S, 13, 6, 1};
}

Vector keep_largest(Vector v, std::optional<std::size_t> sparsity) {
  if (sparsity && static_cast<Eigen::Index>(*sparsity) < v.size()) {
    Vector sizes = v.cwiseAbs();
    std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(*sparsity) - 1, sizes.end(),
                     std::greater<>());
    const double least = sizes[static_cast<Eigen::Index>(*sparsity) - 1];
    v = (v.array().abs() >= least).select(v, 0.0);
  }
  return v.normalized();
}

/// Rounding may leave a little below zero.
double misalignment(const Vector& a, const Vector& b) { return std::max(0.0, test::misalignment(a, b)); }

Vector random_vector(std::mt19937_64& random, Eigen::Index d) { return test::normal_matrix(random, d, 1).col(0); }

/// The product of a fresh symmetric noise matrix with v: algorithm 1, line 3.
Vector symmetric_noise(std::mt19937_64& random, const Vector& v) {
  std::normal_distribution<double> normal;
  Vector product = Vector::Zero(v.size());
  for (Eigen::Index j = 0; j < v.size(); ++j)
    for (Eigen::Index i = 0; i <= j; ++i) {
      const double z = normal(random);
      product[i] += z * v[j];
      if (i != j) product[j] += z * v[i];
    }
  return product;
}

/// Algorithms 1 and 3. Only products with v are needed of the noise matrices: v^T Z v and Z v come from one draw.
Vector flow(const Pair& pair, Vector v, double sigma_a, double sigma_b, std::optional<std::size_t> sparsity,
            std::mt19937_64& random, int rounds = kRounds) {
  for (int t = 0; t < rounds; ++t) {
    Vector Av = pair.A * v, Bv = pair.B * v;
    if (sigma_a > 0) Av += sigma_a * symmetric_noise(random, v);
    if (sigma_b > 0) Bv += sigma_b * symmetric_noise(random, v);
    const double quotient = v.dot(Av) / v.dot(Bv);
    v = keep_largest((v + pair.eta / quotient * (Av - quotient * Bv)).normalized(), sparsity);
  }
  return v;
}

double sigma(double C, double n, Epsilon epsilon, Delta delta) {
  return C * std::sqrt(kRounds / papers::rho(epsilon, delta)) / n;
}
Delta delta_of(double n) { return *Delta::of(std::pow(n, -1.1)); }

/// The exact leading solution (sparse: the truncated flow from the dense one, then an exact solve on what it kept).
Vector exact(const Pair& pair, Problem problem, std::optional<std::size_t> sparsity) {
  const std::optional<Eigen::Index> view = problem == Problem::kCca ? std::optional(pair.A.rows() / 2) : std::nullopt;
  const auto solved = solve_matrices({pair.A, pair.B, 0, 0, 0, problem != Problem::kCca, view},
                                     {.components = 1, .sparsity = sparsity});
  if (!solved) throw std::runtime_error(solved.error().message);
  return solved->vectors.col(0);
}

struct Rows {
  std::string name;
  std::optional<LabelledRows> real;  ///< otherwise independent normal entries, classes by a coin
};

Moments moments_of(const Rows& rows, Eigen::Index n, Eigen::Index d) {
  static std::map<std::string, Moments> known;
  Moments& m = known[fmt::format("{} {} {}", rows.name, n, d)];
  if (m.n > 0) return m;
  if (rows.real) {
    m.add(rows.real->rows.topLeftCorner(n, d), rows.real->classes.data());
    return m;
  }
  std::mt19937_64 random(1000);
  for (Eigen::Index at = 0; at < n; at += 10000) {
    const Eigen::Index count = std::min<Eigen::Index>(10000, n - at);
    const RowMajorMatrix block = test::normal_matrix(random, count, d);
    std::vector<int> classes(static_cast<std::size_t>(count));
    for (int& c : classes) c = static_cast<int>(random() >> 63);
    m.add(block, classes.data());
  }
  return m;
}

/// Our default on the same rows, scaled by the same longest one.
Vector once(const LabelledRows& rows, Problem problem, Eigen::Index n, Eigen::Index d,
            std::optional<std::size_t> sparsity, double radius, Epsilon epsilon, Delta delta, std::uint64_t seed) {
  static std::pair<std::string, std::optional<BoundedRows>> last;  // the rows of a case stay for its epsilons
  const std::string key = fmt::format("{} {} {} {}", rows.name, n, d, radius);
  if (last.first != key) last = {key, test::bound_classed(rows.rows.topLeftCorner(n, d) / radius, rows.classes, 1)};
  const auto oracle = [&](const PrivacyPlan& plan) {
    return LocalOracle(*last.second, reserve_without_ledger(plan), SecureRandom::insecure(seed));
  };
  GepOptions gep{.components = 1, .sparsity = sparsity};
  gep.preparation = {.mean = problem == Problem::kPca || problem == Problem::kCca ? MeanBy::kOnce : MeanBy::kNone};
  if (problem == Problem::kPca) {
    const PcaOptions options{.components = 1, .preparation = gep.preparation, .sparsity = sparsity};
    auto answers = oracle(*calibrate(plan_gram(Adjacency::kReplaceOne, options), epsilon, delta));
    return fit_gram(answers, options)->components.col(0);
  }
  if (problem == Problem::kCca) {
    const CcaOptions options{gep, static_cast<std::size_t>(d / 2)};
    auto answers = oracle(*calibrate(plan_cca(Adjacency::kReplaceOne, options), epsilon, delta));
    const auto fit = fit_cca(answers, options);
    return test::stacked(fit->x_weights.col(0), fit->y_weights.col(0));
  }
  const ClassOptions options{gep, problem == Problem::kFda ? ClassProblem::kFisher : ClassProblem::kSliced, 2};
  auto answers = oracle(*calibrate(plan_classes(Adjacency::kReplaceOne, options), epsilon, delta));
  return fit_classes(answers, options)->solution.vectors.col(0);
}

std::vector<Eigen::Index> sizes_of(const std::string& data, Problem problem) {
  if (problem == Problem::kCca)
    return data == "Covertype" ? std::vector<Eigen::Index>{1500, 2900, 4300, 5700}
           : data == "Dota2"   ? std::vector<Eigen::Index>{3000, 5000, 7000, 9000}
                               : std::vector<Eigen::Index>{1000, 1500, 2000, 3000};
  return data == "Covertype" ? std::vector<Eigen::Index>{150000, 290000, 430000, 570000}
         : data == "Dota2"   ? std::vector<Eigen::Index>{30000, 50000, 70000, 90000}
                             : std::vector<Eigen::Index>{30000, 90000, 270000, 810000};
}

void as_printed(Page& page, const Rows& rows, Problem problem, const Setting& setting, Table& table) {
  std::vector<Eigen::Index> sizes;
  for (const Eigen::Index n : sizes_of(rows.name, problem))
    if (!rows.real || n <= rows.real->rows.rows())
      sizes.push_back(n);
    else
      page.skip(
          fmt::format("{} {} with n = {} (there are {} rows)", rows.name, name(problem), n, rows.real->rows.rows()));
  if (sizes.empty()) sizes = {rows.real->rows.rows()};
  const Eigen::Index low = problem == Problem::kPca ? 20 : problem == Problem::kCca ? 30 : 10;
  const Eigen::Index all = rows.real ? rows.real->rows.cols() : 100;
  struct Case {
    Eigen::Index n, d;
    std::optional<std::size_t> s;
  };
  std::vector<Case> cases;
  for (const Eigen::Index n : sizes) cases.push_back({n, low, {}});
  for (const Eigen::Index n : sizes) cases.push_back({n, all, 30});
  for (const std::size_t s : {10, 20, 40, 50}) cases.push_back({sizes.back(), all, s});
  LineChart chart{fmt::format("{} {} as printed, d = {}, n = {}", rows.name, name(problem), low, sizes.back()),
                  "epsilon",
                  "1 - |cos|",
                  {}};
  const bool solvable = problem != Problem::kFda;
  for (const Case& one : cases) {
    const auto n = static_cast<double>(one.n);
    const Moments m = moments_of(rows, one.n, one.d);
    const double radius = std::sqrt(m.longest);
    const Pair pair = pair_of(m, problem, radius);
    const Vector truth = exact(pair_of(m, problem, radius, true), problem, one.s);
    const int seeds = setting.seeds;
    double moved = 0, left = 0, between = 0;
    std::map<double, double> of_truth, of_flow, ours;
    for (int seed = 0; seed < seeds; ++seed) {
      std::mt19937_64 random(static_cast<std::uint64_t>(seed));
      const Vector start = keep_largest(random_vector(random, one.d), one.s);
      const Vector other = keep_largest(random_vector(random, one.d), one.s);
      const Vector quiet = flow(pair, start, 0, 0, one.s, random);
      moved += misalignment(quiet, start) / seeds;
      left += misalignment(quiet, truth) / seeds;
      between += misalignment(quiet, flow(pair, other, 0, 0, one.s, random)) / seeds;
      for (const double epsilon : kEpsilons) {
        const Vector noisy = flow(pair, start, sigma(pair.C1, n, *Epsilon::of(epsilon), delta_of(n)),
                                  sigma(pair.C2, n, *Epsilon::of(epsilon), delta_of(n)), one.s, random);
        of_truth[epsilon] += misalignment(noisy, truth) / seeds;
        of_flow[epsilon] += misalignment(noisy, quiet) / seeds;
      }
    }
    const bool with_ours = rows.real && one.n == sizes.back() && (!one.s || one.s == 30);
    const int fits = std::min(seeds, 3);
    if (with_ours)
      for (const double epsilon : kEpsilons)
        for (int seed = 0; seed < fits; ++seed)
          ours[epsilon] += misalignment(once(*rows.real, problem, one.n, one.d, one.s, radius, *Epsilon::of(epsilon),
                                             delta_of(n), static_cast<std::uint64_t>(seed)),
                                        truth) /
                           fits;
    table.add({fmt::format("{} {}", rows.name, name(problem)), fmt::to_string(one.n),
               fmt::format("{}{}", one.d, one.s ? fmt::format(", s = {}", *one.s) : ""), number(moved),
               solvable ? number(left) : "-", number(between), solvable ? number(of_truth[1]) : "-", number(of_flow[1]),
               number(of_flow[4]), with_ours ? number(ours[1]) : ""});
    if (one.n == sizes.back() && !one.s) {
      const auto line = [&](const char* of, const std::map<double, double>& points, bool reference = false) {
        chart.lines.push_back({of, {points.begin(), points.end()}, reference});
      };
      if (solvable) line("as printed, against the solution", of_truth);
      line("as printed, against its own flow without noise", of_flow);
      if (with_ours) line("once (default), against the solution, same scaling", ours);
      line("the flow without noise, against its start", {{0.125, moved}, {4, moved}}, true);
    }
  }
  page.add(chart);
}

// Theorem 11: x | Y = 1 ~ N((1 - a) v / 5d, I / 25 d^2 - M), x | Y = 2 ~ N(-a v / 5d, same), M = a (1 - a) v v^T / 25
// d^2.
LabelledRows theorem_11(Eigen::Index n, Eigen::Index d, int seed, Vector& v) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  v = random_vector(random, d).normalized();
  LabelledRows made{"theorem 11", test::normal_matrix(random, n, d), {}};
  const double a = 0.5, length = 1 / (5 * static_cast<double>(d));
  // I - a (1 - a) v v^T has the root I - (1 - sqrt(1 - a (1 - a))) v v^T
  made.rows -= (1 - std::sqrt(1 - a * (1 - a))) * (made.rows * v) * v.transpose();
  for (Eigen::Index i = 0; i < n; ++i) {
    const bool first = (random() >> 63) == 0;
    made.classes.push_back(first ? 0 : 1);
    made.rows.row(i) += (first ? 1 - a : -a) * v.transpose();
  }
  made.rows *= length;
  return made;
}

void sliced(Page& page, const Setting& setting) {
  const int seeds = std::min(setting.seeds, 3);
  Table table("",
              fmt::format("SIR, theorem 11's instance with alpha = 1/2, epsilon = 1, delta = n^-1.1, mean 1 - |cos| "
                          "over {} seeds against its v",
                          seeds),
              {"d", "n", "no noise", "once, row bound 1", "once, row bound 0.3 / sqrt(d)", "as printed (bound 1)",
               "as printed, rows divided by 0.3 / sqrt(d)", "rate d/n + d/(n^2 rho)"});
  LineChart chart{"SIR, theorem 11, d = 5",
                  "rows",
                  "1 - |cos|",
                  {{"no noise", {}, true},
                   {"once, row bound 1", {}},
                   {"once, row bound 0.3 / sqrt(d)", {}},
                   {"as printed", {}},
                   {"as printed, short bound", {}},
                   {"rate", {}, true}}};
  for (const Eigen::Index d : {5, 20})
    for (const Eigen::Index rows : {3000, 30000, 300000}) {
      const auto n = static_cast<double>(rows);
      const Epsilon epsilon = *Epsilon::of(1);
      const double bound = 0.3 / std::sqrt(static_cast<double>(d));
      std::array<double, 5> mean = {};
      for (int seed = 0; seed < seeds; ++seed) {
        Vector v;
        const LabelledRows made = theorem_11(rows, d, seed, v);
        Moments m;
        m.add(made.rows, made.classes.data());
        const auto add = [&](std::size_t which, const Vector& found) { mean[which] += misalignment(found, v) / seeds; };
        add(0, exact(pair_of(m, Problem::kSir, 1), Problem::kSir, {}));
        for (const bool tight : {false, true}) {
          const double radius = tight ? bound : 1;
          LabelledRows named = made;
          named.name += fmt::to_string(seed);
          add(tight ? 2 : 1,
              once(named, Problem::kSir, rows, d, {}, radius, epsilon, delta_of(n), static_cast<std::uint64_t>(seed)));
          std::mt19937_64 random(static_cast<std::uint64_t>(1000 + seed));  // not that of v
          const Pair pair = pair_of(m, Problem::kSir, radius);
          add(tight ? 4 : 3, flow(pair, random_vector(random, d).normalized(), sigma(pair.C1, n, epsilon, delta_of(n)),
                                  sigma(pair.C2, n, epsilon, delta_of(n)), {}, random));
        }
      }
      const double rate = static_cast<double>(d) / n * (1 + 1 / (n * papers::rho(epsilon, delta_of(n))));
      std::vector<std::string> cells = {fmt::to_string(d), fmt::to_string(rows)};
      for (const double error : mean) cells.push_back(number(error));
      cells.push_back(number(rate));
      table.add(cells);
      if (d == 5) {
        for (std::size_t i = 0; i < mean.size(); ++i) chart.lines[i].points.emplace_back(n, mean[i]);
        chart.lines[5].points.emplace_back(n, rate);
      }
    }
  page.add(table);
  page.add(chart);
}

// Two classes that differ in s of d > n columns, unit variances: sparse FDA (ours: between against within).
void more_columns(Page& page, const Setting& setting) {
  constexpr Eigen::Index d = 300, n = 200;
  constexpr std::size_t s = 5;
  const int seeds = std::min(setting.seeds, 3);
  Table table(
      "",
      fmt::format(
          "More columns than rows: two classes that differ by 3 in each of s = 5 of d = 300 columns, n = 200, delta = "
          "n^-1.1, mean 1 - |cos| over {} seeds against the truth, by start; \"once\" is FDA's own right way round",
          seeds),
      {"epsilon", "once, dense start", "once, random start", "once, admm start", "algorithm 3 as printed, random start",
       "from algorithm 2 (dense ADMM on noisy matrices, another budget)", "from the truth"});
  for (const double epsilon : {1.0, 10.0, 100.0, 1000.0}) {
    std::array<double, 6> mean = {};
    for (int seed = 0; seed < seeds; ++seed) {
      const auto key = static_cast<std::uint64_t>(seed);
      std::mt19937_64 random(key);
      Vector truth = Vector::Zero(d);
      for (std::size_t i = 0; i < s; ++i) truth[static_cast<Eigen::Index>(i) * 60] = random() >> 63 == 0 ? 1 : -1;
      LabelledRows rows{"wide", test::normal_matrix(random, n, d), {}};
      for (Eigen::Index i = 0; i < n; ++i) {
        rows.classes.push_back(static_cast<int>(i % 2));
        rows.rows.row(i) += (i % 2 == 0 ? 1.5 : -1.5) * truth.transpose();
      }
      const double radius = std::sqrt(rows.rows.rowwise().squaredNorm().maxCoeff());
      const BoundedRows bounded = test::bound_classed(rows.rows / radius, rows.classes, 1);
      const Delta delta = delta_of(n);
      std::size_t which = 0;
      for (const GepStart start : {GepStart::kAuto, GepStart::kRandom, GepStart::kAdmm}) {
        const ClassOptions options{{.components = 1, .sparsity = s, .start = start}, ClassProblem::kFisher, 2};
        const auto plan = calibrate(plan_classes(Adjacency::kReplaceOne, options), *Epsilon::of(epsilon), delta);
        LocalOracle oracle(bounded, reserve_without_ledger(*plan), SecureRandom::insecure(key));
        // Where noise hides the classes there is no solution: nothing was learnt.
        const auto fit = fit_classes(oracle, options);
        mean[which++] += (fit ? misalignment(fit->solution.vectors.col(0), truth) : 1) / seeds;
      }
      Moments m;
      m.add(rows.rows, rows.classes.data());
      const Pair pair = pair_of(m, Problem::kFda, radius, true);
      const double of_a = sigma(pair.C1, n, *Epsilon::of(epsilon), delta),
                   of_b = sigma(pair.C2, n, *Epsilon::of(epsilon), delta);
      const auto noisy = [&](const Matrix& M, double deviation) -> Matrix {
        const Matrix Z = test::normal_matrix(random, d, d);
        Matrix noise = Z.triangularView<Eigen::Upper>();
        noise += Matrix(Z.triangularView<Eigen::StrictlyUpper>()).transpose();
        return M + deviation * noise;
      };
      const double of_start = 1 / std::sqrt(2.0 * kRounds);  // algorithm 2 has no rounds: C / (n sqrt(2 rho))
      // The noisy B of 300 columns is not positive: lifted to where it is, without which ADMM cannot begin.
      Matrix B = noisy(pair.B, of_b * of_start);
      const double least = Eigen::SelfAdjointEigenSolver<Matrix>(B, Eigen::EigenvaluesOnly).eigenvalues()[0];
      B.diagonal().array() += std::max(0.0, 1e-6 - least);
      const auto relaxed = admm_start(noisy(pair.A, of_a * of_start), B, of_a * of_start, 1);
      const Vector found = relaxed ? Vector(relaxed->col(0)) : random_vector(random, d);
      for (const Vector& start : {random_vector(random, d), found, truth})
        mean[which++] += misalignment(flow(pair, keep_largest(start, s), of_a, of_b, s, random), truth) / seeds;
    }
    std::vector<std::string> cells = {number(epsilon)};
    for (const double error : mean) cells.push_back(number(error));
    table.add(cells);
  }
  page.add(table);
}

}  // namespace

void paper_004(const Setting& setting) {
  Page page("paper-004", "Paper 004 (private generalized eigenproblems), as it prints its experiments");
  page.say(
      "Columns in their own units, rows divided by the longest one in the data (which no private program may do), a "
      "random start, 15 rounds, fresh symmetric noise matrices on A and B in every round with its constants, eta = 0.1 "
      "for CCA and 1 for PCA and FDA, delta = n^-1.1. Its FDA has the matrix within classes as A and the one between "
      "them, of rank 2, as B: the quotient has no largest value and there is no solution to compare with.");
  Table table(
      "",
      fmt::format("Mean 1 - |cos| over {} starts and noises (once: 3). \"moved\": the flow without noise after "
                  "15 steps against its start; \"two starts\": two such flows against each other, which would "
                  "be 0 if they had come to a solution",
                  setting.seeds),
      {"data", "n", "d", "moved", "no noise, against the solution", "two starts", "epsilon 1, against the solution",
       "epsilon 1, against the same flow without noise", "the same, epsilon 4", "once, epsilon 1, same scaling"});
  std::vector<Rows> sets = {{"Synthetic", {}}};
  if (auto rows = dota2())
    sets.push_back({"Dota2", std::move(rows)});
  else
    page.skip("Dota2 (dota2Dataset.zip is not in ../shared/data or $EIGENVEIL_DATA)");
  if (auto rows = covertype())
    sets.push_back({"Covertype", std::move(rows)});
  else
    page.skip("Covertype (covertype-93k.csv.gz is not in ../shared/data or $EIGENVEIL_DATA)");
  page.skip("Optical (325,834 rows of 174 columns: which data set of UCI that is the paper does not say)");
  for (const Rows& rows : sets)
    for (const Problem problem : {Problem::kPca, Problem::kCca, Problem::kFda})
      as_printed(page, rows, problem, setting, table);
  page.add(table);
  sliced(page, setting);
  more_columns(page, setting);
  page.finish(setting);
}

}  // namespace eigenveil::bench
