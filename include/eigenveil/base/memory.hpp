// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace eigenveil {

/// Half of the memory that this process could still take: of what the machine has free, and of what is left of the
/// limits of its control group and its own (RLIMIT_AS). At least 512 MiB.
std::size_t memory_by_default();

}  // namespace eigenveil
