#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tools/measure/quic-peers without a network: quic_peers_test.py QUIC_PEERS [WORD].

Goal:   wrong words, a folder within the repository and a machine without cargo are refused with
        what to do.
Method: the script itself, as far as it comes without building.
Bounds: none on speed.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
from program import PATIENCE, check, main  # noqa: E402  (found beside the lab's tests)


def refused(script, code, *words, environment=None) -> Any:
    done = subprocess.run([str(script), *words], capture_output=True, text=True, timeout=PATIENCE,
                          env=environment)
    check(done.returncode == code,
          f"{words} ends with {code}, not {done.returncode}: {done.stderr}")
    return done.stderr


def test_wrong_words(script) -> None:
    check("no such peer" in refused(script, 2, "msquic"), "a peer that is not known")
    check("no such peer or option" in refused(script, 2, "--frob"), "an option that is not known")
    check("has no value" in refused(script, 2, "--folder"), "a folder that is missing")
    check("number of jobs" in refused(script, 2, "--jobs", "many"), "jobs that are no number")
    check("number of jobs" in refused(script, 2, "--jobs", "0"), "no jobs")


def test_a_machine_without_cargo(script) -> None:
    with tempfile.TemporaryDirectory() as work:
        tools = Path(work) / "bin"
        tools.mkdir()
        for name in ("bash", "dirname", "nproc", "env"):
            (tools / name).symlink_to(f"/usr/bin/{name}")
        said = refused(script, 9, "--folder", f"{work}/peers",
                       environment={"PATH": str(tools), "HOME": work})
        check("no cargo" in said and "rustup" in said, f"what to install: {said}")
        check(not (Path(work) / "peers").exists(), "nothing is made before")


def test_a_folder_within_the_repository(script) -> None:
    home = os.environ.get("HOME", "/root")
    with tempfile.TemporaryDirectory() as work:
        for name in ("cargo", "cmake", "openssl"):  # never run: the folder is refused before
            (Path(work) / name).symlink_to("/bin/false")
        folder = Path(script).resolve().parents[2] / "build-peers"
        said = refused(script, 2, "--folder", str(folder),
                       environment={"PATH": f"{work}:{os.environ['PATH']}", "HOME": home})
        check("lies in the repository" in said and not folder.exists(),
              f"the reason, and nothing made: {said}")


if __name__ == "__main__":
    sys.exit(main(globals()))
