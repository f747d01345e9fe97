// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/papers/noise.hpp"

#include <algorithm>
#include <cmath>

namespace eigenveil::papers {
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

std::size_t products_in(const PrivacyPlan& plan) {
  return std::count_if(plan.events.begin(), plan.events.end(),
                       [](const PrivacyEvent& event) { return event.label.starts_with("product"); });
}

// Of one of m answers that one row moves by at most `sensitivity`.
double mu_of(double sensitivity, double C, std::size_t rounds, Epsilon epsilon, Delta delta) {
  return sensitivity / (C * std::sqrt(static_cast<double>(rounds) / rho(epsilon, delta)));
}

// Counts, sums, then a product per round.
PrivacyPlan classes(PrivacyPlan plan, double between, double within, Epsilon epsilon, Delta delta) {
  const std::size_t rounds = plan.events.size() - 2;
  plan.events[0].mechanism = GaussianEvent{mu_of(std::sqrt(2.0), between, rounds, epsilon, delta)};
  plan.events[1].mechanism = GaussianEvent{mu_of(2, between, rounds, epsilon, delta)};
  for (std::size_t i = 2; i < plan.events.size(); ++i)
    plan.events[i].mechanism = GaussianEvent{mu_of(1, within, rounds, epsilon, delta)};
  return plan;
}

}  // namespace

PrivacyPlan gram(PrivacyPlan plan, Epsilon epsilon, Delta delta) {
  const double sigma = std::sqrt(2 * std::log(1.25 / delta.value())) / epsilon.value();  // in units of B^2
  // An entry off the diagonal has deviation s / (sqrt(2) mu), s = sqrt(2) or 1.
  const double mu = (plan.adjacency == Adjacency::kReplaceOne ? 1.0 : std::sqrt(0.5)) / sigma;
  return with_noise(std::move(plan), {"covariance"}, mu, kPreparation * epsilon.value());
}

PrivacyPlan sparse_power(PrivacyPlan plan, std::size_t components, Epsilon epsilon, Delta delta) {
  const auto T = static_cast<double>(products_in(plan));
  const double sigma = 2 * T / epsilon.value() * std::sqrt(2 * std::log(2 * T / delta.value()));
  const double sensitivity =
      plan.adjacency == Adjacency::kReplaceOne ? std::sqrt(std::min(2.0, static_cast<double>(components))) : 1.0;
  return with_noise(std::move(plan), {"product"}, sensitivity / sigma, kPreparation * epsilon.value());
}

PrivacyPlan adaptive_power(PrivacyPlan plan, Epsilon epsilon, Delta delta) {
  const auto T = static_cast<double>(products_in(plan));
  const double delta0 = delta.value() / (T + 1);
  const double epsilon0 = round_epsilon(T, epsilon.value(), delta0);
  const double sigma = std::sqrt(2 * std::log(2 / delta0)) / epsilon0;  // in units of theta
  const double sensitivity = plan.adjacency == Adjacency::kReplaceOne ? 2.0 : 1.0;
  return with_noise(std::move(plan), {"product"}, sensitivity / sigma, epsilon0);
}

double rows_above(std::size_t rounds, Epsilon epsilon, Delta delta) {
  const auto T = static_cast<double>(rounds);
  return 6 * std::log(1 / 0.05) / round_epsilon(T, epsilon.value(), delta.value() / (T + 1));
}

PrivacyPlan spiked(PrivacyPlan plan, Epsilon epsilon, Delta delta) {
  const double sigma = std::sqrt(8 * std::log(2.5 / delta.value())) / epsilon.value();  // in units of Delta
  return with_noise(std::move(plan), {"projector", "eigenvalues"}, std::sqrt(0.5) / sigma,
                    kPreparation * epsilon.value());
}

double rho(Epsilon epsilon, Delta delta) {
  const double tail = -std::log(delta.value());
  const double root = std::sqrt(epsilon.value() + tail) - std::sqrt(tail);
  return root * root;
}

PrivacyPlan cca(PrivacyPlan plan, Epsilon epsilon, Delta delta) {
  const double mu = mu_of(std::sqrt(2.0), 12, plan.events.size(), epsilon, delta);
  for (PrivacyEvent& event : plan.events) event.mechanism = GaussianEvent{mu};
  return plan;
}

PrivacyPlan fda(PrivacyPlan plan, Epsilon epsilon, Delta delta) {
  return classes(std::move(plan), 4, 7, epsilon, delta);
}

PrivacyPlan sir(PrivacyPlan plan, Epsilon epsilon, Delta delta) {
  return classes(std::move(plan), 13, 6, epsilon, delta);
}

PrivacyPlan matrices(PrivacyPlan plan, Epsilon epsilon, Delta delta) {
  const double mu = mu_of(1, 1, plan.events.size() / 2, epsilon, delta);  // two products per round
  for (PrivacyEvent& event : plan.events) event.mechanism = GaussianEvent{mu};
  return plan;
}

Result<PrivacyPlan> batch(const PrivacyPlan& plan, Epsilon epsilon, Delta delta, Accounting accounting) {
  auto halved = EIGENVEIL_TRY(calibrate(plan, epsilon, delta, accounting));
  for (PrivacyEvent& event : halved.events) std::get<PoissonGaussianEvent>(event.mechanism).sigma /= 2;
  return halved;
}

}  // namespace eigenveil::papers
