// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "eigenveil/privacy/event.hpp"
#include "wire.pb.h"

namespace eigenveil::federation {

/// A kind of question, as policies and people know it: "gram", "class_counts".
const char* name(wire::v2::Kind kind);
/// KIND_UNKNOWN for a name that is none.
wire::v2::Kind kind_from_name(std::string_view text);
/// What an ask asks.
wire::v2::Kind kind_of(const wire::v2::Ask& ask);
/// Whether rows are only moved: nothing is answered, nothing is charged.
bool moves_rows(wire::v2::Kind kind);

/// What a proposal costs: its answers in order, and its spare rounds as the last event. Refuses what is not finite, not
/// positive or of no known kind, and spare rounds that would cost less than an answer they may repeat.
Result<PrivacyPlan> charged_plan(const wire::v2::Proposal& proposal);

/// The asks of a proposal, one after the other. Every ask must be the next one by label, kind and size, or the last one
/// again as a spare round. Nobody but the proposal says how much noise there is.
class Script {
 public:
  static Result<Script> of(const wire::v2::Proposal& proposal);

  /// The noise of this ask; nothing where nothing is answered. After a refusal everything is refused.
  Result<std::optional<Mu>> next(const wire::v2::Ask& ask);

 private:
  explicit Script(const wire::v2::Proposal& proposal) : proposal_(proposal), spares_left_(proposal.spares()) {}
  Result<std::optional<Mu>> repeat(const wire::v2::Ask& ask);
  Result<std::optional<Mu>> proceed(const wire::v2::Ask& ask);

  wire::v2::Proposal proposal_;
  int event_ = 0;               // of the plan
  std::uint32_t answered_ = 0;  // asks of that event
  std::uint32_t spares_left_;
  std::string question_;          // the last ask, without what a repetition changes
  std::uint32_t number_ = 0;      // of it
  std::optional<Mu> repeatable_;  // its noise
  bool failed_ = false;
};

/// The part of an ask that is the same when it is asked again of fewer sites.
std::string question_of(wire::v2::Ask ask);

}  // namespace eigenveil::federation
