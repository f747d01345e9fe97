// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/encoders/scatter.hpp"

#include <fftw3.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <complex>
#include <memory>
#include <mutex>
#include <numbers>
#include <vector>

#include "eigenveil/base/parallel.hpp"

namespace eigenveil {
namespace {

using Complex = std::complex<double>;
constexpr std::size_t kAngles = Scatter::kAngles;
constexpr std::size_t kStride = 4;  // 2^J

/// FFTW's planner keeps global tables; only its execution is thread-safe. Whoever makes or destroys a plan holds this.
std::mutex& fft_planner() {
  static std::mutex mutex;
  return mutex;
}

struct DestroyPlan {
  void operator()(fftw_plan plan) const {
    const std::lock_guard lock(fft_planner());
    fftw_destroy_plan(plan);
  }
};
using Plan = std::unique_ptr<std::remove_pointer_t<fftw_plan>, DestroyPlan>;

fftw_complex* raw(Complex* values) { return reinterpret_cast<fftw_complex*>(values); }

struct Size {
  std::size_t rows;
  std::size_t columns;
  std::size_t area() const { return rows * columns; }
};

// `count` transforms of one size, one after the other, in place.
Plan plan_fft(Size size, int count, int sign) {
  const std::array<int, 2> n = {static_cast<int>(size.rows), static_cast<int>(size.columns)};
  const auto area = static_cast<int>(size.area());
  const std::lock_guard lock(fft_planner());
  auto* sample = fftw_alloc_complex(size.area() * count);
  // Vectors of complex numbers are as aligned as this. Estimated plans depend on sizes alone, so the same image has the
  // same features in every run.
  Plan plan(
      fftw_plan_many_dft(2, n.data(), count, sample, nullptr, 1, area, sample, nullptr, 1, area, sign, FFTW_ESTIMATE));
  fftw_free(sample);
  return plan;
}

// exp(-z^T R D R^T z / (2 sigma^2) + i xi <z, e_theta>) / (2 pi sigma^2 / slant), summed over the torus' periods
Scatter::Filter gabor(Size size, double sigma, double theta, double xi, double slant) {
  const Eigen::Index rows = size.rows;
  const Eigen::Index columns = size.columns;
  Scatter::Filter filter{Matrix::Zero(rows, columns), Matrix::Zero(rows, columns)};
  const double c = std::cos(theta), s = std::sin(theta);
  for (int py = -2; py <= 2; ++py)
    for (int px = -2; px <= 2; ++px)
      for (Eigen::Index i = 0; i < rows; ++i)
        for (Eigen::Index j = 0; j < columns; ++j) {
          const double y = static_cast<double>(i + py * rows), x = static_cast<double>(j + px * columns);
          const double along = c * x + s * y, across = slant * (c * y - s * x);
          const double envelope = std::exp(-(along * along + across * across) / (2 * sigma * sigma));
          filter.real(i, j) += envelope * std::cos(xi * along);
          filter.imaginary(i, j) += envelope * std::sin(xi * along);
        }
  const double norm = 2 * std::numbers::pi * sigma * sigma / slant;
  filter.real /= norm;
  filter.imaginary /= norm;
  return filter;
}

// Morlet filters are Hermitian in space, so their transforms are real.
std::vector<double> spectrum_of(const Scatter::Filter& filter, Size size) {
  std::vector<Complex> values(size.area());
  for (std::size_t i = 0; i < size.rows; ++i)
    for (std::size_t j = 0; j < size.columns; ++j) {
      const Eigen::Index r = i, c = j;
      values[i * size.columns + j] = {filter.real(r, c), filter.imaginary(r, c)};
    }
  fftw_execute_dft(plan_fft(size, 1, FFTW_FORWARD).get(), raw(values.data()), raw(values.data()));
  std::vector<double> real;
  for (const Complex& value : values) real.push_back(value.real());
  return real;
}

// Rows of phi * . at pixels first, first + step, ...: phi is a product of two such matrices.
RowMajorMatrix low_pass(std::size_t size, double sigma, std::size_t step) {
  const std::size_t outputs = size / step;
  RowMajorMatrix A = RowMajorMatrix::Zero(outputs, size);
  for (std::size_t o = 0; o < outputs; ++o)
    for (std::size_t i = 0; i < size; ++i)
      for (int period = -2; period <= 2; ++period) {
        const double z = static_cast<double>(o * step + step / 2) - static_cast<double>(i) -
                         static_cast<double>(period) * static_cast<double>(size);
        A(o, i) += std::exp(-z * z / (2 * sigma * sigma)) / (sigma * std::sqrt(2 * std::numbers::pi));
      }
  return A;
}

std::size_t padded(std::size_t side) { return (side + 4 + kStride - 1) / kStride * kStride; }

// 0 1 2 3 -> 2 1 0 1 2 3 2 1
std::size_t mirrored(std::ptrdiff_t at, std::size_t side) {
  const std::ptrdiff_t last = side - 1;
  if (at < 0) at = -at;
  if (at > last) at = 2 * last - at;
  return at;
}

struct LowPass {
  RowMajorMatrix rows;     // outputs x rows
  RowMajorMatrix columns;  // columns x outputs
  void operator()(const double* image, double* out) const {
    const RowMajorMatrix half = rows * Eigen::Map<const RowMajorMatrix>(image, rows.cols(), columns.rows());
    Eigen::Map<RowMajorMatrix>(out, rows.rows(), columns.cols()).noalias() = half * columns;
  }
};

void moduli(const Complex* z, std::size_t count, double* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = std::sqrt(z[i].real() * z[i].real() + z[i].imag() * z[i].imag());
}

}  // namespace

struct Scatter::Plans {
  Size image;
  Size full;                                            // padded
  Size half;                                            // every second pixel of it
  Size coarse;                                          // every fourth
  std::array<std::vector<double>, kAngles> psi0, psi1;  // spectra, over the number of pixels
  LowPass low0, low1;
  Plan forward, backward, back_half;

  // What a thread works in.
  struct Scratch {
    std::vector<double> real, features;
    std::vector<Complex> spectrum, passed, halves, second;
  };

  void pad(const double* from, Complex* to) const {
    const std::ptrdiff_t top = (full.rows - image.rows) / 2;
    const std::ptrdiff_t left = (full.columns - image.columns) / 2;
    for (std::size_t i = 0; i < full.rows; ++i) {
      const double* row = from + mirrored(static_cast<std::ptrdiff_t>(i) - top, image.rows) * image.columns;
      for (std::size_t j = 0; j < full.columns; ++j)
        *to++ = row[mirrored(static_cast<std::ptrdiff_t>(j) - left, image.columns)];
    }
  }

  // Spectra of x * psi_{1,m} at every second pixel, for all m: a subsampled image has the folded spectrum.
  void pass_half(const Complex* x, Complex* out) const {
    const std::size_t w = full.columns, hw = half.columns, below = half.rows * w;
    for (std::size_t m = 0; m < kAngles; ++m)
      for (std::size_t i = 0; i < half.rows; ++i) {
        const Complex* z = x + i * w;
        const double* p = psi1[m].data() + i * w;
        for (std::size_t j = 0; j < hw; ++j)
          *out++ =
              z[j] * p[j] + z[j + hw] * p[j + hw] + z[below + j] * p[below + j] + z[below + j + hw] * p[below + j + hw];
      }
    fftw_complex* first = raw(out - kAngles * half.area());
    fftw_execute_dft(back_half.get(), first, first);
  }

  // Into memory of its own, which begins at the same alignment whatever the image's place among others.
  void transform(const double* from, double* to, Scratch& s) const {
    const std::size_t area = full.area(), channel = coarse.area();
    s.features.resize(kChannels * channel);
    double* out = s.features.data();
    s.real.resize(std::max(area, half.area()));
    s.spectrum.resize(area);
    s.passed.resize(kAngles * area);
    s.halves.resize(kAngles * half.area());
    s.second.resize(kAngles * area);
    pad(from, s.spectrum.data());
    for (std::size_t i = 0; i < area; ++i) s.real[i] = s.spectrum[i].real();
    low0(s.real.data(), out);
    fftw_execute_dft(forward.get(), raw(s.spectrum.data()), raw(s.spectrum.data()));

    double* order1 = out + channel;
    double* order2 = order1 + kScales * kAngles * channel;
    for (std::size_t l = 0; l < kAngles; ++l)
      for (std::size_t i = 0; i < area; ++i) s.passed[l * area + i] = s.spectrum[i] * psi0[l][i];
    pass_half(s.spectrum.data(), s.halves.data());
    for (std::size_t l = 0; l < kAngles; ++l) {
      moduli(&s.halves[l * half.area()], half.area(), s.real.data());
      low1(s.real.data(), order1 + (kAngles + l) * channel);
    }
    for (std::size_t l = 0; l < kAngles; ++l) {
      Complex* u = &s.passed[l * area];
      fftw_execute_dft(backward.get(), raw(u), raw(u));
      moduli(u, area, s.real.data());
      low0(s.real.data(), order1 + l * channel);
      std::copy_n(s.real.data(), area, u);
      fftw_execute_dft(forward.get(), raw(u), raw(u));
      pass_half(u, s.halves.data());
      for (std::size_t m = 0; m < kAngles; ++m) {
        moduli(&s.halves[m * half.area()], half.area(), s.real.data());
        low1(s.real.data(), order2 + (l * kAngles + m) * channel);
      }
    }
    std::copy(s.features.begin(), s.features.end(), to);
  }
};

Scatter::Filter Scatter::morlet(std::size_t rows, std::size_t columns, std::size_t scale, std::size_t angle) {
  const double width = std::ldexp(1.0, static_cast<int>(scale));
  const double theta = (3.0 - static_cast<double>(angle)) * std::numbers::pi / static_cast<double>(kAngles);
  const double slant = 4.0 / static_cast<double>(kAngles);
  Filter wave = gabor({rows, columns}, 0.8 * width, theta, 0.75 * std::numbers::pi / width, slant);
  const Filter bump = gabor({rows, columns}, 0.8 * width, theta, 0, slant);
  // A wavelet has mean zero.
  wave.real -= wave.real.sum() / bump.real.sum() * bump.real;
  wave.imaginary -= wave.imaginary.sum() / bump.real.sum() * bump.real;
  return wave;
}

Result<Scatter> Scatter::make(std::size_t height, std::size_t width) {
  if (height < 4 || width < 4 || height > 1024 || width > 1024)
    return bad_input(
        fmt::format("images of {}x{} pixels cannot be scattered: height and width must be 4 to 1024", height, width));
  const Size full{padded(height), padded(width)};
  const Size half{full.rows / 2, full.columns / 2};
  auto plans = std::make_shared<Plans>();
  plans->image = {height, width};
  plans->full = full;
  plans->half = half;
  plans->coarse = {full.rows / kStride, full.columns / kStride};
  for (std::size_t l = 0; l < kAngles; ++l) {
    plans->psi0[l] = spectrum_of(morlet(full.rows, full.columns, 0, l), full);
    plans->psi1[l] = spectrum_of(morlet(full.rows, full.columns, 1, l), full);
    for (auto* psi : {&plans->psi0[l], &plans->psi1[l]})
      for (double& value : *psi) value /= static_cast<double>(full.area());
  }
  // phi has sigma = 0.8 2^(J-1) pixels
  plans->low0 = {low_pass(full.rows, 1.6, 4), low_pass(full.columns, 1.6, 4).transpose()};
  plans->low1 = {low_pass(half.rows, 0.8, 2), low_pass(half.columns, 0.8, 2).transpose()};
  plans->forward = plan_fft(full, 1, FFTW_FORWARD);
  plans->backward = plan_fft(full, 1, FFTW_BACKWARD);
  plans->back_half = plan_fft(half, static_cast<int>(kAngles), FFTW_BACKWARD);
  return Scatter(std::move(plans));
}

std::size_t Scatter::pixels() const { return plans_->image.area(); }
std::size_t Scatter::positions() const { return plans_->coarse.area(); }

void Scatter::transform(const double* images, std::size_t count, double* features, int threads) const {
  Tickets tickets(count);
  on_threads(threads, [&] {
    Plans::Scratch scratch;
    while (const auto i = tickets.next())
      plans_->transform(images + *i * pixels(), features + *i * this->features(), scratch);
  });
}

}  // namespace eigenveil
