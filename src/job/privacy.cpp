#include "eigenveil/job/privacy.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "eigenveil/release/model.hpp"

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

// What the samplers cannot draw is refused before it is charged. No query moves a sum by more than about 2 L^2.
Status check_drawable(const PrivacyPlan& plan, const Lattice& lattice) {
  const auto L = static_cast<double>(lattice.norm_bound());
  for (const PrivacyEvent& event : plan.events) {
    if (const auto* gaussian = std::get_if<GaussianEvent>(&event.mechanism)) {
      const auto noise = GaussianMechanism::noise_for(Sensitivity(2 * L * L), gaussian->mu);
      if (!noise) return noise.error();
    }
    if (const auto* pure = std::get_if<PureEvent>(&event.mechanism)) EIGENVEIL_TRY(SparseVector::check(pure->epsilon));
  }
  return {};
}

}  // namespace

Result<ChargedOracle> charge(BoundedRows rows, const PrivacyPlan& plan, Calibration calibration,
                             const PrivacyOptions& privacy, const RunOptions& run, const std::string& data,
                             const std::string& purpose, Observer& observer) {
  const auto cost = epsilon_of(plan.events, privacy.delta, privacy.accounting);
  if (!cost) return cost.error();
  const bool certified = *cost <= privacy.epsilon.value();
  if (!certified && calibration == Calibration::kTight)
    return internal_error(fmt::format("the plan is certified at epsilon {}, above the budget {}: nothing was charged",
                                      *cost, privacy.epsilon.value()));
  EIGENVEIL_TRY(check_drawable(plan, rows.lattice()));

  observer.step("reserving budget");
  std::string dataset;
  if (privacy.use_ledger) dataset = privacy.dataset.empty() ? name_of_file(data, privacy.adjacency) : privacy.dataset;
  auto reservation = privacy.use_ledger ? reserve(plan, privacy, dataset, purpose)
                                        : Result<std::unique_ptr<Reservation>>(reserve_without_ledger(plan));
  if (!reservation) return reservation.error();
  observer.step("budget reserved");

  auto random = run.insecure_seed ? SecureRandom::insecure(*run.insecure_seed) : SecureRandom::from_kernel();
  const bool secure = random.secure();
  auto local =
      std::make_unique<LocalOracle>(std::move(rows), privacy.adjacency, *std::move(reservation), std::move(random));
  return ChargedOracle{
      std::make_unique<ObservedOracle>(std::move(local), observer), plan, *cost, secure, certified, dataset};
}

std::string guarantee_in_words(const PrivacyOptions& privacy, const ChargedOracle& charged) {
  if (!charged.secure)
    return "NOT PRIVATE: the noise was made from a given seed, and whoever knows the seed can subtract it. For tests "
           "and demonstrations only.";
  const double epsilon = charged.certified ? privacy.epsilon.value() : charged.certified_epsilon;
  std::string words;
  if (!charged.certified)
    words = fmt::format("Paper calibration, not certified: the paper states epsilon {:g} for this noise, which is more "
                        "than it gives. ",
                        privacy.epsilon.value());
  words += fmt::format(
      "This release is ({:.4g}, {:g})-differentially private when {}. Even someone who knows every other row and "
      "all of this software can change their odds about any one row by at most a factor e^{:.4g} = {:.3g} through it, "
      "except with probability {:g}. ",
      epsilon, privacy.delta.value(),
      privacy.adjacency == Adjacency::kReplaceOne ? "one row is replaced by any other; the number of rows is public"
                                                  : "one row is added or removed; the number of rows is private",
      epsilon, std::exp(epsilon), privacy.delta.value());
  return words + (charged.plan.model_based
                      ? "This is a model-based guarantee: it holds with high probability if the rows are independent "
                        "draws from a spiked Gaussian, and need not hold for any other data."
                      : "It holds for every data set; it does not depend on how the rows were drawn.");
}

nlohmann::json privacy_json(const PrivacyOptions& privacy, const ChargedOracle& charged) {
  nlohmann::json object = {{"adjacency", name(privacy.adjacency)},
                           {"epsilon", privacy.epsilon.value()},
                           {"delta", privacy.delta.value()},
                           {"certified_epsilon", charged.certified_epsilon},
                           {"certified", charged.certified},
                           {"accounting", privacy.accounting == Accounting::kTight ? "tight" : "zcdp"},
                           {"events", events_to_json(charged.plan.events)},
                           {"guarantee", guarantee_in_words(privacy, charged)},
                           {"guarantee_kind", charged.plan.model_based ? "model" : "strict"},
                           {"private", charged.secure},
                           {"warnings", nlohmann::json::array()},
                           {"ledger", {{"used", privacy.use_ledger}}}};
  // The name of a data set is the analyst's own; the path of a file is nobody else's business.
  if (!privacy.dataset.empty()) object["ledger"]["dataset"] = privacy.dataset;
  nlohmann::json& warnings = object["warnings"];
  if (!privacy.use_ledger) warnings.push_back("No ledger was used: nobody counts how often this data is asked.");
  if (!charged.secure) warnings.push_back("The noise was seeded: this release is NOT PRIVATE.");
  if (charged.plan.model_based)
    warnings.push_back("Model-based guarantee: it holds only if the rows are independent draws from a spiked Gaussian.");
  if (!charged.certified)
    warnings.push_back(fmt::format("Paper calibration, not certified: this noise costs epsilon {:.4g}, not {:g}.",
                                   charged.certified_epsilon, privacy.epsilon.value()));
  return object;
}

}  // namespace eigenveil
