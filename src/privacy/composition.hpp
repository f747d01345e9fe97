// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "loss.hpp"

namespace eigenveil::loss {

/// `count` answers of one kind.
struct Source {
  Mechanism mechanism;
  double count;
};

/// The law of the summed loss, tilted, on a window of grid points, with everything that escaped the window in bounds.
class Composition {
 public:
  /// None if it would take more than `most_points` grid points, or if the numbers leave the range of double; then
  /// `points_wanted` says how many it would take (0: not a matter of points).
  static std::optional<Composition> of(const std::vector<Source>& sources, Direction direction, const Grid& grid,
                                       double most_points, double& points_wanted);

  /// ln delta at epsilon >= 0, from above.
  double log_delta(double epsilon) const;
  /// The smallest epsilon >= 0 at ln delta, from above; infinity if the escaped mass alone exceeds delta.
  double epsilon(double log_delta) const;

 private:
  Composition() = default;
  double loss_at(std::size_t i) const;
  /// ln of the mass that is charged to delta whatever epsilon is: infinite losses and losses above the window.
  double log_escaped() const;

  Grid grid_{};
  bool complete_ = false;     // the window reaches up to the largest loss
  double low_ = 0;            // index of the lowest loss in the window, in steps
  std::vector<double> mass_;  // tilted masses, total about 1, each an upper bound in exact arithmetic but for slack.md
  double log_moment_ = 0;     // ln E e^{theta L}: the untilted mass is mass_[i] e^{log_moment_ - theta loss}
  double log_infinite_ = 0;
};

}  // namespace eigenveil::loss
