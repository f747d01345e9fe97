// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "eigenveil/privacy/event.hpp"

namespace eigenveil::test {

/// An accountant that shares nothing with the library's: no tilt, no FFT, no closed form, no connected dots. It rounds
/// the privacy loss of every answer down, and again up, to a grid, takes the masses from MPFR's distribution functions
/// in directed rounding, and convolves them one by one. So both ends hold for the true curve:
///   E_P(1 - e^(eps - L))_+ grows with L, with every mass of P, and with mass that is moved to infinite loss.
/// Slow, and coarse for many answers: the interval is about (number of answers) x step wide.
struct Interval {
  double low;
  double high;
};

namespace interval {

inline constexpr double kUlp = 0x1p-52;
inline constexpr mpfr_prec_t kDigits = 128;  // a double squared is exact

// A number that rounds every operation one way.
class Real {
 public:
  Real(double value, mpfr_rnd_t towards) : towards_(towards) {
    mpfr_init2(x_, kDigits);
    mpfr_set_d(x_, value, MPFR_RNDN);  // exact
  }
  Real(const Real& other) : towards_(other.towards_) {
    mpfr_init2(x_, kDigits);
    mpfr_set(x_, other.x_, MPFR_RNDN);  // exact
  }
  Real& operator=(const Real& other) {
    mpfr_set(x_, other.x_, MPFR_RNDN);
    towards_ = other.towards_;
    return *this;
  }
  ~Real() { mpfr_clear(x_); }

  Real& add(double y) { return mpfr_add_d(x_, x_, y, towards_), *this; }
  Real& add(const Real& y) { return mpfr_add(x_, x_, y.x_, towards_), *this; }
  Real& sub(const Real& y) { return mpfr_sub(x_, x_, y.x_, towards_), *this; }
  Real& times(double y) { return mpfr_mul_d(x_, x_, y, towards_), *this; }  // y > 0
  Real& over(double y) { return mpfr_div_d(x_, x_, y, towards_), *this; }   // y > 0
  Real& expm1() { return mpfr_expm1(x_, x_, towards_), *this; }
  Real& log() { return mpfr_log(x_, x_, towards_), *this; }
  bool positive() const { return mpfr_sgn(x_) > 0; }
  double value() const { return mpfr_get_d(x_, towards_); }

  /// Phi(x) = erfc(-x / sqrt 2) / 2, increasing
  Real& phi() {
    Real root(2, towards_);
    // -x / sqrt 2 has to be rounded the other way, so |x| / sqrt 2 goes away from or towards zero with its sign.
    const mpfr_rnd_t other = towards_ == MPFR_RNDU ? MPFR_RNDD : MPFR_RNDU;
    mpfr_sqrt(root.x_, root.x_, (mpfr_sgn(x_) > 0) == (towards_ == MPFR_RNDU) ? MPFR_RNDD : MPFR_RNDU);
    mpfr_neg(x_, x_, MPFR_RNDN);
    mpfr_div(x_, x_, root.x_, other);
    mpfr_erfc(x_, x_, towards_);
    mpfr_div_2ui(x_, x_, 1, MPFR_RNDN);
    return *this;
  }

 private:
  mpfr_t x_;
  mpfr_rnd_t towards_;
};

// Masses on the grid: mass[i] at loss (i - zero) step; all else is at infinite loss (or left out, in the lower law).
struct Law {
  std::vector<double> mass;
  double infinite = 0;
};

struct Setting {
  double step;
  int zero;  // cells on either side of 0
  bool up;
  std::size_t size() const { return 2 * static_cast<std::size_t>(zero) + 1; }
  mpfr_rnd_t rounding() const { return up ? MPFR_RNDU : MPFR_RNDD; }
};

// (x - 1/2) / s^2 = ln((e^l - 1 + q) / q): where the likelihood ratio of the mixture is e^l. None below ln(1 - q).
inline bool point_of(double loss, double q, double s, mpfr_rnd_t towards, Real& x) {
  x = Real(loss, towards);
  x.expm1().add(q);
  if (!x.positive()) return false;
  x.over(q).log().times(s).times(s).add(0.5);
  return true;
}

// P(L <= loss) of one answer, rounded as told.
inline Real distribution(const Mechanism& mechanism, bool add_direction, double loss, mpfr_rnd_t towards) {
  const mpfr_rnd_t other = towards == MPFR_RNDU ? MPFR_RNDD : MPFR_RNDU;
  double q = 1, s = 1;
  if (const auto* gaussian = std::get_if<GaussianEvent>(&mechanism)) {
    // L is normal with mean mu^2 / 2 and deviation mu
    Real z(loss, towards), half(gaussian->mu, other);
    half.times(gaussian->mu).times(0.5);
    return z.sub(half).over(gaussian->mu).phi();
  }
  q = std::get<PoissonGaussianEvent>(mechanism).q;
  s = std::get<PoissonGaussianEvent>(mechanism).sigma;
  if (add_direction) {
    // P = N(0, s^2), L = -l(x): P(L <= loss) = P(x >= l^-1(-loss)) = 1 - Phi(x / s)
    Real x(0, other), one(1, towards);
    if (!point_of(-loss, q, s, other, x)) return one;
    return one.sub(x.over(s).phi());
  }
  Real x(0, towards), zero(0, towards);
  if (!point_of(loss, q, s, towards, x)) return zero;
  Real near = x, far = x, rest(1, towards);
  rest.add(-q);
  near.over(s).phi().times(std::max(rest.value(), 0.0));
  far.add(-1).over(s).phi().times(q);
  return near.add(far);
}

inline Law law_of(const Mechanism& mechanism, bool add_direction, const Setting& setting) {
  Law law{std::vector<double>(setting.size(), 0.0)};
  const auto at = [&](double index) -> double& { return law.mass[static_cast<std::size_t>(index + setting.zero)]; };
  if (const auto* pure = std::get_if<PureEvent>(&mechanism)) {
    const double epsilon = pure->epsilon;
    for (const double loss : {-epsilon, epsilon}) {
      double index = std::floor(loss / setting.step);
      while (std::fma(index, setting.step, -loss) > 0) --index;
      while (std::fma(index + 1, setting.step, -loss) <= 0) ++index;
      if (setting.up && std::fma(index, setting.step, -loss) < 0) ++index;
      Real weight(-loss, setting.up ? MPFR_RNDD : MPFR_RNDU);  // 1 / (1 + e^-loss)
      weight.expm1().add(2);
      at(index) += (setting.up ? 1 + 4 * kUlp : 1 - 4 * kUlp) / weight.value();
    }
    return law;
  }
  // A cell ((i - 1) h, i h] of losses goes to its upper or to its lower end.
  const mpfr_rnd_t towards = setting.rounding(), other = setting.up ? MPFR_RNDD : MPFR_RNDU;
  const auto F = [&](int index, mpfr_rnd_t r) {
    return distribution(mechanism, add_direction, index * setting.step, r);
  };
  // Cells with less than this on their far side are cut, like those beyond the grid.
  constexpr double kTail = 1e-25;
  const auto first_index = [&](auto holds) {
    int no = -setting.zero, yes = setting.zero;
    while (yes - no > 1) (holds((no + yes) / 2) ? yes : no) = (no + yes) / 2;
    return yes;
  };
  const int first = first_index([&](int i) { return F(i, MPFR_RNDU).value() > kTail; }) - 1;
  const int last = first_index([&](int i) { return Real(1, MPFR_RNDU).sub(F(i, MPFR_RNDD)).value() < kTail; });
  Real below_away = F(first, other);
  if (setting.up) at(first) += F(first, towards).value();
  for (int i = first + 1; i <= last; ++i) {
    Real here = F(i, towards);
    const Real here_away = F(i, other);
    at(setting.up ? i : i - 1) += std::max(0.0, here.sub(below_away).value());
    below_away = here_away;
  }
  if (setting.up) law.infinite = Real(1, MPFR_RNDU).sub(below_away).value();
  return law;
}

// A sum of m positive products is off by (m + 1) half ulps at most.
inline Law convolve(const Law& a, const Law& b, const Setting& setting) {
  const std::size_t size = a.mass.size();
  const auto zero = static_cast<std::size_t>(setting.zero);
  const double factor = 1 + (setting.up ? 1 : -1) * kUlp * static_cast<double>(size + 4);
  Law out{std::vector<double>(size, 0.0), 0};
  double above = 0;
  std::size_t begin = 0, end = size;  // where b has mass
  while (begin < end && b.mass[begin] == 0) ++begin;
  while (end > begin && b.mass[end - 1] == 0) --end;
  for (std::size_t i = 0; i < size; ++i) {
    const double x = a.mass[i];
    if (x == 0) continue;
    // out[i + j - zero] += x b[j]; what falls below the grid goes to its lowest point, or is left out
    const std::size_t first = std::clamp(i < zero ? zero - i : 0, begin, end);
    const std::size_t last = std::clamp(size + zero - i, first, end);
    if (setting.up)
      for (std::size_t j = begin; j < first; ++j) out.mass[0] += x * b.mass[j];
    for (std::size_t j = first; j < last; ++j) out.mass[i + j - zero] += x * b.mass[j];
    if (setting.up)
      for (std::size_t j = last; j < end; ++j) above += x * b.mass[j];
  }
  // Masses far below any delta that is asked for are left out, or go to infinite loss, as the tails above: products of
  // them would be subnormal numbers, which take a hundred times as long.
  constexpr double kDust = 1e-60;
  for (double& m : out.mass) {
    m *= factor;
    if (m >= kDust) continue;
    above += m;
    m = 0;
  }
  if (setting.up) out.infinite = (above + a.infinite + b.infinite) * factor * factor;
  return out;
}

inline double delta_at(const Law& law, double epsilon, const Setting& setting) {
  double sum = 0;
  for (std::size_t i = law.mass.size(); i-- > 0;) {
    const double loss = (static_cast<double>(i) - setting.zero) * setting.step;
    if (loss <= epsilon) break;
    sum += law.mass[i] * -std::expm1(epsilon - loss);
  }
  const double factor = 1 + (setting.up ? 1 : -1) * kUlp * static_cast<double>(law.mass.size() + 1000);
  return sum * factor + law.infinite;
}

inline double epsilon_of_law(const Law& law, double delta, const Setting& setting) {
  if (delta_at(law, 0, setting) <= delta) return 0;
  double low = 0, high = setting.zero * setting.step;
  if (delta_at(law, high, setting) > delta) return std::numeric_limits<double>::infinity();
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (delta_at(law, middle, setting) > delta ? low : high) = middle;
  }
  return setting.up ? high : low;
}

inline Law compose(const std::vector<PrivacyEvent>& events, bool add_direction, const Setting& setting) {
  Law all{std::vector<double>(setting.size(), 0.0)};
  all.mass[static_cast<std::size_t>(setting.zero)] = 1;
  for (const PrivacyEvent& event : events) {
    const Law one = law_of(event.mechanism, add_direction, setting);
    for (long long i = 0; i < event.count; ++i) all = convolve(all, one, setting);
  }
  return all;
}

}  // namespace interval

/// The smallest epsilon of the plan at delta, which lies in this interval. Losses beyond +-reach are cut (off below,
/// into delta above).
inline Interval interval_epsilon(const std::vector<PrivacyEvent>& events, double delta, double step, double reach) {
  Interval both{0, 0};
  using namespace interval;
  const bool symmetric = std::none_of(events.begin(), events.end(), [](const PrivacyEvent& event) {
    return std::holds_alternative<PoissonGaussianEvent>(event.mechanism);
  });
  for (const bool add_direction : {false, true})
    for (const bool up : {false, true}) {
      if (add_direction && symmetric) continue;
      const Setting setting{step, static_cast<int>(std::ceil(reach / step)), up};
      const double epsilon = epsilon_of_law(compose(events, add_direction, setting), delta, setting);
      double& end = up ? both.high : both.low;
      end = std::max(end, epsilon);
    }
  mpfr_free_cache();
  return both;
}

}  // namespace eigenveil::test
