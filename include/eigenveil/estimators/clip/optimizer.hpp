#pragma once

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

  void step(Vector& theta, DescentState& state, const Eigen::Ref<const Vector>& gradient) const {
    ++state.steps;
    if (optimizer_ == Optimizer::kSgd) {
      theta -= rate_ * gradient;
      return;
    }
    if (state.first.size() == 0) state.first = state.second = Vector::Zero(theta.size());
    state.first = 0.9 * state.first + 0.1 * gradient;
    state.second = 0.999 * state.second + 0.001 * gradient.cwiseAbs2();
    const auto t = static_cast<double>(state.steps);
    const double one = 1 - std::pow(0.9, t), two = 1 - std::pow(0.999, t);
    theta.array() -= rate_ * (state.first.array() / one) / ((state.second.array() / two).sqrt() + 1e-8);
  }

 private:
  Optimizer optimizer_;
  double rate_;
};

}  // namespace eigenveil
