// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "eigenveil/base/result.hpp"
#include "eigenveil/privacy/adjacency.hpp"

namespace eigenveil {

/// "NAME must lie between LEAST and MOST, but is VALUE"
std::string out_of_range(const char* name, double least, double most, double value);

/// A number that says how private an answer is. NaN, infinities, zero, negatives and whatever else lies outside the
/// range of its tag cannot be held, so nobody has to ask for them. Numbers from outside come in by `of`; the
/// constructor is for our own arithmetic and throws std::domain_error.
template <class Tag>
class Level {
 public:
  static Result<Level> of(double value) {
    if (!valid(value)) return usage_error(refusal(value));
    return Level(value);
  }
  Level(double value) : value_(value) {  // NOLINT(google-explicit-constructor)
    if (!valid(value)) throw std::domain_error(refusal(value));
  }
  operator double() const { return value_; }  // NOLINT(google-explicit-constructor)
  double value() const { return value_; }
  Level& operator*=(double factor) { return *this = Level(value_ * factor); }
  Level& operator/=(double divisor) { return *this = Level(value_ / divisor); }

 private:
  static bool valid(double value) { return value >= Tag::kLeast && value <= Tag::kMost; }  // false for NaN
  static std::string refusal(double value) { return out_of_range(Tag::kName, Tag::kLeast, Tag::kMost, value); }
  double value_;
};

namespace tag {
struct Mu {
  static constexpr const char* kName = "mu";
  static constexpr double kLeast = 0x1p-100, kMost = 0x1p60;
};
struct PureEpsilon {
  static constexpr const char* kName = "epsilon of a pure answer";
  static constexpr double kLeast = 0x1p-100, kMost = 100;  // beyond, the noise would be zero practically always
};
struct SampleRate {
  static constexpr const char* kName = "the sampling rate q";
  static constexpr double kLeast = 0x1p-100, kMost = 1;
};
struct NoiseMultiplier {
  static constexpr const char* kName = "the noise multiplier sigma";
  static constexpr double kLeast = 0x1p-60, kMost = 0x1p100;
};
}  // namespace tag

using Mu = Level<tag::Mu>;                            ///< sensitivity / sigma of Gaussian noise
using PureEpsilon = Level<tag::PureEpsilon>;          ///< of an answer that is private without a delta
using SampleRate = Level<tag::SampleRate>;            ///< probability of a row to be in a Poisson sample
using NoiseMultiplier = Level<tag::NoiseMultiplier>;  ///< sigma / sensitivity

/// One answer with Gaussian noise.
struct GaussianEvent {
  Mu mu;
  friend bool operator==(const GaussianEvent&, const GaussianEvent&) = default;
};

/// One answer that is epsilon-differentially private by itself (sparse vector, exponential mechanism).
struct PureEvent {
  PureEpsilon epsilon;
  friend bool operator==(const PureEvent&, const PureEvent&) = default;
};

/// One Gaussian answer over a Poisson sample. Defined for add-remove-one neighbours.
struct PoissonGaussianEvent {
  SampleRate q;
  NoiseMultiplier sigma;
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

/// Every noisy answer a computation will ever ask for, in order, fixed before the first one, and the neighbours that
/// their noise hides. Whoever holds a plan needs to be told neither noise nor adjacency.
struct PrivacyPlan {
  explicit PrivacyPlan(Adjacency between, std::vector<PrivacyEvent> answers = {}, bool by_model = false)
      : adjacency(between), events(std::move(answers)), model_based(by_model) {}

  Adjacency adjacency;
  std::vector<PrivacyEvent> events;
  bool model_based;  ///< some answers' sensitivities are assumed under a model of the rows, not proved
  /// The column that says whose a row is: neighbours differ in one person, with all their rows. Empty: in one row.
  std::string person = {};

  friend bool operator==(const PrivacyPlan&, const PrivacyPlan&) = default;
};

/// Parses `gaussian:mu=0.2,count=8`, `pure:epsilon=0.05`, `poisson-gaussian:q=0.01,sigma=1,count=1000`.
Result<PrivacyEvent> event_from_text(const std::string& text);
/// The inverse of `event_from_text`, without the label.
std::string to_text(const PrivacyEvent& event);
/// Refuses a count below one.
Status validate(const PrivacyEvent& event);

}  // namespace eigenveil
