// SPDX-License-Identifier: Apache-2.0
// The bound of src/privacy/fourier.proof.md, against long double and against integers.
#include "src/privacy/fourier.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numbers>
#include <random>

#include "src/privacy/slack.hpp"

namespace eigenveil::loss {
namespace {

using Long = std::complex<long double>;

double proved(int t) { return (3.4 * t + 8) * 0x1p-53; }

std::vector<Long> roots_of_unity(std::size_t N, int sign) {
  std::vector<Long> roots(N);
  for (std::size_t k = 0; k < N; ++k)
    roots[k] = std::polar(
        1.0L, sign * 2 * std::numbers::pi_v<long double> * static_cast<long double>(k) / static_cast<long double>(N));
  return roots;
}

// Radix 2, decimation in time: even and odd halves, then butterflies.
void transform(const Long* in, std::size_t stride, Long* out, std::size_t n, const std::vector<Long>& roots) {
  if (n == 1) {
    *out = *in;
    return;
  }
  transform(in, 2 * stride, out, n / 2, roots);
  transform(in + stride, 2 * stride, out + n / 2, n / 2, roots);
  for (std::size_t k = 0; k < n / 2; ++k) {
    const Long root = roots[k * (roots.size() / n)];
    const Long odd = out[n / 2 + k];
    const Long turned(root.real() * odd.real() - root.imag() * odd.imag(),
                      root.real() * odd.imag() + root.imag() * odd.real());
    out[n / 2 + k] = out[k] - turned;
    out[k] += turned;
  }
}

std::vector<Long> in_long_double(const std::vector<Long>& values, int sign) {
  std::vector<Long> out(values.size());
  transform(values.data(), 1, out.data(), values.size(), roots_of_unity(values.size(), sign));
  return out;
}

// All N frequencies of N/2 + 1; the imaginary parts of the first and the last are none of a real vector's.
std::vector<Long> whole(const std::vector<std::complex<double>>& half) {
  const std::size_t N = 2 * (half.size() - 1);
  std::vector<Long> out(N);
  for (std::size_t k = 0; k <= N / 2; ++k) {
    out[k] = k == 0 || k == N / 2 ? Long(half[k].real()) : Long(half[k]);
    if (k > 0 && k < N / 2) out[N - k] = std::conj(out[k]);
  }
  return out;
}

double relative_error(const std::vector<Long>& computed, const std::vector<Long>& exact) {
  long double error = 0, size = 0;
  for (std::size_t k = 0; k < exact.size(); ++k) {
    error += std::norm(computed[k] - exact[k]);
    size += std::norm(exact[k]);
  }
  return static_cast<double>(std::sqrt(error / size));
}

// Masses as an accountant has them, and vectors whose roundings do not cancel: constants with long mantissas, pure
// waves, signs at random, single entries (whose spectrum is the roots themselves), sizes over forty powers of ten.
constexpr int kKinds = 12;
std::vector<double> input(int kind, std::size_t N, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform;
  const auto n = static_cast<double>(N);
  const std::size_t single = kind == 1 ? 1 : kind == 2 ? N / 2 - 1 : random() % N;
  std::vector<double> x(N);
  for (std::size_t i = 0; i < N; ++i) {
    const auto at = static_cast<double>(i);
    switch (kind) {
      case 0:
        x[i] = uniform(random);
        break;
      case 1:
      case 2:
      case 3:
        x[i] = i == single ? 1.0 / 3 : 0;
        break;
      case 4:
        x[i] = std::exp(-at * 0.05);
        break;
      case 5:
        x[i] = (i % 2 ? -1 : 1) + uniform(random) * 1e-3;
        break;
      case 6:
        x[i] = std::cos(0.7 * at);
        break;
      case 7:
        x[i] = std::exp(-0.5 * std::pow((at - n / 2) / (n / 20), 2));
        break;
      case 8:
        x[i] = 1 - 0x1p-53;
        break;
      case 9:
        x[i] = random() % 2 ? 1.0 / 3 : -1.0 / 3;
        break;
      case 10:
        x[i] = std::pow(10, -40 * uniform(random));
        break;
      default:
        x[i] = std::cos(2 * std::numbers::pi * (n / 8 + 1) * at / n);
    }
  }
  return x;
}

TEST(Fourier, ErrsByNoMoreThanIsProvedAtEverySize) {
  const int most = std::getenv("EIGENVEIL_NIGHTLY") ? 22 : 16;
  std::mt19937_64 random(1);
  for (int t = 6; t <= most; ++t) {
    const auto N = std::size_t{1} << t;
    EXPECT_LT(4 * proved(t), slack::transform(static_cast<double>(N)));
    Fourier fourier(N);
    double there = 0, back = 0;
    const int apart = t > 20 ? 6 : 1;  // the largest take minutes each
    for (int kind = 0; kind < kKinds; kind += apart) {
      const std::vector<double> x = input(kind, N, random);
      const auto f = fourier.forward(x);
      there = std::max(there, relative_error(whole(f), in_long_double({x.begin(), x.end()}, -1)));
      const std::vector<double> y = fourier.backward(f);
      std::vector<Long> exact = in_long_double(whole(f), 1);
      for (Long& value : exact) value /= static_cast<long double>(N);
      back = std::max(back, relative_error({y.begin(), y.end()}, exact));
    }
    EXPECT_LT(there, proved(t)) << t;
    EXPECT_LT(back, proved(t)) << t;
    if (most > 16) printf("2^%d: %.3g there, %.3g back, %.3g proved\n", t, there, back, proved(t));
  }
}

TEST(Fourier, IsComparedWithWhatDirectSumsConfirm) {
  constexpr std::size_t N = 512;
  std::mt19937_64 random(2);
  const auto roots = roots_of_unity(N, -1);
  for (int kind = 0; kind < kKinds; ++kind) {
    const std::vector<double> x = input(kind, N, random);
    std::vector<Long> direct(N);
    for (std::size_t k = 0; k < N; ++k)
      for (std::size_t i = 0; i < N; ++i) direct[k] += static_cast<long double>(x[i]) * roots[i * k % N];
    EXPECT_LT(relative_error(in_long_double({x.begin(), x.end()}, -1), direct), 1e-17) << kind;
  }
}

// Three transforms and a product, against integers: |x * y - exact| <= (3 bounds + sqrt 5 u) ||f|| ||g|| / N.
TEST(Fourier, ConvolvesAsIntegersDo) {
  constexpr int t = 11;
  constexpr std::size_t N = 1 << t;
  std::mt19937_64 random(3);
  std::vector<double> x(N), y(N);
  for (double& value : x) value = static_cast<double>(random() % 1000);
  for (double& value : y) value = static_cast<double>(random() % 1000);
  Fourier fourier(N);
  auto f = fourier.forward(x);
  const auto g = fourier.forward(y);
  for (std::size_t k = 0; k < f.size(); ++k) f[k] *= g[k];
  const std::vector<double> product = fourier.backward(f);
  double worst = 0, sizes = 0;
  for (std::size_t i = 0; i < N; ++i) {
    std::int64_t exact = 0;
    for (std::size_t j = 0; j < N; ++j)
      exact += static_cast<std::int64_t>(x[j]) * static_cast<std::int64_t>(y[(i + N - j) % N]);
    worst = std::max(worst, std::abs(product[i] - static_cast<double>(exact)));
  }
  const auto norm = [](const std::vector<double>& v) {
    double square = 0;
    for (const double value : v) square += value * value;
    return std::sqrt(square);
  };
  sizes = norm(x) * norm(y);  // ||f|| ||g|| / N
  EXPECT_LT(worst, (3 * proved(t) + std::sqrt(5.0) * 0x1p-53) * sizes);
  EXPECT_LT(worst, 0.5) << "so that rounding gives the integers";
}

}  // namespace
}  // namespace eigenveil::loss
