#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""clang_tidy.py BUILD_FOLDER [SOURCE...]: clang-tidy with the checks of .clang-tidy.

It looks at every C++ file that goes into the program and the library, or at the named ones, with
the include folders and macros that BUILD_FOLDER compiles them with (none where it does not). One
precompiled header of the standard library serves them all: without it the parser takes most of the
time. Exit code 0: no finding. 1: findings, which are printed. 77: clang-tidy is not installed.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
LLVM = next((version for version in ("16", "18", "19") if shutil.which(f"clang-tidy-{version}")
             and shutil.which(f"clang++-{version}")), "")
FOLDERS = ("engine", "xdp", "control", "tools")
# Built against ns-3, whose headers are C++17 and full of findings.
LEFT_OUT = ("tools/labs/ns3", "tools/dev/pch")
# Boost 1.74 does not know that clang has C++20's coroutines.
COMMON = ["-std=c++20", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-pthread", "-fPIC",
          "-DBOOST_ASIO_HAS_CO_AWAIT=1", "-DBOOST_ASIO_HAS_STD_COROUTINE=1", "-w"]


def arguments_of(command: str) -> list[str]:
    """The include folders, macros and target options of a compiler's command line."""
    words = shlex.split(command)
    kept: list[str] = []
    for index, word in enumerate(words):
        if word == "-isystem":
            kept += [word, words[index + 1]]
        elif word.startswith(("-I", "-isystem", "-m")) and "tools/dev/pch" not in word:
            kept.append(word)
        elif word.startswith("-D") and "FORTIFY" not in word:
            kept.append(word)
    return kept


def files_of(path: pathlib.Path) -> list[pathlib.Path]:
    """The file itself, or those that a file of Meson's (unity=on) holds."""
    if not re.search(r"-unity\d+\.cpp$", path.name):
        return [path]
    names: list[str] = re.findall(r"#include<(.+)>", path.read_text())
    return [pathlib.Path(name).resolve() for name in names]


def sources_of(build: pathlib.Path, named: list[str]) -> dict[str, list[str]]:
    """The path of each source with the arguments that it is compiled with. A file of Meson's that
    holds several is looked at whole: the parser reads what they all include once."""
    found: dict[str, list[str]] = {str(pathlib.Path(name).resolve()): [] for name in named}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        held = files_of(path)
        if path.suffix != ".cpp" or not all(file.is_relative_to(ROOT) for file in held):
            continue
        names = [str(file.relative_to(ROOT)) for file in held]
        if not named and all(name.startswith(FOLDERS) and not name.startswith(LEFT_OUT)
                             for name in names):
            found[str(path)] = arguments_of(entry["command"])
        for file in held:
            if str(file) in found and named:
                found[str(file)] = arguments_of(entry["command"])
    return found


def look_at(name: str, arguments: list[str], build: pathlib.Path, header: str) -> tuple[str, str]:
    """clang-tidy's findings in one file; empty where there are none."""
    if not any(word.startswith("-m") for word in arguments):  # else the header is of another CPU
        arguments = [*arguments, "-include-pch", header]
    done = subprocess.run(
        [f"clang-tidy-{LLVM}", "--quiet", f"--config-file={ROOT}/.clang-tidy", name, "--", *COMMON,
         *arguments], cwd=build, capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if "error:" in line]
    text = done.stdout + ("\n".join(lines) if done.returncode != 0 else "")
    return name, text.strip() if done.returncode != 0 else ""


def main() -> int:
    """Looks at all of them and prints what was found."""
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    if not LLVM:
        print("clang-tidy: skipped: clang-tidy-16 and clang-16 (or 18, 19) are not installed")
        return 77
    build = pathlib.Path(sys.argv[1]).resolve()
    sources = sources_of(build, sys.argv[2:])
    with tempfile.TemporaryDirectory() as folder:
        header = str(pathlib.Path(folder, "std.pch"))
        subprocess.run([f"clang++-{LLVM}", *COMMON, "-x", "c++-header", "-o", header,
                        str(ROOT / "tools/dev/pch/headers/std.hpp")], check=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            work = [pool.submit(look_at, name, arguments, build, header)
                    for name, arguments in sources.items()]
            found = [done.result() for done in concurrent.futures.as_completed(work)]
    for _, text in sorted(found):
        if text:
            print(text)
    count = sum(1 for _, text in found if text)
    print(f"clang-tidy: {len(found)} files, {count} with findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
