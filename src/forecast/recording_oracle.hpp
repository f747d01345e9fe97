// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "eigenveil/forecast/forecast.hpp"

namespace eigenveil {

/// Passes every ask on and writes down the noise of its answer.
class RecordingOracle final : public Oracle {
 public:
  RecordingOracle(Oracle& oracle, double rows) : oracle_(oracle), rows_(rows) {}

  RowsShape shape() const override { return oracle_.shape(); }
  bool complete() const override { return oracle_.complete(); }
  Status recenter(const Vector& mean, RowBound radius) override { return oracle_.recenter(mean, radius); }
  Status remap(const LinearMap& M, RowBound radius) override { return oracle_.remap(M, radius); }
  const PrivacyPlan& plan() const override { return oracle_.plan(); }
  Result<Answer> ask(const std::string& label, const SumQuery& query) override {
    whole_ |= !std::holds_alternative<ClassCounts>(query) && !std::holds_alternative<ClassSums>(query);
    if (std::holds_alternative<Gram>(query)) passes.push_back({});
    if (const auto* apply = std::get_if<Apply>(&query)) passes.push_back({apply->X.columns()});
    return recorded(label, oracle_.ask(label, query), rows_);
  }
  Result<Answer> ask_rest(const std::string& label, const SumQuery& query) override {
    return recorded(label, oracle_.ask_rest(label, query), rows_);
  }
  Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                              std::int64_t target) override {
    record_search(label);
    return oracle_.first_at_most(label, query, target);
  }
  Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product, const FilteredApply& query,
                                      std::int64_t target) override {
    record_search(search);
    filtered_ = true;
    passes.push_back({query.X.columns(), query.grid.size()});
    auto answer = oracle_.ask_filtered(search, product, query, target);
    if (answer) noise.push_back({product, answer->product.deviation() / rows_, false});
    return answer;
  }
  Result<Answer> ask_model(const std::string& label, const ModelQuery& query) override {
    whole_ = true;
    return recorded(label, oracle_.ask_model(label, query), 1);
  }
  Result<Answer> ask_batch(const std::string& label, const BatchQuery& query) override {
    whole_ = true;
    auto answer = oracle_.ask_batch(label, query);
    const bool known = std::any_of(noise.begin(), noise.end(), [&](const auto& one) { return one.label == label; });
    return known ? std::move(answer) : recorded(label, std::move(answer), 1);
  }

  std::vector<AnswerNoise> noise;
  std::vector<Pass> passes;
  /// There were products, and all of them filtered.
  bool only_filtered() const { return filtered_ && !whole_; }

 private:
  Result<Answer> recorded(const std::string& label, Result<Answer> answer, double rows) {
    if (answer) noise.push_back({label, answer->deviation() / rows, false});
    return answer;
  }
  // Two Laplace variables of scale 2 / epsilon: deviation 4 / epsilon
  void record_search(const std::string& label) {
    if (const auto epsilon = planned_epsilon(label)) noise.push_back({label, 4 / *epsilon, true});
  }
  Oracle& oracle_;
  double rows_;
  bool filtered_ = false;
  bool whole_ = false;
};

}  // namespace eigenveil
