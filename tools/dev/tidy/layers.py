# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""layers: which folder may include what. Used by tidy."""
import re
from collections.abc import Iterator
from typing import Any

# Who may include whom. A folder may always include itself; tools and tests may include everything.
INCLUDES: dict[str, Any] = {
    "engine/base": set(),
    "engine/wire": {"engine/base"},
    "engine/crypto": {"engine/base"},
    # What is sent is read from the disk; the disk knows no manifest.
    "engine/disk": {"engine/base", "engine/crypto"},
    "engine/list": {"engine/base", "engine/crypto", "engine/disk"},
    "engine/source": {"engine/base", "engine/crypto", "engine/disk", "engine/list"},
    "engine/sink": {"engine/base", "engine/crypto", "engine/disk", "engine/list"},
    "engine/protocol": {"engine/base", "engine/wire"},
    "engine/port": {"engine/base", "engine/wire"},
    "engine/run": {"engine/base", "engine/wire", "engine/protocol", "engine/crypto", "engine/port"},
    "xdp": {"engine/base", "engine/wire", "engine/port"},
    "control/asio": set(),
    "control/law": {"engine/base"},
    "control/link": {"engine/base", "control/law"},
    "control/rate": {"engine/base", "control/law", "control/link"},
    "control/pair": {"engine/base", "engine/crypto"},
    "control/session": {"engine/base", "engine/wire", "engine/crypto", "engine/list",
                        "control/pair"},
    "control/bus": {"engine/base"},
    "control/p2p": {"engine/base", "control/bus", "control/link"},
    "control/find": {"engine/base", "control/bus"},
}
FREE = {"tools", "tests"}
# What is put together of all of them, and never of tools.
INCLUDES["control/transfer"] = set(INCLUDES)
ROOMS = ("engine", "xdp", "control", "tools", "tests")

# System headers that a folder must not see, as regular expressions on the name between the
# brackets.
BANNED_HEADERS = {
    "engine": r"boost/asio.*|rte_.*|xdp/.*",
    "xdp": r"boost/asio.*",
    "control/law": r"boost/asio.*|c?time(\.h)?|sys/.*|netinet/.*|arpa/.*|linux/.*|net/"
                   r".*|unistd\.h|poll\.h|thread|mutex"
    r"|shared_mutex|condition_variable|future|atomic|semaphore|pthread\.h|cstdio|stdio\.h|iostream"
    r"|ostream|istream|fstream|syslog\.h|fmt/(os|ostream|chrono)\.h",
}
# Folders whose code runs on the engine core. It takes no lock: who holds one may lose the CPU for
# milliseconds, and meanwhile the link runs dry or the ring overflows. engine/list, engine/source
# and engine/sink have threads of their own.
CORE = ("engine/base", "engine/wire", "engine/crypto", "engine/protocol", "engine/port",
        "engine/run", "xdp")
LOCKS = re.compile(
    r"mutex|shared_mutex|condition_variable|future|semaphore|barrier|latch|syncstream"
    r"|(pthread|semaphore|threads)\.h"
    r"|boost/(thread|interprocess)/.*|rte_(spin|rw|mcs|ticket|pf)lock\.h|rte_seqlock\.h")
# Files that include one all the same.
LOCK_REASONS = {
    "engine/crypto/secret.cpp": "pthread_atfork() and no lock",
    "engine/port/dpdk/"
    "frame_pool.cpp": "DPDK's own threads give frames back; the core takes the lock where it has "
                      "run out of its own",
    "engine/port/dpdk/"
    "interrupt_gate.hpp": "DPDK's interrupt thread is parked by it; the core waits for that only "
                          "when nothing is heard",
}
# The one folder whose .cpp files see DPDK; its headers do not, so that nobody who includes them
# does.
DPDK_FILES = re.compile(r"engine/port/dpdk/\w+\.cpp")


def room_of(path) -> Any:
    parts = path.split("/")
    if parts[0] in FREE or parts[0] == "xdp":
        return parts[0]
    return "/".join(parts[:2])


def includes_of(text) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if found:
            yield number, found[1], found[2]


def include_fault(room, bracket, name) -> Any:
    """What is wrong with this include in that room, or None."""
    for where, pattern in BANNED_HEADERS.items():
        if (room + "/").startswith(where + "/") and re.fullmatch(pattern, name):
            return f"{where} never includes {name}"
    if name.split("/")[0] not in ROOMS or "/" not in name:
        return f'"{name}" is not written from the root of the tree' if bracket == '"' else None
    if room in FREE or (target := room_of(name)) == room:
        return None
    if room not in INCLUDES:
        return f"{room} is not in the table of allowed includes (tools/dev/tidy/layers.py)"
    return None if target in INCLUDES[room] else f"{room} must not include {target}"


def findings(tree) -> Iterator[Any]:
    """findings yields (path, line, text)."""
    for path, text in tree.code((".cpp", ".hpp", ".c", ".h")):
        if path.split("/")[0] not in ROOMS:
            continue
        has_lock = False
        for number, bracket, name in includes_of(text):
            if path.endswith(".bpf.c") and bracket == '"' and "/" not in name:
                continue  # clang -target bpf compiles it alone, with no include path to the root
            if room_of(path) in CORE and LOCKS.fullmatch(name):
                has_lock = True
                if path not in LOCK_REASONS:
                    yield path, number, (f"{room_of(path)} runs on the engine core, which takes no "
                                         f"lock: never {name}")
            if DPDK_FILES.fullmatch(path) and name.startswith("rte_"):
                continue
            if fault := include_fault(room_of(path), bracket, name):
                yield path, number, fault
        if path in LOCK_REASONS and not has_lock:
            yield path, 1, ("it includes no lock any more: take it out of LOCK_REASONS "
                            "(tools/dev/tidy/layers.py)")
