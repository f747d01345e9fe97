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
  /// What somebody should hear before the budget is reserved, where nobody is asked to confirm it: that the rows would
  /// teach nothing, that the guarantee would be hardly one. It says nothing about the rows.
  virtual void concern(std::string_view /*words*/) {}
  /// What the rows show and their operator should know, said before the budget is reserved: not private, for nobody
  /// else, and in no release. It stops nothing.
  virtual void remark(std::string_view /*words*/) {}
};

}  // namespace eigenveil
