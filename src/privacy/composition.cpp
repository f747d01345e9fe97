// SPDX-License-Identifier: Apache-2.0
#include "composition.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "fourier.hpp"
#include "slack.hpp"

namespace eigenveil::loss {
namespace {

constexpr double kWindowLog = 28;  // the tilted law has mass at most e^-28 above the window, and as little below

/// A discretised event, its tilted masses scaled to total 1, and how often it is composed.
struct Term {
  Masses masses;
  double count;

  double loss(std::size_t i, double step) const {
    return (static_cast<double>(masses.first) + static_cast<double>(i)) * step;
  }

  /// ln sum t_i e^{lambda loss_i}, by Horner's rule from the end with the smaller powers; infinity (which says
  /// nothing) where the sum is so small that terms were lost to underflow.
  double log_moment(double lambda, double step) const {
    const double ratio = std::exp(-std::abs(lambda) * step);
    double sum = 0;
    if (lambda > 0)
      for (const double t : masses.mass) sum = sum * ratio + t;
    else
      for (auto t = masses.mass.rbegin(); t != masses.mass.rend(); ++t) sum = sum * ratio + *t;
    if (!(sum > 1e-280)) return kInfinity;
    return std::log(sum) + lambda * loss(lambda > 0 ? masses.mass.size() - 1 : 0, step);
  }
};

struct Window {
  double low;   // in steps
  double high;  // in steps
  double most;  // the largest loss there is, in steps
};

/// Chernoff: P(Y > w) <= E e^{lambda Y} e^{-lambda w}; the smallest w over a ladder of lambda that makes it e^-28.
Window window_of(const std::vector<Term>& terms, double step) {
  double mean = 0;
  double variance = 0;
  double most = 0;
  double least = 0;
  for (const Term& term : terms) {
    double first = 0;
    double second = 0;
    for (std::size_t i = 0; i < term.masses.mass.size(); ++i) {
      const double l = term.loss(i, step);
      first += term.masses.mass[i] * l;
      second += term.masses.mass[i] * l * l;
    }
    mean += term.count * first;
    variance += term.count * std::max(0.0, second - first * first);
    most += term.count * term.loss(term.masses.mass.size() - 1, step);
    least += term.count * term.loss(0, step);
  }
  double high = most;
  double low = least;
  const double deviation = std::max(std::sqrt(variance), step);
  for (int rung = -8; rung <= 8; ++rung) {
    const double lambda = std::sqrt(2 * kWindowLog) / deviation * std::exp2(rung / 2.0);
    double up = kWindowLog + slack::kWindow;
    double down = kWindowLog + slack::kWindow;
    for (const Term& term : terms) {
      up += term.count * term.log_moment(lambda, step);
      down += term.count * term.log_moment(-lambda, step);
    }
    high = std::min(high, up / lambda);
    low = std::max(low, -down / lambda);
  }
  return {std::floor(std::min(low, mean) / step) - 1, std::ceil(std::max(high, mean) / step) + 1,
          std::ceil(most / step)};
}

/// The composed law's transform, and a bound on the mean size of its rounding error.
struct Spectrum {
  std::vector<std::complex<double>> values;
  double mean_error = 0;
};

/// product of f_e^{n_e}. If each |f_e| is off by at most u_e, the product is off by at most
/// prod (|f|+u)^n min(1, sum n u / (|f|+u)). No value is off by more than all of them in Euclidean norm:
/// u_e = transform(N) ||f_e|| = transform(N) sqrt(N) ||t_e||.
Spectrum compose_spectra(const std::vector<Term>& terms, std::size_t points, Fourier& fourier) {
  const std::size_t frequencies = points / 2 + 1;
  std::vector<double> log_size(frequencies, 0.0);
  std::vector<double> log_above(frequencies, 0.0);
  std::vector<double> relative(frequencies, 0.0);
  std::vector<double> angle(frequencies, 0.0);
  for (const Term& term : terms) {
    std::vector<double> wrapped(points, 0.0);
    const auto period = static_cast<long long>(points);
    std::size_t place = ((term.masses.first % period) + period) % period;
    for (const double t : term.masses.mass) {
      wrapped[place] += t;
      place = (place + 1) & (points - 1);
    }
    double square = 0;
    for (const double t : wrapped) square += t * t;
    const auto N = static_cast<double>(points);
    const double rounding = slack::transform(N) * std::sqrt(N * square);
    const auto f = fourier.forward(wrapped);
    for (std::size_t k = 0; k < frequencies; ++k) {
      const double size = std::abs(f[k]);
      log_above[k] += term.count * std::log(size + rounding);
      if (log_above[k] < -200) continue;
      log_size[k] += term.count * std::log(size);
      angle[k] += term.count * std::arg(f[k]);
      relative[k] += term.count * rounding / (size + rounding);
    }
  }
  Spectrum out;
  out.values.resize(frequencies);
  for (std::size_t k = 0; k < frequencies; ++k) {
    const double above = std::exp(log_above[k]);
    const bool single = k == 0 || k + 1 == frequencies;
    const bool dropped = log_above[k] < -200;
    out.values[k] = dropped ? 0.0 : std::polar(std::exp(log_size[k]), angle[k]);
    out.mean_error += (single ? 1 : 2) * above * (dropped ? 1.0 : std::min(1.0, relative[k]));
  }
  out.mean_error /= static_cast<double>(points);
  return out;
}

}  // namespace

std::optional<Composition> Composition::of(const std::vector<Source>& sources, Direction direction, const Grid& grid,
                                           double most_points, double& points_wanted) {
  points_wanted = 0;
  Composition out;
  out.grid_ = grid;
  out.log_infinite_ = -kInfinity;
  std::vector<Term> terms;
  double answers = 0;
  for (const Source& source : sources) {
    Term term{discretise(source.mechanism, direction, grid), source.count};
    double total = 0;
    for (const double t : term.masses.mass) total += t;
    if (!(total > 0 && std::isfinite(total) && std::isfinite(term.masses.log_scale))) return std::nullopt;
    for (double& t : term.masses.mass) t /= total;
    out.log_moment_ += term.count * (term.masses.log_scale + std::log(total));
    out.log_infinite_ = log_add(out.log_infinite_, std::log(term.count) + term.masses.log_infinite);
    answers += term.count;
    terms.push_back(std::move(term));
  }

  if (answers == 1) {
    // A single answer needs no transform: its masses are exact over their whole range.
    out.low_ = static_cast<double>(terms[0].masses.first);
    out.mass_ = std::move(terms[0].masses.mass);
    out.complete_ = true;
    return out;
  }
  Window window = window_of(terms, grid.step);
  // Up to where what escapes, M e^{-theta W - 28}, is no more than all answers together may cut off, if losses go that
  // far.
  const double most_escaped = grid.log_tail + std::log(answers);
  const double quiet = (out.log_moment_ - kWindowLog - most_escaped) / (grid.theta * grid.step);
  window.high = std::max(window.high, std::min(std::ceil(quiet), window.most));
  points_wanted = window.high - window.low + 1;
  if (!(points_wanted <= most_points)) return std::nullopt;
  if (!(std::abs(window.low) < 1e15)) return points_wanted = 0, std::nullopt;  // indices must stay exact
  const std::size_t points = std::bit_ceil(static_cast<std::size_t>(std::max(points_wanted, 64.0)));
  out.low_ = window.low;
  out.complete_ = window.low + static_cast<double>(points) > window.most;

  Fourier fourier(points);
  const Spectrum spectrum = compose_spectra(terms, points, fourier);
  double square = 0;
  for (const auto& value : spectrum.values) square += 2 * std::norm(value);
  // The inverse transform divides by N, so its result has the norm of the spectrum / sqrt(N).
  const auto N = static_cast<double>(points);
  const double allowance = spectrum.mean_error + slack::transform(N) * std::sqrt(square / N);
  const auto wrapped = fourier.backward(spectrum.values);

  out.mass_.resize(points);
  const auto period = static_cast<long long>(points);
  std::size_t place = ((static_cast<long long>(out.low_) % period) + period) % period;
  for (double& mass : out.mass_) {
    mass = std::max(0.0, wrapped[place]) + allowance;
    place = (place + 1) & (points - 1);
  }
  return out;
}

double Composition::loss_at(std::size_t i) const { return (low_ + static_cast<double>(i)) * grid_.step; }

double Composition::log_escaped() const {
  return complete_ ? log_infinite_
                   : log_add(log_infinite_, log_moment_ - grid_.theta * loss_at(mass_.size() - 1) - kWindowLog);
}

// With A_k = sum_{j>=k} t_j e^{-theta (l_j - l_k)} and B_k the same with theta + 1, delta at l_k is
// e^{log_moment - theta l_k} D_k, D_k = A_k - B_k, and both run downwards without subtraction:
//   B_k = t_k + e^{-(theta+1) h} B_{k+1},   D_k = e^{-theta h} (D_{k+1} + (1 - e^{-h}) B_{k+1}).
// Between l_k and l_{k+1}: delta(eps) = e^{log_moment - theta l_{k+1}} (D_{k+1} + (1 - e^{eps - l_{k+1}}) B_{k+1}).

double Composition::log_delta(double epsilon) const {
  const double fall = std::exp(-grid_.theta * grid_.step);
  const double rise = -std::expm1(-grid_.step);
  double D = 0;
  double B = 0;
  double above = kInfinity;  // the lowest loss that was added
  for (std::size_t i = mass_.size(); i-- > 0 && loss_at(i) > epsilon;) {
    D = fall * (D + rise * B);
    B = mass_[i] + fall * (1 - rise) * B;
    above = loss_at(i);
  }
  // Above the window: P(Y > eps) <= M e^{-theta eps} P~(Y > eps), and nothing if the window reaches the largest loss.
  if (above == kInfinity) {
    const double beyond = complete_ ? -kInfinity : log_moment_ - grid_.theta * epsilon - kWindowLog;
    return std::min(0.0, log_add(log_infinite_, beyond));
  }
  double result =
      log_add(log_escaped(), log_moment_ - grid_.theta * above + std::log(D - std::expm1(epsilon - above) * B));
  // Losses between epsilon and a window that starts above it.
  if (epsilon < loss_at(0)) result = log_add(result, log_moment_ - grid_.theta * epsilon - kWindowLog);
  return std::min(0.0, result);
}

double Composition::epsilon(double log_delta) const {
  const double escaped = log_escaped();
  if (!(escaped < log_delta)) return kInfinity;
  // ln(delta - escaped), relative to the moment
  const double room = log_delta + std::log1p(-std::exp(escaped - log_delta)) - log_moment_;
  const double fall = std::exp(-grid_.theta * grid_.step);
  const double rise = -std::expm1(-grid_.step);
  double D = 0;
  double B = 0;
  for (std::size_t i = mass_.size(); i-- > 0;) {
    const double next_D = fall * (D + rise * B);
    const double loss = loss_at(i);
    if (std::log(next_D) - grid_.theta * loss > room) {
      const double above = loss_at(i + 1);
      // 1 - e^{eps - above} = (T - D) / B
      const double part = (std::exp(room + grid_.theta * above) - D) / B;
      return std::max(0.0, above + std::log1p(-std::clamp(part, 0.0, rise)));
    }
    if (loss <= 0) return 0;
    D = next_D;
    B = mass_[i] + fall * (1 - rise) * B;
  }
  return loss_at(0);
}

}  // namespace eigenveil::loss
