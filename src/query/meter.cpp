#include "eigenveil/query/meter.hpp"

#include <fmt/format.h>

namespace eigenveil {
namespace {

bool at_least_as_noisy(const Mechanism& asked, const Mechanism& planned) {
  if (asked.index() != planned.index()) return false;
  if (const auto* gaussian = std::get_if<GaussianEvent>(&asked))
    return gaussian->mu <= std::get<GaussianEvent>(planned).mu;
  if (const auto* pure = std::get_if<PureEvent>(&asked)) return pure->epsilon <= std::get<PureEvent>(planned).epsilon;
  const auto& poisson = std::get<PoissonGaussianEvent>(asked);
  const auto& limit = std::get<PoissonGaussianEvent>(planned);
  return poisson.q <= limit.q && poisson.sigma >= limit.sigma;
}

}  // namespace

Status Meter::refuse(const std::string& why) {
  failed_ = true;
  return internal_error("the privacy meter refused an answer: " + why + "; nothing more will be answered in this run");
}

Status Meter::admit(const std::string& label, const Mechanism& asked) {
  if (failed_) return refuse("an earlier ask broke the plan");
  if (event_ == plan_.events.size()) return refuse(fmt::format("'{}' comes after the plan's last answer", label));
  const PrivacyEvent& next = plan_.events[event_];
  if (label != next.label) return refuse(fmt::format("the plan's next answer is '{}', not '{}'", next.label, label));
  if (!at_least_as_noisy(asked, next.mechanism))
    return refuse(fmt::format("'{}' was asked with less noise than planned", label));
  if (++answered_ == next.count) {
    ++event_;
    answered_ = 0;
  }
  return {};
}

}  // namespace eigenveil
