// SPDX-License-Identifier: Apache-2.0
#include "simplify.hpp"

#include <torch/csrc/jit/passes/common_subexpression_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>

#include "graph_check.hpp"

namespace eigenveil {
namespace {

bool has_calls(torch::jit::Graph& graph) {
  bool found = false;
  for_each_node(graph.block(), [&](torch::jit::Node* node) {
    found = found || node->kind() == c10::prim::CallMethod || node->kind() == c10::prim::CallFunction;
  });
  return found;
}

}  // namespace

// A round goes one call deeper; TorchScript has no recursion.
void inline_calls(torch::jit::Graph& graph) {
  constexpr int kDeepest = 200;
  for (int round = 0; round < kDeepest && has_calls(graph); ++round) torch::jit::Inline(graph);
}

void simplify(const torch::jit::Method& method) {
  const auto graph = method.graph();
  inline_calls(*graph);
  torch::jit::EliminateCommonSubexpression(graph);  // leaves alone what is random, written to, or has effects
}

}  // namespace eigenveil
