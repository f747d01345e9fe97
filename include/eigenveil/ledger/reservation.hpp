// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "eigenveil/privacy/event.hpp"

namespace eigenveil {

/// Proof that a plan has been charged (or that the user said to do without a ledger). An oracle cannot be made
/// without one, so no answer comes before its charge.
class Reservation {
 public:
  virtual ~Reservation() = default;
  virtual const PrivacyPlan& plan() const = 0;
  virtual bool in_ledger() const = 0;
  /// Its number in the ledger; 0 outside of one.
  virtual std::int64_t entry() const { return 0; }
  /// Called by the oracle once, before its first answer is computed; on disk before it returns. An error means: do
  /// not answer.
  virtual Status begin_answering() = 0;
  /// Called by the oracle when it closes without ever having answered; no answer may begin afterwards. When the
  /// ledger cannot record it, the reservation stays spent.
  virtual void close_unused() = 0;
};

/// A plan that no ledger charges: the release says so.
std::unique_ptr<Reservation> reserve_without_ledger(PrivacyPlan plan);

}  // namespace eigenveil
