// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <unsupported/Eigen/FFT>
#include <vector>

namespace eigenveil::loss {

/// Transforms of N real numbers, N a power of two from 4 on. How far they err: fourier.proof.md.
class Fourier {
 public:
  explicit Fourier(std::size_t points);
  /// N/2 + 1 frequencies; the others are their conjugates.
  std::vector<std::complex<double>> forward(const std::vector<double>& values);
  /// The inverse of `forward`, divided by N.
  std::vector<double> backward(const std::vector<std::complex<double>>& frequencies);

 private:
  std::size_t points_;
  Eigen::FFT<double> transform_;  // keeps the roots of unity between calls
};

}  // namespace eigenveil::loss
