// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

enum class Center {
  kNone,     ///< zero stays zero
  kRange,    ///< the middle of each column's public range becomes zero
  kPrivate,  ///< as kRange, then the released mean is subtracted
};

}  // namespace eigenveil
