// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/intake/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eigenveil {
namespace {

/// Tells the observer about every ask, passes it on, and keeps how noisy the answer was.
class ObservedOracle final : public Oracle {
 public:
  ObservedOracle(std::unique_ptr<Oracle> oracle, Observer& observer, std::shared_ptr<std::vector<NotedNoise>> noise)
      : oracle_(std::move(oracle)), observer_(observer), noise_(std::move(noise)) {
    for (const PrivacyEvent& event : oracle_->plan().events) planned_ += event.count;
  }

  RowsShape shape() const override { return oracle_->shape(); }
  bool complete() const override { return oracle_->complete(); }
  const PrivacyPlan& plan() const override { return oracle_->plan(); }
  Result<Answer> ask(const std::string& label, const SumQuery& query) override {
    tell(label);
    return noted(label, oracle_->ask(label, query));
  }
  Result<Answer> ask_rest(const std::string& label, const SumQuery& query) override {
    tell(label, std::max(1LL, planned_ - asked_));
    return noted(label, oracle_->ask_rest(label, query));
  }
  Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                              std::int64_t target) override {
    tell(label);
    return oracle_->first_at_most(label, query, target);
  }
  Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product, const FilteredApply& query,
                                      std::int64_t target) override {
    tell(search + ", " + product, 2);
    auto answer = oracle_->ask_filtered(search, product, query, target);
    if (answer) note(product, answer->product);
    return answer;
  }
  Result<Answer> ask_model(const std::string& label, const ModelQuery& query) override {
    tell(label);
    return noted(label, oracle_->ask_model(label, query));
  }
  Result<Answer> ask_batch(const std::string& label, const BatchQuery& query) override {
    if (label != batches_) observer_.step("asking: " + label);  // once for all steps
    batches_ = label;
    observer_.progress(share(asked_++));
    return noted(label, oracle_->ask_batch(label, query));
  }
  Status recenter(const Vector& mean, RowBound radius) override {
    observer_.step("recentring rows");
    return oracle_->recenter(mean, radius);
  }
  Status remap(const LinearMap& M, RowBound radius) override {
    observer_.step("mapping rows");
    return oracle_->remap(M, radius);
  }

 private:
  double share(long long done) const {
    return static_cast<double>(done) / static_cast<double>(std::max({1LL, planned_, done}));
  }
  /// "asking: product 6 (8 of 19)", and how much of all was done before.
  void tell(const std::string& label, long long answers = 1) {
    const long long before = std::exchange(asked_, asked_ + answers);
    const bool counted = planned_ > 1 && asked_ <= planned_;
    observer_.step("asking: " + label + (counted ? fmt::format(" ({} of {})", asked_, planned_) : ""));
    if (before > 0) observer_.progress(share(before));
  }
  void note(const std::string& label, const Answer& answer) {
    if (noise_->empty() || noise_->back().label != label) noise_->push_back({label, 0, 0});
    noise_->back().entries = answer.value().size();
    noise_->back().deviation = answer.deviation();
  }
  Result<Answer> noted(const std::string& label, Result<Answer> answer) {
    if (answer) note(label, *answer);
    return answer;
  }

  std::unique_ptr<Oracle> oracle_;
  Observer& observer_;
  std::shared_ptr<std::vector<NotedNoise>> noise_;
  std::string batches_;
  long long planned_ = 0;  // answers
  long long asked_ = 0;
};

class OwnRows final : public HeldRows {
 public:
  OwnRows(std::unique_ptr<RowSums> sums, BoundingDiagnostics diagnostics)
      : sums_(std::move(sums)),
        columns_(sums_->here().columns()),
        lattice_(sums_->here().lattice()),
        rows_(sums_->rows()),
        diagnostics_(diagnostics) {}

  std::size_t columns() const override { return columns_; }
  Lattice lattice() const override { return lattice_; }
  std::optional<std::size_t> rows() const override { return rows_; }
  BoundingDiagnostics diagnostics() const override { return diagnostics_; }
  Result<ChargedOracle> charge(const ChargeRequest& request, Observer& observer) override {
    auto charged = EIGENVEIL_TRY(charge_plan(request.draft, largest_sensitivity(lattice_), request.privacy, request.run,
                                             request.data, request.purpose, observer));
    auto oracle =
        std::make_unique<LocalOracle>(std::move(sums_), std::move(charged.reservation), std::move(charged.random));
    return ChargedOracle{static_cast<Charge&&>(charged), std::move(oracle)};
  }

 private:
  std::unique_ptr<RowSums> sums_;
  std::size_t columns_;
  Lattice lattice_;
  std::size_t rows_;
  BoundingDiagnostics diagnostics_;
};

}  // namespace

std::unique_ptr<HeldRows> own_rows(std::unique_ptr<RowSums> sums, BoundingDiagnostics diagnostics) {
  return std::make_unique<OwnRows>(std::move(sums), diagnostics);
}

Result<std::unique_ptr<HeldRows>> hold(const RowOptions& options, OpenedData& opened, const RunOptions& run,
                                       std::size_t reserved, Observer& observer) {
  if (run.engine && in_memory(options))
    return usage_error("rows in memory are held by this process alone: leave `engine` out, or give a file");
  if (run.engine) return run.engine->hold(options, opened, run, reserved, observer);
  auto rows = EIGENVEIL_TRY(bound_rows(opened, options, run, reserved, observer));
  const BoundingDiagnostics diagnostics = rows.diagnostics();
  return own_rows(sums_of(std::move(rows)), diagnostics);
}

Result<ChargedOracle> charge(HeldRows& rows, const ChargeRequest& request, Observer& observer) {
  auto charged = rows.charge(request, observer);
  if (!charged) return charged;
  charged->noise = std::make_shared<std::vector<NotedNoise>>();
  charged->oracle = std::make_unique<ObservedOracle>(std::move(charged->oracle), observer, charged->noise);
  return charged;
}

}  // namespace eigenveil
