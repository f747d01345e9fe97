// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigenveil/base/types.hpp"

namespace eigenveil {

/// An orthonormal basis of the columns of A (Householder QR).
Matrix orthonormal(const Matrix& A);

/// Keeps the s rows of Q of largest norm, sets the others to zero, and makes the columns orthonormal again.
Matrix truncate_rows(const Matrix& Q, std::size_t s);

}  // namespace eigenveil
