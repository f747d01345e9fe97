// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eigenveil/front/rows.hpp"
#include "eigenveil/verdict/standing.hpp"

namespace eigenveil {

struct Model;

/// Draws directions as images of that shape in a report.
struct ImageShape {
  std::size_t height;
  std::size_t width;
};

/// What a release made public, whatever its kind. Everything here may be shared, if `is_private` says so.
class Published {
 public:
  std::optional<double> rows;  ///< their number: public, or a released noisy count; none: nobody asked
  /// Standard deviation of the noise in an entry of what was released: of the largest answer, per row (the last of
  /// several as large; off the diagonal of a covariance). NaN: the file does not say.
  double deviation;
  bool is_private;                    ///< false: the noise was seeded
  std::vector<std::string> warnings;  ///< in words, for people
  std::string manifest;               ///< JSON: every privacy event, the guarantee in words, the options

  /// model.npz, which `numpy.load`, `eigenveil transform` and `load` open. The ledger that paid takes note of it, for
  /// `eigenveil ledger verify`; if it is not there any more, only the note is missing.
  Status save(const std::string& path) const;
  /// A page about the release that needs nothing else.
  Status report(const std::string& path, std::optional<ImageShape> image_shape = {}) const;

 protected:
  /// `per_row`: what was asked for are sums over rows, used as averages.
  explicit Published(std::shared_ptr<const Model> model, bool per_row = true);
  const Model& model() const { return *model_; }
  /// An array of the model; empty if it has none of that name.
  Matrix array(const char* name) const;

 private:
  std::shared_ptr<const Model> model_;
};

/// A model that projects rows on directions.
class PublishedDirections : public Published {
 public:
  Vector mean;  ///< of the features; zero unless it was released

  // What the directions are worth (docs/results/verdicts.md). Empty where nothing is said.
  std::string verdict;         ///< a sentence: "PC1-3 hold, PC4-5 only as a plane, the rest is noise."
  std::vector<Judged> judged;  ///< one per direction
  Vector angle;  ///< degrees between a direction and the true one, as expected; 90 of noise: none is claimed
  std::optional<double> noise_edge;  ///< values up to here are what noise alone would give

  /// score = ((clamp(row) - offset) * scale - mean) . directions^T, for each row; of cca those of x, then those of y.
  /// Scores describe single rows: they are not private.
  Result<Matrix> transform(const Rows& rows) const;

 protected:
  explicit PublishedDirections(std::shared_ptr<const Model> model, bool per_row = true);
  Vector numbers(const char* name) const { return array(name).reshaped(); }
};

/// Principal directions: rows can be rebuilt from their scores.
class PublishedComponents : public PublishedDirections {
 public:
  Matrix components;   ///< K x d, one direction per row
  Vector eigenvalues;  ///< descending

  Vector eigenvalues_estimate;  ///< with the bias of noise and sampling taken out
  Vector eigenvalues_low;       ///< of their 95% bands
  Vector eigenvalues_high;
  Vector spread;                ///< d, correlations alone: deviations that features were divided by
  Matrix components_deviation;  ///< K x d: of loadings about cos(angle) . loading; more than 1.96 of them is a finding
  Vector variance_share;        ///< of the total variance; empty: unknown
  Vector variance_share_low;    ///< of their 95% bands
  Vector variance_share_high;

  /// Rows of features in the data's own units, as the scores tell them: (score . components + mean) / scale + offset.
  Result<Matrix> inverse_transform(const Matrix& scores) const;

 protected:
  explicit PublishedComponents(std::shared_ptr<const Model> model);
};

}  // namespace eigenveil
