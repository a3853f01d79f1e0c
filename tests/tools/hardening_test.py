#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The built program is hardened as meson.build says, and nothing that is installed names a folder
of its build: hardening_test.py ONEHOP.

Goal:   each measure is in the program that users get, and not only on a command line.
Method: readelf of its headers, its dynamic section and its symbols; objdump of main; strings of
        what is loaded of program, laboratories, module and library.
Bounds: none. Exit code 77 where binutils are not installed.
"""
import pathlib
import re
import shutil
import subprocess
import sys


def output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(program: str) -> int:
    if any(shutil.which(tool) is None for tool in ("readelf", "objdump", "strings")):
        print("skipped: readelf, objdump and strings (binutils) are not installed")
        return 77
    headers = output_of("readelf", "-hlW", program)
    # A frame of more than a page is probed page by page: by g++ with an orq, by clang with a movq.
    objdump = "objdump"
    probe = r"orq\s+\$0x0,|sub\s+\$0x1000,%rsp\n.*movq\s+\$0x0,\(%rsp\)"
    if "AArch64" in headers:
        cross = "aarch64-linux-gnu-objdump"
        objdump, probe = shutil.which(cross) or objdump, r"str\s+xzr, \[sp, #1024\]"
    dynamic = output_of("readelf", "-dW", program)
    symbols = output_of("readelf", "-W", "--dyn-syms", program)
    notes = output_of("readelf", "-nW", program)
    claims = {
        "PIE: it is loaded at any address": "DYN (Position-Independent Executable" in headers,
        "RELRO: a segment is read-only after relocation": "GNU_RELRO" in headers,
        "BIND_NOW: all of it is relocated at the start": "BIND_NOW" in dynamic or " NOW" in dynamic,
        "the stack is not executable": re.search(r"GNU_STACK.* RW ", headers) is not None,
        "stack protector": "__stack_chk_fail" in symbols,
        "_FORTIFY_SOURCE": re.search(r"__(memcpy|snprintf|vsnprintf|read|recv)_chk", symbols)
                           is not None,
        "stack clash protection": re.search(probe, output_of(objdump, "-d", program)) is not None,
    }
    # What SECURITY.md says of CET is what the linker made of it: without the property of both kinds
    # nothing turns it on, whatever single functions begin with.
    source, build = (pathlib.Path(path).resolve().parents[2] for path in (__file__, program))
    security = (source / "SECURITY.md").read_text()
    has_cet = "IBT" in notes and "SHSTK" in notes
    claims["SECURITY.md says whether the program has CET"] = (
        has_cet != ("CET is not among it" in security))
    for installed in (pathlib.Path(program), *build.glob("tools/labs/*/onehop-*"),
                      *build.glob("engine/port/dpdk/*.so"),
                      *build.glob("control/transfer/*.so.*.*")):
        if installed.is_file():
            claims[f"{installed.name} names no folder of its build"] = (
                f"{source}/" not in output_of("strings", "-d", str(installed)))
    for claim, holds in claims.items():
        print(f"{'ok  ' if holds else 'FAIL'}  {claim}")
    return 0 if all(claims.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
