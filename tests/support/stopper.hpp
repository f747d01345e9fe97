// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <exception>
#include <functional>
#include <set>

namespace eigenveil::test {

/// Calls by which a process changes what others find: files, their names and lengths, what is on disk, and bytes that
/// leave. (Locks end with their process.)
inline bool changes_the_world(const __ptrace_syscall_info& call) {
  static const std::set<std::uint64_t> kCalls = {
      SYS_write,     SYS_pwrite64, SYS_writev,  SYS_pwritev, SYS_fsync,    SYS_fdatasync, SYS_ftruncate,
      SYS_fallocate, SYS_mkdirat,  SYS_mknodat, SYS_linkat,  SYS_unlinkat, SYS_renameat2, SYS_sendto,
#ifdef SYS_open  // older names of the same
      SYS_mkdir,     SYS_mknod,    SYS_link,    SYS_unlink,  SYS_rename,   SYS_renameat,
#endif
  };
  const auto made = [&](int flags) { return (call.entry.args[flags] & O_CREAT) != 0; };
#ifdef SYS_open
  if (call.entry.nr == SYS_open) return made(1);
#endif
  return call.entry.nr == SYS_openat ? made(2) : kCalls.count(call.entry.nr) > 0;
}

/// Runs `body` in a process of its own and kills it (SIGKILL) where it is about to make its call number `stop`, from 0,
/// that changes the world: that call is not made, all before it are. The exit code; -SIGKILL if it came so far.
inline int killed_at(int stop, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(98);
    ::raise(SIGSTOP);
    try {
      ::_exit(body());
    } catch (const std::exception&) {
      ::_exit(99);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  int signal = 0;
  for (;;) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, signal);
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (WIFSIGNALED(status)) return -WTERMSIG(status);
    signal = 0;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      signal = WSTOPSIG(status);
      continue;
    }
    struct __ptrace_syscall_info call {};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof call, &call);
    if (call.op == PTRACE_SYSCALL_INFO_ENTRY && changes_the_world(call) && stop-- == 0) ::kill(child, SIGKILL);
  }
}

}  // namespace eigenveil::test
