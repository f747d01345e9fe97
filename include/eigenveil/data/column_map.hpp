// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "eigenveil/base/types.hpp"
#include "eigenveil/data/schema.hpp"

namespace eigenveil {

enum class Centering {
  kNone,   ///< [lower, upper] is scaled by its largest magnitude, zero stays zero
  kRange,  ///< [lower, upper] is shifted and scaled onto [-1, 1]
};

/// The public map from raw columns to features: feature = (clamp(raw) - offset) * scale, a categorical column
/// becoming one 0/1 raw value per category first. It is made from the schema alone, never from rows.
///
/// A number has a length of at most 1. So have the m features of a categorical column of weight 1, however many they
/// are: about the middle they are the corners of a regular simplex in the unit ball, (e_j - 1/m) sqrt(m / (m - 1)), as
/// far from each other as corners of that length can be. With two values they are the ends of a range, 2 apart.
class ColumnMap {
 public:
  static Result<ColumnMap> from_schema(const Schema& schema, Centering centering);
  /// No ranges at all: features are the raw values, and only a row bound limits them.
  static ColumnMap identity(std::vector<std::string> names);
  /// Rebuilds a map from the parts that a model file keeps; offset and scale have one entry per feature.
  static ColumnMap from_parts(std::vector<ColumnSpec> specs, Vector offset, Vector scale);

  /// The same with its last feature `weight` times as large, and one more behind it that is `constant` in every row.
  /// The constant comes from no column: specs, offset and scale do not have it. A row without a response has no place.
  ColumnMap with_response(double weight, double constant) const;

  std::size_t raw_columns() const { return specs_.size(); }
  std::size_t features() const { return names_.size(); }
  const std::vector<std::string>& feature_names() const { return names_; }
  const std::vector<ColumnSpec>& specs() const { return specs_; }
  const Vector& offset() const { return offset_; }
  const Vector& scale() const { return scale_; }

  /// The largest norm a mapped row can have, rounded up; infinite for the identity map.
  double largest_norm() const;

  /// Maps one raw row. A NaN in a raw column makes all its features NaN, unless its spec says what a missing value
  /// counts as.
  void apply(const double* raw, double* features) const;
  /// Features are the raw values themselves: `apply` only copies.
  bool is_identity() const { return identity_; }

 private:
  /// Neighbouring numeric columns, or the features of one categorical column.
  struct Run {
    std::size_t raw;    ///< first raw column
    std::size_t first;  ///< first feature
    std::size_t count;  ///< of features
    bool categorical;
    double missing = kNothing;  ///< of a categorical column: index of what a missing value counts as
  };
  static constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

  std::vector<ColumnSpec> specs_;
  std::vector<std::string> names_;
  Vector offset_;
  Vector scale_;
  std::vector<Run> runs_;
  std::vector<double> lower_;  ///< one per feature, as the clamp of `apply` wants them
  std::vector<double> upper_;
  std::vector<double> most_;  ///< likewise: a larger magnitude is no number
  std::vector<double> fill_;  ///< what counts instead; NaN: nothing does
  bool identity_ = false;
  double constant_ = 0;  ///< of the last feature; 0: there is none
};

}  // namespace eigenveil
