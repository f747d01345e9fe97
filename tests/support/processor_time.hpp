// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

namespace eigenveil::test {

/// The processor time of all threads: what work costs, whatever else the machine does meanwhile.
template <class Work>
double processor_seconds(const Work& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

}  // namespace eigenveil::test
