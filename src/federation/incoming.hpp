// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "eigenveil/base/result.hpp"
#include "eigenveil/base/types.hpp"

namespace eigenveil::federation {

/// One site's answer on its way in. What came so far belongs to its connection alone, in a file without a name where it
/// is more than one part: whoever stalls keeps nobody waiting, and memory is one part per connection.
class IncomingAnswer {
 public:
  IncomingAnswer(std::uint64_t entries, bool narrow);

  bool complete() const { return bytes_ == all_; }
  /// Refuses a part that is empty, no whole number of integers, or more than is missing.
  Status take(std::string part);
  /// Adds all integers, modulo 2^128 (2^64 if narrow): all of them or, with an error, none.
  Status add_to(std::vector<Int128>& total) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  bool narrow_;
  std::uint64_t all_;
  std::uint64_t bytes_ = 0;
  std::string only_;  // the one part, if it is one
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace eigenveil::federation
