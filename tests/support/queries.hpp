// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "eigenveil/query/filtered.hpp"

namespace eigenveil::test {

inline constexpr int kClasses = 4;
inline constexpr std::size_t kKinds = 10;  // of `random_query`

Matrix random_directions(std::mt19937_64& random, std::size_t d, std::size_t k);

/// Of a kind below `kKinds`; features are lattice integers.
SumQuery random_query(std::mt19937_64& random, std::size_t kind, const Matrix& X, int bits);

}  // namespace eigenveil::test
