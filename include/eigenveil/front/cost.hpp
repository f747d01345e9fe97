// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace eigenveil {

/// What a ledger would be charged for a call: every noisy answer, with the noise that the budget asks for. `pca_cost`
/// and the like give one per way to do what is asked: several where a forecast decides. The rows are opened for their
/// columns, and none of them is read; nothing is charged. `expected`: how many there will be, where that is public.
struct Cost {
  struct Answer {
    std::string label;
    std::string mechanism;  ///< "gaussian:mu=0.2,count=8", as `account` takes it
  };
  std::string method;
  std::string purpose;  ///< what the ledger would remember
  double epsilon;       ///< certified, at `delta`
  double delta;
  std::vector<Answer> answers;
  bool model_based;  ///< the guarantee would rest on a model of the rows
};

}  // namespace eigenveil
