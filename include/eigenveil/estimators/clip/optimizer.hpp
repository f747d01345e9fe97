#pragma once

#include <cmath>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

enum class Optimizer { kSgd, kAdam };

/// All that a later step needs to know, for checkpoints.
struct DescentState {
  long long steps = 0;
  Vector first, second;  ///< Adam's means of gradients and of their squares; empty before its first step
};

/// theta <- theta - rate g, or Adam's step (Kingma and Ba 2015) with its usual constants. Post-processing of g.
class Descent {
 public:
  Descent(Optimizer optimizer, double rate, DescentState state = {})
      : optimizer_(optimizer), rate_(rate), state_(std::move(state)) {}
  const DescentState& state() const { return state_; }

  void step(Vector& theta, const Vector& gradient) {
    ++state_.steps;
    if (optimizer_ == Optimizer::kSgd) {
      theta -= rate_ * gradient;
      return;
    }
    if (state_.first.size() == 0) state_.first = state_.second = Vector::Zero(theta.size());
    state_.first = 0.9 * state_.first + 0.1 * gradient;
    state_.second = 0.999 * state_.second + 0.001 * gradient.cwiseAbs2();
    const auto t = static_cast<double>(state_.steps);
    const double one = 1 - std::pow(0.9, t), two = 1 - std::pow(0.999, t);
    theta.array() -= rate_ * (state_.first.array() / one) / ((state_.second.array() / two).sqrt() + 1e-8);
  }

 private:
  Optimizer optimizer_;
  double rate_;
  DescentState state_;
};

}  // namespace eigenveil
