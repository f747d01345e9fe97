// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "eigenveil/base/result.hpp"

namespace eigenveil::ledger {

/// A lock on one work of a ledger, for as long as it lives: one byte of a file beside the ledger. The system takes it
/// back when the process ends, however it ends.
class WorkLock {
 public:
  /// Refuses, without waiting, when anybody holds it: another process, or another part of this one.
  static Result<std::unique_ptr<WorkLock>> take(const std::string& ledger, std::int64_t work, const std::string& key);
  WorkLock(const WorkLock&) = delete;
  WorkLock& operator=(const WorkLock&) = delete;
  ~WorkLock();

 private:
  explicit WorkLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace eigenveil::ledger
