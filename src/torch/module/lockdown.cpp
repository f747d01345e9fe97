// SPDX-License-Identifier: Apache-2.0
#include "lockdown.hpp"

#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "../channel.hpp"

namespace eigenveil {
namespace {

bool limit(__rlimit_resource what, std::size_t most) {
  const rlimit both{most, most};
  return setrlimit(what, &both) == 0;
}

// What memory, threads, forks and pipes need. Nothing here takes a path, an address or another process.
constexpr int kAllowed[] = {
    SCMP_SYS(read),           SCMP_SYS(write),           SCMP_SYS(close),
    SCMP_SYS(poll),           SCMP_SYS(ppoll),           SCMP_SYS(pipe2),
    SCMP_SYS(mmap),           SCMP_SYS(munmap),          SCMP_SYS(mremap),
    SCMP_SYS(mprotect),       SCMP_SYS(madvise),         SCMP_SYS(brk),
    SCMP_SYS(futex),          SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
    SCMP_SYS(sched_yield),    SCMP_SYS(gettid),          SCMP_SYS(sched_getaffinity),
    SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),    SCMP_SYS(rt_sigaction),
    SCMP_SYS(sigaltstack),    SCMP_SYS(getpid),          SCMP_SYS(clock_gettime),
    SCMP_SYS(gettimeofday),   SCMP_SYS(nanosleep),       SCMP_SYS(clock_nanosleep),
    SCMP_SYS(getrandom),      SCMP_SYS(wait4),           SCMP_SYS(set_tid_address),
    SCMP_SYS(getcpu),         SCMP_SYS(restart_syscall), SCMP_SYS(exit),
    SCMP_SYS(exit_group),
};

bool filter_calls() {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  if (filter == nullptr) return false;
  bool right = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) == 0;
  for (const int call : kAllowed) right = right && seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) == 0;
  constexpr scmp_datum_t kNamespaces = CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                       CLONE_NEWNET | CLONE_NEWNS | CLONE_PTRACE | CLONE_UNTRACED;
  right = right && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                    SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaces, 0)) == 0;
  // Its arguments are in memory, where a filter cannot look; the C library then takes clone.
  right = right && seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0;
  for (const scmp_datum_t what : {PR_SET_PDEATHSIG, PR_SET_NAME})
    right = right && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, what)) == 0;
  right = right && seccomp_load(filter) == 0;
  seccomp_release(filter);
  return right;
}

}  // namespace

const char* lock_down(std::size_t memory) {
  if (close_range(channel::kMemory + 1, ~0U, 0) != 0) return "close what it inherited";
  // Where the kernel lets us; the filter below does not need them.
  constexpr int kApart = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  if (unshare(kApart) != 0) static_cast<void>(unshare(CLONE_NEWUSER | kApart));
  if (!limit(RLIMIT_DATA, memory) || !limit(RLIMIT_CORE, 0) || !limit(RLIMIT_FSIZE, 0) || !limit(RLIMIT_NOFILE, 64))
    return "set limits";
  if (prctl(PR_SET_DUMPABLE, 0) != 0) return "hide its memory";
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "give up privileges";
  return filter_calls() ? nullptr : "filter system calls (seccomp)";
}

}  // namespace eigenveil
