#pragma once

#include <cmath>

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// What follows a noisy gradient: post-processing.
struct OptimizerOptions {
  enum class Kind { kSgd, kAdam };
  Kind kind = Kind::kAdam;
  double lr = 1e-3;  ///< learning rate
};

/// Parameters under training and all that the next step needs to know.
struct OptimizerState {
  long long step = 0;  ///< steps taken
  Vector parameters;
  Vector first;   ///< Adam's mean of gradients; empty for SGD
  Vector second;  ///< Adam's mean of their squares

  static OptimizerState start(Vector parameters, const OptimizerOptions& options) {
    const Eigen::Index moments = options.kind == OptimizerOptions::Kind::kAdam ? parameters.size() : 0;
    return {0, std::move(parameters), Vector::Zero(moments), Vector::Zero(moments)};
  }

  /// w <- w - lr g, or Adam's step (Kingma and Ba 2015) with beta = 0.9, 0.999.
  void take_step(const Vector& g, const OptimizerOptions& options) {
    ++step;
    if (options.kind == OptimizerOptions::Kind::kSgd) {
      parameters -= options.lr * g;
      return;
    }
    constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kTiny = 1e-8;
    first = kBeta1 * first + (1 - kBeta1) * g;
    second = kBeta2 * second + (1 - kBeta2) * g.cwiseAbs2();
    const auto t = static_cast<double>(step);
    const double scale1 = 1 / (1 - std::pow(kBeta1, t)), scale2 = 1 / (1 - std::pow(kBeta2, t));
    parameters.array() -= options.lr * scale1 * first.array() / ((scale2 * second.array()).sqrt() + kTiny);
  }
};

}  // namespace eigenveil
