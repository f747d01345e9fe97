// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/query/meter.hpp"

#include <fmt/format.h>

#include <cmath>

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

Result<Mu> Meter::rest(const std::string& label) {
  if (failed_) return refuse("an earlier ask broke the plan");
  double squares = 0;
  for (std::size_t i = event_; i < plan_.events.size(); ++i) {
    const PrivacyEvent& planned = plan_.events[i];
    const auto left = static_cast<double>(planned.count - (i == event_ ? answered_ : 0));
    if (const auto* gaussian = std::get_if<GaussianEvent>(&planned.mechanism))
      squares += left * gaussian->mu * gaussian->mu;
    else if (!std::holds_alternative<PureEvent>(planned.mechanism))
      return refuse(fmt::format("'{}' cannot stand for '{}', which samples rows", label, planned.label));
  }
  event_ = plan_.events.size();
  answered_ = 0;
  // More than all roundings above: (events + 3) 2^-53 of the sum, half as much of its root.
  const double down = 1 - 0x1p-40 - static_cast<double>(plan_.events.size()) * 0x1p-52;
  const auto mu = Mu::of(std::sqrt(squares) * down);
  return mu ? mu : Result<Mu>(refuse(fmt::format("the plan has no noise left for '{}'", label)));
}

Result<PoissonGaussianEvent> Meter::poisson(const std::string& label) { return next<PoissonGaussianEvent>(label); }

Status all_asked(bool complete) {
  return complete ? Status() : internal_error("the fit did not ask for all that was planned");
}

}  // namespace eigenveil
