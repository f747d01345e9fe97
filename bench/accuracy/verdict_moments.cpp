// SPDX-License-Identifier: Apache-2.0
// Verdicts on released second moments beside the truth. Releases are made directly (rows or a Wishart matrix, then
// noise), so that thousands of them take minutes.
#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "eigenveil/linalg/eigen.hpp"
#include "verdict_counts.hpp"

namespace eigenveil::bench {
namespace {

Population gaussian_rows(Vector l, Random& random) {
  const Matrix U = rotation(random, l.size());
  return {l, U,
          [l, U, &random](Index n) {
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
          },
          [l, U, &random](Index n) {
            return Matrix(gaussian(random, n, l.size()) * l.cwiseSqrt().asDiagonal() * U.transpose());
          }};
}

/// Rows of Student's t with 3 degrees of freedom, shortened to twice their typical length as a row bound does.
Population heavy_rows(Vector l, Random& random) {
  const Index d = l.size();
  const Matrix U = rotation(random, d);
  const double bound = 2 * std::sqrt(l.sum());
  const auto whole = [l, d, &random](Index n) {
    Matrix x = gaussian(random, n, d) * l.cwiseSqrt().asDiagonal();
    std::chi_squared_distribution<double> chi(3);
    for (Index i = 0; i < n; ++i) x.row(i) *= std::sqrt(3 / chi(random));
    return x;
  };
  const auto rows = [whole, bound](Index n) {
    Matrix x = whole(n);
    for (Index i = 0; i < n; ++i) x.row(i) *= std::min(1.0, bound / x.row(i).norm());
    return x;
  };
  // Bounding keeps the directions of an ellipse; its variances come from many rows.
  const Matrix many = rows(200000);
  Vector bounded = many.colwise().squaredNorm().transpose() / static_cast<double>(many.rows());
  return {bounded, U,
          [rows, U](Index n) {
            const Matrix x = rows(n);
            return Matrix(U * (x.transpose() * x / static_cast<double>(n)) * U.transpose());
          },
          [whole, U](Index n) { return Matrix(whole(n) * U.transpose()); }};
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
  const auto rows = [=, &random](Index n) {
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
    return x;
  };
  const auto sample = [rows](Index n) {
    const Matrix x = rows(n);
    return Matrix(x.transpose() * x / static_cast<double>(n));
  };
  return {pairs->values.cwiseMax(0.0), pairs->vectors, sample, rows};
}

}  // namespace

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

void count_noise(Counts& counts, const Verdict& verdict) {
  const auto is_noise = [](const Judged& one) { return one.standing == Standing::kNoise; };
  counts.first_noise += is_noise(verdict.judged[0]) ? 1 : 0;
  counts.all_noise += std::all_of(verdict.judged.begin(), verdict.judged.end(), is_noise) ? 1 : 0;
  ++counts.sets;
}

void count(Counts& counts, const Verdict& verdict, const Matrix& V, const Vector& l, const Matrix& U) {
  const Index K = V.cols();
  const Matrix cosines = U.leftCols(K).transpose() * V;  // true x released
  const Matrix all = (U.transpose() * V).cwiseAbs2();
  double explained = 0;
  for (Index i = 0; i < K; ++i) {
    const Judged& one = verdict.judged[static_cast<std::size_t>(i)];
    const double cos2 = cosines(i, i) * cosines(i, i);
    const double captured = all.col(i).dot(l);
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
    counts.held += verdict.low[i] <= l[i] && l[i] <= verdict.high[i] ? 1 : 0;
    const double c = std::sqrt(verdict.cos2[i]);
    const double sign = cosines(i, i) < 0 ? -1 : 1;
    for (Index a = 0; a < V.rows(); ++a) {
      const double middle = c * V(a, i), wide = 1.96 * verdict.deviation(a, i), true_one = sign * U(a, i);
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
    const double truly = explained / l.sum();
    counts.shares_held += verdict.explained->low <= truly && truly <= verdict.explained->high ? 1 : 0;
  }
  count_noise(counts, verdict);
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
    count(counts, *verdict, found->vectors, population.l, population.U);
  }
  return counts;
}

}  // namespace eigenveil::bench
