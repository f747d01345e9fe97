#include "eigenveil/job/privacy.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "eigenveil/privacy/noisy_vector.hpp"

namespace eigenveil {
namespace {

// A data file without a data set of its own is recorded under its path (its end, if that is very long).
std::string name_of_file(const std::string& data, Adjacency adjacency) {
  constexpr std::size_t kLongest = 160;
  std::error_code failure;
  const auto canonical = std::filesystem::weakly_canonical(data, failure);
  std::string path = failure ? data : canonical.string();
  if (path.size() > kLongest) path = path.substr(path.size() - kLongest);
  return fmt::format("file {} ({})", path, name(adjacency));
}

Result<std::unique_ptr<Reservation>> reserve(const PrivacyPlan& plan, const PrivacyOptions& privacy,
                                             const std::string& dataset, const std::string& purpose, bool once) {
  auto ledger = Ledger::open(privacy.ledger.empty() ? Ledger::default_path() : privacy.ledger);
  if (!ledger) return ledger.error();
  if (privacy.dataset.empty())
    EIGENVEIL_TRY(ledger->create_if_missing({.name = dataset, .limit = {}, .adjacency = plan.adjacency}));
  return once ? ledger->reserve_once(dataset, plan, purpose)
              : ledger->reserve(dataset, plan, purpose);
}

// What the samplers cannot draw is refused before it is charged.
Status check_drawable(const PrivacyPlan& plan, Sensitivity largest) {
  for (const PrivacyEvent& event : plan.events) {
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) {
      const auto noise = GaussianMechanism::noise_for(largest, gaussian->mu);
      if (!noise) return noise.error();
    }
    if (const auto* poisson = std::get_if<PoissonGaussianEvent>(&event.mechanism)) {
      const auto noise = GaussianMechanism::noise_for(NoisyVector::sensitivity(), 1 / poisson->sigma);
      if (!noise) return noise.error();
    }
    if (const auto* pure = std::get_if<PureEvent>(&event.mechanism)) EIGENVEIL_TRY(SparseVector::check(pure->epsilon));
  }
  return {};
}

}  // namespace

Result<CertifiedPlan> certify(const PrivacyPlan& shape, Sensitivity largest, const PrivacyOptions& privacy) {
  if (shape.adjacency != privacy.adjacency)
    return internal_error("the plan is for other neighbours than the release says: nothing was charged");
  const bool tight = privacy.calibration == Calibration::kTight;
  auto plan = tight ? calibrate(shape, privacy.epsilon, privacy.delta, privacy.accounting) : Result<PrivacyPlan>(shape);
  if (!plan) return plan.error();
  const auto certified = epsilon_of(plan->events, privacy.delta, privacy.accounting);
  if (!certified) return certified.error();
  if (tight && !(*certified <= privacy.epsilon.value()))
    return internal_error(fmt::format("the plan is certified at epsilon {}, above the budget {}: nothing was charged",
                                      *certified, privacy.epsilon.value()));
  EIGENVEIL_TRY(check_drawable(*plan, largest));
  return CertifiedPlan{*std::move(plan), *certified};
}

Sensitivity largest_sensitivity(const Lattice& lattice) {
  const auto L = static_cast<double>(lattice.norm_bound());
  return Sensitivity(2 * L * L * kFilteredParts);  // a filtered sum, unfiltered
}

Result<ChargedPlan> charge_plan(const PrivacyPlan& shape, Sensitivity largest, const PrivacyOptions& privacy,
                                const RunOptions& run, const std::string& data, const std::string& purpose,
                                Observer& observer) {
  auto certified = certify(shape, largest, privacy);
  if (!certified) return certified.error();
  return charge_certified(*std::move(certified), privacy, run, data, purpose, false, observer);
}

Result<ChargedPlan> charge_certified(CertifiedPlan certified, const PrivacyOptions& privacy, const RunOptions& run,
                                     const std::string& data, const std::string& purpose, bool once,
                                     Observer& observer) {
  observer.step("reserving budget");
  std::string dataset;
  if (privacy.use_ledger) dataset = privacy.dataset.empty() ? name_of_file(data, certified.plan.adjacency) : privacy.dataset;
  auto reservation = privacy.use_ledger ? reserve(certified.plan, privacy, dataset, purpose, once)
                                        : Result<std::unique_ptr<Reservation>>(reserve_without_ledger(certified.plan));
  if (!reservation) return reservation.error();
  observer.step("budget reserved");

  auto random = run.insecure_seed ? SecureRandom::insecure(*run.insecure_seed) : SecureRandom::from_kernel();
  const bool secure = random.secure();
  return ChargedPlan{
      {std::move(certified.plan), certified.epsilon, secure, dataset}, *std::move(reservation), std::move(random)};
}

Budget budget_of(const PrivacyOptions& privacy) {
  return {privacy.epsilon, privacy.delta, privacy.adjacency, privacy.accounting, privacy.calibration};
}

std::string guarantee_in_words(const PrivacyOptions& privacy, const Charge& charge) {
  if (!charge.secure)
    return "NOT PRIVATE: the noise was made from a given seed, and whoever knows the seed can subtract it. For tests "
           "and demonstrations only.";
  const bool paper = privacy.calibration == Calibration::kPaper;
  const double epsilon = paper ? charge.certified_epsilon : privacy.epsilon.value();
  const std::string words = fmt::format(
      "This release is ({:.6g}, {:g})-differentially private when {}. Even someone who knows every other row and "
      "all of this software can change their odds about any one row by at most a factor e^{:.6g} = {:.3g} through it, "
      "except with probability {:g}. ",
      epsilon, privacy.delta.value(),
      privacy.adjacency == Adjacency::kReplaceOne ? "one row is replaced by any other; the number of rows is public"
                                                  : "one row is added or removed; the number of rows is private",
      epsilon, std::exp(epsilon), privacy.delta.value());
  return words + (charge.plan.model_based
                      ? "This is a model-based guarantee: it holds with high probability if the rows are independent "
                        "draws from a spiked Gaussian, and need not hold for any other data."
                      : "It holds for every data set; it does not depend on how the rows were drawn.");
}

}  // namespace eigenveil
