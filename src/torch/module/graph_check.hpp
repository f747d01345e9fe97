// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <functional>
#include <string>

namespace eigenveil {

/// Those of inner blocks too.
void for_each_node(torch::jit::Block* block, const std::function<void(torch::jit::Node*)>& visit);

/// Refuses a method that calls anything but pure operators, submodules and functions in words; everything it calls is
/// looked into. Empty: fine.
std::string impure_operator(const torch::jit::Method& method);

/// Refuses a method that writes to what outlives a call: constants of its graph, attributes, objects it did not make.
std::string lasting_write(const torch::jit::Method& method);

}  // namespace eigenveil
