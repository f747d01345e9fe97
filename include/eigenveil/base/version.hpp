#pragma once

namespace eigenveil {

/// The version of this library.
const char* version();

}  // namespace eigenveil
