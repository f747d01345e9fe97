// SPDX-License-Identifier: Apache-2.0
#include "work_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace eigenveil::ledger {

Result<std::unique_ptr<WorkLock>> WorkLock::take(const std::string& ledger, std::int64_t work, const std::string& key) {
  const std::string path = ledger + ".lock";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0)
    return internal_error(fmt::format("{}: cannot be opened ({}). Check the permissions of the file and of its folder.",
                                      path, std::strerror(errno)));
  std::unique_ptr<WorkLock> lock(new WorkLock(descriptor));
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = work;
  range.l_len = 1;
  // A lock of the open file, not of the process: two holders in one process exclude each other too.
  if (::fcntl(descriptor, F_OFD_SETLK, &range) == 0) return lock;
  if (errno == EAGAIN || errno == EACCES)
    return budget_refused(fmt::format(
        "'{}' is being answered by another process. One charge answers for one process at a time: wait for it to end.",
        key));
  return internal_error(fmt::format("{}: cannot be locked ({}).", path, std::strerror(errno)));
}

WorkLock::~WorkLock() { ::close(descriptor_); }

}  // namespace eigenveil::ledger
