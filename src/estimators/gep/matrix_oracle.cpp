// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/estimators/gep/matrix_oracle.hpp"

#include <fmt/format.h>

#include <cmath>

namespace eigenveil {
namespace {

constexpr int kBits = 30;  // a sensitivity is about 2^30 steps, so that truncation hardly counts
constexpr double kMostSteps = 0x1p61;
constexpr double kUpwards = 1.0 + 0x1p-50;

double unit_for(double sensitivity) { return std::ldexp(1.0, std::ilogb(sensitivity) - kBits); }

Status check_matrix(const Matrix& M, double sensitivity, const char* name) {
  if (!(std::isfinite(sensitivity) && sensitivity > 0))
    return usage_error(fmt::format("`sensitivity_{}` must be finite and positive, but is {}", name, sensitivity));
  if (M.rows() == 0 || M.rows() != M.cols())
    return bad_input(fmt::format("matrix {} is {} x {}, but must be square", name, M.rows(), M.cols()));
  if (!M.allFinite()) return bad_input(fmt::format("matrix {} holds a value that is not a finite number", name));
  const double largest = M.cwiseAbs().maxCoeff();
  Eigen::Index i = 0;
  Eigen::Index j = 0;
  if ((M - M.transpose()).cwiseAbs().maxCoeff(&i, &j) > 1e-9 * largest)
    return bad_input(fmt::format("matrix {} is not symmetric: entry ({}, {}) is {} but ({}, {}) is {}", name, i + 1,
                                 j + 1, M(i, j), j + 1, i + 1, M(j, i)));
  if (!(largest / unit_for(sensitivity) < kMostSteps))
    return usage_error(
        fmt::format("`sensitivity_{}` {:g} is too small for entries up to {:g}: is it that of the matrix "
                    "as given, not of something scaled?",
                    name, sensitivity, largest));
  return {};
}

}  // namespace

Status MatrixOracle::check(const PrivateMatrices& matrices) {
  EIGENVEIL_TRY(check_matrix(matrices.A, matrices.sensitivity_a, "a"));
  EIGENVEIL_TRY(check_matrix(matrices.B, matrices.sensitivity_b, "b"));
  if (matrices.A.rows() != matrices.B.rows())
    return bad_input(fmt::format("matrix a has {} rows but matrix b has {}", matrices.A.rows(), matrices.B.rows()));
  return {};
}

MatrixOracle::Steps MatrixOracle::quantise(const Matrix& M, double sensitivity) {
  const double unit = unit_for(sensitivity);
  const std::size_t d = M.rows();
  Steps lattice{std::vector<std::int64_t>(d * d), unit, (sensitivity / unit + 2 * static_cast<double>(d)) * kUpwards};
  // Dividing by a power of two is exact. Each entry is truncated, then the mean of the two triangles is.
  const auto step = [&](std::size_t i, std::size_t j) { return static_cast<std::int64_t>(std::trunc(M(i, j) / unit)); };
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t i = j; i < d; ++i)
      lattice.entries[j * d + i] = lattice.entries[i * d + j] = (step(i, j) + step(j, i)) / 2;
  return lattice;
}

MatrixOracle::MatrixOracle(std::size_t d, std::size_t rows, Steps a, Steps b, std::unique_ptr<Reservation> reservation,
                           SecureRandom random)
    : d_(d),
      rows_(rows),
      a_(std::move(a)),
      b_(std::move(b)),
      reservation_(std::move(reservation)),
      meter_(reservation_->plan()),
      random_(std::move(random)) {}

Result<std::unique_ptr<MatrixOracle>> MatrixOracle::make(const PrivateMatrices& matrices, std::size_t rows,
                                                         std::unique_ptr<Reservation> reservation,
                                                         SecureRandom random) {
  EIGENVEIL_TRY(check(matrices));
  return std::unique_ptr<MatrixOracle>(
      new MatrixOracle(matrices.A.rows(), rows, quantise(matrices.A, matrices.sensitivity_a),
                       quantise(matrices.B, matrices.sensitivity_b), std::move(reservation), std::move(random)));
}

MatrixOracle::~MatrixOracle() {
  if (reservation_ && !answering_) reservation_->close_unused();
}

Result<Answer> MatrixOracle::release(const std::string& label, PrivateSum sum) {
  const auto mu = EIGENVEIL_TRY(meter_.gaussian(label));
  if (!answering_) EIGENVEIL_TRY(reservation_->begin_answering());
  answering_ = true;
  const double deviation = deviation_of(sum, mu);
  auto released = EIGENVEIL_TRY(GaussianMechanism::release(std::move(sum), mu, random_));
  return Answer(std::move(released), deviation);
}

Result<Answer> MatrixOracle::ask(const std::string& label, const SumQuery& query) {
  const bool a = label.starts_with("matrix a") || label.starts_with("product a");
  if (!a && !label.starts_with("matrix b") && !label.starts_with("product b"))
    return internal_error("an ask of given matrices names one of them");
  const Steps& from = a ? a_ : b_;
  if (std::holds_alternative<Gram>(query)) return release(label, EIGENVEIL_TRY(whole(from)));
  const auto* apply = std::get_if<Apply>(&query);
  if (apply == nullptr) return internal_error("given matrices are asked for as they are, or for their products");
  return release(label, EIGENVEIL_TRY(product(from, apply->X)));
}

Result<PrivateSum> MatrixOracle::whole(const Steps& from) const {
  PrivateSum sum{PrivateSum::Layout::kSymmetric, d_, d_, Sensitivity(from.sensitivity), from.unit, {}};
  for (std::size_t j = 0; j < d_; ++j)
    for (std::size_t i = j; i < d_; ++i) sum.values.push_back(from.entries[j * d_ + i]);
  return sum;
}

Result<PrivateSum> MatrixOracle::product(const Steps& from, const Directions& X) const {
  if (X.rows() != d_) return internal_error("directions must fit the matrix");
  const std::size_t k = X.scaled().cols();
  const double moved = from.sensitivity * X.norm_factor() + std::sqrt(static_cast<double>(d_ * k));
  PrivateSum sum{PrivateSum::Layout::kPlain,    d_,        k,
                 Sensitivity(moved * kUpwards), from.unit, std::vector<Int128>(d_ * k)};
  for (std::size_t c = 0; c < k; ++c)
    for (std::size_t j = 0; j < d_; ++j) {
      const auto x = static_cast<Int128>(X.scaled()(j, c));
      for (std::size_t i = 0; i < d_; ++i) sum.values[c * d_ + i] += x * from.entries[j * d_ + i];
    }
  // Back to the matrix's own steps, toward zero: an entry's difference grows by less than one.
  for (Int128& value : sum.values) value /= Int128{1} << Directions::kBits;
  return sum;
}

namespace {
Error no_rows() { return internal_error("given matrices have no rows to search, shift or map"); }
}  // namespace

Result<Released<std::size_t>> MatrixOracle::first_at_most(const std::string& /*label*/, const NormExceedance& /*query*/,
                                                          std::int64_t /*target*/) {
  return no_rows();
}
Result<FilteredAnswer> MatrixOracle::ask_filtered(const std::string& /*search*/, const std::string& /*product*/,
                                                  const FilteredApply& /*query*/, std::int64_t /*target*/) {
  return no_rows();
}
Status MatrixOracle::recenter(const Vector& /*mean*/, RowBound /*radius*/) { return no_rows(); }
Status MatrixOracle::remap(const LinearMap& /*M*/, RowBound /*radius*/) { return no_rows(); }

}  // namespace eigenveil
