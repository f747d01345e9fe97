// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace eigenveil {

/// Hears how far a job is. The library never prints; whoever runs a job decides what to show.
class Observer {
 public:
  virtual ~Observer() = default;
  /// A step begins: "reading rows", "reserving budget", "asking: covariance", "writing model", ...
  virtual void step(std::string_view /*name*/) {}
  /// Share of the current step that is done, in [0, 1].
  virtual void progress(double /*share*/) {}
};

}  // namespace eigenveil
