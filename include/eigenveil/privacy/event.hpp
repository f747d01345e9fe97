#pragma once

#include <string>
#include <variant>
#include <vector>

#include "eigenveil/base/result.hpp"

namespace eigenveil {

/// One answer with Gaussian noise: mu = sensitivity / sigma. mu = infinity is an answer without noise.
struct GaussianEvent {
  double mu;
  friend bool operator==(const GaussianEvent&, const GaussianEvent&) = default;
};

/// One answer that is epsilon-differentially private by itself (sparse vector, exponential mechanism).
struct PureEvent {
  double epsilon;
  friend bool operator==(const PureEvent&, const PureEvent&) = default;
};

/// One Gaussian answer over a Poisson sample: each row is in with probability q, sigma is the noise multiplier.
/// Defined for add-remove-one neighbours.
struct PoissonGaussianEvent {
  double q;
  double sigma;
  friend bool operator==(const PoissonGaussianEvent&, const PoissonGaussianEvent&) = default;
};

using Mechanism = std::variant<GaussianEvent, PureEvent, PoissonGaussianEvent>;

/// `count` answers of the same kind, one after the other, under one label.
struct PrivacyEvent {
  std::string label;
  Mechanism mechanism;
  long long count = 1;
  friend bool operator==(const PrivacyEvent&, const PrivacyEvent&) = default;
};

/// Every noisy answer a computation will ever ask for, in order, fixed before the first one.
struct PrivacyPlan {
  std::vector<PrivacyEvent> events;
  bool model_based = false;  ///< some answers' sensitivities are assumed under a model of the rows, not proved
};

/// Parses `gaussian:mu=0.2,count=8`, `pure:epsilon=0.05`, `poisson-gaussian:q=0.01,sigma=1,count=1000`.
Result<PrivacyEvent> event_from_text(const std::string& text);
/// The inverse of `event_from_text`, without the label.
std::string to_text(const PrivacyEvent& event);
/// Refuses parameters that are no probability, no noise scale, no count.
Status validate(const PrivacyEvent& event);

}  // namespace eigenveil
