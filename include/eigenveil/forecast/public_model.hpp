// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eigenveil/forecast/row_law.hpp"
#include "eigenveil/rows/bounded_rows.hpp"

namespace eigenveil {

/// Rows that were made up, and what a fit on endless ones of them would release.
struct Draw {
  BoundedRows rows;
  /// The array of that name; empty: the model does not know it, and the same rows without noise have to do.
  std::function<Matrix(const std::string& array)> truth = {};
  /// Share of the variance of the best components that these, d x K, do not capture.
  std::function<double(const Matrix& V)> lost = {};
  std::optional<BoundedRows> half = {};  ///< half as many rows of the same kind, to tell what more rows would change
};

/// A few independent draws, to be used again and again.
struct Sample {
  std::vector<Draw> draws;
  std::vector<std::uint64_t> seeds = {1};         ///< of the noise: a fit for each
  mutable std::map<std::string, double> fewness;  ///< what forecasts found, by description of the estimator

  std::size_t rows() const { return draws.front().rows.rows(); }  ///< of one draw
};

/// A guess of what the rows are like, from public knowledge alone.
class PublicModel {
 public:
  virtual ~PublicModel() = default;

  virtual std::size_t rows() const = 0;  ///< n
  virtual std::size_t columns() const = 0;
  virtual Status check() const { return {}; }  ///< refuses what cannot be

  /// Draws that stand for `rows` rows: fewer of them may do.
  virtual Result<Sample> draw(std::size_t rows, int threads) const = 0;
  /// The draws for its own number of rows stand for any other too.
  virtual bool one_sample() const { return true; }
  /// What the draws take that a forecast has at once: 200 rows at least, as doubles and as they are kept.
  virtual std::size_t bytes() const { return 200 * 16 * columns(); }
  /// What sums over its rows are, without rows; none: they have to be drawn.
  virtual std::unique_ptr<RowLaw> law() const { return nullptr; }
  /// What a reader of a forecast by this sample should know.
  virtual std::vector<std::string> notes(const Sample& /*sample*/) const { return {}; }
};

/// How much longer the bound is than a typical row, when nothing better is known.
inline constexpr double kBoundOverTypicalRow = 1.5;

/// The samples of a model at any number of rows; its own and the latest other one are kept.
class Samples {
 public:
  Samples(const PublicModel& model, int threads) : model_(model), threads_(threads) {}
  Result<const Sample*> at(std::size_t rows);
  const Sample* own() const { return own_ ? &*own_ : nullptr; }  ///< if it was asked for

 private:
  const PublicModel& model_;
  int threads_;
  std::optional<Sample> own_;
  std::optional<Sample> other_;
  std::size_t other_rows_ = 0;
};

}  // namespace eigenveil
