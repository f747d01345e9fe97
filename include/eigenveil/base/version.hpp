// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

/// The version of this library.
const char* version();

}  // namespace eigenveil
