# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases about Wi-Fi's rates: at 100, 300, 600 and 1,000 Mbit/s, how often each end wakes a core,
and what the whole machine was busy for a byte, beside curl over TLS and plain.

What a start costs is in all of them, so that a run takes 5 to 6 s at each rate. To read how often
each thread woke costs CPU that is in the whole machine's: a run of its own is watched.
"""

import functools
from typing import Any

import peers
from measure import background_cores
from report import Metric
from transfer import run_onehop

BYTES = {100: 70_000_000, 300: 200_000_000, 600: 400_000_000, 1000: 600_000_000}
_PROGRAMS = {
    "own": "onehop --io auto, the default", "udp": "onehop --io udp at both ends",
    "tls": "curl from nginx, TLS 1.3", "curl": "curl from nginx, plain, sendfile"
}
_ENDS = {"a": "sender", "b": "receiver"}
_THREADS = {
    "a": ("engine", "rate", "read", "plane"), "b": ("engine", "write", "commit", "plane")
}


def _end_values(outcome) -> dict[Any, Any]:
    """_end_values: what both ends did in a second, or for a byte."""
    values, seconds = {}, outcome.wall_seconds
    for side, end, threads, switches in (("a", outcome.sender, outcome.threads_a,
                                          outcome.switches_a),
                                         ("b", outcome.receiver, outcome.threads_b,
                                          outcome.switches_b)):
        values |= {
            f"wakes_{side}": switches / seconds,
            f"calls_{side}": end["engine_syscalls_total"] / seconds,
            f"frames_{side}": end["frames_total"] / end["engine_wakeups_total"],
        }
        for name in _THREADS[side]:
            values[f"wakes_{side}_{name}"] = threads.get(name, 0) / seconds
            values[f"ns_{side}_{name}"] = (end["thread_cpu_seconds"].get(name, 0.0) * 1e9 /
                                           outcome.bytes_total)
    return values


def _round(rate, context) -> dict[Any, Any]:
    size = context.size(BYTES[rate], BYTES[rate] // 4)
    file = context.file(size)

    def own(io, lab, is_watched=False) -> Any:
        return run_onehop(lab, file, context.folder, io, context.work, are_threads_read=is_watched)

    def curl(has_tls, lab) -> Any:
        return peers.curl(lab, file, context.folder, context.work, has_tls)

    runs = {
        "own": functools.partial(own, "auto"), "udp": functools.partial(own, "udp"),
        "watched": functools.partial(own, "auto", is_watched=True),
        "tls": functools.partial(curl, True), "curl": functools.partial(curl, False)
    }
    names, done, values = list(runs), {}, {"background": background_cores()}
    with context.lab(f"steady-{rate}") as lab:
        # Rotated, so that no program always follows the same other one.
        for i in range(len(names)):
            name = names[(i + context.round) % len(names)]
            done[name] = context.backed(size, lambda name=name: runs[name](lab))
    for name, outcome in done.items():
        values |= {
            f"busy_{name}": outcome.busy_ns_per_byte, f"cpu_{name}": outcome.ns_per_byte,
            f"mbps_{name}": outcome.goodput_bps / 1e6
        }
    for name in ("tls", "curl"):
        values[f"to_{name}"] = done["own"].busy_ns_per_byte / done[name].busy_ns_per_byte
        values[f"udp_to_{name}"] = done["udp"].busy_ns_per_byte / done[name].busy_ns_per_byte
    return values | _end_values(done["watched"])


def _metrics(rate) -> list[Any]:
    wakes: tuple[Any, ...] = ("<=", 2000) if rate <= 600 else ()
    metrics = [
        Metric("to_tls", "whole machine busy for a byte / curl's over TLS", "", "<=", 1.0),
        Metric("to_curl", "whole machine busy for a byte / plain curl's", "", "<=", 1.45),
        Metric("udp_to_tls", "the same, --io udp / curl's over TLS"),
        Metric("udp_to_curl", "the same, --io udp / plain curl's")
    ]
    for side, name in _ENDS.items():
        metrics += [
            Metric(f"wakes_{side}", f"{name}: wake-ups of all its threads", "1/s", *wakes),
            *(Metric(f"wakes_{side}_{thread}", f"  of that: {thread}", "1/s")
              for thread in _THREADS[side]),
            Metric(f"calls_{side}", f"{name}: system calls of its engine", "1/s"),
            Metric(f"frames_{side}", f"{name}: frames in a wake-up of its engine"),
            *(Metric(f"ns_{side}_{thread}", f"{name}: CPU of {thread}", "ns/B")
              for thread in _THREADS[side])
        ]
    for name, text in _PROGRAMS.items():
        metrics += [
            Metric(f"busy_{name}", f"{text}: whole machine busy", "ns/B"),
            Metric(f"cpu_{name}", f"{text}: own CPU and ksoftirqd", "ns/B"),
            Metric(f"mbps_{name}", f"{text}: goodput", "Mbit/s")
        ]
    return [*metrics, Metric("background", "other programs, before the round", "cores")]


def cases() -> list[Any]:
    return [(f"wakes-{rate}m",
             f"{rate} Mbit/s: wake-ups, and what the machine was busy, onehop against curl",
             _metrics(rate), functools.partial(_round, rate)) for rate in BYTES]
