#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The programs of docs/embedding.md: embedding_test.py SOURCE BUILD COMPILER...

Goal:   the page's two programs are all that it takes to send and to receive, with what `meson
        install` put in place.
Method: install the library, header and onehop.pc into an empty folder; take both programs out of
        the page; build them by pkg-config; run them against each other over loopback.
Bounds: 40 lines each; the digests that both print are equal, and so are the files; no name but
        those of onehop::api is exported; a library of another version refuses the program.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab"))
from program import free_address  # noqa: E402

SOURCE, BUILD, COMPILER = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
LINES_MAX = 40
CODE = {"CODE": "a-code-of-the-tests-0123456789"}


def run(*command: object, **more: Any) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False, **more)
    assert done.returncode == 0, f"{words} is {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def programs() -> dict[str, str]:
    page = (SOURCE / "docs/embedding.md").read_text(encoding="utf-8")
    found = re.findall(r"^```cpp\n(.*?)^```", page, re.M | re.S)
    assert len(found) == 2, f"the page has a sender and a receiver, not {len(found)} programs"
    for text in found:
        lines = len(text.splitlines())
        assert lines <= LINES_MAX, f"at most {LINES_MAX} lines, not {lines}"
    return dict(zip(("sender", "receiver"), found))


def build_all(work: Path) -> Path:
    """build_all installs, builds both programs in `work`, and returns the library."""
    root = work / "root"
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--tags", "devel,runtime",
        "--destdir", root)
    [pc] = root.rglob("onehop.pc")
    [library] = root.rglob("libonehop.so.*.*")
    paths = {"PKG_CONFIG_LIBDIR": f"{pc.parent}:/usr/lib/pkgconfig",
             "PKG_CONFIG_SYSROOT_DIR": str(root)}
    flags = run("pkg-config", "--cflags", "--libs", "onehop", env=os.environ | paths).split()
    for name, text in programs().items():
        source = work / f"{name}.cpp"
        source.write_text(text)
        run(*COMPILER, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-O0", "-o", work / name,
            source, *flags)
    names = run("nm", "-DC", "--defined-only", library).splitlines()
    strange = [line for line in names if "onehop::api::" not in line and "ONEHOP_" not in line]
    assert names and not strange, f"only onehop::api is exported: {strange[:5]}"
    return library


def check_another_version(work: Path, library: Path) -> None:
    """Its structs may have other sizes: the program does not start."""
    [version] = set(re.findall(rb"ONEHOP_[\d.]+", library.read_bytes()))
    other = work / "other" / "libonehop.so.0"
    other.parent.mkdir()
    other.write_bytes(library.read_bytes().replace(version, version[:-1] + b"x"))
    done = subprocess.run([work / "sender", "address", "path"], capture_output=True, text=True,
                          env=os.environ | CODE | {"LD_LIBRARY_PATH": str(other.parent)})
    refused = f"version `{version.decode()}' not found"
    assert done.returncode != 0 and refused in done.stderr, f"it starts: {done}"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="onehop-embedding-") as folder:
        work = Path(folder)
        library = build_all(work)
        (work / "in").mkdir()
        (work / "file.bin").write_bytes(os.urandom(3_000_000))
        address = free_address()
        env = os.environ | CODE | {"LD_LIBRARY_PATH": str(library.parent)}
        with subprocess.Popen([work / "receiver", address, work / "in"], stdout=subprocess.PIPE,
                              text=True, env=env) as receiver:
            try:
                sent = run(work / "sender", address, work / "file.bin", env=env)
                received = receiver.communicate(timeout=60)[0]
            finally:
                receiver.kill()
        code = receiver.returncode
        assert code == 0, f"the receiver ends with 0, not {code}: {received}"
        assert sent == received and len(sent.split()) == 2, f"the same is printed: {sent}{received}"
        arrived = Path(sent.split()[0]).read_bytes()
        assert arrived == (work / "file.bin").read_bytes(), "the file is there"
        check_another_version(work, library)


if __name__ == "__main__":
    main()
