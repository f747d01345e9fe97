#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>

namespace eigenveil {

/// Refuses a method that calls anything but pure operators, submodules and functions in words; everything it calls is
/// looked into. Empty: fine.
std::string impure_operator(const torch::jit::Method& method);

/// Refuses a method that writes to what outlives a call: constants of its graph, attributes, objects it did not make.
std::string lasting_write(const torch::jit::Method& method);

}  // namespace eigenveil
