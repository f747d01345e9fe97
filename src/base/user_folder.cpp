// SPDX-License-Identifier: Apache-2.0
#include "eigenveil/base/user_folder.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace eigenveil {

std::filesystem::path user_folder() {
  const auto variable = [](const char* key) {
    const char* value = std::getenv(key);  // NOLINT(concurrency-mt-unsafe)
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  std::filesystem::path data = variable("XDG_DATA_HOME");
  if (!data.is_absolute()) {  // as the XDG base directory specification asks
    std::filesystem::path home = variable("HOME");
    if (home.empty())
      if (const passwd* user = ::getpwuid(::getuid())) home = user->pw_dir;  // NOLINT(concurrency-mt-unsafe)
    data = home / ".local" / "share";
  }
  return data / "eigenveil";
}

}  // namespace eigenveil
