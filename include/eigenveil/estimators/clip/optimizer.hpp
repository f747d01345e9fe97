// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "eigenveil/base/types.hpp"
#include "eigenveil/estimators/clip/choices.hpp"

namespace eigenveil {

/// All that a later step needs to know, for checkpoints.
struct DescentState {
  long long steps = 0;
  Vector first, second;  ///< Adam's means of gradients and of their squares; empty before its first step
};

/// theta <- theta - rate g, or Adam's step (Kingma and Ba 2015) with its usual constants. Post-processing of g.
class Descent {
 public:
  Descent(Optimizer optimizer, double rate) : optimizer_(optimizer), rate_(rate) {}

  /// What comes after theta and state, which may be the same objects.
  void step(const Vector& theta, const DescentState& state, const Eigen::Ref<const Vector>& gradient,
            Vector& next_theta, DescentState& next) const {
    const Eigen::Index size = theta.size();
    next_theta.resize(size);
    next.steps = state.steps + 1;
    if (optimizer_ == Optimizer::kSgd) {
      next_theta = theta - rate_ * gradient;
      return;
    }
    const bool begins = state.first.size() == 0;
    next.first.resize(size);
    next.second.resize(size);
    if (begins) next.first.setZero(), next.second.setZero();
    const Vector& first = begins ? next.first : state.first;
    const Vector& second = begins ? next.second : state.second;
    const auto t = static_cast<double>(next.steps);
    const double one = 1 - std::pow(0.9, t), two = 1 - std::pow(0.999, t);
    for (Eigen::Index at = 0; at < size; at += kBlock) {
      const auto block = Eigen::seqN(at, std::min(kBlock, size - at));
      next.first(block) = 0.9 * first(block) + 0.1 * gradient(block);
      next.second(block) = 0.999 * second(block) + 0.001 * gradient(block).cwiseAbs2();
      next_theta(block).array() = theta(block).array() - rate_ * (next.first(block).array() / one) /
                                                             ((next.second(block).array() / two).sqrt() + 1e-8);
    }
  }

  void step(Vector& theta, DescentState& state, const Eigen::Ref<const Vector>& gradient) const {
    step(theta, state, gradient, theta, state);
  }

 private:
  static constexpr Eigen::Index kBlock = 1024;  // stays in the nearest cache

  Optimizer optimizer_;
  double rate_;
};

}  // namespace eigenveil
