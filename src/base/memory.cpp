// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/memory.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace eigenveil {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

std::size_t free_of_machine() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::string unit;
  std::size_t kibibytes = 0;
  while (file >> key >> kibibytes && std::getline(file, unit))
    if (key == "MemAvailable:") return kibibytes << 10U;
  return kNoLimit;
}

std::size_t number_in(const char* path) {
  std::ifstream file(path);
  std::size_t value = 0;
  return file >> value ? value : kNoLimit;  // a limit may read "max"
}

std::size_t left_of_group() {
  const std::size_t most = number_in("/sys/fs/cgroup/memory.max");
  const std::size_t used = number_in("/sys/fs/cgroup/memory.current");
  if (most == kNoLimit || used == kNoLimit) return most;
  return most > used ? most - used : 0;
}

std::size_t own_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : kNoLimit;
}

}  // namespace

std::size_t memory_by_default() {
  constexpr std::size_t kLeast = std::size_t{512} << 20U;
  return std::max(kLeast, std::min({free_of_machine(), left_of_group(), own_limit()}) / 2);
}

}  // namespace eigenveil
