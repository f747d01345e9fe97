#include "eigenveil/estimators/pca/paper.hpp"

#include <algorithm>
#include <cmath>

namespace eigenveil {
namespace {

constexpr double kPreparation = 0.1;

// mu for the answers whose label begins with `main`, epsilon_0 for searches, a tenth of mu for the rest
PrivacyPlan with_noise(PrivacyPlan plan, const std::vector<std::string>& main, double mu, double search) {
  for (PrivacyEvent& event : plan.events) {
    const bool is_main =
        std::any_of(main.begin(), main.end(), [&](const std::string& label) { return event.label.starts_with(label); });
    if (auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) gaussian->mu = is_main ? mu : kPreparation * mu;
    if (auto* pure = std::get_if<PureEvent>(&event.mechanism)) pure->epsilon = search;
  }
  return plan;
}

// epsilon_0 of 001: the positive root of T x^2 + sqrt(2 T ln(1 / delta_0)) x - epsilon / 2
double round_epsilon(double T, double epsilon, double delta0) {
  const double b = std::sqrt(2 * T * std::log(1 / delta0));
  return (-b + std::sqrt(b * b + 2 * T * epsilon)) / (2 * T);
}

}  // namespace

PrivacyPlan paper_gram(PrivacyPlan plan, Adjacency adjacency, Epsilon epsilon, Delta delta) {
  const double sigma = std::sqrt(2 * std::log(1.25 / delta.value())) / epsilon.value();  // in units of B^2
  // An entry off the diagonal has deviation s / (sqrt(2) mu), s = sqrt(2) or 1.
  const double mu = (adjacency == Adjacency::kReplaceOne ? 1.0 : std::sqrt(0.5)) / sigma;
  return with_noise(std::move(plan), {"covariance"}, mu, kPreparation * epsilon.value());
}

PrivacyPlan paper_sparse_power(PrivacyPlan plan, Adjacency adjacency, std::size_t rounds, std::size_t components,
                               Epsilon epsilon, Delta delta) {
  const auto T = static_cast<double>(rounds);
  const double sigma = 2 * T / epsilon.value() * std::sqrt(2 * std::log(2 * T / delta.value()));
  const double sensitivity =
      adjacency == Adjacency::kReplaceOne ? std::sqrt(std::min(2.0, static_cast<double>(components))) : 1.0;
  return with_noise(std::move(plan), {"product"}, sensitivity / sigma, kPreparation * epsilon.value());
}

PrivacyPlan paper_adaptive_power(PrivacyPlan plan, Adjacency adjacency, std::size_t rounds, Epsilon epsilon,
                                 Delta delta) {
  const auto T = static_cast<double>(rounds);
  const double delta0 = delta.value() / (T + 1);
  const double epsilon0 = round_epsilon(T, epsilon.value(), delta0);
  const double sigma = std::sqrt(2 * std::log(2 / delta0)) / epsilon0;  // in units of theta
  const double sensitivity = adjacency == Adjacency::kReplaceOne ? 2.0 : 1.0;
  return with_noise(std::move(plan), {"product"}, sensitivity / sigma, epsilon0);
}

double paper_rows_above(std::size_t rounds, Epsilon epsilon, Delta delta) {
  const auto T = static_cast<double>(rounds);
  return 6 * std::log(1 / 0.05) / round_epsilon(T, epsilon.value(), delta.value() / (T + 1));
}

PrivacyPlan paper_spiked(PrivacyPlan plan, Epsilon epsilon, Delta delta) {
  const double sigma = std::sqrt(8 * std::log(2.5 / delta.value())) / epsilon.value();  // in units of Delta
  return with_noise(std::move(plan), {"projector", "eigenvalues"}, std::sqrt(0.5) / sigma,
                    kPreparation * epsilon.value());
}

}  // namespace eigenveil
