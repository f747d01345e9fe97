// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/privacy/event.hpp"
#include "eigenveil/privacy/released.hpp"
#include "eigenveil/privacy/secure_random.hpp"

namespace eigenveil {

/// The Euclidean (for a symmetric sum: Frobenius) distance that one row can move a sum by, in its lattice units,
/// rounded up. A number that is no such distance cannot be held: the constructor throws std::domain_error.
class Sensitivity {
 public:
  explicit Sensitivity(double value);
  double value() const { return value_; }

 private:
  double value_;
};

/// An exact integer sum over private rows, before noise. It must not leave but through a mechanism. It carries how far
/// one row can move it: both are made in the same place, of the same rows, and cannot be told apart later.
struct PrivateSum {
  enum class Layout {
    kPlain,      ///< rows x columns, column-major
    kSymmetric,  ///< lower triangle of a rows x rows matrix, packed by columns
  };
  Layout layout = Layout::kPlain;
  std::size_t rows = 0;
  std::size_t columns = 0;
  Sensitivity moved;
  double unit;  ///< what one lattice unit is worth in the features' own units
  std::vector<Int128> values;
  int fraction = 0;  ///< binary digits of the values behind the point: they count in 2^-fraction lattice units

  std::size_t entries() const { return layout == Layout::kSymmetric ? rows * (rows + 1) / 2 : rows * columns; }
};

/// Standard deviations in lattice units of the noise that gives privacy loss mu: what the mechanism will draw.
struct NoiseScale {
  int shift;                ///< sums are multiplied by 2^shift first, so that every deviation is at least 2^40
  int coarse;               ///< what is drawn with the sigmas below counts 2^coarse; 0 unless it is too large to draw
  std::uint64_t sigma;      ///< of each entry of a plain sum; of a diagonal entry of a symmetric one
  std::uint64_t sigma_off;  ///< of an off-diagonal entry of a symmetric sum: sigma / sqrt(2)

  /// The same in lattice units of the sum.
  double deviation() const { return std::ldexp(static_cast<double>(sigma), coarse - shift); }
  double deviation_off() const { return std::ldexp(static_cast<double>(sigma_off), coarse - shift); }
};

namespace federation {
class FederatedOracle;
}

/// An exact integer sum with its noise (or with one holder's share of it), as it may leave its holder.
class NoisySum {
 public:
  PrivateSum::Layout layout() const { return sum_.layout; }
  std::size_t rows() const { return sum_.rows; }
  std::size_t columns() const { return sum_.columns; }
  int shift() const { return shift_; }  ///< of its NoiseScale
  const std::vector<Int128>& values() const { return sum_.values; }
  std::vector<Int128> take_values() && { return std::move(sum_.values); }

 private:
  friend class GaussianMechanism;
  friend class federation::FederatedOracle;  // what sites noised and sent, added up
  NoisySum(PrivateSum sum, int shift) : sum_(std::move(sum)), shift_(shift) {}
  PrivateSum sum_;
  int shift_;
};

/// Exact sum + discrete Gaussian noise: gaussian_mechanism.proof.md.
class GaussianMechanism {
 public:
  /// The noise for a sensitivity and a privacy loss mu; refuses what the sampler cannot draw.
  static Result<NoiseScale> noise_for(Sensitivity sensitivity, Mu mu);

  /// The noise for such a sum. One whose values are finer than the noise is rounded down to it, which is paid for.
  static Result<NoiseScale> noise_for(const PrivateSum& sum, Mu mu);

  /// Adds noise once, of a `shares`-th of the variance: so many holders' noises together have all of it.
  static Result<NoisySum> add_noise(PrivateSum sum, Mu mu, std::size_t shares, SecureRandom& random);

  /// A sum that has all its noise, in units `scale` times its own.
  static Released<Matrix> to_matrix(const NoisySum& noisy, double scale = 1);

  /// Both: what one owner of all rows releases.
  static Result<Released<Matrix>> release(PrivateSum sum, Mu mu, SecureRandom& random);
};

}  // namespace eigenveil
