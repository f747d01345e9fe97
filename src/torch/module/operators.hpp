// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace eigenveil {

/// Whether an operator of TorchScript ("aten::add", without its overload) computes its outputs from its inputs, and
/// writes to nothing but inputs that its schema marks. An operator in place ("add_") is the one without the underscore.
bool is_pure_operator(std::string_view name);

/// Whether an operator is known to return an input as it is, or a view of it, without its schema saying so.
bool may_return_input(std::string_view name);

}  // namespace eigenveil
