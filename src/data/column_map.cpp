// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/data/column_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <utility>

#include "schema_check.hpp"
#include "text.hpp"

namespace eigenveil {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Affine {
  double offset = 0;
  double scale = 1;
};

Affine numeric_map(const NumericColumn& column, Centering centering) {
  if (centering == Centering::kNone) return {0, 1 / std::max(std::fabs(column.lower), std::fabs(column.upper))};
  // halves first: upper - lower may overflow
  const double lower = column.lower / 2;
  const double upper = column.upper / 2;
  return {lower + upper, 1 / (upper - lower)};
}

/// 0/1 features of a column with m values. About the middle: |e_j - 1/m|^2 = (m - 1) / m.
Affine indicator_map(const CategoricalColumn& column, Centering centering) {
  const auto m = static_cast<double>(column.values.size());
  if (centering == Centering::kNone || m < 2) return {0, column.weight};
  return {1 / m, column.weight * std::sqrt(m / (m - 1))};
}

double square(double x) { return x * x; }

}  // namespace

Result<ColumnMap> ColumnMap::from_schema(const Schema& schema, Centering centering) {
  if (schema.columns.empty()) return bad_input("The schema has no columns");
  std::unordered_set<std::string> seen;
  std::vector<Affine> maps;
  for (const ColumnSpec& spec : schema.columns) {
    if (!seen.insert(spec.name).second)
      return bad_input(fmt::format("The schema describes column {} twice", data::in_quotes(spec.name)));
    if (const auto problem = data::problem_of(spec))
      return bad_input(fmt::format("Column {}: {}", data::in_quotes(spec.name), *problem));
    if (const auto* categorical = std::get_if<CategoricalColumn>(&spec.kind)) {
      maps.insert(maps.end(), categorical->values.size(), indicator_map(*categorical, centering));
      continue;
    }
    const Affine map = numeric_map(std::get<NumericColumn>(spec.kind), centering);
    if (!std::isfinite(map.scale) || map.scale <= 0)
      return bad_input(
          fmt::format("Column {}: lower and upper are too small or too close to be told apart; change the unit",
                      data::in_quotes(spec.name)));
    maps.push_back(map);
  }
  Vector offset(maps.size());
  Vector scale(offset.size());
  for (std::size_t i = 0; i < maps.size(); ++i) {
    offset[i] = maps[i].offset;
    scale[i] = maps[i].scale;
  }
  return from_parts(schema.columns, std::move(offset), std::move(scale));
}

ColumnMap ColumnMap::identity(std::vector<std::string> names) {
  const Eigen::Index size = names.size();
  std::vector<ColumnSpec> specs;
  specs.reserve(names.size());
  for (std::string& name : names) specs.push_back({std::move(name), NumericColumn{-kInfinity, kInfinity}});
  return from_parts(std::move(specs), Vector::Zero(size), Vector::Ones(size));
}

ColumnMap ColumnMap::from_parts(std::vector<ColumnSpec> specs, Vector offset, Vector scale) {
  ColumnMap map;
  for (std::size_t raw = 0; raw < specs.size(); ++raw) {
    const ColumnSpec& spec = specs[raw];
    const std::size_t first = map.names_.size();
    if (const auto* categorical = std::get_if<CategoricalColumn>(&spec.kind)) {
      for (const std::string& value : categorical->values) map.names_.push_back(spec.name + "=" + value);
      map.runs_.push_back({raw, first, categorical->values.size(), true,
                           categorical->missing ? static_cast<double>(*categorical->missing) : kNothing});
      map.lower_.resize(map.names_.size(), 0);
      map.upper_.resize(map.names_.size(), 1);
      map.most_.resize(map.names_.size(), kInfinity);
      map.fill_.resize(map.names_.size(), kNothing);
      continue;
    }
    const auto& numeric = std::get<NumericColumn>(spec.kind);
    if (map.runs_.empty() || map.runs_.back().categorical) map.runs_.push_back({raw, first, 0, false});
    ++map.runs_.back().count;
    map.names_.push_back(spec.name);
    map.lower_.push_back(numeric.lower);
    map.upper_.push_back(numeric.upper);
    // An infinity is clamped by a range. Without one it is as good as missing.
    const bool ranged = std::isfinite(numeric.lower) && std::isfinite(numeric.upper);
    map.most_.push_back(numeric.missing && !ranged ? std::numeric_limits<double>::max() : kInfinity);
    map.fill_.push_back(numeric.missing.value_or(kNothing));
  }
  const Eigen::Index features = map.names_.size();
  assert(offset.size() == features && scale.size() == features);
  // In a release build a caller's mistake gives zero features, not reads behind the end.
  offset.conservativeResizeLike(Vector::Zero(features));
  scale.conservativeResizeLike(Vector::Zero(features));
  const auto all = [](const std::vector<double>& values, double value) {
    return std::all_of(values.begin(), values.end(), [&](double x) { return x == value; });
  };
  map.identity_ = all(map.lower_, -kInfinity) && all(map.upper_, kInfinity) && all(map.most_, kInfinity) &&
                  offset.isZero(0) && scale.isOnes(0);
  map.specs_ = std::move(specs);
  map.offset_ = std::move(offset);
  map.scale_ = std::move(scale);
  return map;
}

ColumnMap ColumnMap::with_response(double weight, double constant) const {
  ColumnMap map = *this;
  map.identity_ = false;
  map.scale_[map.scale_.size() - 1] *= weight;
  map.fill_[map.names_.size() - 1] = kNothing;
  if (auto* numeric = std::get_if<NumericColumn>(&map.specs_.back().kind)) numeric->missing.reset();
  map.names_.emplace_back("(constant)");
  map.constant_ = constant;
  return map;
}

double ColumnMap::largest_norm() const {
  // (clamp(x) - offset) * scale is monotone in x, rounding included: its largest magnitude lies at a bound.
  double sum = square(constant_);
  const auto at = [this](std::size_t i, double x) {
    const Eigen::Index index = i;
    return square((x - offset_[index]) * scale_[index]);
  };
  for (const Run& run : runs_) {
    if (!run.categorical) {
      for (std::size_t i = run.first; i < run.first + run.count; ++i)
        sum += std::max(at(i, lower_[i]), at(i, upper_[i]));
      continue;
    }
    // One feature is on, or all are in equal parts, which is between: |.|^2 is convex.
    double all_off = 0;
    double gain = -kInfinity;
    for (std::size_t i = run.first; i < run.first + run.count; ++i) {
      all_off += at(i, 0);
      gain = std::max(gain, at(i, 1) - at(i, 0));
    }
    sum += all_off + gain;
  }
  // Every operation errs by at most epsilon / 2, each term passes through at most features + 4 of them, twice for
  // groups.
  const double slack = 1 + (2 * static_cast<double>(features()) + 8) * std::numeric_limits<double>::epsilon();
  return std::nextafter(std::sqrt(sum * slack), kInfinity);
}

void ColumnMap::apply(const double* raw, double* features) const {
  const double* offset = offset_.data();
  const double* scale = scale_.data();
  for (const Run& run : runs_) {
    if (run.categorical) {
      const double chosen = std::isnan(raw[run.raw]) ? run.missing : raw[run.raw];
      const auto count = static_cast<double>(run.count);
      for (std::size_t j = 0; j < run.count; ++j) {
        const double on = std::isnan(chosen) ? chosen
                          : chosen == count  ? 1 / count
                                             : static_cast<double>(chosen == static_cast<double>(j));
        features[run.first + j] = (on - offset[run.first + j]) * scale[run.first + j];
      }
      continue;
    }
    const double* x = raw + run.raw;
    for (std::size_t j = 0, i = run.first; j < run.count; ++j, ++i) {
      // false for NaN
      const double seen = std::fabs(x[j]) <= most_[i] ? x[j] : fill_[i];
      // both comparisons are false for NaN, which therefore passes
      const double above = seen < lower_[i] ? lower_[i] : seen;
      const double clamped = above > upper_[i] ? upper_[i] : above;
      features[i] = (clamped - offset[i]) * scale[i];
    }
  }
  if (constant_ > 0) features[names_.size() - 1] = constant_;
}

}  // namespace eigenveil
