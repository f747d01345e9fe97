// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "eigenveil/intake/engine.hpp"

/// One owner's rows on many machines. Rank 0 is the program: it alone charges, draws noise, prints and writes. The
/// other ranks hold shares of the rows and add up what it asks for. Sums are exact integers, so that the release does
/// not depend on the number of ranks.
namespace eigenveil::mpi {

/// Starts MPI. Rank 0 runs the program and returns its exit code; the others serve it and return 0. A program that was
/// not started by mpirun is the only rank.
int run(const std::function<int()>& program);

/// Cores of this machine for each of its ranks, at least 1.
int threads_of_rank();

/// The engine for RunOptions. Only within `run`.
std::shared_ptr<Engine> engine();

struct SharedRows {
  std::unique_ptr<RowSums> sums;
  BoundingDiagnostics diagnostics;  ///< of all ranks; private
};

/// Has every rank read and bound its share. If one fails, its error is returned and no rank holds rows.
Result<SharedRows> share_rows(const RowOptions& options, const OpenedData& opened, const RunOptions& run,
                              std::size_t reserved, Observer& observer);

}  // namespace eigenveil::mpi
