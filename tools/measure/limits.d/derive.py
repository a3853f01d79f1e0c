# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What follows from the cost of parts: how much one core carries, how many cores a rate takes,
which part is full first, and what would be needed. Pure: figures in, lines of a page out. Costs are
CPU nanoseconds for a byte, rates are Gbit/s of file data.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

RATES = (10, 25, 100)
OVERHEAD_BYTES = 44  # header and tag of a frame (engine/wire/frame.hpp overhead_bytes)
# By link: what a page calls it, and what a frame carries of a file.
LINKS = {"1500": ("MTU 1500", 1472 - OVERHEAD_BYTES),
         "1500-gro": ("MTU 1500, GRO", 1472 - OVERHEAD_BYTES),
         "9000": ("MTU 9000", 8972 - OVERHEAD_BYTES),
         "9000-gro": ("MTU 9000, GRO", 8972 - OVERHEAD_BYTES)}
# A byte's copies by a CPU at each end, where none is saved. Sealing and opening move it once more:
# they read a block and write a frame, or the reverse.
COPIES = {
    "UDP, AF_XDP copy": (("page cache to block", "frame to skb"),
                         ("skb to frame", "block to page cache")),
    "DPDK memif": (("page cache to block", "frame to the peer's ring"),
                   ("ring to frame", "block to page cache")),
    "DPDK memif, zero-copy": (("page cache to block", ), ("ring to frame", "block to page cache")),
    "AF_XDP zero-copy": (("page cache to block", ), ("block to page cache", )),
    "AF_XDP zero-copy, direct I/O": ((), ()),
}
# What `onehop bench` calls a port: what a page calls it, and what makes it cheaper.
PORTS = {"udp": ("UDP, GSO", "segmentation by the card (USO)"),
         "afxdp:copy": ("AF_XDP copy", "zero-copy")}
THREADS = ("sender/read", "sender/engine", "softirq", "receiver/engine", "receiver/write")


@dataclass(frozen=True)
class Way:
    """One way of a byte. `sending` and `receiving` are what each end costs in all, `threads` those
    that one core must carry, `parts` what each part costs alone. `moves` is how often a byte is
    moved at the end that moves it more often, and `relief` what makes its port cheaper."""

    name: str
    payload_bytes: int
    sending: float
    receiving: float
    threads: dict[str, float]
    parts: dict[str, float]
    moves: int
    relief: str = ""


def carried(ns) -> float:
    """carried is what one core carries that does nothing else."""
    return 8 / ns


def cores(ns, rate) -> float:
    return ns * rate / 8


def memory_rate(moves, copied) -> float:
    """memory_rate is where memory is full that copies so many GB/s, if no move finds its bytes in
    a cache."""
    return 8 * copied / moves if moves else math.inf


def in_order(way, copied) -> list[tuple[str, float]]:
    """in_order returns the parts with what each carries, the one that is full first before all
    others."""
    full = {name: carried(ns) for name, ns in way.parts.items()}
    full["memory, all cores"] = memory_rate(way.moves, copied)
    return sorted(full.items(), key=lambda one: one[1])


def needed(way, rate, copied) -> list[str]:
    """needed says what a rate takes that one core for each thread does not give."""
    engine = max(way.threads["sender/engine"], way.threads["receiver/engine"])
    aead = max(way.parts["sealing"], way.parts["opening"])
    files = max(way.threads["sender/read"], way.threads["receiver/write"])
    port = max((way.parts.get(name, 0.0) for name in ("port, sending", "port, receiving")))
    lines = []
    if cores(engine, rate) > 1:
        lines.append(f"{math.ceil(cores(engine, rate))} queues with an engine each")
        if cores(engine - aead, rate) <= 1:
            lines.append(f"or one, with the AEAD on others ({cores(aead, rate):.1f} cores)")
    if cores(way.threads.get("softirq", 0.0), rate) > 1:
        lines.append("the kernel's receive path on several cores")
    if cores(port, rate) > 1:
        is_small = way.payload_bytes < LINKS["9000"][1]
        lines.append(f"{'larger frames, or ' if is_small else ''}{way.relief}")
    if cores(files, rate) > 1:
        lines.append(f"direct I/O, or {math.ceil(cores(files, rate))} threads for the file")
    if memory_rate(way.moves, copied) < rate:
        lines.append("fewer copies")
    return lines or ["one core for each thread"]


# --- from what was measured


def ways(values) -> Iterator[Way]:
    """ways are those that were measured, and for each size of frames the one whose port costs
    nothing. `values` are medians by case and key."""
    alone = values["alone"]
    for key, (mtu, payload) in LINKS.items():
        size = payload + OVERHEAD_BYTES
        seal, opened = alone[f"seal_{size}"], alone[f"open_{size}"]
        parts = {"reading": alone["read"], "digest": alone["digest"], "sealing": seal,
                 "opening": opened, "writing": alone["write"]}
        link = values.get(f"link-{key}", {})
        for port, (name, relief) in PORTS.items():
            if f"whole {port}" not in link:
                continue
            yield Way(f"{name}, {mtu}", payload, link[f"sending {port}"],
                      link[f"receiving {port}"],
                      {thread: link[f"{thread} {port}"] for thread in THREADS},
                      parts | {"port, sending": link[f"tx {port}"],
                               "softirq": link[f"tx softirq {port}"],
                               "port, receiving": link[f"rx {port}"]}, 3, relief)
        if "gro" not in key:
            read, write = alone["read"] + alone["digest"], alone["write"] + alone["digest"]
            yield Way(f"a port that costs nothing, {mtu}", payload, read + seal, opened + write,
                      dict(zip(THREADS, (read, seal, 0.0, opened, write))), parts, 2)


def table(head, rows) -> Iterator[str]:
    yield from ("", f"| {' | '.join(head)} |", "|" + "---|" * len(head))
    yield from (f"| {' | '.join(map(str, row))} |" for row in rows)


def _alone(values) -> Iterator[Any]:
    alone = values["alone"]

    def row(name, sending, receiving) -> list[str]:
        return [name, *(f"{ns:.3f} | {carried(ns):.0f}" if ns else " | "
                        for ns in (sending, receiving))]

    for link_key, (mtu, _) in LINKS.items():
        link = values.get(f"link-{link_key}", {})
        for key, name in (("socket", "a socket, frame by frame"), ("udp", "a socket, GSO"),
                          ("afxdp:copy", "AF_XDP copy")):
            if f"tx {key}" in link:
                softirq = link[f"tx softirq {key}"]
                yield row(f"bare port, {mtu}: {name}", link[f"tx {key}"],
                          link[f"rx {key}"] + softirq)
    for size in (1472, 8972):
        yield row(f"AEAD, frames of {size}", alone[f"seal_{size}"], alone[f"open_{size}"])
    yield row("digest", alone["digest"], alone["digest"])
    yield row("file in the page cache: read, write", alone["read"], alone["write"])


def page(values, cpus) -> list[str]:
    """page returns the lines that go before the cases, or none where the parts were not measured.
    `cpus` is how many the machine has."""
    if "read" not in values.get("alone", {}):
        return []
    alone, known = values["alone"], list(ways(values))
    one, every, cached = alone["copy_one"], alone["copy_all"], alone["copy_cached"]
    saved = [cores(1 / rate, 100) for rate in (cached, one)]
    return [
        "", "## Each part alone", "",
        "CPU for a byte, and what one core carries that does nothing else. The softirq in the "
        "sender, which on a veth is the kernel's receive path, stands at the receiving end.",
        *table(("part", "sending, ns/B", "Gbit/s", "receiving, ns/B", "Gbit/s"), _alone(values)),
        "", "## Copies", "",
        f"One core copies {one:.1f} GB/s where no cache holds a byte and {cached:.1f} where one "
        f"does, all {cpus} cores at once {every:.1f}. So at 100 Gbit/s one copy less is "
        f"{saved[0]:.1f} to {saved[1]:.1f} cores less. The last column is derived: each end on a "
        "machine of its own, and each copy and the AEAD's move from and to memory.",
        *table(("way", "sending", "receiving", "copies", "memory is full at, Gbit/s"),
               [(name, ", ".join(sent) or "none", ", ".join(came) or "none", len(sent) + len(came),
                 f"{memory_rate(1 + max(len(sent), len(came)), every):.0f}")
                for name, (sent, came) in COPIES.items()]),
        "", "## The slowest thread", "",
        f"Of the whole transfer: which thread costs most, what that bounds the goodput to, what "
        f"all {cpus} cores bound it to, and what came.",
        *table(("way", "whole / sum of parts", "slowest thread", "ns/B", "bounds to, Gbit/s",
                "all cores, Gbit/s", "came, Gbit/s"), _slowest(values, cpus)),
        "", "## What 10, 25 and 100 Gbit/s would take", "",
        "Derived, not measured: CPU for a byte stays what it is above, each core adds as much as "
        "the first, and memory carries what it carries here.",
        *table(("way", "Gbit/s", "cores, sending", "cores, receiving", "frames/s",
                "full before that, on one core (Gbit/s)", "needed"), _rates(known, every))
    ]


def _slowest(values, cpus) -> Iterator[Any]:
    for link_key, (mtu, _) in LINKS.items():
        link = values.get(f"link-{link_key}", {})
        for port, (name, _) in PORTS.items():
            if f"whole {port}" not in link:
                continue
            here = {key: link[f"{key} {port}"] for key in THREADS if key != "softirq"}
            here["sender/engine"] += link[f"softirq {port}"]
            slowest = max(here, key=lambda key: here[key])
            yield (f"{name}, {mtu}", f"{link[f'over {port}']:.2f}", slowest,
                   f"{here[slowest]:.2f}", f"{carried(here[slowest]):.1f}",
                   f"{cpus * carried(link[f'whole {port}']):.1f}", f"{link[f'goodput {port}']:.1f}")


def _rates(known, copied) -> Iterator[Any]:
    for way in known:
        for rate in RATES:
            order = [(f"{name} ({most:.0f})", most) for name, most in in_order(way, copied)]
            full = [text for text, most in order if most < rate]
            yield (way.name, rate, f"{cores(way.sending, rate):.1f}",
                   f"{cores(way.receiving, rate):.1f}",
                   f"{rate * 1e9 / 8 / way.payload_bytes / 1e6:.2f} M",
                   ", ".join(full) or f"none; the first is {order[0][0]}",
                   "; ".join(needed(way, rate, copied)))
