// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/encoders/images.hpp"

#include <cblas.h>
#include <fmt/format.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "eigenveil/base/parallel.hpp"
#include "eigenveil/base/printable.hpp"
#include "eigenveil/encoders/catalogue.hpp"
#include "eigenveil/encoders/public_images.hpp"
#include "eigenveil/linalg/eigen.hpp"
#include "eigenveil/torch/kept.hpp"
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

// Those of scatter alone; what stands beside it stays as it is.
Result<PublicBasis> joined_basis(const ImageEncoder& encoder, std::size_t k, std::size_t images, int threads) {
  ImageEncoder::Options options = encoder.options();
  options.kind = "scatter";
  const auto first = EIGENVEIL_TRY(public_basis(EIGENVEIL_TRY(ImageEncoder::make(options)), k, images, threads));
  const double root = std::sqrt(static_cast<double>(joined_encoders(encoder.options().kind).size()));
  const Eigen::Index d = encoder.features();
  const Eigen::Index scattered = first.basis.rows(), rest = d - scattered;
  PublicBasis basis{Vector::Zero(d), Matrix::Zero(d, first.basis.cols() + rest)};
  basis.mean.head(scattered) = first.mean / root;
  basis.basis.topLeftCorner(scattered, first.basis.cols()) = first.basis;
  basis.basis.bottomRightCorner(rest, rest).setIdentity();
  return basis;
}

}  // namespace

Result<ImageEncoder> ImageEncoder::make(const Options& options) {
  if (!(options.lower < options.upper) || !std::isfinite(options.upper - options.lower))
    return usage_error("the range of pixels must be finite, its lower end below its upper");
  if (options.height == 0 || options.width == 0) return bad_input("the images have no pixels");
  if (options.channels != 1 && options.channels != 3)
    return usage_error(fmt::format("`channels` must be 1 (grey) or 3 (colours), but is {}", options.channels));
  ImageEncoder encoder(options);
  const auto kinds = joined_encoders(options.kind);
  for (const std::string& kind : kinds) EIGENVEIL_TRY(encoder.add(kind));
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if ((i + 1 < kinds.size() && encoder.parts_[i].module) || (i > 0 && encoder.parts_[i].scatter))
      return usage_error(fmt::format(
          "`image_encoder` {}: of encoders side by side, scatter comes first and one with weights last", options.kind));
  return encoder;
}

Status ImageEncoder::add(const std::string& kind) {
  const bool module = (kind.starts_with(kTorchScript) && !split_encoder(kind).second.empty()) ||
                      catalogue_entry(kind, "image") != nullptr;
  if (kind != "scatter" && kind != "pixels" && !module) {
    std::string names;
    for (const CatalogueEntry& entry : catalogue())
      if (entry.side == "image") names += entry.name + ", ";
    return usage_error(
        fmt::format("`image_encoder` must be scatter, pixels, {}torchscript:FILE, or some of these joined "
                    "by +, but is {}",
                    names, eigenveil::quote(options_.kind)));
  }
  identity_.kind += (identity_.kind.empty() ? "" : "+") + split_encoder(kind).first;
  Part part{.features = pixels()};
  if (module) part = EIGENVEIL_TRY(module_of(kind));
  if (kind == "scatter") {
    part.scatter = EIGENVEIL_TRY(Scatter::make(options_.height, options_.width));
    part.features = options_.channels * part.scatter->features();
  }
  features_ += part.features;
  parts_.push_back(std::move(part));
  return {};
}

// A named one must have the hash that the catalogue tells, and with it the model's.
Result<ImageEncoder::Part> ImageEncoder::module_of(const std::string& kind) {
  constexpr const char* kMethod = "encode_image";
  const CatalogueEntry* entry = catalogue_entry(kind, "image");
  const auto path = EIGENVEIL_TRY(entry != nullptr ? fetched_encoder(*entry) : Result(split_encoder(kind).second));
  const auto file = EIGENVEIL_TRY(ModuleFile::read(path));
  identity_.file = file.name;
  identity_.sha256 = file.sha256;
  if (entry != nullptr) EIGENVEIL_TRY(check_named(*entry, file.sha256));
  EIGENVEIL_TRY(check_encoder(identity_, options_.sha256));
  identity_.manifest = EIGENVEIL_TRY(file.manifest());
  const RowMajorMatrix black = RowMajorMatrix::Zero(1, pixels());
  const Tensor like = image_tensor(black, options_);
  auto module = EIGENVEIL_TRY(torch_encoder(file, kMethod, like, {.threads = options_.threads}));
  if (!options_.kept.empty())
    module = EIGENVEIL_TRY(keeping(std::move(module), options_.kept, file.sha256, kMethod, like));
  const auto features = module->features();
  return Part{.features = features, .module = std::move(module)};
}

// Channel by channel of the transform, and of each the colours: what is normalised together are three channels in all
// colours, so that how the colours compare is kept.
RowMajorMatrix ImageEncoder::scattered(const Scatter& scatter, const RowMajorMatrix& scaled, int threads) const {
  const Eigen::Index colours = options_.channels;
  const Eigen::Index positions = scatter.positions();
  const Eigen::Index width = scatter.features();
  RowMajorMatrix planes(scaled.rows() * colours, width);
  scatter.transform(scaled.data(), planes.rows(), planes.data(), threads);
  if (colours == 1) return planes;
  RowMajorMatrix features(scaled.rows(), colours * width);
  for (Eigen::Index i = 0; i < planes.rows(); ++i)
    for (Eigen::Index channel = 0; channel < width / positions; ++channel)
      features.row(i / colours).segment((channel * colours + i % colours) * positions, positions) =
          planes.row(i).segment(channel * positions, positions);
  return features;
}

Result<RowMajorMatrix> ImageEncoder::encode(const Part& part, const RowMajorMatrix& scaled, int threads) const {
  RowMajorMatrix features;
  if (part.module) {
    auto encoded = part.module->encode(image_tensor(scaled, options_));
    if (!encoded) return encoded;
    features = *std::move(encoded);
    for (Eigen::Index i = 0; i < features.rows(); ++i) make_unit({features.row(i).data(), part.features});
    return features;
  }
  features = part.scatter ? scattered(*part.scatter, scaled, threads) : scaled;
  for (Eigen::Index i = 0; i < features.rows(); ++i)
    normalise({features.row(i).data(), part.features}, part.scatter ? kGroups : 1);
  return features;
}

Result<RowMajorMatrix> ImageEncoder::encode(const double* images, std::size_t count, int threads) const {
  const Eigen::Index rows = count;
  RowMajorMatrix scaled = Eigen::Map<const RowMajorMatrix>(images, rows, pixels());
  const double lower = options_.lower, upper = options_.upper;
  scaled = scaled.unaryExpr([=](double p) { return (std::clamp(p, lower, upper) - lower) / (upper - lower); });
  if (parts_.size() == 1) return encode(parts_.front(), scaled, threads);
  RowMajorMatrix features(rows, features_);
  const double root = std::sqrt(static_cast<double>(parts_.size()));
  Eigen::Index at = 0;
  for (const Part& part : parts_) {
    const auto encoded = EIGENVEIL_TRY(encode(part, scaled, threads));
    features.middleCols(at, encoded.cols()) = encoded / root;
    at += encoded.cols();
  }
  return features;
}

Result<PublicBasis> public_basis(const ImageEncoder& encoder, std::size_t k, std::size_t images, int threads) {
  const auto& options = encoder.options();
  if (encoder.scattered() > 0 && encoder.scattered() < encoder.features())
    return joined_basis(encoder, k, images, threads);
  RowMajorMatrix pictures = public_images(images, options.height, options.width, options.channels);
  pictures = (pictures.array() * (options.upper - options.lower) + options.lower).matrix();
  const Eigen::Index d = encoder.features();
  const Eigen::Index width = std::min<Eigen::Index>(std::min(k, images), d);
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
  const auto pairs = EIGENVEIL_TRY(top_eigenpairs(product(XQ, true, XQ), width));
  return PublicBasis{mean, product(Q, false, pairs.vectors)};
}

}  // namespace eigenveil
