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

/// How theta moves along a released gradient.
struct DescentOptions {
  Optimizer optimizer = Optimizer::kAdam;
  double rate = 1e-3;
  double beta1 = 0.9;      ///< of Adam's mean of gradients
  double beta2 = 0.999;    ///< of their squares
  double adam_eps = 1e-8;  ///< added to the root of these
  double decay = 0;        ///< AdamW: theta shrinks by rate * decay a step
  long long warmup = 0;    ///< steps in which the rate grows from rate / warmup
  long long cosine = 0;    ///< at this step the rate has come down to 0 along a cosine; 0: it stays

  /// Of the step after `steps` others.
  double rate_at(long long steps) const {
    if (steps < warmup) return rate * static_cast<double>(steps + 1) / static_cast<double>(warmup);
    if (cosine <= warmup) return rate;
    const double past = static_cast<double>(steps - warmup) / static_cast<double>(cosine - warmup);
    return rate * (1 + std::cos(3.14159265358979323846 * std::min(past, 1.0))) / 2;
  }
};

/// theta <- theta - rate g, Adam's step (Kingma and Ba 2015), or AdamW's (Loshchilov and Hutter 2019). Post-processing
/// of g.
class Descent {
 public:
  Descent(Optimizer optimizer, double rate) : Descent(DescentOptions{.optimizer = optimizer, .rate = rate}) {}
  explicit Descent(const DescentOptions& options) : options_(options) {}

  /// What comes after theta and state, which may be the same objects.
  void step(const Vector& theta, const DescentState& state, const Eigen::Ref<const Vector>& gradient,
            Vector& next_theta, DescentState& next) const {
    const Eigen::Index size = theta.size();
    const double rate = options_.rate_at(state.steps);
    next_theta.resize(size);
    next.steps = state.steps + 1;
    if (options_.optimizer == Optimizer::kSgd) {
      next_theta = theta - rate * gradient;
      return;
    }
    const bool begins = state.first.size() == 0;
    next.first.resize(size);
    next.second.resize(size);
    if (begins) next.first.setZero(), next.second.setZero();
    const Vector& first = begins ? next.first : state.first;
    const Vector& second = begins ? next.second : state.second;
    const auto t = static_cast<double>(next.steps);
    const double b1 = options_.beta1, b2 = options_.beta2;
    const double one = 1 - std::pow(b1, t), two = 1 - std::pow(b2, t);
    const double kept = options_.optimizer == Optimizer::kAdamW ? 1 - rate * options_.decay : 1.0;
    for (Eigen::Index at = 0; at < size; at += kBlock) {
      const auto block = Eigen::seqN(at, std::min(kBlock, size - at));
      next.first(block) = b1 * first(block) + (1 - b1) * gradient(block);
      next.second(block) = b2 * second(block) + (1 - b2) * gradient(block).cwiseAbs2();
      next_theta(block).array() =
          kept * theta(block).array() -
          rate * (next.first(block).array() / one) / ((next.second(block).array() / two).sqrt() + options_.adam_eps);
    }
  }

  void step(Vector& theta, DescentState& state, const Eigen::Ref<const Vector>& gradient) const {
    step(theta, state, gradient, theta, state);
  }

 private:
  static constexpr Eigen::Index kBlock = 1024;  // stays in the nearest cache

  DescentOptions options_;
};

}  // namespace eigenveil
