// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

namespace eigenveil {

/// FFTW's planner keeps global tables; only its execution is thread-safe. Whoever makes or destroys a plan holds this.
inline std::mutex& fft_planner() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace eigenveil
