// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/jit/api/module.h>

namespace eigenveil {

/// Puts everything that is called into the graph itself.
void inline_calls(torch::jit::Graph& graph);

/// Makes the graph that is executed: all calls inlined, and what it computes twice from the same values computed once
/// (a loss that encodes a batch for each of its terms encodes it once). A function of the file alone, done before any
/// row is seen, in place of Torch's optimiser, which learns from the rows that it sees. Comes before the first call.
void simplify(const torch::jit::Method& method);

}  // namespace eigenveil
