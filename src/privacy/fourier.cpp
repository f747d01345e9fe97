// SPDX-License-Identifier: Apache-2.0
#include "fourier.hpp"

namespace eigenveil::loss {

Fourier::Fourier(std::size_t points) : points_(points) { transform_.SetFlag(Eigen::FFT<double>::HalfSpectrum); }

std::vector<std::complex<double>> Fourier::forward(const std::vector<double>& values) {
  std::vector<std::complex<double>> out(points_ / 2 + 1);
  transform_.fwd(out.data(), values.data(), points_);
  return out;
}

std::vector<double> Fourier::backward(const std::vector<std::complex<double>>& frequencies) {
  std::vector<double> out(points_);
  transform_.inv(out.data(), frequencies.data(), points_);
  return out;
}

}  // namespace eigenveil::loss
