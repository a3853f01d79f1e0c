# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases about cost: CPU per byte against iperf3, rsync, curl and scp; busy time at a shaped rate;
memory.

A ratio is always to the iperf3 run of the same round: the whole table moves with the machine's
other load, and (placement.py) with where the host has our CPUs.
"""

import functools
import os
import shutil
from typing import Any

import lab as labs
import peers
from measure import MeasureError, background_cores
from placement import hold, round_trip_ns
from report import Metric
from transfer import run_onehop

MIB = 1 << 20
BLOCK_BYTES = MIB // 4  # of the program: one that is a hole is not sent
# More could, with what the runs free, pass what a host leaves of free memory before it takes some
# back (Context.backed); a run at this rate lasts too long to touch it beforehand.
BUSY_BYTES = 400_000_000
PORTS = ("auto", "udp", "afxdp", "skb")  # auto: what each end takes by itself


_BACKGROUND = Metric("background", "other programs, before the round", "cores")
_THREADS = (("engine", "sender"), ("read", "sender"), ("rate", "sender"), ("plane", "sender"),
            ("engine", "receiver"), ("write", "receiver"), ("plane", "receiver"))


def _thread_values(outcome, label) -> dict[Any, Any]:
    """_thread_values splits a transfer's CPU by thread, as the two programs read it of themselves,
    in ns per byte."""
    ends = {"sender": outcome.sender, "receiver": outcome.receiver}
    return {
        f"{label}_{side}_{name}":
        ends[side]["thread_cpu_seconds"].get(name, 0.0) * 1e9 / outcome.bytes_total
        for name, side in _THREADS
    }


def _thread_metrics(label, text) -> list[Any]:
    return [
        Metric(f"{label}_{side}_{name}", f"  {text}: {side}'s {name} thread", "ns/B")
        for name, side in _THREADS
    ]


def _cpu(profile, is_touched) -> Any:
    """A round of every program on one link. is_touched: the memory that a run will take is written
    to before it, for all of them; else for none."""
    def run(context) -> Any:
        return hold(context.onehop, lambda place: run_at(place, context))

    def run_at(place, context) -> Any:
        size = context.size(1 << 30, 512 * MIB)
        file = context.file(size)
        runs = _programs(context, file, size)
        done, values = {}, {"background": background_cores(), "round_trip": place.round_trip_ns}
        with context.lab(profile) as lab:
            # Rotated, so that no program always follows the same other one.
            names = list(runs)
            for i in range(len(names)):
                name = names[(i + context.round) % len(names)]
                once = lambda name=name: runs[name](lab)  # noqa: E731
                done[name] = place.run((
                    lambda once=once: context.backed(size, once)) if is_touched else once)
        return values | _cpu_values(done)

    return run


def _programs(context, file, size) -> dict[Any, Any]:
    """_programs: what moves the file, by name; each is run(lab) and returns an Outcome. iperf3
    moves no file, only as many bytes."""
    def own(io, *receive_extra) -> Any:
        return lambda lab: run_onehop(lab, file, context.folder, io, context.work, receive_extra=
                                      receive_extra)

    def peer(move, **how) -> Any:
        return lambda lab: move(lab, file, context.folder, context.work, **how)

    return {
        "iperf3": lambda lab: peers.iperf3(lab, size, context.work), "auto": own("auto"),
        "udp": own("udp"), "afxdp": own("afxdp"), "skb": own("afxdp", "--xdp-mode",
                                                             "skb"), "rsync": peer(peers.rsync),
        "curl": peer(peers.curl), "tls": peer(peers.curl, has_tls=True), "scp": peer(peers.scp)
    }


def _cpu_values(done) -> Any:
    values, base = {}, done["iperf3"]
    for name, outcome in done.items():
        values[f"ns_{name}"] = outcome.ns_per_byte
        values[f"bps_{name}"] = outcome.goodput_bps / 1e9
        values[f"ratio_{name}"] = outcome.ns_per_byte / base.ns_per_byte
    for io in PORTS:
        values.update(_thread_values(done[io], f"thread_{io}"))
    cheapest = min((done[io] for io in PORTS), key=lambda outcome: outcome.ns_per_byte)
    for key, own in (("auto", done["auto"]), ("best", cheapest)):
        values |= {
            f"{key}_to_{name}": own.ns_per_byte / done[name].ns_per_byte
            for name in ("iperf3", *FILE_PEERS)
        }
        values[f"{key}_goodput"] = own.goodput_bps / base.goodput_bps
    return values


FILE_PEERS = {
    "curl": "curl from nginx, plain, sendfile", "tls": "curl from nginx, TLS 1.3",
    "rsync": "rsync daemon", "scp": "scp aes128-gcm"
}
_CHEAPEST = (
    "the cheapest of the four runs of a round is nobody's choice: --io auto is judged instead")


def _cpu_metrics(is_judged) -> list[Any]:
    def bound(relation, value, *replaced) -> tuple[Any, ...]:
        return (relation, value, *replaced) if is_judged else ()

    metrics = [
        Metric("auto_to_iperf3", "--io auto / iperf3, CPU per byte", "", *bound("<=", 1.4)),
        Metric("auto_to_rsync", "--io auto / rsync, CPU per byte", "", *bound("<=", 1.0)),
        Metric("auto_to_scp", "--io auto / scp, CPU per byte", "", *bound("<=", 1.0)),
        Metric("auto_goodput", "--io auto: goodput / iperf3's", "", *bound(">=", 0.65)),
        Metric("auto_to_tls", "--io auto / curl over TLS, CPU per byte"),
        Metric("auto_to_curl", "--io auto / curl, plain, CPU per byte"),
    ]
    if is_judged:
        metrics += [
            Metric("best_to_iperf3", "cheaper port / iperf3, CPU per byte", "", "<=", 1.4,
                   _CHEAPEST),
            Metric("best_to_rsync", "cheaper port / rsync, CPU per byte", "", "<=", 1.0, _CHEAPEST),
            Metric("best_to_scp", "cheaper port / scp, CPU per byte", "", "<=", 1.0, _CHEAPEST),
            Metric("best_goodput", "cheaper port's goodput / iperf3's", "", ">=", 0.65, _CHEAPEST)
        ]
    names = {
        "iperf3": "iperf3 TCP, memory to memory", "auto": "onehop --io auto, the default",
        "udp": "onehop --io udp", "afxdp": "onehop --io afxdp, native",
        "skb": "onehop --io afxdp, recv --xdp-mode skb", **FILE_PEERS
    }
    for name, text in names.items():
        metrics += [
            Metric(f"ns_{name}", f"{text}: CPU, both ends", "ns/B"),
            Metric(f"ratio_{name}", f"{text}: ratio to iperf3"),
            Metric(f"bps_{name}", f"{text}: goodput", "Gbit/s")
        ]
        if name in PORTS:
            metrics += _thread_metrics(f"thread_{name}", name)
    return [
        *metrics,
        Metric("round_trip", "a cache line between two CPUs and back, equal within a round", "ns"),
        _BACKGROUND
    ]


def _busy_round(context) -> dict[Any, Any]:
    size = context.size(BUSY_BYTES, 200_000_000)
    file = context.file(size)
    background = background_cores()
    trips = [round_trip_ns(context.onehop)]

    def run_io(io, lab) -> Any:
        return run_onehop(lab, file, context.folder, io, context.work)

    runs: dict[str, Any] = {
        "iperf3": lambda lab: peers.iperf3(lab, size, context.work),
        "auto": functools.partial(run_io, "auto"), "udp": functools.partial(run_io, "udp"),
    }
    names, done = list(runs), {}
    with context.lab("steady-600") as lab:
        for i in range(len(names)):
            name = names[(i + context.round) % len(names)]
            done[name] = context.backed(size, lambda name=name: runs[name](lab))
    base, own, udp = (done[name] for name in ("iperf3", "auto", "udp"))
    # the runs last too long to wait for a place that stays
    trips.append(round_trip_ns(context.onehop))
    return {
        "round_trip": max(trips, key=lambda trip: trip or 0),
        "busy": own.busy_ns_per_byte / base.busy_ns_per_byte, "busy_own": own.busy_ns_per_byte,
        "busy_iperf3": base.busy_ns_per_byte, "busy_udp": udp.busy_ns_per_byte,
        "ratio_udp": udp.busy_ns_per_byte / base.busy_ns_per_byte,
        "switches_a": own.switches_a / own.wall_seconds,
        "switches_b": own.switches_b / own.wall_seconds,
        "goodput": own.goodput_bps / base.goodput_bps, "background": background,
        "cpu_own": own.ns_per_byte, "cpu_iperf3": base.ns_per_byte, **_thread_values(own, "thread")
    }


_BUSY_METRICS = [
    Metric("busy", "whole-system busy time per byte / iperf3's", "", "<=", 1.5),
    Metric("switches_a", "voluntary switches, sender", "1/s", "<=", 3000),
    Metric("switches_b", "voluntary switches, receiver", "1/s", "<=", 3000),
    Metric("busy_own", "onehop: system busy", "ns/B"),
    Metric("busy_iperf3", "iperf3: system busy", "ns/B"),
    Metric("busy_udp", "onehop --io udp at both ends: system busy", "ns/B"),
    Metric("ratio_udp", "onehop --io udp at both ends / iperf3's"),
    Metric("goodput", "goodput / iperf3's"),
    Metric("cpu_iperf3", "iperf3: its own CPU and ksoftirqd", "ns/B"),
    Metric("cpu_own", "onehop: its own CPU and ksoftirqd", "ns/B"),
    *_thread_metrics("thread", "of that"),
    Metric("round_trip", "a cache line between two CPUs and back, the longer of before and after",
           "ns"),
    _BACKGROUND,
]


def _big_file(context) -> tuple[Any, Any, Any]:
    """_big_file returns (file, folder, note): the source is sparse, so only what is written needs
    room."""
    wanted = context.size(20 * 10**9, 2 * 10**9)
    for folder in (context.folder, context.scratch):
        if shutil.disk_usage(folder).free < wanted + 2 * 10**9:
            continue
        if folder == context.folder and _available_bytes() < wanted + 4 * 10**9:
            continue  # tmpfs says it has room that the machine's memory has not
        file = context.work / "sparse"
        with open(file, "wb") as out:
            out.truncate(wanted)
            for at in range(0, wanted, BLOCK_BYTES):
                os.pwrite(out.fileno(), b"x", at)
        return file, folder, wanted
    raise MeasureError(
        f"write {wanted} bytes: neither {context.folder} nor {context.scratch} has room (--scratch "
        "DIR)"
    )


def _available_bytes() -> Any:
    with open("/proc/meminfo") as file:
        return next(
            int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))


def _memory(io) -> tuple[str, str, list[Any], Any]:
    def run(context) -> dict[Any, Any]:
        small = context.file(1_000_000)
        big, folder, size = _big_file(context)
        try:
            with context.lab("unshaped") as lab:
                first = run_onehop(lab, small, context.folder, io, context.work,
                                   is_memory_read=True)
                second = run_onehop(lab, big, folder, io, context.work, is_memory_read=True)
        finally:
            big.unlink()
            (folder / big.name).unlink(missing_ok=True)
        port_a, port_b = second.sender["port_memory_bytes"], second.receiver["port_memory_bytes"]
        return {
            "over_a": (second.rss_a_bytes - port_a) / MIB,
            "over_b": (second.rss_b_bytes - port_b) / MIB, "port_a": port_a / MIB,
            "port_b": port_b / MIB, "grow_a": second.rss_a_bytes / first.rss_a_bytes - 1,
            "grow_b": second.rss_b_bytes / first.rss_b_bytes - 1,
            "peak_a": second.rss_a_bytes / MIB, "peak_b": second.rss_b_bytes / MIB, "gb": size / 1e9
        }

    metrics = []
    for side, name in (("a", "sender"), ("b", "receiver")):
        metrics += [Metric(f"over_{side}", f"{name}: VmHWM - port memory", "MiB", "<=", 64),
                    Metric(f"port_{side}", f"{name}: port memory", "MiB", "<=", 96),
                    Metric(f"grow_{side}", f"{name}: big file / 1 MB, peak - 1", "", "<=", 0.05),
                    Metric(f"peak_{side}", f"{name}: VmHWM", "MiB")]
    return f"memory-{io}", f"peak memory, 1 MB against a big file, --io {io}", [
        *metrics, Metric("gb", "big file", "GB")
    ], run


def cases() -> list[Any]:
    cpu = "unshaped veth, file to file in tmpfs, both ends' CPU (rusage + ksoftirqd)"
    return [
        ("cpu", f"{cpu}; memory touched before each run", _cpu_metrics(True),
         _cpu("unshaped", True)),
        ("cpu-untouched", f"{cpu}; memory touched for none", _cpu_metrics(False),
         _cpu("unshaped", False)),
        ("cpu-gro", f"{cpu}; software GRO on, memory touched before each run", _cpu_metrics(False),
         _cpu("unshaped-gro", True)),
        ("busy",
         "600 Mbit/s: whole-system busy time and wake-ups, onehop (--io auto, the default) against "
         "iperf3",
         _BUSY_METRICS, _busy_round),
        _memory("udp"),
        _memory("afxdp")
    ]


def by_place(results) -> Any:
    """by_place returns the lines of a table with each round of the `cpu` case beside the place
    where the host had our CPUs."""
    rounds = [
        result.values for result in results
        if result.name == "cpu" and result.values.get("round_trip")
    ]
    if not rounds:
        return []
    lines = [
        "", "## Where the CPUs were", "",
        "A host moves the CPUs of a virtual machine, and with them what a cache line costs from "
        "one to the other. The CPU case round by round:",
        "",
        "| line's round trip, ns | iperf3, ns/B | --io auto, ns/B | ratio | goodput / iperf3's |",
        "|---|---|---|---|---|"
    ]
    keys = ("round_trip", "ns_iperf3", "auto_to_iperf3", "auto_goodput")
    for trip, base, ratio, goodput in sorted(zip(*(rounds[0][key] for key in keys))):
        lines.append(
            f"| {trip:.0f} | {base:.2f} | {ratio * base:.2f} | {ratio:.2f} | {goodput:.2f} |")
    return lines
