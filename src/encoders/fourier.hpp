// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#define EIGENVEIL_INLINE __attribute__((always_inline)) inline

namespace eigenveil::lanes {

/// Numbers that are treated alike, one per lane: what every x86-64 and ARM64 machine computes at a time. No operation
/// mixes lanes, and each is that of IEEE 754, so the same numbers come out on every machine.
using Lanes = double __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 2;

/// As many complex numbers.
struct Wave {
  Lanes re, im;
};

/// z[k] = sum_i exp(-2 pi sqrt(-1) i k / n) x[i], for one length n: Stockham's method, in stages of 4, 2 and odd
/// primes.
class Fourier {
 public:
  explicit Fourier(std::size_t n);

  /// Many transforms, each in place: element i of transform t is `width` waves at values + t * apart + i * stride.
  /// `work` holds `room(width)` waves.
  void operator()(Wave* values, std::size_t count, std::size_t apart, std::size_t stride, std::size_t width,
                  Wave* work) const;
  std::size_t room(std::size_t width) const { return 2 * n_ * width + n_ + 1; }

 private:
  struct Root {
    double re, im;
  };
  struct Stage {
    std::size_t radix, rest, before;  // n = radix * rest * before
    std::vector<Root> twiddles;       // exp(-2 pi sqrt(-1) j k / (radix * rest)) at j * radix + k
    std::vector<Root> roots;          // exp(-2 pi sqrt(-1) k / radix)
  };
  struct Step;
  std::size_t n_;
  std::vector<Stage> stages_;
};

}  // namespace eigenveil::lanes
