// SPDX-License-Identifier: Apache-2.0
// Verdicts beside the truth: data sets of many shapes are made up and released again and again, and what the verdicts
// say about each release is compared with the population it came from. Releases are made directly (rows or a Wishart
// matrix, then noise), so that thousands of them take minutes.
#include "eigenveil/verdict/verdict.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <random>

#include "accuracy.hpp"
#include "eigenveil/estimators/gep/cca.hpp"
#include "eigenveil/estimators/gep/classes.hpp"
#include "eigenveil/forecast/forecast.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "tests/support/fit.hpp"
#include "tests/support/views.hpp"

namespace eigenveil::bench {
namespace {

using Index = Eigen::Index;
using Random = std::mt19937_64;

double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
/// Evenly on a logarithmic scale.
double spaced(Random& random, double low, double high) {
  return std::exp(uniform(random, std::log(low), std::log(high)));
}

Matrix gaussian(Random& random, Index rows, Index columns) {
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, columns, [&] { return normal(random); });
}

Matrix rotation(Random& random, Index d) { return Eigen::HouseholderQR<Matrix>(gaussian(random, d, d)).householderQ(); }

/// A population: eigenvalues and eigenvectors, and the covariance of n of its rows.
struct Population {
  Vector l;
  Matrix U;
  std::function<Matrix(Index n)> sample;
};

Population gaussian_rows(Vector l, Random& random) {
  const Matrix U = rotation(random, l.size());
  return {l, U, [l, U, &random](Index n) {
            const Index d = l.size();
            // Wishart by its own rows where they are few, by the triangle of Bartlett where they are many
            Matrix A;
            if (n <= 2 * d) {
              A = gaussian(random, d, n);
            } else {
              A = Matrix::Zero(d, d);
              for (Index j = 0; j < d; ++j) {
                A(j, j) = std::sqrt(std::chi_squared_distribution<double>(static_cast<double>(n - j))(random));
                for (Index i = j + 1; i < d; ++i) A(i, j) = gaussian(random, 1, 1)(0);
              }
            }
            A = U * (l.cwiseSqrt().asDiagonal() * A);
            return Matrix(A * A.transpose() / static_cast<double>(n));
          }};
}

/// Rows of Student's t with 3 degrees of freedom, shortened to twice their typical length as a row bound does.
Population heavy_rows(Vector l, Random& random) {
  const Index d = l.size();
  const Matrix U = rotation(random, d);
  const double bound = 2 * std::sqrt(l.sum());
  const auto rows = [l, U, bound, d, &random](Index n) {
    Matrix x = gaussian(random, n, d) * l.cwiseSqrt().asDiagonal();
    std::chi_squared_distribution<double> chi(3);
    for (Index i = 0; i < n; ++i) {
      x.row(i) *= std::sqrt(3 / chi(random));
      x.row(i) *= std::min(1.0, bound / x.row(i).norm());
    }
    return x;
  };
  // Bounding keeps the directions of an ellipse; its variances come from many rows.
  const Matrix many = rows(200000);
  Vector bounded = many.colwise().squaredNorm().transpose() / static_cast<double>(many.rows());
  return {bounded, U, [rows, U](Index n) {
            const Matrix x = rows(n);
            return Matrix(U * (x.transpose() * x / static_cast<double>(n)) * U.transpose());
          }};
}

/// Categories, one-hot, whose frequencies depend on which of three kinds a person is of.
Population one_hot_rows(Index d, Random& random) {
  constexpr int kKinds = 3;
  const Index size = 5, variables = std::max<Index>(2, d / size);
  std::vector<Matrix> table;  // of each kind: variables x size
  Vector weight(kKinds);
  weight << 0.5, 0.3, 0.2;
  const double sharp = uniform(random, 0.5, 1.5);
  for (int k = 0; k < kKinds; ++k) {
    Matrix share = (sharp * gaussian(random, variables, size)).array().exp();
    for (Index v = 0; v < variables; ++v) share.row(v) /= share.row(v).sum();
    table.push_back(share);
  }
  const Index columns = variables * size;
  Vector mean = Vector::Zero(columns);
  Matrix second = Matrix::Zero(columns, columns);
  for (int k = 0; k < kKinds; ++k) {
    const Vector m = Matrix(table[static_cast<std::size_t>(k)].transpose()).reshaped();
    Matrix moment = m * m.transpose();
    for (Index v = 0; v < variables; ++v)
      moment.block(v * size, v * size, size, size) = Matrix(m.segment(v * size, size).asDiagonal());
    mean += weight[k] * m;
    second += weight[k] * moment;
  }
  const Matrix covariance = second - mean * mean.transpose();
  const auto pairs = top_eigenpairs(covariance, static_cast<std::size_t>(columns));
  const auto sample = [=, &random](Index n) {
    Matrix x = Matrix::Zero(n, columns);
    std::discrete_distribution<int> kind({0.5, 0.3, 0.2});
    for (Index i = 0; i < n; ++i) {
      const Matrix& share = table[static_cast<std::size_t>(kind(random))];
      for (Index v = 0; v < variables; ++v) {
        double left = uniform(random, 0, 1);
        Index c = 0;
        while (c + 1 < size && left > share(v, c)) left -= share(v, c++);
        x(i, v * size + c) = 1;
      }
    }
    x.rowwise() -= mean.transpose();
    return Matrix(x.transpose() * x / static_cast<double>(n));
  };
  return {pairs->values.cwiseMax(0.0), pairs->vectors, sample};
}

Population population_of(const std::string& shape, Index d, Index k, Random& random) {
  Vector l = Vector::Ones(d);
  if (shape == "gap 5" || shape == "t3" || shape == "tiny n" || shape == "private mean")
    for (Index i = 0; i < k; ++i) l[i] = 5 * std::pow(1.5, static_cast<double>(k - 1 - i));
  if (shape == "gap 2")
    for (Index i = 0; i < k; ++i) l[i] = 2 * std::pow(1.3, static_cast<double>(k - 1 - i));
  if (shape == "plane") l.head(k).setConstant(5);
  if (shape == "decay")
    for (Index i = 0; i < d; ++i) l[i] = 1 / static_cast<double>(i + 1);
  if (shape == "spikes")
    for (Index i = 0; i < k; ++i) l[i] = 1 + 10 * std::pow(0.7, static_cast<double>(i));
  if (shape == "t3") return heavy_rows(l, random);
  if (shape == "one-hot") return one_hot_rows(d, random);
  return gaussian_rows(l, random);
}

/// Counts of one shape.
struct Counts {
  double bands = 0, held = 0;  // eigenvalues of what is more than noise
  double loadings = 0, loadings_held = 0;
  double findings = 0, wrong_sign = 0;
  double holds = 0, holds_wrong = 0;
  double planes = 0, planes_wrong = 0;
  double good = 0, good_noise = 0, good_holds = 0;  // cos^2 above 0.9
  double shares = 0, shares_held = 0;
  double first_noise = 0, sets = 0;
  double seconds = 0;
};

void count(Counts& counts, const Verdict& verdict, const Matrix& V, const Population& truth) {
  const Index K = V.cols();
  const Matrix cosines = truth.U.leftCols(K).transpose() * V;  // true x released
  const Matrix all = (truth.U.transpose() * V).cwiseAbs2();
  double explained = 0;
  for (Index i = 0; i < K; ++i) {
    const Judged& one = verdict.judged[static_cast<std::size_t>(i)];
    const double cos2 = cosines(i, i) * cosines(i, i);
    const double captured = all.col(i).dot(truth.l);
    explained += captured;
    if (cos2 > 0.9) {
      ++counts.good;
      counts.good_noise += one.standing == Standing::kNoise ? 1 : 0;
      counts.good_holds += one.standing == Standing::kHolds ? 1 : 0;
    }
    if (one.standing == Standing::kHolds) {
      ++counts.holds;
      counts.holds_wrong += cos2 < 0.8 ? 1 : 0;
    }
    if (one.standing == Standing::kPlane) {
      const auto first = static_cast<Index>(one.first - 1), size = static_cast<Index>(one.last - one.first + 1);
      ++counts.planes;
      counts.planes_wrong +=
          cosines.block(first, first, size, size).squaredNorm() / static_cast<double>(size) < 0.8 ? 1 : 0;
    }
    if (one.standing == Standing::kNoise) continue;
    ++counts.bands;
    counts.held += verdict.low[i] <= truth.l[i] && truth.l[i] <= verdict.high[i] ? 1 : 0;
    const double c = std::sqrt(verdict.cos2[i]);
    const double sign = cosines(i, i) < 0 ? -1 : 1;
    for (Index a = 0; a < V.rows(); ++a) {
      const double middle = c * V(a, i), wide = 1.96 * verdict.deviation(a, i), true_one = sign * truth.U(a, i);
      ++counts.loadings;
      counts.loadings_held += std::abs(true_one - middle) <= wide ? 1 : 0;
      if (std::abs(middle) > wide && one.standing == Standing::kHolds) {
        ++counts.findings;
        counts.wrong_sign += true_one * middle <= 0 ? 1 : 0;
      }
    }
  }
  if (verdict.explained) {
    ++counts.shares;
    const double truly = explained / truth.l.sum();
    counts.shares_held += verdict.explained->low <= truly && truly <= verdict.explained->high ? 1 : 0;
  }
  counts.first_noise += verdict.judged[0].standing == Standing::kNoise ? 1 : 0;
  ++counts.sets;
}

Counts of_moments(const std::string& shape, int sets, Index least, Index most) {
  Counts counts;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 17));
    const auto d = static_cast<Index>(spaced(random, static_cast<double>(least), static_cast<double>(most)));
    const bool tiny = shape == "tiny n";
    const auto n = static_cast<Index>(tiny ? spaced(random, 60, 500) : spaced(random, 500, 50000));
    const double epsilon = tiny ? spaced(random, 1, 8) : spaced(random, 0.2, 4);
    const Index k = std::uniform_int_distribution<Index>(1, std::min<Index>(10, d / 3))(random);
    const Population population = population_of(shape, d, k, random);
    const Index columns = population.l.size();
    const double mu = epsilon / 4.2, bound = 1.5 * std::sqrt(population.l.sum());
    const double sigma = bound * bound / (mu * static_cast<double>(n));
    Matrix S = population.sample(n);
    double tau = 0;
    if (shape == "private mean" || shape == "noise, private mean") {
      tau = 2 * bound / (std::sqrt(0.1) * mu * static_cast<double>(n));
      const Vector r = tau * gaussian(random, columns, 1);
      S += r * r.transpose() - tau * tau * Matrix::Identity(columns, columns);
    }
    const Matrix N = gaussian(random, columns, columns);
    S += sigma / std::sqrt(2.0) * (N + N.transpose());
    const Index K = std::min<Index>(columns, std::uniform_int_distribution<Index>(1, 10)(random));
    const auto found = top_eigenpairs(S, static_cast<std::size_t>(K));
    const auto begin = std::chrono::steady_clock::now();
    const auto verdict = judge_moments({S, sigma, static_cast<double>(n), tau}, static_cast<std::size_t>(K));
    counts.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!found || !verdict) throw std::runtime_error("a release could not be judged");
    count(counts, *verdict, found->vectors, population);
  }
  return counts;
}

/// Rows of a release through the estimator itself, and its verdict.
struct Judgement {
  Fit fit;
  Verdict verdict;
};

Judgement released(const Estimator& estimator, BoundedRows rows, double epsilon, int seed, Counts& counts) {
  const Budget spent = budget(epsilon, 1e-6);
  const RowsShape shape{rows.columns(), rows.rows(), rows.lattice(), Adjacency::kReplaceOne};
  const auto plan = calibrate(*estimator.plan(shape, spent), spent.epsilon, spent.delta, spent.accounting);
  if (!plan) throw std::runtime_error(plan.error().message);
  LocalOracle oracle(std::move(rows), reserve_without_ledger(*plan),
                     SecureRandom::insecure(static_cast<std::uint64_t>(seed)));
  auto fit = estimator.fit(oracle, spent);
  if (!fit) throw std::runtime_error(fit.error().message);
  const auto begin = std::chrono::steady_clock::now();
  auto verdict = fit->judge();
  counts.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!verdict) throw std::runtime_error(verdict.error().message);
  return {*std::move(fit), *std::move(verdict)};
}

/// `squares`: cos^2 between true directions (rows) and released ones.
void count_directions(Counts& counts, const Verdict& verdict, const Matrix& squares, const Vector& values) {
  for (Index i = 0; i < squares.cols(); ++i) {
    const Judged& one = verdict.judged[static_cast<std::size_t>(i)];
    const bool real = i < squares.rows() && values[i] > 0;
    const double cos2 = real ? squares(i, i) : 0.0;
    if (cos2 > 0.9) {
      ++counts.good;
      counts.good_noise += one.standing == Standing::kNoise ? 1 : 0;
      counts.good_holds += one.standing == Standing::kHolds ? 1 : 0;
    }
    if (one.standing == Standing::kHolds) {
      ++counts.holds;
      counts.holds_wrong += cos2 < 0.8 ? 1 : 0;
    }
    if (one.standing == Standing::kNoise) continue;
    ++counts.bands;
    const double truth = real ? values[i] : 0.0;
    counts.held += verdict.low[i] <= truth && truth <= verdict.high[i] ? 1 : 0;
  }
  counts.first_noise += verdict.judged[0].standing == Standing::kNoise ? 1 : 0;
  ++counts.sets;
}

/// Two views with canonical correlations .9, .6 and .3, or none.
Counts of_views(bool noise, int sets) {
  Counts counts;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 29));
    const auto d1 = static_cast<Index>(spaced(random, 4, 20)), d2 = static_cast<Index>(spaced(random, 4, 20));
    const auto n = static_cast<Index>(spaced(random, 1000, 50000));
    const double epsilon = spaced(random, 0.5, 4);
    Vector rho = Vector::Zero(3);
    if (!noise) rho << 0.9, 0.6, 0.3;
    const auto root = [&](Index d) {  // of a covariance with eigenvalues from 1 to 4
      const Matrix U = rotation(random, d);
      return Matrix(U * Vector::LinSpaced(d, 1, 2).asDiagonal() * U.transpose());
    };
    const Matrix Rx = root(d1), Ry = root(d2);
    const Matrix zx = gaussian(random, n, d1);
    Matrix zy = gaussian(random, n, d2);
    for (Index i = 0; i < 3; ++i) zy.col(i) = rho[i] * zx.col(i) + std::sqrt(1 - rho[i] * rho[i]) * zy.col(i);
    Matrix z(n, d1 + d2);
    z << zx * Rx, zy * Ry;
    const double bound = 1.3 * std::sqrt(Rx.squaredNorm() + Ry.squaredNorm());
    const Index K = std::uniform_int_distribution<Index>(1, 3)(random);
    const auto cca = estimator(CcaOptions{GepOptions{.components = static_cast<std::size_t>(K), .preparation = {}},
                                          static_cast<std::size_t>(d1)});
    const Judgement one = released(*cca, test::bound_matrix(z, bound, 1), epsilon, set, counts);
    const Matrix a = (Rx * array_of(one.fit, "x_weights")).colwise().normalized();
    const Matrix b = (Ry * array_of(one.fit, "y_weights")).colwise().normalized();
    count_directions(counts, one.verdict, (a.topRows(3).cwiseAbs2() + b.topRows(3).cwiseAbs2()) / 2, rho);
  }
  return counts;
}

/// Four classes that lie apart along two directions, or nowhere.
Counts of_classes(bool noise, int sets) {
  Counts counts;
  for (int set = 0; set < sets; ++set) {
    Random random(static_cast<std::uint64_t>(1000 * set + 31));
    const auto d = static_cast<Index>(spaced(random, 5, 25)), n = static_cast<Index>(spaced(random, 1000, 50000));
    const double epsilon = spaced(random, 0.5, 4);
    const Matrix U = rotation(random, d);
    const Matrix R = U * Vector::LinSpaced(d, 1, 2).asDiagonal() * U.transpose();
    // Whitened means: +-a along the first axis, +-b along the second
    Vector values = Vector::Zero(2);
    if (!noise) values << 2, 0.5;
    Matrix means = Matrix::Zero(4, d);
    means.col(0) << 1, 1, -1, -1;
    means.col(1) << 1, -1, 1, -1;
    means.col(0) *= std::sqrt(values[0]);
    means.col(1) *= std::sqrt(values[1]);
    Matrix z = gaussian(random, n, d);
    std::vector<int> classes;
    for (Index i = 0; i < n; ++i) {
      classes.push_back(static_cast<int>(i % 4));
      z.row(i) += means.row(i % 4);
    }
    const double bound = 1.3 * std::sqrt(R.squaredNorm() + 4 * values.sum());
    const Index K = std::uniform_int_distribution<Index>(1, 3)(random);
    ClassOptions options{GepOptions{.components = static_cast<std::size_t>(K), .preparation = {}},
                         ClassProblem::kFisher, 4};
    const auto fda = estimator(options);
    const Judgement one = released(*fda, test::bound_classed(z * R, classes, bound, 1), epsilon, set, counts);
    const Matrix v = (R * array_of(one.fit, "scalings")).colwise().normalized();
    count_directions(counts, one.verdict, v.topRows(2).cwiseAbs2(), values);
  }
  return counts;
}

std::vector<std::string> cells(const std::string& what, const Counts& counts, bool noise) {
  const auto said = [](double part, double of) { return of > 0 ? fmt::format("{:.3f}", part / of) : std::string("-"); };
  return {what,
          said(counts.held, counts.bands),
          said(counts.loadings_held, counts.loadings),
          said(counts.shares_held, counts.shares),
          fmt::format("{:.0f}", counts.holds),
          said(counts.holds_wrong, counts.holds),
          said(counts.planes_wrong, counts.planes),
          said(counts.wrong_sign, counts.findings),
          said(counts.good_holds, counts.good),
          said(counts.good_noise, counts.good),
          noise ? said(counts.first_noise, counts.sets) : std::string("-"),
          fmt::format("{:.2f}", counts.seconds / counts.sets)};
}

}  // namespace

void verdicts(const Setting& setting) {
  const int sets = setting.seeds;
  Table table(
      "verdicts",
      "Verdicts beside the truth (docs/verdicts.md): shares of 95% bands that hold the true eigenvalue, the true "
      "loadings "
      "and the true share of the total variance; directions said to hold, and how many of them have cos^2 below 0.8; "
      "directions with cos^2 above 0.9, and what is said of them. d 10 to 100, n 500 to 50,000 (tiny n: 60 to 500), "
      "epsilon 0.2 to 4, K 1 to 10, spread evenly; `bench_accuracy verdicts --seeds 200`",
      {"shape", "eigenvalue bands", "loading bands", "share bands", "holds", "of them wrong", "planes wrong",
       "findings of wrong sign", "good that hold", "good called noise", "noise called noise", "seconds"});
  for (const char* shape : {"gap 5", "gap 2", "decay", "spikes", "t3", "one-hot", "tiny n", "private mean", "plane"})
    table.add(cells(shape, of_moments(shape, sets, 10, 100), false));
  for (const char* shape : {"noise", "noise, private mean"})
    table.add(cells(shape, of_moments(shape, sets, 10, 100), true));
  for (const char* shape : {"gap 5", "decay", "noise"})
    table.add(cells(fmt::format("{}, 260 to 500 columns", shape), of_moments(shape, std::max(1, sets / 4), 260, 500),
                    std::string(shape) == "noise"));
  table.add(cells("cca .9 .6 .3", of_views(false, sets), false));
  table.add(cells("cca, independent", of_views(true, sets), true));
  table.add(cells("fda 2 .5", of_classes(false, sets), false));
  table.add(cells("fda, no classes", of_classes(true, sets), true));
  table.finish(setting, {});
}

}  // namespace eigenveil::bench
