#pragma once

#include <cstddef>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/privacy/released.hpp"
#include "eigenveil/privacy/secure_random.hpp"

namespace eigenveil {

/// An exact integer sum over private rows, before noise. It must not leave but through a mechanism.
struct PrivateSum {
  enum class Layout {
    kPlain,      ///< rows x columns, column-major
    kSymmetric,  ///< lower triangle of a rows x rows matrix, packed by columns
  };
  Layout layout = Layout::kPlain;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<Int128> values;
};

/// The Euclidean (for kSymmetric: Frobenius) distance that one row can move a sum by, in lattice units, rounded up.
class Sensitivity {
 public:
  explicit Sensitivity(double value) : value_(value) {}
  double value() const { return value_; }

 private:
  double value_;
};

/// Standard deviations in lattice units of the noise that gives privacy loss mu: what the mechanism will draw.
struct NoiseScale {
  int shift;                ///< sums are multiplied by 2^shift first, so that every sigma is at least 2^40
  std::uint64_t sigma;      ///< of each entry of a plain sum; of a diagonal entry of a symmetric one
  std::uint64_t sigma_off;  ///< of an off-diagonal entry of a symmetric sum: sigma / sqrt(2)
};

/// An exact integer sum with its noise (or with one holder's share of it), as it may leave its holder.
class NoisySum {
 public:
  PrivateSum::Layout layout() const { return sum_.layout; }
  std::size_t rows() const { return sum_.rows; }
  std::size_t columns() const { return sum_.columns; }
  int shift() const { return shift_; }  ///< of its NoiseScale
  const std::vector<Int128>& values() const { return sum_.values; }
  std::vector<Int128> take_values() && { return std::move(sum_.values); }

  /// What others noised and sent, added up.
  static NoisySum received(PrivateSum total, int shift) { return {std::move(total), shift}; }

 private:
  friend class GaussianMechanism;
  NoisySum(PrivateSum sum, int shift) : sum_(std::move(sum)), shift_(shift) {}
  PrivateSum sum_;
  int shift_;
};

/// Exact sum + discrete Gaussian noise: gaussian_mechanism.proof.md.
class GaussianMechanism {
 public:
  /// The noise for a sensitivity and a privacy loss mu; refuses what the sampler cannot draw.
  static Result<NoiseScale> noise_for(Sensitivity sensitivity, double mu);

  /// Adds noise once, of a `shares`-th of the variance: so many holders' noises together have all of it.
  /// mu = infinity adds none.
  static Result<NoisySum> add_noise(PrivateSum sum, Sensitivity sensitivity, double mu, std::size_t shares,
                                    SecureRandom& random);

  /// A sum that has all its noise, scaled by `unit` (the value of one lattice step).
  static Released<Matrix> to_matrix(const NoisySum& noisy, double unit);

  /// Both: what one owner of all rows releases.
  static Result<Released<Matrix>> release(PrivateSum sum, Sensitivity sensitivity, double mu, double unit,
                                          SecureRandom& random);
};

}  // namespace eigenveil
