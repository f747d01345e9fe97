// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/meter.hpp"

#include <fmt/format.h>

namespace eigenveil {

Error Meter::refuse(const std::string& why) {
  failed_ = true;
  return internal_error("the privacy meter refused an answer: " + why + "; nothing more will be answered in this run");
}

template <class Event>
Result<Event> Meter::next(const std::string& label) {
  if (failed_) return refuse("an earlier ask broke the plan");
  if (event_ == plan_.events.size()) return refuse(fmt::format("'{}' comes after the plan's last answer", label));
  const PrivacyEvent& planned = plan_.events[event_];
  if (label != planned.label)
    return refuse(fmt::format("the plan's next answer is '{}', not '{}'", planned.label, label));
  const auto* mechanism = std::get_if<Event>(&planned.mechanism);
  if (mechanism == nullptr) return refuse(fmt::format("'{}' was planned with noise of another kind", label));
  const Event event = *mechanism;
  if (++answered_ >= planned.count) {
    ++event_;
    answered_ = 0;
  }
  return event;
}

Result<Mu> Meter::gaussian(const std::string& label) {
  const auto event = EIGENVEIL_TRY(next<GaussianEvent>(label));
  return event.mu;
}

Result<PureEpsilon> Meter::pure(const std::string& label) {
  const auto event = EIGENVEIL_TRY(next<PureEvent>(label));
  return event.epsilon;
}

Result<PoissonGaussianEvent> Meter::poisson(const std::string& label) { return next<PoissonGaussianEvent>(label); }

}  // namespace eigenveil
