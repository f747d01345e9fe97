// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/encoders/images.hpp"

#include <cblas.h>
#include <fmt/format.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/encoders/public_images.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "in_order.hpp"

namespace eigenveil {
namespace {

constexpr std::size_t kGroups = 27;
constexpr const char* kTorchScript = "torchscript";

// rows x channels x height x width
Tensor image_tensor(const RowMajorMatrix& pixels, const ImageEncoder::Options& options) {
  const auto side = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  Tensor tensor{
      "images", {pixels.rows(), side(options.channels), side(options.height), side(options.width)}, {}, {}, false};
  tensor.floats.assign(pixels.data(), pixels.data() + pixels.size());
  return tensor;
}

// Each of `groups` equal pieces to mean 0 and variance 1, then over the root of the length.
void normalise(std::span<double> row, std::size_t groups) {
  const std::size_t size = row.size() / groups;
  for (std::size_t g = 0; g < groups; ++g) {
    const auto piece = row.subspan(g * size, size);
    const double mean = sum_in_order(piece) / static_cast<double>(size);
    for (double& x : piece) x -= mean;
    const double deviation = std::sqrt(squares_in_order(piece) / static_cast<double>(size) + 1e-5);
    for (double& x : piece) x /= deviation;
  }
  const double root = std::sqrt(static_cast<double>(row.size()));
  for (double& x : row) x /= root;
}

// C = A^T B or A B, by BLAS
Matrix product(const Matrix& A, bool transpose, const Matrix& B) {
  Matrix C(transpose ? A.cols() : A.rows(), B.cols());
  const auto width = [](Eigen::Index n) { return static_cast<int>(n); };
  cblas_dgemm(CblasColMajor, transpose ? CblasTrans : CblasNoTrans, CblasNoTrans, width(C.rows()), width(C.cols()),
              width(B.rows()), 1.0, A.data(), width(A.rows()), B.data(), width(B.rows()), 0.0, C.data(),
              width(C.rows()));
  return C;
}

// An orthonormal basis of tall A, by LAPACK
Matrix basis_of(Matrix A) {
  const auto m = static_cast<lapack_int>(A.rows()), n = static_cast<lapack_int>(A.cols());
  Vector tau(A.cols());
  LAPACKE_dgeqrf(LAPACK_COL_MAJOR, m, n, A.data(), m, tau.data());
  LAPACKE_dorgqr(LAPACK_COL_MAJOR, m, n, n, A.data(), m, tau.data());
  return A;
}

}  // namespace

Result<ImageEncoder> ImageEncoder::make(const Options& options) {
  const auto [kind, file] = split_encoder(options.kind);
  const bool module = kind == kTorchScript && !file.empty();
  if (options.kind != "scatter" && options.kind != "pixels" && !module)
    return usage_error(
        fmt::format("`image_encoder` must be scatter, pixels or torchscript:FILE, but is '{}'", options.kind));
  if (!(options.lower < options.upper) || !std::isfinite(options.upper - options.lower))
    return usage_error("the range of pixels must be finite, its lower end below its upper");
  if (options.height == 0 || options.width == 0) return bad_input("the images have no pixels");
  if (module) return with_module(options, file);
  if (options.channels != 1) return usage_error("only torchscript: encoders take images in colour");
  if (options.kind == "pixels") return ImageEncoder(options, options.height * options.width);
  auto scatter = EIGENVEIL_TRY(Scatter::make(options.height, options.width));
  ImageEncoder encoder(options, scatter.features());
  encoder.scatter_ = std::move(scatter);
  return encoder;
}

Result<ImageEncoder> ImageEncoder::with_module(const Options& options, const std::string& path) {
  const auto file = EIGENVEIL_TRY(ModuleFile::read(path));
  ImageEncoder encoder(options, 0);
  encoder.identity_ = {kTorchScript, file.name, file.sha256};
  EIGENVEIL_TRY(check_encoder(encoder.identity_, options.sha256));
  const RowMajorMatrix black = RowMajorMatrix::Zero(1, static_cast<Eigen::Index>(encoder.pixels()));
  encoder.module_ =
      EIGENVEIL_TRY(torch_encoder(file, "encode_image", image_tensor(black, options), {.threads = options.threads}));
  encoder.features_ = encoder.module_->features();
  return encoder;
}

Result<RowMajorMatrix> ImageEncoder::encode(const double* images, std::size_t count, int threads) const {
  const auto rows = static_cast<Eigen::Index>(count);
  RowMajorMatrix scaled = Eigen::Map<const RowMajorMatrix>(images, rows, static_cast<Eigen::Index>(pixels()));
  const double lower = options_.lower, upper = options_.upper;
  scaled = scaled.unaryExpr([=](double p) { return (std::clamp(p, lower, upper) - lower) / (upper - lower); });
  RowMajorMatrix features;
  if (module_) {
    auto encoded = module_->encode(image_tensor(scaled, options_));
    if (!encoded) return encoded;
    features = *std::move(encoded);
    for (Eigen::Index i = 0; i < rows; ++i) make_unit({features.row(i).data(), features_});
    return features;
  }
  if (scatter_) {
    features.resize(rows, static_cast<Eigen::Index>(scatter_->features()));
    scatter_->transform(scaled.data(), count, features.data(), threads);
  } else {
    features = std::move(scaled);
  }
  for (Eigen::Index i = 0; i < rows; ++i) normalise({features.row(i).data(), features_}, scatter_ ? kGroups : 1);
  return features;
}

Result<PublicBasis> public_basis(const ImageEncoder& encoder, std::size_t k, std::size_t images, int threads) {
  const auto& options = encoder.options();
  RowMajorMatrix pictures = public_images(images, options.height, options.width);
  pictures = (pictures.array() * (options.upper - options.lower) + options.lower).matrix();
  const auto d = static_cast<Eigen::Index>(encoder.features());
  const auto width = std::min({static_cast<Eigen::Index>(k), d, static_cast<Eigen::Index>(images)});
  const auto encoded = EIGENVEIL_TRY(encoder.encode(pictures.data(), images, threads));
  Matrix X = encoded;
  const Vector mean = X.colwise().mean();
  X.rowwise() -= mean.transpose();

  // Subspace iteration, Q <- orth(X^T X Q): the spectrum falls fast, four rounds and a tenth more directions suffice.
  std::mt19937_64 bits(20240607);
  const Eigen::Index wide = std::min({width + width / 10 + 8, d, X.rows()});
  Matrix Q = Matrix::NullaryExpr(d, wide, [&] { return std::ldexp(static_cast<double>(bits() >> 11), -53) - 0.5; });
  for (int round = 0; round < 4; ++round) Q = basis_of(product(X, true, product(X, false, Q)));
  const Matrix XQ = product(X, false, Q);
  const auto pairs = EIGENVEIL_TRY(top_eigenpairs(product(XQ, true, XQ), static_cast<std::size_t>(width)));
  return PublicBasis{mean, product(Q, false, pairs.vectors)};
}

}  // namespace eigenveil
