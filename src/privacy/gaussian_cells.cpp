// SPDX-License-Identifier: Apache-2.0
#include "gaussian_cells.hpp"

#include <mpfr.h>

#include <cstdlib>

namespace eigenveil {
namespace {

constexpr mpfr_prec_t kGuard = 128;  // digits beyond those asked for: rounding spoils the last 24 or so

class Real {
 public:
  explicit Real(mpfr_prec_t digits) { mpfr_init2(value_, digits); }
  Real(const Real& other) {
    mpfr_init2(value_, mpfr_get_prec(other.value_));
    mpfr_set(value_, other.value_, MPFR_RNDN);  // exact: the same precision
  }
  Real& operator=(const Real&) = delete;
  ~Real() { mpfr_clear(value_); }
  mpfr_ptr get() { return value_; }
  mpfr_srcptr get() const { return value_; }

 private:
  mpfr_t value_;
};

// ends[m] = P(cell <= m), rounded down or up: MPFR rounds every operation the way it is told, and all terms are
// positive.
std::vector<Real> ends(mpfr_prec_t digits, bool up) {
  const mpfr_rnd_t towards = up ? MPFR_RNDU : MPFR_RNDD;
  const mpfr_rnd_t away = up ? MPFR_RNDD : MPFR_RNDU;
  // exp(-(m + 1)^2 / 8192) = exp(-m^2 / 8192) * ratio_m, ratio_(m+1) = ratio_m * exp(-2 / 8192)
  const auto sums = [&](mpfr_rnd_t rounding) {
    Real term(digits), ratio(digits), step(digits), sum(digits);
    mpfr_set_ui(term.get(), 1, rounding);
    mpfr_set_si_2exp(ratio.get(), -1, -13, rounding);
    mpfr_exp(ratio.get(), ratio.get(), rounding);
    mpfr_set_si_2exp(step.get(), -1, -12, rounding);
    mpfr_exp(step.get(), step.get(), rounding);
    mpfr_set_zero(sum.get(), 1);
    std::vector<Real> result;
    result.reserve(GaussianCells::kCells);
    for (std::uint64_t m = 0; m < GaussianCells::kCells; ++m) {
      mpfr_add(sum.get(), sum.get(), term.get(), rounding);
      result.push_back(sum);
      mpfr_mul(term.get(), term.get(), ratio.get(), rounding);
      mpfr_mul(ratio.get(), ratio.get(), step.get(), rounding);
    }
    return result;
  };
  const Real total = sums(away).back();
  std::vector<Real> result = sums(towards);
  for (Real& end : result) mpfr_div(end.get(), end.get(), total.get(), towards);
  mpfr_set_ui(result.back().get(), 1, MPFR_RNDN);
  mpfr_free_cache();  // MPFR's constants, which would outlive this thread
  return result;
}

}  // namespace

std::uint64_t GaussianCells::decide(std::uint64_t word, SecureRandom& random) {
  static_assert(sizeof(unsigned long) == sizeof(std::uint64_t));
  std::vector<std::uint64_t> words = {word};
  for (;; words.push_back(random.next())) {
    // the number lies in [from, to), to = from + 2^-digits
    const auto digits = static_cast<mpfr_prec_t>(64 * words.size());
    Real from(digits + 1), to(digits + 1);
    mpfr_set_zero(from.get(), 1);
    for (const std::uint64_t w : words) {
      mpfr_mul_2ui(from.get(), from.get(), 64, MPFR_RNDN);
      mpfr_add_ui(from.get(), from.get(), w, MPFR_RNDN);
    }
    mpfr_add_ui(to.get(), from.get(), 1, MPFR_RNDN);
    mpfr_div_2si(from.get(), from.get(), digits, MPFR_RNDN);
    mpfr_div_2si(to.get(), to.get(), digits, MPFR_RNDN);

    const std::vector<Real> least = ends(digits + kGuard, false);
    const std::vector<Real> most = ends(digits + kGuard, true);
    std::uint64_t m = 0;
    while (mpfr_cmp(to.get(), least[m].get()) > 0) ++m;  // the last end is 1
    if (m == 0 || mpfr_cmp(from.get(), most[m - 1].get()) >= 0) return m;
  }
}

GaussianCells::GaussianCells() {
  const auto first_word = [](Real& x) {
    mpfr_mul_2ui(x.get(), x.get(), 64, MPFR_RNDN);
    return mpfr_get_ui(x.get(), MPFR_RNDD);
  };
  std::vector<Real> least = ends(64 + kGuard, false);
  std::vector<Real> most = ends(64 + kGuard, true);
  starts_.push_back(0);
  for (std::size_t m = 0; starts_.back() != UINT64_MAX; ++m) {
    starts_.push_back(first_word(least[m]));
    if (first_word(most[m]) != starts_.back()) std::abort();  // never: 128 digits to spare did not tell the 64th
  }
  std::uint16_t m = 0;
  for (std::uint64_t i = 0; i < guide_.size(); ++i) {
    while (starts_[m + 1U] <= i << 56) ++m;
    guide_[i] = m;
  }
}

const GaussianCells& GaussianCells::get() {
  static const GaussianCells cells;
  return cells;
}

}  // namespace eigenveil
