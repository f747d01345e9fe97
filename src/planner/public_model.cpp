#include "eigenveil/planner/public_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "eigenveil/linalg/subspace.hpp"

namespace eigenveil {
namespace {

std::size_t width(const PublicModel& model) {
  const auto d = static_cast<std::size_t>(model.spectrum.size());
  return std::clamp(model.sparsity.value_or(model.components), model.components, d);
}

}  // namespace

Vector gap_spectrum(std::size_t columns, std::size_t components, double gap) {
  Vector spectrum = Vector::Ones(static_cast<Eigen::Index>(columns));
  spectrum.head(static_cast<Eigen::Index>(std::min(components, columns))).setConstant(gap);
  return spectrum / spectrum.sum();
}

Vector decay_spectrum(std::size_t columns, double exponent) {
  const Vector spectrum = Vector::NullaryExpr(static_cast<Eigen::Index>(columns), [&](Eigen::Index i) {
    return std::pow(static_cast<double>(i + 1), -exponent);
  });
  return spectrum / spectrum.sum();
}

Result<Vector> read_spectrum(const std::string& path, std::size_t columns) {
  std::ifstream file(path);
  if (!file) return bad_input(fmt::format("--spectrum {}: the file cannot be read", path));
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
      return usage_error(fmt::format("--spectrum {}: '{}' is not a number", path, word));
    if (value < 0)
      return usage_error(fmt::format("--spectrum {}: eigenvalues of a covariance are not negative, but one is {}", path,
                                     value));
    values.push_back(value);
  }
  if (values.empty()) return usage_error(fmt::format("--spectrum {}: there are no numbers in it", path));
  if (values.size() > columns)
    return usage_error(
        fmt::format("--spectrum {}: has {} eigenvalues, but there are {} columns", path, values.size(), columns));
  std::sort(values.begin(), values.end(), std::greater<>());
  if (values.front() == 0) return usage_error(fmt::format("--spectrum {}: all eigenvalues are zero", path));
  values.resize(columns, values.back());
  return Vector(Eigen::Map<Vector>(values.data(), static_cast<Eigen::Index>(columns)));
}

// The top components live on the first `width` columns, turned by a random rotation of those; the other eigenvectors
// are the axes. For a method that treats all directions alike this is as good as any basis.
Matrix true_components(const PublicModel& model, std::uint64_t seed) {
  const auto w = static_cast<Eigen::Index>(width(model));
  const auto k = static_cast<Eigen::Index>(model.components);
  std::mt19937_64 random(seed ^ 0x5eedU);
  std::normal_distribution<double> normal;
  const Matrix rotation = orthonormal(Matrix::NullaryExpr(w, k, [&] { return normal(random); }));
  Matrix U = Matrix::Zero(model.spectrum.size(), k);
  U.topRows(w) = rotation;
  return U;
}

RowMajorMatrix draw_rows(const PublicModel& model, std::size_t rows, std::uint64_t seed) {
  const Eigen::Index d = model.spectrum.size();
  const auto n = static_cast<Eigen::Index>(rows);
  const auto k = static_cast<Eigen::Index>(model.components);
  const Matrix U = true_components(model, seed);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::bernoulli_distribution carries(model.signal_share);
  // x = U (sqrt(lambda_top) z) + (I - U U^T) (sqrt(lambda_rest) g): the rest keeps the axes' variances outside U. The
  // axes that the top components lie on get the eigenvalues that follow.
  Vector rest(d);
  for (Eigen::Index i = 0; i < d; ++i) rest[i] = std::sqrt(model.spectrum[i < k ? std::min(k, d - 1) : i]);
  if (k == d) rest.setZero();
  const Vector top = (model.spectrum.head(k) / model.signal_share).cwiseSqrt();
  RowMajorMatrix X(n, d);
  Vector z(k);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < d; ++j) X(i, j) = rest[j] * normal(random);
    const bool signal = carries(random);
    for (Eigen::Index j = 0; j < k; ++j) z[j] = signal ? top[j] * normal(random) : 0.0;
    const Vector along = U.transpose() * X.row(i).transpose();
    X.row(i) += (U * (z - along)).transpose();
  }
  return X;
}

}  // namespace eigenveil
