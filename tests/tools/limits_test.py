#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What tools/measure/limits derives from costs: limits_test.py ROOT. Nothing is measured.

Goal:   cores, the part that is full first and what a rate takes follow from the figures, and the
        page has a row for each way that was measured and for no other.
Method: tools/measure/limits.d/derive.py with made-up costs, computed by hand beside it.
"""

import math
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tools/measure/limits.d"))
sys.dont_write_bytecode = True

import derive  # noqa: E402

SMALL, LARGE = derive.LINKS["1500"][1], derive.LINKS["9000"][1]


def way(engine, read=0.1, write=0.1, softirq=0.0, port=0.1, payload=SMALL) -> derive.Way:
    return derive.Way(
        "w", payload, read + engine, softirq + engine + write,
        dict(zip(derive.THREADS, (read, engine, softirq, engine, write))),
        {"sealing": 0.2, "opening": 0.1, "port, sending": port, "port, receiving": port,
         "reading": read, "writing": write}, 3, "USO")


def test_cores_and_rates() -> None:
    assert derive.carried(0.8) == 10 and derive.cores(0.8, 10) == 1 and derive.cores(0.4, 100) == 5
    assert derive.memory_rate(3, 12) == 32 and derive.memory_rate(0, 12) == math.inf


def test_which_part_is_full_first() -> None:
    assert derive.in_order(way(0.5), 100)[0] == ("sealing", 40.0)
    assert derive.in_order(way(0.5, write=0.4), 100)[0] == ("writing", 20.0)
    assert derive.in_order(way(0.5, port=0.8), 100)[0][1] == 10.0
    assert derive.in_order(way(0.5), 3)[0] == ("memory, all cores", 8.0)


def test_what_a_rate_takes() -> None:
    assert derive.needed(way(0.5), 10, 100) == ["one core for each thread"]
    assert derive.needed(way(0.5), 16, 100) == ["one core for each thread"], "just one core"
    # 25 Gbit/s of 0.5 ns/B are 1.56 cores, of which the AEAD's 0.2 ns/B are 0.63.
    assert derive.needed(way(0.5), 25, 100) == ["2 queues with an engine each",
                                                "or one, with the AEAD on others (0.6 cores)"]
    assert derive.needed(way(0.6), 25, 100) == ["2 queues with an engine each"]
    assert derive.needed(way(0.1, write=0.2), 100, 100) == [
        "2 queues with an engine each", "or one, with the AEAD on others (2.5 cores)",
        "larger frames, or USO", "direct I/O, or 3 threads for the file"]
    assert derive.needed(way(0.3, port=0.4, payload=LARGE), 25, 100) == ["USO"], "large frames"
    assert derive.needed(way(0.3, softirq=0.4), 25, 9) == [
        "the kernel's receive path on several cores", "fewer copies"], "24 Gbit/s of memory"


def values(mtu="1500", ports=("udp", )) -> dict[str, Any]:
    link: dict[str, float] = {}
    for port in ports:
        link |= {f"{key} {port}": 0.5 for key in (
            *derive.THREADS, "tx", "tx softirq", "rx", "whole", "over", "goodput", "sending",
            "receiving")}
    alone = {f"{key}_{size}": 0.1 for key in ("seal", "open") for size in (1472, 8972)}
    return {f"link-{mtu}": link, "alone": alone | {"digest": 0.05, "read": 0.2, "write": 0.3,
                                                  "copy_one": 5, "copy_all": 9, "copy_cached": 40}}


def test_the_page_has_what_was_measured() -> None:
    text = "\n".join(derive.page(values(), 2))
    # The engine's thread has the softirq in it here, and has not where the ends are two machines.
    assert "| UDP, GSO, MTU 1500 | 0.50 | sender/engine | 1.00 | 8.0 | 32.0 | 0.5 |" in text, text
    assert "| UDP, GSO, MTU 1500 | 100 | 6.2 | 6.2 | 8.75 M |" in text, text
    assert "| digest | 0.050 | 160 | 0.050 | 160 |" in text and "0.3 to 2.5 cores less" in text, (
        text)
    # What costs nothing to send: read and digest, seal; open, write and digest.
    assert "| a port that costs nothing, MTU 9000 | 100 | 4.4 | 5.6 | 1.40 M |" in text, text
    assert "| 10 | 0.4 | 0.6 | 0.14 M | none; the first is writing (27) |" in text, text
    assert "AF_XDP copy, MTU" not in text and "GRO" not in text, text
    assert derive.page({"guest": {"ratio": 1.0}}, 2) == [], "no parts, nothing to derive"
    assert "AF_XDP copy, MTU 9000" in "\n".join(derive.page(values("9000", ("afxdp:copy", )), 2))


def test_a_frame_carries_what_the_wire_says() -> None:
    wire = (ROOT / "engine/wire/frame.hpp").read_text()
    assert derive.OVERHEAD_BYTES == sum(
        int(re.search(rf"{part}_bytes = (\d+);", wire)[1]) for part in ("header", "tag"))


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"ok    {name[5:].replace('_', ' ')}")
