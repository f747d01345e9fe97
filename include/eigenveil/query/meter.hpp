// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/privacy/event.hpp"

namespace eigenveil {

/// Holds what was charged and gives out its noise, answer by answer: every ask must be the next one of the plan, by
/// label and by kind of noise. Nobody tells it how much noise there shall be. After the first refusal everything is
/// refused.
class Meter {
 public:
  explicit Meter(PrivacyPlan plan) : plan_(std::move(plan)) {}

  Result<Mu> gaussian(const std::string& label);
  Result<PureEpsilon> pure(const std::string& label);
  Result<PoissonGaussianEvent> poisson(const std::string& label);
  /// All answers that are left, given up for one with Gaussian noise: query.proof.md.
  Result<Mu> rest(const std::string& label);

  bool complete() const { return !failed_ && event_ == plan_.events.size(); }
  const PrivacyPlan& plan() const { return plan_; }

 private:
  Error refuse(const std::string& why);
  template <class Event>
  Result<Event> next(const std::string& label);

  PrivacyPlan plan_;
  std::size_t event_ = 0;   // the event that the next ask belongs to
  long long answered_ = 0;  // how many asks of that event were let through
  bool failed_ = false;
};

/// Whoever was charged for a plan asks for all of it: `complete` says whether its oracle was.
Status all_asked(bool complete);

}  // namespace eigenveil
