// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "eigenveil/base/observer.hpp"
#include "eigenveil/federation/keys.hpp"
#include "eigenveil/federation/script.hpp"
#include "eigenveil/federation/site_config.hpp"
#include "eigenveil/federation/stored.hpp"
#include "eigenveil/ledger/ledger.hpp"
#include "eigenveil/ledger/work.hpp"
#include "eigenveil/query/filtered.hpp"

namespace eigenveil::federation {

/// Whether a person (or a policy) lets a study in; hears it in words.
using Approve = std::function<bool(const std::string& words)>;

/// A proposal as it was received, whose signature and bytes are in order.
struct Proposed {
  wire::v2::SignedProposal signed_by;
  wire::v2::Proposal proposal;
  std::string hash;  ///< hp = H("proposal"; bytes)

  static Result<Proposed> read(const wire::v2::SignedProposal& message, const SiteConfig& config);
};

/// One study at one site, network apart: what is asked, charged, answered and remembered. site_study.proof.md.
///
/// The ledger has the state: reserved, met, answering (r, h_r), and four ends. Everything that leaves is on disk first,
/// under the ask's number, and then in the ledger; the same ask gets the same bytes again, now and after a restart, and
/// another ask under its number ends the study here.
class SiteStudy {
 public:
  /// Checks, asks for approval, makes keys, charges the ledger, and only then reads the rows. A study that was begun
  /// before goes on, and is neither approved nor charged again. An error is for the site's own terminal.
  static Result<std::unique_ptr<SiteStudy>> open(const SiteConfig& config, const Proposed& proposed,
                                                 const Approve& approve, Observer& observer);

  const wire::v2::Accept& accept() const { return accept_; }
  wire::v2::Standing standing() const;
  /// All sites that take part, each by its own signature. Once: afterwards only the same bytes.
  Status meet(const std::string& roster);
  /// The stored answer, computed if it was not before. After a refusal everything is refused.
  Result<Stored> answer(const std::string& ask);
  /// Leaves the keys of the last answer behind. Done before the next answer at the latest.
  Status move_on();
  /// The coordinator asks no more.
  void finish();

  /// Whether it is the proposal that this study was opened with.
  bool is(const Proposed& other) const { return other.hash == proposed_.hash; }
  const std::string& study() const { return proposed_.proposal.study(); }
  std::size_t answers() const { return log_.size(); }

 private:
  struct Parts;
  explicit SiteStudy(Parts parts);
  static Result<Parts> reserve(const SiteConfig& config, const Proposed& proposed, const Approve& approve);
  Status read_rows(Observer& observer);
  Status make_accept();
  Status resume();
  Status remember(const wire::v2::Roster& roster, const std::string& roster_hash);
  Result<std::vector<MaskEnd>> check_roster(const wire::v2::Roster& roster) const;
  Status pair_up(const std::string& roster_hash);

  Status check_ask(const wire::v2::Ask& ask) const;
  Status check_among(const wire::v2::Ask& ask) const;
  Status check_query(const wire::v2::Ask& ask) const;
  Result<std::vector<Int128>> values_for(const wire::v2::Ask& ask, const std::string& head, std::optional<Mu> mu,
                                         wire::v2::Answer& answer);
  Result<PrivateSum> sum_for(const wire::v2::Ask& ask);
  Status apply(const wire::v2::Recenter& message);
  Status mask(const wire::v2::Ask& ask, const std::string& head, std::vector<Int128>& values) const;
  Error end(const Error& why, WorkState as = WorkState::kEnded);
  Error stop(const Error& why);

  bool secure() const { return proposed_.proposal.aggregation() == wire::v2::Proposal::SECURE; }
  std::size_t shares() const { return secure() ? proposed_.proposal.shares() : 1; }
  Adjacency adjacency() const { return work_->plan().adjacency; }

  SiteConfig config_;
  Proposed proposed_;
  RowOptions row_options_;
  Script script_;
  std::unique_ptr<Work> work_;
  std::string folder_;
  KeyFile key_file_;
  StudyKeys keys_;
  std::string data_key_;
  AnswerLog log_;  // number a is its record a - 1
  wire::v2::Accept accept_;
  std::optional<BoundedRows> rows_;
  std::vector<MaskEnd> ends_;           // everybody in the roster
  std::optional<Chain> chain_;          // from the roster on
  std::vector<std::string> among_;      // A_r of the last ask
  std::optional<Error> ended_;          // for ever, or until the process starts anew
  std::optional<FilteredCells> cells_;  // private; of the search before
  std::string searched_;                // its bytes
};

/// Erases the keys of studies that ended while nobody looked: their time was up.
void erase_ended_keys(const SiteConfig& config);

}  // namespace eigenveil::federation
