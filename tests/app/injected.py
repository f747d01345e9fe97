# SPDX-License-Identifier: Apache-2.0
"""Lets a running process make system calls of our choice, to see what its kernel says (ptrace; x86-64, as root)."""
import ctypes
import os

ATTACH, DETACH, STEP, GET, SET, ALL = 16, 17, 9, 12, 13, 0x40000000
NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs "
         "gs").split()


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in NAMES]


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long


def ptrace(request, pid, data=None):
    if LIBC.ptrace(request, pid, None, data) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request}")


def calls(pid, wanted):
    """What each call (number, arguments; bytes become addresses of them) returns in that process, which then goes on."""
    ptrace(ATTACH, pid)
    os.waitpid(pid, ALL)
    before, now = Registers(), Registers()
    ptrace(GET, pid, ctypes.byref(before))
    answers = []
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        def put(place, data):
            memory.seek(place)
            kept = memory.read(len(data))
            memory.seek(place)
            memory.write(data)
            return place, kept
        changed = [put(before.rip, b"\x0f\x05")]  # syscall
        for number, *arguments in wanted:
            ctypes.memmove(ctypes.byref(now), ctypes.byref(before), ctypes.sizeof(before))
            now.rax, now.orig_rax = number, 2**64 - 1  # not the call that it was in
            place = before.rsp - 4096
            for name, value in zip(("rdi", "rsi", "rdx"), arguments):
                if isinstance(value, bytes):
                    changed.append(put(place, value + b"\0"))
                    value, place = place, place + 256
                setattr(now, name, value % 2**64)
            ptrace(SET, pid, ctypes.byref(now))
            ptrace(STEP, pid)
            os.waitpid(pid, ALL)
            ptrace(GET, pid, ctypes.byref(now))
            answers.append(ctypes.c_longlong(now.rax).value)
        for place, kept in reversed(changed):
            put(place, kept)
    ptrace(SET, pid, ctypes.byref(before))
    ptrace(DETACH, pid)
    return answers
