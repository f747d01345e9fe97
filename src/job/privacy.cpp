#include "eigenveil/job/privacy.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

namespace eigenveil {
namespace {

/// Tells the observer about every ask, and passes it on.
class ObservedOracle final : public Oracle {
 public:
  ObservedOracle(std::unique_ptr<Oracle> oracle, Observer& observer)
      : oracle_(std::move(oracle)), observer_(observer) {}

  RowsShape shape() const override { return oracle_->shape(); }
  bool complete() const override { return oracle_->complete(); }
  Result<Released<Matrix>> ask(const std::string& label, const SumQuery& query, double mu) override {
    observer_.step("asking: " + label);
    return oracle_->ask(label, query, mu);
  }
  Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                              std::int64_t target, double epsilon) override {
    observer_.step("asking: " + label);
    return oracle_->first_at_most(label, query, target, epsilon);
  }
  Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product, const FilteredApply& query,
                                      std::int64_t target, double epsilon, double mu) override {
    observer_.step("asking: " + search + ", " + product);
    return oracle_->ask_filtered(search, product, query, target, epsilon, mu);
  }
  Result<Released<Matrix>> ask_model(const std::string& label, const ModelQuery& query, double mu) override {
    observer_.step("asking: " + label);
    return oracle_->ask_model(label, query, mu);
  }
  Status recenter(const Vector& mean, RowBound radius) override {
    observer_.step("recentring rows");
    return oracle_->recenter(mean, radius);
  }

 private:
  std::unique_ptr<Oracle> oracle_;
  Observer& observer_;
};

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
                                             const std::string& dataset, const std::string& purpose) {
  auto ledger = Ledger::open(privacy.ledger.empty() ? Ledger::default_path() : privacy.ledger);
  if (!ledger) return ledger.error();
  if (privacy.dataset.empty())
    EIGENVEIL_TRY(ledger->create_if_missing({.name = dataset, .limit = {}, .adjacency = privacy.adjacency}));
  return ledger->reserve(dataset, privacy.adjacency, plan, purpose);
}

// What the samplers cannot draw is refused before it is charged.
Status check_drawable(const PrivacyPlan& plan, Sensitivity largest) {
  for (const PrivacyEvent& event : plan.events) {
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) {
      const auto noise = GaussianMechanism::noise_for(largest, gaussian->mu);
      if (!noise) return noise.error();
    }
    if (const auto* pure = std::get_if<PureEvent>(&event.mechanism)) EIGENVEIL_TRY(SparseVector::check(pure->epsilon));
  }
  return {};
}

}  // namespace

Result<ChargedPlan> charge_plan(const PrivacyPlan& shape, Sensitivity largest, const PrivacyOptions& privacy,
                                const RunOptions& run, const std::string& data, const std::string& purpose,
                                Observer& observer) {
  const bool tight = privacy.calibration == Calibration::kTight;
  auto plan = tight ? calibrate(shape, privacy.epsilon, privacy.delta, privacy.accounting) : Result<PrivacyPlan>(shape);
  if (!plan) return plan.error();
  const auto certified = epsilon_of(plan->events, privacy.delta, privacy.accounting);
  if (!certified) return certified.error();
  if (tight && !(*certified <= privacy.epsilon.value()))
    return internal_error(fmt::format("the plan is certified at epsilon {}, above the budget {}: nothing was charged",
                                      *certified, privacy.epsilon.value()));
  EIGENVEIL_TRY(check_drawable(*plan, largest));

  observer.step("reserving budget");
  std::string dataset;
  if (privacy.use_ledger) dataset = privacy.dataset.empty() ? name_of_file(data, privacy.adjacency) : privacy.dataset;
  auto reservation = privacy.use_ledger ? reserve(*plan, privacy, dataset, purpose)
                                        : Result<std::unique_ptr<Reservation>>(reserve_without_ledger(*plan));
  if (!reservation) return reservation.error();
  observer.step("budget reserved");

  auto random = run.insecure_seed ? SecureRandom::insecure(*run.insecure_seed) : SecureRandom::from_kernel();
  const bool secure = random.secure();
  return ChargedPlan{{*std::move(plan), *certified, secure, dataset}, *std::move(reservation), std::move(random)};
}

Result<ChargedOracle> charge(BoundedRows rows, const PrivacyPlan& shape, const PrivacyOptions& privacy,
                             const RunOptions& run, const std::string& data, const std::string& purpose,
                             Observer& observer) {
  // No query moves a sum by more than about 2 L^2.
  const auto L = static_cast<double>(rows.lattice().norm_bound());
  auto charged = charge_plan(shape, Sensitivity(2 * L * L), privacy, run, data, purpose, observer);
  if (!charged) return charged.error();
  auto local = std::make_unique<LocalOracle>(std::move(rows), privacy.adjacency, std::move(charged->reservation),
                                             std::move(charged->random));
  return ChargedOracle{static_cast<Charge&&>(*charged), std::make_unique<ObservedOracle>(std::move(local), observer)};
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
