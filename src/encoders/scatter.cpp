// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/encoders/scatter.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "eigenveil/base/parallel.hpp"
#include "fourier.hpp"

namespace eigenveil {
namespace {

using lanes::Fourier;
using lanes::kLanes;
using lanes::Lanes;
using lanes::Wave;
constexpr std::size_t kAngles = Scatter::kAngles;
constexpr std::size_t kStride = 4;  // 2^J
// A pixel of eight pictures, one per angle: complex numbers side by side, or real ones, in real and imaginary parts.
constexpr std::size_t kComplex = kAngles / kLanes;
constexpr std::size_t kReal = kComplex / 2;

struct Size {
  std::size_t rows;
  std::size_t columns;
  std::size_t area() const { return rows * columns; }
};

// Transforms of a whole image, whose pixels are `width` waves each.
class Fourier2 {
 public:
  explicit Fourier2(Size size) : size_(size), along_(size.columns), down_(size.rows) {}
  void operator()(Wave* image, std::size_t width, std::vector<Wave>& work) const {
    work.resize(std::max(along_.room(width), down_.room(width)));
    const std::size_t row = size_.columns * width;
    along_(image, size_.rows, row, width, width, work.data());
    down_(image, size_.columns, width, row, width, work.data());
  }

 private:
  Size size_;
  Fourier along_, down_;
};

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

// Spectra of the wavelets of one scale, over the number of pixels. In space they are Hermitian, so these are real.
std::vector<Wave> spectra_of(Size size, std::size_t scale) {
  std::vector<Wave> filters(kComplex * size.area()), spectra, work;
  for (std::size_t l = 0; l < kAngles; ++l) {
    const Scatter::Filter psi = Scatter::morlet(size.rows, size.columns, scale, l);
    for (std::size_t i = 0; i < size.area(); ++i) {
      const Eigen::Index row = i / size.columns, column = i % size.columns;
      Wave& at = filters[kComplex * i + l / kLanes];
      at.re[l % kLanes] = psi.real(row, column);
      at.im[l % kLanes] = psi.imaginary(row, column);
    }
  }
  Fourier2{size}(filters.data(), kComplex, work);
  const auto pixels = static_cast<double>(size.area());
  spectra.reserve(kReal * size.area());
  for (std::size_t i = 0; i < filters.size(); i += 2)
    spectra.push_back({filters[i].re / pixels, filters[i + 1].re / pixels});
  return spectra;
}

// One output of phi along rows or columns: weights of pixels first, first + 1, ...
struct Weights {
  std::size_t first = 0;
  std::vector<double> of;
};

// phi * . at pixels step/2, step/2 + step, ...; phi is a product of two such. Weights below 1e-20 of the largest add
// nothing that a double could hold.
std::vector<Weights> low_pass(std::size_t size, double sigma, std::size_t step) {
  std::vector<Weights> outputs(size / step);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const std::size_t centre = o * step + step / 2;
    Weights& weights = outputs[o];
    for (std::size_t i = 0; i < size; ++i) {
      double weight = 0;
      for (int period = -2; period <= 2; ++period) {
        const double z = static_cast<double>(centre) - static_cast<double>(i) -
                         static_cast<double>(period) * static_cast<double>(size);
        weight += std::exp(-z * z / (2 * sigma * sigma)) / (sigma * std::sqrt(2 * std::numbers::pi));
      }
      if (weights.of.empty() && weight < 1e-20)
        weights.first = i + 1;
      else
        weights.of.push_back(weight);
    }
    while (weights.of.back() < 1e-20) weights.of.pop_back();
  }
  return outputs;
}

std::size_t padded(std::size_t side) { return (side + 4 + kStride - 1) / kStride * kStride; }

// 0 1 2 3 -> 2 1 0 1 2 3 2 1
std::size_t mirrored(std::ptrdiff_t at, std::size_t side) {
  const std::ptrdiff_t last = side - 1;
  if (at < 0) at = -at;
  if (at > last) at = 2 * last - at;
  return at;
}

// out[o] = sum_i w_o(i) in[i], each `count` waves in a row
void combine(const std::vector<Weights>& outputs, const Wave* in, std::size_t count, Wave* out) {
  for (const auto& [first, weights] : outputs)
    for (std::size_t c = 0; c < count; ++c) {
      const Wave* x = in + first * count + c;
      Wave sum{};
      for (const double weight : weights) {
        sum.re += x->re * weight;
        sum.im += x->im * weight;
        x += count;
      }
      *out++ = sum;
    }
}

// Eight pictures at once, to channels that follow each other.
struct LowPass {
  std::vector<Weights> rows, columns;
  Size pixels;
  void operator()(const Wave* picture, std::size_t channels, double* to, std::vector<Wave>& work) const {
    const std::size_t width = kReal * pixels.columns, high = rows.size(), wide = columns.size();
    work.resize(high * width + wide * kReal);
    combine(rows, picture, width, work.data());
    Wave* line = work.data() + high * width;
    for (std::size_t o = 0; o < high; ++o) {
      combine(columns, work.data() + o * width, kReal, line);
      for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t at = 0; at < wide; ++at) {
          const Wave& wave = line[at * kReal + c / (2 * kLanes)];
          to[(c * high + o) * wide + at] = (c / kLanes % 2 == 0 ? wave.re : wave.im)[c % kLanes];
        }
    }
  }
};

// |z| for z = re + sqrt(-1) im
EIGENVEIL_INLINE Lanes modulus(const Wave& z) {
  Lanes square = z.re * z.re + z.im * z.im;
  Eigen::Map<Eigen::Array<double, kLanes, 1>, Eigen::Aligned16> values(reinterpret_cast<double*>(&square));
  values = values.sqrt();
  return square;
}

void moduli(const Wave* z, std::size_t pixels, Wave* out) {
  for (std::size_t i = 0; i < pixels * kReal; ++i) out[i] = {modulus(z[2 * i]), modulus(z[2 * i + 1])};
}

// From z, the transform of a + sqrt(-1) b for real pictures a and b: the conjugates of theirs.
//   conj A(k) = (conj z(k) + z(-k)) / 2,  conj B(k) = sqrt(-1) (conj z(k) - z(-k)) / 2
void split(const Wave* z, Size size, Wave* out) {
  for (std::size_t i = 0; i < size.rows; ++i)
    for (std::size_t j = 0; j < size.columns; ++j)
      for (std::size_t g = 0; g < kReal; ++g) {
        const std::size_t row = i == 0 ? 0 : size.rows - i, column = j == 0 ? 0 : size.columns - j;
        const Wave& here = z[(i * size.columns + j) * kReal + g];
        const Wave& there = z[(row * size.columns + column) * kReal + g];
        *out++ = {0.5 * (here.re + there.re), 0.5 * (there.im - here.im)};
        *out++ = {0.5 * (here.im + there.im), 0.5 * (here.re - there.re)};
      }
}

// One picture of the eight whose spectra `split` gave.
struct Spectrum {
  const Wave* first;
  std::size_t lane;
  double re(std::size_t k) const { return first[kComplex * k].re[lane]; }
  double im(std::size_t k) const { return first[kComplex * k].im[lane]; }
};

void pass_full(Spectrum x, const Wave* psi, std::size_t pixels, Wave* out) {
  for (std::size_t k = 0; k < pixels; ++k)
    for (std::size_t g = 0; g < kReal; ++g) {
      const Wave& p = psi[kReal * k + g];
      *out++ = {p.re * x.re(k), p.re * x.im(k)};
      *out++ = {p.im * x.re(k), p.im * x.im(k)};
    }
}

// At every second pixel: a subsampled image has the folded spectrum.
void pass_half(Spectrum x, const Wave* psi, Size half, Wave* out) {
  const std::size_t right = half.columns, below = half.rows * 2 * half.columns;
  for (std::size_t i = 0; i < half.rows; ++i)
    for (std::size_t j = 0; j < half.columns; ++j) {
      const std::size_t first = i * 2 * half.columns + j;
      for (std::size_t g = 0; g < kReal; ++g) {
        Wave a{}, b{};
        for (const std::size_t k : {first, first + right, first + below, first + below + right}) {
          const Wave& p = psi[kReal * k + g];
          a.re += p.re * x.re(k);
          a.im += p.re * x.im(k);
          b.re += p.im * x.re(k);
          b.im += p.im * x.im(k);
        }
        *out++ = a;
        *out++ = b;
      }
    }
}

}  // namespace

// Pictures are real and only moduli are taken of what passed a wavelet, so the transform of one direction will do for
// both: |inverse of z| = |transform of conj z|.
struct Scatter::Plans {
  Size image;
  Size full;    // padded
  Size half;    // every second pixel of it
  Size coarse;  // every fourth
  std::vector<Wave> psi0, psi1;
  LowPass low0, low1;
  Fourier2 of_full, of_half;

  // What a thread works in.
  struct Scratch {
    std::vector<Wave> picture, spectra, passed, work;
  };

  void pad(const double* from, Wave* to) const {
    const std::ptrdiff_t top = (full.rows - image.rows) / 2;
    const std::ptrdiff_t left = (full.columns - image.columns) / 2;
    for (std::size_t i = 0; i < full.rows; ++i) {
      const double* row = from + mirrored(static_cast<std::ptrdiff_t>(i) - top, image.rows) * image.columns;
      for (std::size_t j = 0; j < full.columns; ++j)
        to[(i * full.columns + j) * kReal].re[0] = row[mirrored(static_cast<std::ptrdiff_t>(j) - left, image.columns)];
    }
  }

  // |x * psi_{1,m}| * phi for all m
  void second_scale(Spectrum x, double* to, Scratch& s) const {
    pass_half(x, psi1.data(), half, s.passed.data());
    of_half(s.passed.data(), kComplex, s.work);
    moduli(s.passed.data(), half.area(), s.picture.data());
    low1(s.picture.data(), kAngles, to, s.work);
  }

  void transform(const double* from, double* to, Scratch& s) const {
    const std::size_t area = full.area(), channel = coarse.area();
    s.picture.assign(kReal * area, Wave{});
    s.spectra.resize(kComplex * area);
    s.passed.resize(kComplex * area);
    pad(from, s.picture.data());
    low0(s.picture.data(), 1, to, s.work);
    of_full(s.picture.data(), kReal, s.work);
    split(s.picture.data(), full, s.spectra.data());
    double* order1 = to + channel;
    double* order2 = order1 + kScales * kAngles * channel;
    const Spectrum x{s.spectra.data(), 0};
    second_scale(x, order1 + kAngles * channel, s);

    pass_full(x, psi0.data(), area, s.passed.data());
    of_full(s.passed.data(), kComplex, s.work);
    moduli(s.passed.data(), area, s.picture.data());
    low0(s.picture.data(), kAngles, order1, s.work);
    of_full(s.picture.data(), kReal, s.work);
    split(s.picture.data(), full, s.spectra.data());
    for (std::size_t l = 0; l < kAngles; ++l)
      second_scale({s.spectra.data() + l / kLanes, l % kLanes}, order2 + l * kAngles * channel, s);
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
  // phi has sigma = 0.8 2^(J-1) pixels
  auto plans = std::make_shared<Plans>(Plans{{height, width},
                                             full,
                                             half,
                                             {full.rows / kStride, full.columns / kStride},
                                             spectra_of(full, 0),
                                             spectra_of(full, 1),
                                             {low_pass(full.rows, 1.6, 4), low_pass(full.columns, 1.6, 4), full},
                                             {low_pass(half.rows, 0.8, 2), low_pass(half.columns, 0.8, 2), half},
                                             Fourier2(full),
                                             Fourier2(half)});
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
