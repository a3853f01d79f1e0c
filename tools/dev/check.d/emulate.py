# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""emulate.py COMMAND...: runs it where programs of arm64 run, too, by qemu-user.

The rule is in the binfmt_misc of a user namespace of its own (Linux 6.7) and goes with it. Run by
tools/distros inside a root, as root.
"""

import os
import signal
import subprocess
import sys
from typing import Any

QEMU = "/usr/bin/qemu-aarch64"
RULE = (r":aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
        r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:")
MISC = "/proc/sys/fs/binfmt_misc"


def main(words: list[str]) -> int:
    is_in, is_mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        new: Any = os  # of Python 3.12
        new.unshare(new.CLONE_NEWUSER | new.CLONE_NEWNS)
        os.write(is_in[1], b".")
        os.read(is_mapped[0], 1)
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", MISC], check=True)
        with open(f"{MISC}/register", "w") as rules:
            rules.write(f"{RULE}{QEMU}:F")
        # Python ignores these, and an exec hands that on.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(words[0], words)
    os.read(is_in[0], 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{child}/{name}", "w") as ids:
            ids.write("0 0 65536")
    os.write(is_mapped[1], b".")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
