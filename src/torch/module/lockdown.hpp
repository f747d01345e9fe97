// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace eigenveil {

/// After this the process can compute, and talk through the descriptors it has: no files, no network, no programs, no
/// other processes but its own forks. Returns what the kernel refused, or null. sandbox.proof.md.
const char* lock_down(std::size_t memory);

}  // namespace eigenveil
