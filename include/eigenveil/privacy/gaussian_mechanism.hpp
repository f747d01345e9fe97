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

/// Exact sum + discrete Gaussian noise: gaussian_mechanism.proof.md.
class GaussianMechanism {
 public:
  /// The noise for a sensitivity and a privacy loss mu; refuses what the sampler cannot draw.
  static Result<NoiseScale> noise_for(Sensitivity sensitivity, double mu);

  /// Adds noise once and scales by `unit` (the value of one lattice step). mu = infinity adds none.
  static Result<Released<Matrix>> release(PrivateSum sum, Sensitivity sensitivity, double mu, double unit,
                                          SecureRandom& random);
};

}  // namespace eigenveil
