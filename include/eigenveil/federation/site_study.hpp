#pragma once

#include <functional>
#include <memory>

#include "eigenveil/federation/masks.hpp"
#include "eigenveil/federation/site_config.hpp"
#include "eigenveil/federation/stored.hpp"
#include "eigenveil/job/observer.hpp"
#include "eigenveil/ledger/ledger.hpp"
#include "eigenveil/query/filtered.hpp"
#include "eigenveil/query/meter.hpp"

namespace eigenveil::federation {

/// Whether a person (or a policy) lets a study in; hears it in words.
using Approve = std::function<bool(const std::string& words)>;

/// One study at one site, network apart: what is asked, charged, answered and remembered. site_study.proof.md.
///
/// Everything that leaves is on disk first, under the ask's number; the same ask gets the same bytes again, now and
/// after a restart, and another ask under its number ends the study here.
class SiteStudy {
 public:
  /// Checks, asks for approval, reads and bounds the rows, charges the ledger; in that order. A study that was begun
  /// before goes on, and is neither approved nor charged again.
  static Result<std::unique_ptr<SiteStudy>> open(const SiteConfig& config, const wire::v1::Proposal& proposal,
                                                 const Approve& approve, Observer& observer);
  ~SiteStudy();

  wire::v1::Accept accept() const;
  /// The other sites' keys, each signed by its own certificate.
  Status meet(const wire::v1::Roster& roster);
  /// The stored answer, computed if it was not before. After a refusal everything is refused.
  Result<Stored> answer(const wire::v1::Ask& ask);
  /// The coordinator asks no more.
  void finish();

  const std::string& study() const { return proposal_.study(); }
  std::size_t answers() const { return log_.size(); }

 private:
  SiteStudy(const SiteConfig& config, wire::v1::Proposal proposal, Accepted accepted, BoundedRows rows,
            std::unique_ptr<Reservation> reservation, MaskPair keys, AnswerLog log);
  Status replay();
  Status check_number(const wire::v1::Ask& ask) const;
  Status admit(const wire::v1::Ask& ask);
  Status admit_repeat(const wire::v1::Ask& ask);
  Result<std::vector<Int128>> values_for(const wire::v1::Ask& ask, wire::v1::Answer& answer);
  Result<NoisySum> noisy(PrivateSum sum);
  Result<PrivateCounts> counts_for(const wire::v1::Ask& ask);
  Status mask(const wire::v1::Ask& ask, std::vector<Int128>& values) const;
  Error end(const Error& why);

  SiteConfig config_;
  wire::v1::Proposal proposal_;
  Accepted accepted_;
  BoundedRows rows_;
  std::unique_ptr<Reservation> reservation_;
  Meter meter_;
  SecureRandom random_;
  MaskPair keys_;
  std::vector<std::pair<std::string, Mask>> masks_;
  std::string folder_;
  AnswerLog log_;  // number a is its record a - 1
  std::uint32_t spares_used_ = 0;
  std::optional<Mu> mu_;                // of the answer that was let through last
  std::optional<PureEpsilon> epsilon_;
  bool answering_ = false;
  std::optional<Error> ended_;
  std::string searched_;                // the filtered search that cells_ belong to
  std::optional<FilteredCells> cells_;  // private; kept for the product that follows a search
};

}  // namespace eigenveil::federation
