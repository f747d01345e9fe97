// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/version.hpp"

namespace eigenveil {

const char* version() { return EIGENVEIL_VERSION; }

}  // namespace eigenveil
