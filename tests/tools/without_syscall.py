#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A command whose kernel lacks a system call: without_syscall.py NUMBER ERRNO COMMAND...

By a seccomp filter, as sandboxes do it. No privilege is needed.
"""

import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def main() -> None:
    number, errno_value = int(sys.argv[1]), int(sys.argv[2])
    instructions = b"".join(
        struct.pack("HBBI", *one)
        for one in ((LOAD, 0, 0, 0), (EQUAL, 0, 1, number), (RETURN, 0, 0, RET_ERRNO | errno_value),
                    (RETURN, 0, 0, RET_ALLOW)))
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(instructions) // 8, instructions)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or \
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(sys.argv[3], sys.argv[3:])


main()
