# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases where the receiver's disk is the bottleneck: it is used fully, the receiver's buffer holds,
the kernel drops nothing."""

from pathlib import Path
from typing import Any

import lab as labs
from report import Metric
from transfer import run_onehop


def kernel_drops(lab) -> dict[Any, Any]:
    """kernel_drops counts what either kernel dropped, by place: receive buffers, the receiving
    device, the sender's qdiscs."""
    lines = lab.read("b", "cat", "/proc/net/snmp", "/proc/net/snmp6").splitlines()
    udp = [line.split()[1:] for line in lines if line.startswith("Udp:")]
    sockets = sum(int(value) for name, value in zip(*udp) if name in ("RcvbufErrors", "MemErrors"))
    sockets += sum(int(line.split()[1]) for line in lines if line.startswith("Udp6RcvbufErrors"))
    device = int(lab.read("b", "cat", "/sys/class/net/vb/statistics/rx_dropped"))
    qdiscs = sum(
        int(line.split("dropped")[1].split(",")[0])
        for line in lab.read("a", "tc", "-s", "qdisc", "show").splitlines() if "dropped" in line)
    return {"sockets": sockets, "receiving device": device, "sender's qdiscs": qdiscs}


def _stalled_seconds(disk) -> Any:
    return sum(float(stall.split(":")[1]) for stall in disk.get("stall", []))


def _disk(profile, about, io) -> tuple[str, str, list[Any], Any]:
    def run(context) -> Any:
        disk = labs.profile(profile)["disk"]
        rate = min(
            labs.rate_bps(disk["rate"]) if "rate" in disk else labs.ceiling_bps(profile),
            labs.ceiling_bps(profile))
        file = context.file(context.size(500_000_000, 300_000_000))
        with context.lab(profile) as lab:
            before = kernel_drops(lab)
            outcome = run_onehop(lab, file, Path(lab.disk), io, context.work)
            drops = {place: count - before[place] for place, count in kernel_drops(lab).items()}
        drops["receive ring"] = outcome.receiver["rx_ring"]["refused_total"]
        buffer = outcome.receiver["app_buffer"]
        moving = outcome.seconds - _stalled_seconds(disk)
        if moving <= 0:
            raise labs.LabError(
                f"judge {profile}: the transfer took {outcome.seconds:.1f} s and cannot have met "
                "the stall"
            )
        if outcome.bytes_total * 8 / moving > 1.1 * rate:
            raise labs.LabError(
                f"judge {profile}: {outcome.bytes_total * 8 / moving / 1e6:.0f} Mbit/s; the disk "
                "was not slow"
            )
        values = {"note": f"dropped: {drops}"} if any(drops.values()) else {}
        return values | {
            "goodput": outcome.bytes_total * 8 / moving / rate, "seconds": outcome.seconds,
            "buffer": buffer["occupancy_bytes_max"]
            / buffer["capacity_bytes"] if buffer["capacity_bytes"] else None, "drops": sum(
                drops.values()), "retransmitted": outcome.sender["retransmitted_bytes_total"]
        }

    return f"{profile}-{io}", f"{about}, --io {io}", [
        Metric("goodput", "goodput / rate of disk or link, stall excluded", "", ">=", 0.97),
        Metric("buffer", "receiver buffer, max / capacity", "", "<=", 1.0),
        Metric("drops", "kernel drops", "frames", "==", 0),
        Metric("seconds", "seconds", "s"), Metric("retransmitted", "retransmitted", "B")], run


def cases() -> list[Any]:
    slow, stalled = ("600 Mbit/s link into a 300 Mbit/s "
                     "disk"), "600 Mbit/s link and a disk that stalls for 10 s"
    return [_disk("slow-disk", slow, "udp"), _disk("slow-disk", slow, "afxdp"),
            _disk("stalled-disk", stalled, "udp"), _disk("stalled-disk", stalled, "afxdp")]
