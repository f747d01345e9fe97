// SPDX-License-Identifier: Apache-2.0
#include "shortened.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace eigenveil {
namespace {

constexpr Eigen::Index kDraws = 16000;

constexpr double kSettled = 1e-9;  // relative change of a pass

// Of rows that are all longer than R nobody could tell by how much: an eigenvalue grows no more than so many times, and
// where all together grow by more than that, it is not known by how much they do.
constexpr double kMostGrown = 10;
constexpr double kMostTold = 4;

// z_i^2 of the coordinates that have eigenvalues of their own, and the sum of all others'. Public, and always the same.
struct Squares {
  Matrix top;
  Vector others;
};

Squares make_up(Eigen::Index k, double others) {
  std::mt19937_64 random(19370601);
  std::normal_distribution<double> normal;
  Squares squares{Matrix(kDraws, k), Vector::Zero(kDraws)};
  for (Eigen::Index i = 0; i < squares.top.size(); ++i) squares.top.data()[i] = std::pow(normal(random), 2);
  if (!(others > 0)) return squares;
  std::chi_squared_distribution<double> chi(others);
  for (double& sum : squares.others) sum = chi(random);
  return squares;
}

// Forecasts ask for the same ones again and again.
const Squares& draw(Eigen::Index k, double others) {
  struct Last {
    Eigen::Index k = -1;
    double others = 0;
    Squares squares;
  };
  thread_local Last last;
  if (last.k != k || last.others != others) last = {k, others, make_up(k, others)};
  return last.squares;
}

Vector squared_lengths(const Squares& z, const RowSpectrum& spectrum) {
  return z.top * spectrum.top + spectrum.rest * z.others;
}

// w^2 of rows that long
Vector weights_of(const Vector& squared, std::optional<double> radius) {
  return squared.unaryExpr(
      [&](double s) { return radius ? std::min(1.0, *radius * *radius / s) : 1 / std::max(s, 1e-300); });
}

// The squared length that this share of rows exceeds.
double exceeded_by(Vector squared, double share) {
  const auto i = std::clamp<Eigen::Index>(static_cast<Eigen::Index>((1 - share) * kDraws), 0, kDraws - 1);
  std::nth_element(squared.begin(), squared.begin() + i, squared.end());
  return squared[i];
}

// By how much squared lengths may grow until as many are longer as a limit lets.
double room_under(const std::vector<LengthLimit>& limits, const Vector& squared) {
  double room = 1e300;
  for (const auto& [length, longer] : limits)
    room = std::min(room, length * length / std::max(exceeded_by(squared, longer), 1e-300));
  return room;
}

double total(const RowSpectrum& spectrum) { return spectrum.top.sum() + spectrum.rest * spectrum.others; }

}  // namespace

namespace {

// The least that is not nothing, where noise left less.
RowSpectrum above_nothing(const RowSpectrum& seen) {
  const double least = 1e-9 * std::max(total(seen), 1e-300);
  return {seen.top.cwiseMax(least), std::max(seen.rest, least), seen.others};
}

// E w^2 x_i^2 = wanted_i, w = min(1, R / |x|) or 1 / |x|, by fixed points: lambda_i <- lambda_i wanted_i / E w^2 x_i^2
RowSpectrum solve(const RowSpectrum& wanted, std::optional<double> radius, const std::vector<LengthLimit>& limits,
                  const Squares& z) {
  constexpr int kPasses = 60;
  const Vector of_all = z.top.colwise().sum();
  RowSpectrum found = wanted;
  for (int pass = 0; pass < kPasses; ++pass) {
    const RowSpectrum before = found;
    const Vector weights = weights_of(squared_lengths(z, found), radius);
    // E w^2 z_i^2 / E z_i^2: of the same draws, whose own error then cancels
    const Vector kept = (z.top.transpose() * weights).cwiseQuotient(of_all);
    if (kept.size() > 0) found.top = wanted.top.cwiseQuotient(kept.cwiseMax(kept.maxCoeff() / kMostGrown));
    if (wanted.others > 0) found.rest = wanted.rest * z.others.sum() / std::max(z.others.dot(weights), 1e-300);
    if (radius) {
      found.top = found.top.cwiseMin(kMostGrown * wanted.top);
      found.rest = std::min(found.rest, kMostGrown * wanted.rest);
      if (const double scale = room_under(limits, squared_lengths(z, found)); scale < 1) {
        // Nothing was longer after it was shortened.
        found.top = (scale * found.top).cwiseMax(wanted.top);
        found.rest = std::max(scale * found.rest, wanted.rest);
      }
    } else {
      const double sum = total(found);
      found.top /= sum;
      found.rest /= sum;
    }
    const double change = (found.top - before.top).cwiseAbs().sum() + std::abs(found.rest - before.rest) * found.others;
    if (change <= kSettled * total(found)) break;
  }
  return found;
}

}  // namespace

RowSpectrum unshortened(const RowSpectrum& seen, std::optional<double> radius, const std::vector<LengthLimit>& limits) {
  const Squares& z = draw(seen.top.size(), seen.others);
  const RowSpectrum wanted = above_nothing(seen);
  RowSpectrum free = solve(wanted, radius, {}, z);
  if (!radius) return free;
  const double grown = total(free) / total(wanted);
  if (!(room_under(limits, squared_lengths(z, free)) < 1)) {
    free.open = grown > kMostTold;
    return free;
  }
  // The more the limits take away, the surer it is that lengths vary less.
  RowSpectrum found = solve(wanted, radius, limits, z);
  const double half = std::min(1.0, std::log2(std::max(1.0, total(free) / total(found)))) / 2;
  found.top = found.top.array().pow(1 - half) * wanted.top.array().pow(half);
  found.rest = std::pow(found.rest, 1 - half) * std::pow(wanted.rest, half);
  found.limited = true;
  return found;
}

Matrix covariance_of_squares(const RowSpectrum& whole, std::optional<double> radius) {
  const Squares& z = draw(whole.top.size(), whole.others);
  const Vector weights = weights_of(squared_lengths(z, whole), radius);
  Matrix squares(kDraws, whole.top.size() + 1);
  squares.leftCols(whole.top.size()) = weights.asDiagonal() * z.top * whole.top.asDiagonal();
  squares.rightCols(1) = weights.cwiseProduct(z.others) * (whole.rest / std::max(whole.others, 1.0));
  squares.rowwise() -= squares.colwise().mean().eval();
  return squares.transpose() * squares / static_cast<double>(kDraws);
}

double squared_length(const RowSpectrum& spectrum, double longer) {
  return exceeded_by(squared_lengths(draw(spectrum.top.size(), spectrum.others), spectrum), longer);
}

double deviation_of_length(const RowSpectrum& spectrum, double longer, double rows, double off) {
  const double more = std::min(longer + 0.1, 0.99), less = std::max(longer - 0.1, longer / 2);
  const double low = std::max(squared_length(spectrum, more), 1e-300), high = squared_length(spectrum, less);
  const double of_rows = std::sqrt(longer * (1 - longer) / std::max(rows, 1.0));
  return std::log(std::max(high / low, 1.0)) / (more - less) * std::hypot(of_rows, off);
}

}  // namespace eigenveil
