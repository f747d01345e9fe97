// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/forecast/spectrum_model.hpp"

#include <cblas.h>
#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

namespace eigenveil {
namespace {

std::size_t width(const SpectrumModel& model) {
  const std::size_t d = model.spectrum.size();
  return std::clamp(model.sparsity.value_or(d), model.components, d);
}

// Lower triangular A with A A^T ~ Wishart(I, n) (Bartlett 1933)
Matrix bartlett(Eigen::Index d, std::size_t n, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Matrix A = Matrix::Zero(d, d);
  for (Eigen::Index j = 0; j < d; ++j) {
    std::chi_squared_distribution<double> chi(static_cast<double>(n) - static_cast<double>(j));
    A(j, j) = std::sqrt(chi(random));
    for (Eigen::Index i = j + 1; i < d; ++i) A(i, j) = normal(random);
  }
  return A / std::sqrt(static_cast<double>(n));
}

// Z <- Z L^-T A^T with L L^T = Z^T Z / m, so that Z^T Z / m = A A^T
void set_second_moment(RowMajorMatrix& Z, const Matrix& A) {
  const auto m = static_cast<int>(Z.rows());
  const auto d = static_cast<int>(Z.cols());
  Matrix S = Matrix::Zero(d, d);
  // Row-major Z is column-major Z^T.
  cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, d, m, 1.0 / m, Z.data(), d, 0.0, S.data(), d);
  S.diagonal().array() += 1e-12;
  const Eigen::LLT<Matrix> llt(S.selfadjointView<Eigen::Lower>());
  const Matrix L = llt.matrixL();
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, d, m, 1.0, L.data(), d, Z.data(), d);
  cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, d, m, 1.0, A.data(), d, Z.data(), d);
}

}  // namespace

Vector gap_spectrum(std::size_t columns, std::size_t components, double gap) {
  Vector spectrum = Vector::Ones(columns);
  spectrum.head(std::min(components, columns)).setConstant(gap);
  return spectrum / spectrum.sum();
}

Vector decay_spectrum(std::size_t columns, double exponent) {
  const Vector spectrum =
      Vector::NullaryExpr(columns, [&](Eigen::Index i) { return std::pow(static_cast<double>(i + 1), -exponent); });
  return spectrum / spectrum.sum();
}

Result<Vector> read_spectrum(const std::string& path, std::size_t columns) {
  std::ifstream file(path);
  if (!file) return bad_input(fmt::format("`spectrum` {}: the file cannot be read", path));
  std::stringstream text;
  text << file.rdbuf();
  std::string numbers = text.str();
  std::replace(numbers.begin(), numbers.end(), ',', ' ');
  std::istringstream words(numbers);
  std::vector<double> values;
  for (std::string word; words >> word;) {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (end != word.c_str() + word.size() || !std::isfinite(value))
      return usage_error(fmt::format("`spectrum` {}: '{}' is not a number", path, word));
    if (value < 0)
      return usage_error(
          fmt::format("`spectrum` {}: eigenvalues of a covariance are not negative, but one is {}", path, value));
    values.push_back(value);
  }
  if (values.empty()) return usage_error(fmt::format("`spectrum` {}: there are no numbers in it", path));
  if (values.size() > columns)
    return usage_error(
        fmt::format("`spectrum` {}: has {} eigenvalues, but there are {} columns", path, values.size(), columns));
  std::sort(values.begin(), values.end(), std::greater<>());
  if (values.front() == 0) return usage_error(fmt::format("`spectrum` {}: all eigenvalues are zero", path));
  values.resize(columns, values.back());
  return Vector(Eigen::Map<Vector>(values.data(), columns));
}

Eigenbasis::Eigenbasis(const SpectrumModel& model, std::uint64_t seed)
    : d_(model.spectrum.size()), k_(model.components) {
  std::mt19937_64 random(seed ^ 0x5eedU);
  std::normal_distribution<double> normal;
  turn_.compute(Matrix::NullaryExpr(width(model), k_, [&] { return normal(random); }));
}

Matrix Eigenbasis::top() const {
  Matrix U = Matrix::Zero(d_, k_);
  U.topRows(turn_.rows()) = turn_.householderQ() * Matrix::Identity(turn_.rows(), k_);
  return U;
}

Matrix Eigenbasis::coordinates(const Matrix& V) const {
  Matrix result = V;
  result.topRows(turn_.rows()).applyOnTheLeft(turn_.householderQ().adjoint());
  return result;
}

void Eigenbasis::to_columns(RowMajorMatrix& rows) const {
  rows.leftCols(turn_.rows()).applyOnTheRight(turn_.householderQ().adjoint());
}

Matrix Eigenbasis::covariance(const Vector& spectrum) const {
  RowMajorMatrix scaled = Matrix(spectrum.asDiagonal());
  to_columns(scaled);         // diag(lambda) E^T
  scaled.transposeInPlace();  // E diag(lambda)
  to_columns(scaled);         // E diag(lambda) E^T
  return scaled;
}

RowMajorMatrix draw_rows(const SpectrumModel& model, const Eigenbasis& basis, std::size_t rows, std::uint64_t seed) {
  const Eigen::Index d = model.spectrum.size();
  const Eigen::Index m = rows;
  const Eigen::Index k = model.components;
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  RowMajorMatrix Z(m, d);
  for (Eigen::Index i = 0; i < Z.size(); ++i) Z.data()[i] = normal(random);
  if (model.signal_share < 1) {
    std::bernoulli_distribution carries(model.signal_share);
    for (Eigen::Index i = 0; i < m; ++i) Z.row(i).head(k) *= carries(random) ? 1 / std::sqrt(model.signal_share) : 0.0;
  }
  if (rows < model.rows && m >= d) set_second_moment(Z, bartlett(d, model.rows, random));
  Z.array().rowwise() *= model.spectrum.cwiseSqrt().transpose().array();
  basis.to_columns(Z);
  return Z;
}

}  // namespace eigenveil
