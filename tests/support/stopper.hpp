// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
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

/// A process of its own that runs `body`, held where it is about to make a call that changes the world.
class Stopper {
 public:
  explicit Stopper(const std::function<int()>& body) : child_(::fork()) {
    if (child_ == 0) {
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(98);
      ::raise(SIGSTOP);
      try {
        ::_exit(body());
      } catch (const std::exception&) {
        ::_exit(99);
      }
    }
    ::waitpid(child_, &status_, 0);
    ::ptrace(PTRACE_SETOPTIONS, child_, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  }
  Stopper(const Stopper&) = delete;
  Stopper& operator=(const Stopper&) = delete;
  ~Stopper() { kill(); }

  /// Goes on to its next such call but `skip`; whether it came there.
  bool hold_at(int skip) {
    while (step())
      if (at_call() && skip-- == 0) return true;
    return false;
  }
  /// That call is not made; all before it were.
  void kill() {
    if (ended_) return;
    ::kill(child_, SIGKILL);
    while (step()) {
    }
  }
  /// The exit code, or the signal as a negative number.
  int finish() {
    while (step()) {
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }
#ifdef __x86_64__
  /// From the call where it is held on the disk is full: whatever would need room fails.
  int finish_without_room() {
    bool refused = refuse();
    while (step()) {
      if (refused) answer(-ENOSPC);
      refused = !refused && at_call() && refuse();
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }
#endif

 private:
  // To the next beginning or end of a call; whether the process still is.
  bool step() {
    int signal = 0;
    while (!ended_) {
      ::ptrace(PTRACE_SYSCALL, child_, nullptr, signal);
      ::waitpid(child_, &status_, 0);
      ended_ = WIFEXITED(status_) || WIFSIGNALED(status_);
      if (ended_) return false;
      if (WSTOPSIG(status_) == (SIGTRAP | 0x80)) return true;
      signal = WSTOPSIG(status_);
    }
    return false;
  }
  bool at_call() {
    struct __ptrace_syscall_info call {};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, child_, sizeof call, &call);
    return call.op == PTRACE_SYSCALL_INFO_ENTRY && changes_the_world(call);
  }
#ifdef __x86_64__
  // Whether the call that is about to be made needs room: then none is made instead of it.
  bool refuse() {
    user_regs_struct registers{};
    ::ptrace(PTRACE_GETREGS, child_, nullptr, &registers);
    static const std::set<std::uint64_t> kFree = {SYS_fsync,  SYS_fdatasync, SYS_ftruncate, SYS_unlink, SYS_unlinkat,
                                                  SYS_rename, SYS_renameat,  SYS_renameat2, SYS_sendto};
    if (kFree.contains(registers.orig_rax)) return false;
    registers.orig_rax = static_cast<std::uint64_t>(-1);
    ::ptrace(PTRACE_SETREGS, child_, nullptr, &registers);
    return true;
  }
  void answer(int value) {
    user_regs_struct registers{};
    ::ptrace(PTRACE_GETREGS, child_, nullptr, &registers);
    registers.rax = static_cast<std::uint64_t>(std::int64_t{value});
    ::ptrace(PTRACE_SETREGS, child_, nullptr, &registers);
  }
#endif

  pid_t child_;
  int status_ = 0;
  bool ended_ = false;
};

/// Runs `body` in a process of its own and kills it (SIGKILL) where it is about to make its call number `stop`, from 0,
/// that changes the world. The exit code; -SIGKILL if it came so far.
inline int killed_at(int stop, const std::function<int()>& body) {
  Stopper process(body);
  if (process.hold_at(stop)) process.kill();
  return process.finish();
}

}  // namespace eigenveil::test
