// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>

#include "eigenveil/federation/coordinator.hpp"
#include "eigenveil/federation/stored.hpp"
#include "eigenveil/query/meter.hpp"

namespace eigenveil::federation {

/// Answers are totals over sites. Each is written to the journal before it is used, and a journal answers instead of
/// the sites as far as it goes: the estimator is a public program of released totals, so a restart ends as one run
/// would. When a site is lost, totals of the others stand for all: they are scaled by the public numbers of rows.
class FederatedOracle final : public Oracle {
 public:
  struct Study {
    wire::v2::SignedProposal proposal;
    wire::v2::Roster roster;
    PrivacyPlan plan;  ///< without spare rounds
    Lattice lattice;
    std::size_t columns;
    bool total_private = false;  ///< what all rows weigh together is no public number even if that of people is
  };
  /// `told` is what the release says of the sites; who was lost is added to it.
  static Result<std::unique_ptr<FederatedOracle>> make(std::shared_ptr<Sites> sites, Study study,
                                                       const CoordinatorOptions& options, AnswerLog journal,
                                                       std::shared_ptr<nlohmann::json> told);
  ~FederatedOracle() override;

  RowsShape shape() const override;
  const PrivacyPlan& plan() const override { return study_.plan; }
  Result<Answer> ask(const std::string& label, const SumQuery& query) override;
  Result<Released<std::size_t>> first_at_most(const std::string& label, const NormExceedance& query,
                                              std::int64_t target) override;
  Result<FilteredAnswer> ask_filtered(const std::string& search, const std::string& product, const FilteredApply& query,
                                      std::int64_t target) override;
  Status recenter(const Vector& mean, RowBound radius) override;
  Status remap(const LinearMap& M, RowBound radius) override;
  bool complete() const override { return meter_.complete(); }

 private:
  FederatedOracle(std::shared_ptr<Sites> sites, Study study, const CoordinatorOptions& options, AnswerLog journal,
                  std::shared_ptr<nlohmann::json> told, Chain chain, std::map<std::string, std::size_t> rows);
  Result<std::vector<Int128>> perform(wire::v2::Ask ask, const AnswerShape& shape);
  Result<std::optional<std::vector<Int128>>> from_journal(wire::v2::Ask& ask, const AnswerShape& shape);
  ChainedAsk chained(wire::v2::Ask ask) const;
  struct NoisyTotal {
    Released<Matrix> value;
    double deviation;
  };
  Result<NoisyTotal> total(wire::v2::Ask ask, PrivateSum empty);
  Result<Answer> gaussian(wire::v2::Ask ask, PrivateSum empty);
  Result<Released<std::size_t>> histogram(const wire::v2::Ask& ask, std::size_t points, std::int64_t target);
  Status move(const wire::v2::Ask& ask, RowBound radius);
  std::size_t rows_of(const std::set<std::string>& sites) const;
  double stands_for() const;
  void tell_lost();
  bool enough(std::size_t sites) const;
  Error too_few(const std::string& label) const;
  Status write(const ChainedAsk& asked, const Total& total, bool complete);
  Status written();

  std::shared_ptr<Sites> sites_;
  Study study_;
  CoordinatorOptions options_;
  AnswerLog journal_;
  std::shared_ptr<nlohmann::json> told_;
  Chain chain_;
  std::map<std::string, std::size_t> rows_;  // of everyone who accepted; public under replace-one
  std::set<std::string> everyone_;
  Meter meter_;
  std::set<std::string> active_;
  std::size_t spares_used_ = 0;
  std::size_t replayed_ = 0;     // records of the journal that were used or written
  std::future<Status> durable_;  // the newest record
};

}  // namespace eigenveil::federation
