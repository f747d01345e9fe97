#pragma once

#include "eigenveil/privacy/event.hpp"

namespace eigenveil {

/// Holds what was charged and lets through nothing else: every ask must be the next one of the plan, with at least the
/// planned noise. After the first refusal everything is refused.
class Meter {
 public:
  explicit Meter(PrivacyPlan plan) : plan_(std::move(plan)) {}

  Status admit(const std::string& label, const Mechanism& asked);

  bool complete() const { return !failed_ && event_ == plan_.events.size(); }
  const PrivacyPlan& plan() const { return plan_; }

 private:
  Status refuse(const std::string& why);

  PrivacyPlan plan_;
  std::size_t event_ = 0;   // the event that the next ask belongs to
  long long answered_ = 0;  // how many asks of that event were let through
  bool failed_ = false;
};

}  // namespace eigenveil
