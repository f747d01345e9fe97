// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/query/query.hpp"

namespace eigenveil {

Status check_softmax(const SoftmaxGradient& query, const RowsFacts& rows);

/// The integer C': what a row's term may measure, in units of the sum.
std::int64_t softmax_clip(const SoftmaxGradient& query, const Lattice& lattice);
double softmax_unit(const Lattice& lattice);

Result<std::vector<Int128>> softmax_sum(const SoftmaxGradient& query, const BoundedRows& rows);

}  // namespace eigenveil
