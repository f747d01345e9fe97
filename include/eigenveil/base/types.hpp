// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <compare>
#include <cstdint>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

using Matrix = Eigen::MatrixXd;
using RowMajorMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// A privacy parameter that cannot be mistaken for another one: Epsilon does not convert to Delta, nor a bare
/// double to either. `of` validates; the default member is for containers only and is no valid parameter.
template <class Tag>
class Parameter {
 public:
  static Result<Parameter> of(double value) {
    if (!Tag::valid(value)) return usage_error(Tag::refusal(value));
    return Parameter(value);
  }
  constexpr double value() const { return value_; }
  friend constexpr auto operator<=>(Parameter, Parameter) = default;

 private:
  explicit constexpr Parameter(double value) : value_(value) {}
  double value_;
};

namespace tag {
struct Epsilon {
  static bool valid(double value);
  static std::string refusal(double value);
};
struct Delta {
  static bool valid(double value);
  static std::string refusal(double value);
};
struct RowBound {
  static bool valid(double value);
  static std::string refusal(double value);
};
}  // namespace tag

using Epsilon = Parameter<tag::Epsilon>;    ///< from 1e-6 to 1000
using Delta = Parameter<tag::Delta>;        ///< from 1e-300 to 1/2
using RowBound = Parameter<tag::RowBound>;  ///< finite, > 0: the largest Euclidean norm a row may keep

}  // namespace eigenveil
