// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/job/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "eigenveil/base/atomic_file.hpp"
#include "eigenveil/data/npy_file.hpp"
#include "eigenveil/data/npz.hpp"
#include "eigenveil/linalg/subspace.hpp"
#include "eigenveil/privacy/secure_random.hpp"

namespace eigenveil {
namespace {

// Box and Muller: two standard normals from two uniforms in (0, 1]
void fill_normal(SecureRandom& random, double* out, std::size_t count) {
  const auto uniform = [&] { return (static_cast<double>(random.next() >> 11) + 1) * 0x1p-53; };
  for (std::size_t i = 0; i < count; i += 2) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    out[i] = radius * std::cos(angle);
    if (i + 1 < count) out[i + 1] = radius * std::sin(angle);
  }
}

// rows x k with orthonormal columns, uniformly distributed
Matrix random_orthonormal(SecureRandom& random, Eigen::Index rows, Eigen::Index k) {
  Matrix normal(rows, k);
  fill_normal(random, normal.data(), normal.size());
  return orthonormal(normal);
}

// covariance = U diag(lambda) U^T + sigma2 I
struct PopulationCovariance {
  Matrix U;
  double lambda;
  double sigma2;
};

PopulationCovariance make_covariance(const GenerateOptions& options, SecureRandom& random) {
  const Eigen::Index d = options.columns;
  const Eigen::Index k = options.components;
  if (options.population == Population::kGaussian) {
    // trace 1: k gap s + (d - k) s = 1
    const double s = 1 / (static_cast<double>(k) * options.gap + static_cast<double>(d - k));
    return {random_orthonormal(random, d, k), (options.gap - 1) * s, s};
  }
  if (options.population == Population::kSpiked)
    return {random_orthonormal(random, d, k), options.spike, options.noise_variance};
  const Eigen::Index s = options.sparsity;
  const Matrix block = random_orthonormal(random, s, k);
  std::vector<Eigen::Index> support(options.columns);
  std::iota(support.begin(), support.end(), 0);
  PopulationCovariance covariance{Matrix::Zero(d, k), options.spike, options.noise_variance};
  for (Eigen::Index i = 0; i < s; ++i) {
    std::swap(support[i], support[i + random.below(static_cast<std::uint64_t>(d - i))]);
    covariance.U.row(support[i]) = block.row(i);
  }
  return covariance;
}

Status check(const GenerateOptions& options) {
  if (options.rows < 1 || options.columns < 1) return usage_error("`rows` and `columns` must be at least 1");
  const bool sparse = options.population == Population::kSparse;
  const std::size_t most = sparse ? std::min(options.sparsity, options.columns) : options.columns;
  if (options.components < 1 || options.components > most)
    return usage_error(fmt::format("`components` must be from 1 to {}, but is {}", most, options.components));
  if (sparse && options.sparsity > options.columns)
    return usage_error(fmt::format("`sparsity` {} is more than `columns` {}", options.sparsity, options.columns));
  if (!(options.gap >= 1) || !std::isfinite(options.gap)) return usage_error("`gap` must be finite and at least 1");
  if (!(options.spike >= 0) || !std::isfinite(options.spike))
    return usage_error("`spike` must be finite, not negative");
  if (!(options.noise_variance >= 0) || !std::isfinite(options.noise_variance))
    return usage_error("`noise_variance` must be finite and not negative");
  if (!options.out.ends_with(".npy")) return usage_error("`out` must end in .npy");
  if (!options.truth.empty() && !options.truth.ends_with(".npz")) return usage_error("`truth` must end in .npz");
  return {};
}

}  // namespace

Status generate(const GenerateOptions& options, Observer& observer) {
  EIGENVEIL_TRY(check(options));
  if (!options.truth.empty()) EIGENVEIL_TRY(check_writable(options.truth));
  auto random = SecureRandom::insecure(options.seed);
  const PopulationCovariance covariance = make_covariance(options, random);

  observer.step("generating rows");
  auto file = EIGENVEIL_TRY(NpyFile::create(options.out, options.columns));
  const std::size_t batch = std::clamp<std::size_t>((std::size_t{1} << 20) / options.columns, 1, 4096);
  for (std::size_t done = 0; done < options.rows;) {
    const Eigen::Index rows = std::min(batch, options.rows - done);
    // row = sqrt(lambda) z U^T + sqrt(sigma2) g
    RowMajorMatrix z(rows, covariance.U.cols());
    RowMajorMatrix g(rows, covariance.U.rows());
    fill_normal(random, z.data(), z.size());
    fill_normal(random, g.data(), g.size());
    g = std::sqrt(covariance.sigma2) * g + std::sqrt(covariance.lambda) * z * covariance.U.transpose();
    EIGENVEIL_TRY(file.append(g));
    done += rows;
    observer.progress(static_cast<double>(done) / static_cast<double>(options.rows));
  }
  EIGENVEIL_TRY(file.commit());
  if (options.truth.empty()) return {};
  const Vector eigenvalues = Vector::Constant(covariance.U.cols(), covariance.lambda + covariance.sigma2);
  return write_npz(options.truth,
                   {{"components", covariance.U.transpose()},
                    {"eigenvalues", eigenvalues, true},
                    {"noise_variance", Vector::Constant(1, covariance.sigma2), true}},
                   {});
}

}  // namespace eigenveil
