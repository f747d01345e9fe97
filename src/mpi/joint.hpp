// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/mpi/mpi.hpp"
#include "eigenveil/wire/convert.hpp"
#include "ranks.pb.h"

namespace eigenveil::mpi {

// What all ranks do together, each on its share. Answers are complete at rank 0 only. If one rank fails, all give an
// error: rank 0 that of the first rank that failed, with its number.

struct OwnShare {
  BoundedRows rows;
  BoundingDiagnostics diagnostics;  ///< rank 0: of all ranks
};
Result<OwnShare> joint_read(const wire::v2::RankRead& message, Observer& observer);

Result<PrivateSum> joint_sum(const SumQuery& query, const BoundedRows& rows, Adjacency adjacency);
Result<PrivateCounts> joint_counts(const NormExceedance& query, const BoundedRows& rows);
Result<FilteredCells> joint_cells(const FilteredApply& query, const BoundedRows& rows);
Status joint_recenter(const Recentring& to, BoundedRows& rows);

/// A query that could not be understood: this rank's part in it is to say so.
Status joint_failure(const Error& error);

}  // namespace eigenveil::mpi
