// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eigenveil {

/// Thrown by an observer that wants the call to stop. The calls of the front door catch it, and their error says what
/// was charged until then; nothing else in the library does.
struct Interrupted {};

}  // namespace eigenveil
