# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases where the receiver's disk is the bottleneck: it is used fully, the receiver's buffer holds,
the kernel drops nothing."""

import signal
import time
from pathlib import Path
from typing import Any

import lab as labs
from measure import MeasureError, Process, Sampler
from report import Metric
from transfer import START_SECONDS_MAX, make_code, run_onehop

READ_SECONDS = 60  # what is there takes as long to read
SEEN_BYTES = 1_000_000  # of new data: more than all else that the two ends say to each other
SAMPLE_SECONDS = 0.01


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


def _interrupt(context, lab, file, folder, held_bytes) -> None:
    """_interrupt leaves a part of `file` in `folder` that has `held_bytes`, by Ctrl-C."""
    env = {"ONEHOP_CODE": make_code()}
    receive = Process(lab.on("b", lab.onehop, "recv", "--once", "--dir", folder, "--listen",
                             labs.ADDRESS_B, "--io", "udp", "--json"), context.work, "resume-recv",
                      env)
    sender = None
    try:
        receive.wait_line('"start"', START_SECONDS_MAX)
        sender = Process(lab.on("a", lab.onehop, "send", file, "--to", labs.ADDRESS_B, "--io",
                                "udp", "--json"), context.work, "resume-send", env)
        part = folder / f".{file.name}.part"
        give_up_at = time.monotonic() + 60
        while not part.exists() or part.stat().st_blocks * 512 < held_bytes:
            if time.monotonic() > give_up_at:
                raise MeasureError(f"resume: the part did not grow: {sender.tail()}")
            time.sleep(0.01)
        sender.end(signal.SIGINT)
    finally:
        for process in (sender, receive):
            if process is not None:
                process.end()


def _resume_slow(context) -> dict[str, Any]:
    """_resume_slow goes on with a part on a disk that needs READ_SECONDS to read it. New data is
    seen at the receiver's interface."""
    read_bps = labs.rate_bps(labs.profile("slow-read")["disk"]["read_rate"])
    held_bytes = int(READ_SECONDS * read_bps / 8)
    file = context.file(2 * held_bytes)
    with context.lab("slow-read") as lab:
        folder = Path(lab.disk)
        _interrupt(context, lab, file, folder, held_bytes)
        Path("/proc/sys/vm/drop_caches").write_text("1")  # what was written is read from the disk
        flow = Sampler(lab, "b", "rx", "vb", SAMPLE_SECONDS, context.work)
        begun: list[float] = []
        outcome = run_onehop(lab, file, folder, "udp", context.work,
                             while_running=lambda sender: begun.append(sender.started_at))
        rows = flow.rows()
    begun_at = begun[0]
    before = max((value for at, value in rows if at <= begun_at), default=0)
    first_at = next(at for at, value in rows if value >= before + SEEN_BYTES)
    skipped = outcome.receiver["bytes_skipped_total"]
    if skipped < held_bytes * 0.9:
        raise MeasureError(f"resume: {skipped} bytes were there, not {held_bytes}")
    return {"first": first_at - begun_at, "whole": outcome.seconds / (8 * skipped / read_bps)}


def cases() -> list[Any]:
    slow, stalled = ("600 Mbit/s link into a 300 Mbit/s "
                     "disk"), "600 Mbit/s link and a disk that stalls for 10 s"
    return [_disk("slow-disk", slow, "udp"), _disk("slow-disk", slow, "afxdp"),
            _disk("stalled-disk", stalled, "udp"), _disk("stalled-disk", stalled, "afxdp"),
            ("resume-slow-disk", f"a part that takes {READ_SECONDS} s to read goes on",
             [Metric("first", "`send` to the first new byte", "s", "<=", 2.0),
              Metric("whole", "whole transfer / time to read what is there")],
             _resume_slow)]
