#pragma once

#include <complex>
#include <vector>

namespace eigenveil::loss {

/// The transform of a real vector whose length N is a power of two, N/2 + 1 frequencies.
std::vector<std::complex<double>> forward_transform(std::vector<double> values);
/// The inverse of `forward_transform`, divided by N.
std::vector<double> backward_transform(std::vector<std::complex<double>> frequencies);

}  // namespace eigenveil::loss
