// SPDX-License-Identifier: Apache-2.0
#include "spectrum_oracle.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "eigenveil/linalg/decompositions.hpp"

namespace eigenveil {
namespace {

constexpr int kLatticeBits = 20;

// The same for every standard library (Fowler, Noll and Vo).
std::uint64_t seed_for(std::uint64_t seed, const std::string& label) {
  std::uint64_t hash = 14695981039346656037ULL ^ seed;
  for (const char c : label) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

// Public numbers in the only form that estimators take. The mechanism adds a millionth of a millionth of the largest.
Result<Released<Matrix>> as_released(const Matrix& values, bool symmetric) {
  const double largest = std::max(values.cwiseAbs().maxCoeff(), 1e-300);
  PrivateSum sum{symmetric ? PrivateSum::Layout::kSymmetric : PrivateSum::Layout::kPlain,
                 static_cast<std::size_t>(values.rows()),
                 static_cast<std::size_t>(values.cols()),
                 Sensitivity(1),
                 largest * 0x1p-40,
                 {}};
  sum.values.reserve(sum.entries());
  for (Eigen::Index j = 0; j < values.cols(); ++j)
    for (Eigen::Index i = symmetric ? j : 0; i < values.rows(); ++i)
      sum.values.push_back(static_cast<std::int64_t>(std::llround(values(i, j) / sum.unit)));
  SecureRandom random = SecureRandom::insecure(1);
  return GaussianMechanism::release(std::move(sum), 1, random);
}

// (E t t^T)^-1 E w t t^T
Matrix left_by(const Vector& weights, const Matrix& t) {
  const auto m = static_cast<double>(t.rows());
  Matrix all = t.transpose() * t / m;
  all.diagonal().array() += 1e-9 * all.trace() / static_cast<double>(t.cols()) + 1e-300;
  return Ldlt(all).solve(Matrix(t.transpose() * weights.asDiagonal() * t / m));
}

}  // namespace

SpectrumOracle::SpectrumOracle(const LawColumns& columns, const LawRows& few, const Matrix& A, std::size_t rows,
                               double radius, double stands_for, const PrivacyPlan& plan, std::uint64_t seed,
                               LawOrder order)
    : columns_(columns),
      few_(few),
      A_(A),
      n_(static_cast<double>(rows)),
      radius_(radius),
      least_(radius),
      stretch_(std::sqrt(stands_for / static_cast<double>(columns.size()))),
      meter_(plan),
      seed_(seed),
      order_(std::move(order)),
      centre_(Vector::Zero(columns.size())) {
  bound();
}

RowsShape SpectrumOracle::shape() const {
  RowsShape shape{static_cast<std::size_t>(columns_.size()), {}, {radius_, kLatticeBits}, plan().adjacency};
  if (shape.adjacency == Adjacency::kReplaceOne) shape.rows = n_;
  return shape;
}

Matrix SpectrumOracle::inside(const Directions& X) const {
  return order_.transpose() * (X.scaled() * std::ldexp(1.0, -Directions::kBits));
}

Error SpectrumOracle::loss() {
  at_a_loss_ = true;
  return internal_error("the law of the rows does not tell this");
}

// w = min(1, R / |x - s|), and of the variance lambda_j there is E w^2 x_j^2 left: by the few rows, over their E x_j^2.
void SpectrumOracle::bound() {
  const Vector squared = few_.squared_norms.array() + centre_.squaredNorm();
  const double least = std::min(radius_, least_);
  weights_ = squared.unaryExpr([&](double s) { return s > least * least ? least / std::sqrt(s) : 1.0; });
  const Vector w2 = weights_.cwiseAbs2();
  const Vector left = (few_.squares.transpose() * w2).cwiseQuotient(few_.sums);
  root_ = columns_.lambda.cwiseProduct(left.cwiseMax(0.0)).cwiseSqrt();
}

Status SpectrumOracle::recenter(const Vector& mean, RowBound radius) {
  centre_ += Vector(order_.transpose() * mean);
  least_ = std::min(least_, radius_);
  radius_ = radius.value();
  bound();
  return {};
}

Matrix SpectrumOracle::few_along(const Matrix& X) const {
  const auto m = static_cast<int>(few_.X.rows()), D = static_cast<int>(few_.X.cols()), p = static_cast<int>(X.cols());
  Matrix t(m, p);
  // Row-major rows are column-major rows^T.
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, m, p, D, 1, few_.X.data(), D, X.data(), D, 0, t.data(), m);
  t.rowwise() -= centre_.transpose() * X;
  return weights_.asDiagonal() * t;
}

Matrix SpectrumOracle::second_moment() const {
  const auto D = static_cast<int>(columns_.size());
  const Matrix scaled = root_.asDiagonal() * A_;
  Matrix S = Matrix::Zero(D, D);
  cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, D, D, 1, scaled.data(), D, 0, S.data(), D);
  S.triangularView<Eigen::StrictlyUpper>() = S.transpose();
  S += weights_.squaredNorm() / static_cast<double>(weights_.size()) * centre_ * centre_.transpose();
  return S;
}

Matrix SpectrumOracle::times(const Matrix& X) const {
  const auto D = static_cast<int>(columns_.size());
  Matrix Y = root_.asDiagonal() * X;
  const auto p = static_cast<int>(X.cols());
  for (const auto side : {CblasTrans, CblasNoTrans})
    cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, side, CblasNonUnit, D, p, 1, A_.data(), D, Y.data(), D);
  Y = root_.asDiagonal() * Y;
  return Y + weights_.squaredNorm() / static_cast<double>(weights_.size()) * centre_ * (centre_.transpose() * X);
}

Matrix SpectrumOracle::filtered(const Matrix& X, const Matrix& t, const Vector& weights) const {
  return times(X) * left_by(weights, t);
}

Result<Matrix> SpectrumOracle::sum_of(const SumQuery& query) const {
  if (std::holds_alternative<Gram>(query)) return Matrix(n_ * second_moment());
  if (const auto* sums = std::get_if<ClassSums>(&query); sums != nullptr && sums->classes == 1)
    return Matrix(-n_ * weights_.mean() * centre_);
  if (const auto* counts = std::get_if<ClassCounts>(&query); counts != nullptr && counts->classes == 1)
    return Matrix(Matrix::Constant(1, 1, n_));
  if (merged()) return Matrix();
  if (const auto* apply = std::get_if<Apply>(&query)) return Matrix(n_ * times(inside(apply->X)));
  if (std::holds_alternative<SquaredNorms>(query)) return Matrix(Matrix::Constant(1, 1, n_ * second_moment().trace()));
  if (const auto* small = std::get_if<ProjectedGram>(&query)) {
    const Matrix X = inside(small->X), t = few_along(X);
    const Vector lengths = t.rowwise().norm();
    const Vector weights = lengths.unaryExpr(
        [&](double length) { return length > small->radius ? std::pow(small->radius / length, 2) : 1.0; });
    const Matrix S = X.transpose() * filtered(X, t, weights);
    return Matrix(n_ / 2 * (S + S.transpose()));
  }
  return Matrix();
}

// Noise in an entry of deviation sigma sqrt(c), c the more that one of its two columns stands for; on the diagonal of
// a symmetric answer sqrt(2) times as much.
Result<Answer> SpectrumOracle::noised(Matrix sum, double deviation, const std::string& label, bool symmetric) {
  std::mt19937_64 random(seed_for(seed_, label));
  std::normal_distribution<double> normal;
  const bool by_column = sum.rows() == columns_.size();
  const auto count = [&](Eigen::Index i) { return by_column ? columns_.count[i] : 1.0; };
  for (Eigen::Index j = 0; j < sum.cols(); ++j)
    for (Eigen::Index i = symmetric ? j : 0; i < sum.rows(); ++i) {
      const double c = symmetric ? std::max(count(i), count(j)) : count(i);
      sum(i, j) += deviation * std::sqrt(symmetric && i == j ? 2 * c : c) * normal(random);
    }
  if (symmetric) sum.triangularView<Eigen::StrictlyUpper>() = sum.transpose();
  if (by_column) sum = order_ * sum;
  if (by_column && symmetric) sum = sum * order_.transpose();
  auto released = EIGENVEIL_TRY(as_released(sum, symmetric));
  return Answer(std::move(released), deviation * (by_column ? stretch_ : 1));
}

Result<Answer> SpectrumOracle::ask(const std::string& label, const SumQuery& query) {
  return answer(label, query, EIGENVEIL_TRY(meter_.gaussian(label)));
}

Result<Answer> SpectrumOracle::ask_rest(const std::string& label, const SumQuery& query) {
  return answer(label, query, EIGENVEIL_TRY(meter_.rest(label)));
}

Result<Answer> SpectrumOracle::answer(const std::string& label, const SumQuery& query, Mu mu) {
  Matrix sum = EIGENVEIL_TRY(sum_of(query));
  if (sum.size() == 0) return loss();
  const PrivateSum asked = empty_sum(query, shape().columns, shape().lattice, plan().adjacency);
  EIGENVEIL_TRY(GaussianMechanism::noise_for(asked, mu));  // refuses what cannot be drawn
  return noised(std::move(sum), deviation_of(asked, mu), label, asked.layout == PrivateSum::Layout::kSymmetric);
}

PrivateCounts SpectrumOracle::counted(const Vector& values, const std::vector<double>& grid) const {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  PrivateCounts counts;
  for (const double g : grid) {
    const auto above = sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), g);
    counts.values.push_back(std::llround(n_ * static_cast<double>(above) / static_cast<double>(sorted.size())));
  }
  return counts;
}

Result<Released<std::size_t>> SpectrumOracle::first_at_most(const std::string& label, const NormExceedance& query,
                                                            std::int64_t target) {
  const auto epsilon = EIGENVEIL_TRY(meter_.pure(label));
  if (query.X && merged()) return loss();
  const Vector lengths = (few_.squared_norms.array() + centre_.squaredNorm()).sqrt();
  const Vector values =
      query.X ? Vector(few_along(inside(*query.X)).rowwise().norm()) : Vector(lengths.cwiseProduct(weights_));
  SecureRandom random = SecureRandom::insecure(seed_for(seed_, label));
  return SparseVector::first_at_most(counted(values, query.grid), target, epsilon, random);
}

Result<FilteredAnswer> SpectrumOracle::ask_filtered(const std::string& search, const std::string& product,
                                                    const FilteredApply& query, std::int64_t target) {
  const auto epsilon = EIGENVEIL_TRY(meter_.pure(search));
  const auto mu = EIGENVEIL_TRY(meter_.gaussian(product));
  if (merged()) return loss();
  const Matrix X = inside(query.X), t = few_along(X);
  // ||u||^2 = w^2 (|x|^2 - 2 x^T s + |s|^2)
  const Vector squares = few_.squared_norms - 2 * few_.X * centre_;
  const Vector lengths = (squares.array() + centre_.squaredNorm()).max(0.0).sqrt() * weights_.array();
  const Vector values = lengths.cwiseProduct(t.rowwise().norm());
  SecureRandom random = SecureRandom::insecure(seed_for(seed_, search));
  auto chosen = EIGENVEIL_TRY(SparseVector::first_at_most(counted(values, query.grid), target, epsilon, random));
  const double theta = query.grid[*chosen];
  const Vector weights = values.unaryExpr([&](double value) {
    if (value <= theta) return 1.0;
    if (query.mode == FilterMode::kDrop) return 0.0;
    const auto edge = std::lower_bound(query.grid.begin(), query.grid.end(), value);
    return theta / (edge == query.grid.end() ? value : *edge);
  });
  const PrivateSum asked = empty_sum(query, *chosen, shape().lattice, plan().adjacency);
  EIGENVEIL_TRY(GaussianMechanism::noise_for(asked, mu));
  auto answer = EIGENVEIL_TRY(noised(n_ * filtered(X, t, weights), deviation_of(asked, mu), product, false));
  return FilteredAnswer{std::move(chosen), std::move(answer)};
}

}  // namespace eigenveil
