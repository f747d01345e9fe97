// SPDX-License-Identifier: Apache-2.0
#include "fourier.hpp"

#include <cmath>
#include <numbers>

namespace eigenveil::lanes {
namespace {

// z <- w z
EIGENVEIL_INLINE void turn(Wave& z, double re, double im) {
  const Lanes x = z.re * re - z.im * im;
  z.im = z.re * im + z.im * re;
  z.re = x;
}

}  // namespace

Fourier::Fourier(std::size_t n) : n_(n) {
  const auto root = [](std::size_t k, std::size_t of) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(k % of) / static_cast<double>(of);
    return Root{std::cos(angle), -std::sin(angle)};
  };
  std::size_t rest = n, before = 1, radix = 4;
  while (rest > 1) {
    while (rest % radix != 0) radix = radix == 4 ? 2 : radix == 2 ? 3 : radix + 2;
    rest /= radix;
    Stage stage{radix, rest, before, {}, {}};
    for (std::size_t j = 0; j < rest; ++j)
      for (std::size_t k = 0; k < radix; ++k) stage.twiddles.push_back(root(j * k, radix * rest));
    for (std::size_t k = 0; k < radix; ++k) stage.roots.push_back(root(k, radix));
    stages_.push_back(std::move(stage));
    before *= radix;
  }
}

// out[radix j + k] = w^(j k) sum_r v^(r k) in[j + rest r], each `before` elements long, where v^radix = 1
struct Fourier::Step {
  const Wave* in;
  std::size_t in_stride;
  Wave* out;
  std::size_t out_stride;
  std::size_t width;
  Wave* pairs;

  EIGENVEIL_INLINE void four(const Root* w, const Wave* x, std::size_t apart, Wave* z, std::size_t step) const {
    for (std::size_t g = 0; g < width; ++g) {
      const Wave &a = x[g], &b = x[apart + g], &c = x[2 * apart + g], &d = x[3 * apart + g];
      const Lanes even_re = a.re + c.re, even_im = a.im + c.im, odd_re = b.re + d.re, odd_im = b.im + d.im;
      const Lanes less_re = a.re - c.re, less_im = a.im - c.im, side_re = b.im - d.im, side_im = d.re - b.re;
      Wave z1{less_re + side_re, less_im + side_im}, z2{even_re - odd_re, even_im - odd_im},
          z3{less_re - side_re, less_im - side_im};
      turn(z1, w[1].re, w[1].im);
      turn(z2, w[2].re, w[2].im);
      turn(z3, w[3].re, w[3].im);
      z[g] = {even_re + odd_re, even_im + odd_im};
      z[step + g] = z1;
      z[2 * step + g] = z2;
      z[3 * step + g] = z3;
    }
  }

  EIGENVEIL_INLINE void two(const Root* w, const Wave* x, std::size_t apart, Wave* z, std::size_t step) const {
    for (std::size_t g = 0; g < width; ++g) {
      const Wave &a = x[g], &b = x[apart + g];
      Wave z1{a.re - b.re, a.im - b.im};
      turn(z1, w[1].re, w[1].im);
      z[g] = {a.re + b.re, a.im + b.im};
      z[step + g] = z1;
    }
  }

  // With s_r = x_r + x_(p-r), d_r = x_r - x_(p-r): z_k and z_(p-k) are x_0 + sum_r cos s_r -+ sqrt(-1) sum_r sin d_r.
  EIGENVEIL_INLINE void odd(const Root* w, const Wave* x, std::size_t apart, Wave* z, std::size_t step,
                            const std::vector<Root>& roots) const {
    const std::size_t p = roots.size(), h = p / 2;
    for (std::size_t g = 0; g < width; ++g) {
      const Wave first = x[g];
      Wave total = first;
      for (std::size_t r = 1; r <= h; ++r) {
        const Wave &a = x[r * apart + g], &b = x[(p - r) * apart + g];
        pairs[2 * r] = {a.re + b.re, a.im + b.im};
        pairs[2 * r + 1] = {a.re - b.re, a.im - b.im};
        total.re += pairs[2 * r].re;
        total.im += pairs[2 * r].im;
      }
      z[g] = total;
      for (std::size_t k = 1; k <= h; ++k) {
        Wave even = first, side{};
        std::size_t at = 0;
        for (std::size_t r = 1; r <= h; ++r) {
          at += k;
          if (at >= p) at -= p;
          const Root& v = roots[at];
          even.re += pairs[2 * r].re * v.re;
          even.im += pairs[2 * r].im * v.re;
          side.re += pairs[2 * r + 1].im * v.im;
          side.im += pairs[2 * r + 1].re * v.im;
        }
        Wave low{even.re - side.re, even.im + side.im}, high{even.re + side.re, even.im - side.im};
        turn(low, w[k].re, w[k].im);
        turn(high, w[p - k].re, w[p - k].im);
        z[k * step + g] = low;
        z[(p - k) * step + g] = high;
      }
    }
  }

  EIGENVEIL_INLINE void run(const Stage& stage) const {
    const std::size_t p = stage.radix, s = stage.before, apart = stage.rest * s * in_stride, step = s * out_stride;
    for (std::size_t j = 0; j < stage.rest; ++j) {
      const Root* w = stage.twiddles.data() + j * p;
      for (std::size_t q = 0; q < s; ++q) {
        const Wave* x = in + (j * s + q) * in_stride;
        Wave* z = out + (p * j * s + q) * out_stride;
        if (p == 4)
          four(w, x, apart, z, step);
        else if (p == 2)
          two(w, x, apart, z, step);
        else
          odd(w, x, apart, z, step, stage.roots);
      }
    }
  }
};

void Fourier::operator()(Wave* values, std::size_t count, std::size_t apart, std::size_t stride, std::size_t width,
                         Wave* work) const {
  for (std::size_t t = 0; t < count; ++t) {
    Step step{values + t * apart, stride, nullptr, stride, width, work + 2 * n_ * width};
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const bool last = i + 1 == stages_.size();
      step.out = last ? values + t * apart : work + (i % 2) * n_ * width;
      step.out_stride = last ? stride : width;
      step.run(stages_[i]);
      step.in = step.out;
      step.in_stride = step.out_stride;
    }
  }
}

}  // namespace eigenveil::lanes
