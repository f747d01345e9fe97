// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil::mpi {

/// What this process knows about its MPI job, of which there is at most one.
struct State {
  bool running = false;
  bool asking = false;  ///< rank 0: an exchange has begun and not ended
  int neighbours = 1;   ///< ranks on this machine, with this one
};
State& state();

}  // namespace eigenveil::mpi
