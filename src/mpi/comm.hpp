// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eigenveil/base/types.hpp"

namespace eigenveil::mpi {

// The few exchanges that ranks need. Every rank calls each of them, in the same order. Errors of MPI itself end the
// job: that is its default, and there is nothing better to do.

int rank();
int ranks();

/// What rank 0 has goes to all. The others wait asleep, so that their cores are free for rank 0's own work.
std::string broadcast(std::string bytes);

/// What each rank has, at rank 0; nothing elsewhere.
std::vector<std::string> gather(const std::string& mine);

/// True everywhere if true at rank 0.
bool decided(bool at_rank_0);

/// True everywhere if true at every rank.
bool everywhere(bool here);

/// Every rank has something for every other: `to[r]` goes to rank r, and what came from rank r is at [r].
std::vector<std::string> exchange(const std::vector<std::string>& to);

/// Adds all ranks' integers into those of rank 0, modulo 2^128 or 2^64.
void add_to_rank_0(Int128* values, std::size_t count);
void add_to_rank_0(std::int64_t* values, std::size_t count);

}  // namespace eigenveil::mpi
