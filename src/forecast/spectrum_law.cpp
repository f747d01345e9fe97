// SPDX-License-Identifier: Apache-2.0
#include "spectrum_law.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "spectrum_oracle.hpp"

namespace eigenveil {
namespace {

constexpr Eigen::Index kWhole = 240;   // up to so many columns nothing is merged
constexpr Eigen::Index kMerged = 100;  // how many stand for the rest
constexpr Eigen::Index kRows = 1000;

// The first ones as they are; of the others as many to each as to the next.
LawColumns merged(const Vector& spectrum, Eigen::Index first) {
  const Eigen::Index d = spectrum.size();
  LawColumns columns{Vector(first + kMerged), Vector::Ones(first + kMerged)};
  columns.lambda.head(first) = spectrum.head(first);
  for (Eigen::Index b = 0; b < kMerged; ++b) {
    const Eigen::Index begin = first + (d - first) * b / kMerged;
    const Eigen::Index end = first + (d - first) * (b + 1) / kMerged;
    columns.lambda[first + b] = spectrum.segment(begin, end - begin).mean();
    columns.count[first + b] = static_cast<double>(end - begin);
  }
  return columns;
}

// A square root of a chi-squared of `degrees`, as a function of a normal z (Wilson and Hilferty 1931); 0 without any.
double chi(double degrees, double z) {
  if (degrees <= 0) return 0;
  const double v = 2 / (9 * degrees);
  return std::sqrt(degrees * std::pow(std::max(0.0, 1 - v + z * std::sqrt(v)), 3));
}

LawRows draw_rows_of(const LawColumns& columns, Eigen::Index count) {
  const Eigen::Index D = columns.size();
  std::mt19937_64 random(20261118);
  std::normal_distribution<double> normal;
  LawRows rows{{}, Matrix(count, D), {}, {}};
  const bool whole = (columns.count.array() == 1).all();
  RowMajorMatrix Z(whole ? count : 0, whole ? D : 0);
  for (Eigen::Index i = 0; i < Z.size(); ++i) Z.data()[i] = normal(random);
  if (whole) {
    rows.squares = Z.cwiseAbs2();
    Z.array().rowwise() *= columns.lambda.cwiseSqrt().transpose().array();
    rows.X = std::move(Z);
  } else {
    for (Eigen::Index j = 0; j < D; ++j)
      for (Eigen::Index i = 0; i < count; ++i) {
        const double c = columns.count[j], root = chi(c, normal(random)), z = c == 1 ? normal(random) : 0;
        rows.squares(i, j) = c == 1 ? z * z : root * root / c;
      }
  }
  rows.sums = rows.squares.colwise().sum().cwiseMax(1e-300);
  rows.squared_norms = rows.squares * columns.lambda.cwiseProduct(columns.count);
  return rows;
}

}  // namespace

SpectrumLaw::SpectrumLaw(SpectrumModel model) : model_(std::move(model)) {
  const Eigen::Index d = model_.spectrum.size();
  whole_.columns = {model_.spectrum, Vector::Ones(d)};
  const Eigen::Index first = std::max<Eigen::Index>(kMerged, 4 * model_.components);
  if (d > kWhole && d > first + 2 * kMerged) merged_ = Form{merged(model_.spectrum, first)};
}

LawOrder SpectrumLaw::order_of(const Form& form, std::uint64_t seed) {
  LawOrder order(form.columns.size());
  order.setIdentity();
  std::mt19937_64 random(seed);
  for (Eigen::Index i = form.columns.size() - 1; i > 0; --i)
    order.applyTranspositionOnTheRight(i, random() % static_cast<std::uint64_t>(i + 1));
  return order;
}

const LawRows& SpectrumLaw::rows_of(Form& form) const {
  // Enough for the p x p moments of the widest block of directions that is filtered: 4 k columns.
  if (!form.rows) form.rows = draw_rows_of(form.columns, std::max<Eigen::Index>(kRows, 32 * model_.components));
  return *form.rows;
}

// A_ij = sqrt(c_i) T_ij below the diagonal, sqrt(c_i) chi(n / c_i - i) on it: a column that stands for c has c / n of
// what one has from n rows.
const LawDraw& SpectrumLaw::draw_of(Form& form, std::uint64_t seed, std::size_t rows) const {
  const Eigen::Index D = form.columns.size();
  LawDraw& draw = form.draws[seed];
  if (draw.T.size() == 0) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    draw.z = Vector::NullaryExpr(D, [&] { return normal(random); });
    draw.T = Matrix::Zero(D, D);
    for (Eigen::Index j = 0; j < D; ++j)
      for (Eigen::Index i = j + 1; i < D; ++i) draw.T(i, j) = normal(random);
  }
  if (draw.rows == rows) return draw;
  draw.rows = rows;
  const auto n = static_cast<double>(rows);
  const Vector root = form.columns.count.cwiseSqrt();
  draw.A = root.asDiagonal() * draw.T;
  for (Eigen::Index i = 0; i < D; ++i) {
    const double degrees = n / form.columns.count[i];
    draw.A(i, i) = root[i] * chi(degrees - static_cast<double>(i), draw.z[i]);
    if (degrees >= static_cast<double>(i)) continue;
    const auto known = static_cast<Eigen::Index>(std::ceil(degrees));
    draw.A.row(i).segment(known, i - known).setZero();
  }
  draw.A /= std::sqrt(n);
  return draw;
}

std::unique_ptr<LawOracle> SpectrumLaw::oracle(std::size_t rows, const PrivacyPlan& plan, std::uint64_t seed,
                                               bool whole) {
  Form& used = form(whole);
  return std::make_unique<SpectrumOracle>(used.columns, rows_of(used), draw_of(used, seed, rows).A, rows,
                                          model_.row_bound, static_cast<double>(model_.spectrum.size()), plan, seed,
                                          order_of(used, seed));
}

Matrix SpectrumLaw::truth(const std::string& array, std::uint64_t seed, bool whole) const {
  const Form& used = form(whole);
  const LawOrder order = order_of(used, seed);
  if (array == "components") return Matrix::Identity(model_.components, used.columns.size()) * order.transpose();
  if (array == "covariance" && whole) return Matrix((order * used.columns.lambda).asDiagonal());
  return {};
}

double SpectrumLaw::lost(const Matrix& V, std::uint64_t seed, bool whole) const {
  const Form& used = form(whole);
  const Vector captured = order_of(used, seed).transpose() * Vector(V.rowwise().squaredNorm());
  return std::max(0.0, 1 - used.columns.lambda.dot(captured) / used.columns.lambda.head(V.cols()).sum());
}

}  // namespace eigenveil
