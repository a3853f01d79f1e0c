# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""For tests that make whole roots: commands that must succeed, and mounts that go with the test."""

import os
import subprocess
import sys
from typing import Any

from program import check


def run(*words: Any, **more: Any) -> str:
    """run is what a command says, on either stream; one that fails is a failure of the test."""
    done = subprocess.run([str(word) for word in words], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, **more)
    check(done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def own_mounts() -> None:
    """own_mounts starts this program again, so that what it mounts goes with it, however it
    ends."""
    if "ONEHOP_OWN_MOUNTS" not in os.environ:
        os.environ["ONEHOP_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
