# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The cases of tools/measure/limits: parts alone, whole transfers beside the sum of their parts, a
port without a kernel, and zero-copy cards in the virtual machine. `onehop bench` is the ruler.
"""

import json
import os
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import lab as labs
from cases_parts import BASE, FILES, loop, medians, rows
from measure import MeasureError
from report import Metric

import derive

# Profile, MTU and ports. What arrives over AF_XDP no GRO has joined.
LINKS = {"1500": ("unshaped", 1500, ("udp", "afxdp:copy")),
         "1500-gro": ("unshaped-gro", 1500, ("udp", )),
         "9000": ("unshaped", 9000, ("udp", "afxdp:copy")),
         "9000-gro": ("unshaped-gro", 9000, ("udp", ))}
# What `onehop bench port --burst 1,44` calls them.
BARE = {"udp x1": "socket", "udp x44": "udp", "afxdp:copy x44": "afxdp:copy"}
BLOCK_BYTES = 256 << 10
GUEST_SECONDS_MAX = 900
ZERO_COPY_OF_UDP = 0.8


def _copied(seconds, size) -> float:
    """_copied is how many GB/s this process copies, block by block, between two buffers."""
    source, target = (memoryview(bytearray(b"\1") * size) for _ in range(2))
    copied, begin = 0, time.process_time()
    while (used := time.process_time() - begin) < seconds:
        for at in range(0, size, BLOCK_BYTES):
            target[at:at + BLOCK_BYTES] = source[at:at + BLOCK_BYTES]
        copied += size
    return copied / used / 1e9


def _cache_bytes() -> int:
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    return max((int(path.read_text().strip()[:-1]) << 10 for path in sizes), default=64 << 20)


def _alone(context) -> dict[Any, Any]:
    seconds, count = context.size(1.0, 0.2), os.cpu_count() or 1
    large = max(_cache_bytes(), 256 << 20)
    values = {}
    for row in rows(context, "aead", "--aead", "auto", "--frame-size", "1472,8972", "-t", seconds,
                    "--rounds", 1):
        size = row["settings"]["frame_bytes"]
        values |= {f"{key}_{size}": row["metrics"][f"{key}_ns_per_byte"]["median"]
                   for key in ("seal", "open")}
    digest, = rows(context, "digest", "--digest", "xxh3", "-t", seconds, "--rounds", 1)
    file, = rows(context, "file", "--rounds", 1)
    with ProcessPoolExecutor(count) as pool:
        together = list(pool.map(_copied, [seconds] * count, [large] * count))
    return values | {
        "digest": medians(digest)["cpu_ns_per_byte"], "read": medians(file)["read_ns_per_byte"],
        "write": medians(file)["write_ns_per_byte"], "copy_one": _copied(seconds, large),
        "copy_all": sum(together), "copy_cached": _copied(seconds, BLOCK_BYTES)
    }


def _threads(row) -> dict[str, dict[str, float]]:
    return {name: {key: value["median"] for key, value in costs.items()}
            for name, costs in row["threads"].items()}


def _softirq(threads, side) -> float:
    """_softirq is what the threads of an end gave to the kernel's receive path."""
    return sum(costs.get("softirq_ns_per_byte", 0.0) for name, costs in threads.items()
               if name.startswith(side))


def _link(key) -> Any:
    def run(context) -> Any:
        values = {}
        profile, mtu, ports = LINKS[key]
        ports = ports[::-1] if context.round % 2 else ports
        for row in rows(context, "port", "--profile", profile, "--mtu", mtu, "--io",
                        ",".join(ports), "--burst", "1,44", "-t", context.size(1.0, 0.3),
                        "--rounds", 1):
            if (bare := BARE.get(row["name"])) is None:
                continue
            costs, softirq = medians(row), _softirq(_threads(row), "sender")
            values |= {f"tx {bare}": costs["sender_ns_per_byte"] - softirq,
                       f"tx softirq {bare}": softirq,
                       f"rx {bare}": costs["cpu_ns_per_byte"] - costs["sender_ns_per_byte"]}
        whole = {row["name"]: row for row in loop(
            context, profile, ports, "--mtu", mtu, "--bytes", context.size(1 << 30, 256 << 20),
            *FILES)}
        base = medians(whole[BASE])["cpu_ns_per_byte"]
        for port in ports:
            costs, threads = medians(whole[port]), _threads(whole[port])
            softirq = _softirq(threads, "sender")
            sending = costs["sender_ns_per_byte"] - softirq
            values |= {
                f"whole {port}": costs["cpu_ns_per_byte"],
                f"parts {port}": costs["parts_ns_per_byte"],
                f"over {port}": costs["whole_over_parts"],
                f"tcp {port}": costs["cpu_ns_per_byte"] / base,
                f"goodput {port}": costs["goodput_bps"] / 1e9, f"sending {port}": sending,
                f"receiving {port}": costs["cpu_ns_per_byte"] - sending,
                f"softirq {port}": threads["sender/engine"].get("softirq_ns_per_byte", 0.0)
            }
            for name in ("sender/read", "sender/engine", "receiver/engine", "receiver/write"):
                values[f"{name} {port}"] = (threads[name]["user_ns_per_byte"]
                                            + threads[name]["system_ns_per_byte"])
            values[f"sender/engine {port}"] -= values[f"softirq {port}"]
        return values

    return run


def _memif(context) -> dict[Any, Any]:
    version = subprocess.run([context.onehop, "--version", "-v"], capture_output=True, text=True,
                             check=True).stdout
    if "dpdk         on" not in version:
        return {"note": "not measured: this build has no DPDK module"}
    values = {}
    device = "--vdev=net_memif0,role={role},socket={socket},socket-abstract=no"
    for key, eal in (("memif", device),
                     ("memif_zero", f"--single-file-segments {device},zero-copy=yes,rsize=11")):
        found = {row["name"]: medians(row) for row in rows(
            context, "loop", "--io", "dpdk,afxdp:copy", "--digest", "none", "--poll", "busy", "-A",
            "0,1", "-t", context.size(1.5, 0.5), "-O", 0.3, "--rounds", 1, "--eal", eal)}
        values |= {key: found["dpdk"]["goodput_bps"] / 1e9,
                   f"{key}_over": found["dpdk"]["goodput_bps"] / found["afxdp:copy"]["goodput_bps"]}
    return values


def _guest(context) -> dict[Any, Any]:
    out = context.work / "guest"
    done = subprocess.run(
        [labs.ROOT / "tests/vm/zero_copy_cpu", context.onehop.parents[2]],
        env=os.environ | {"ONEHOP_VM_OUT": str(out), "ONEHOP_VM_SECONDS": str(GUEST_SECONDS_MAX),
                          "ONEHOP_VM_MIB": str(context.size(160, 40))},
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MeasureError(f"tests/vm/zero_copy_cpu: ended with {done.returncode}: "
                           f"{(done.stdout + done.stderr).strip()[-600:]}")
    costs = json.loads((out / "cpu.json").read_text())
    return {way.lower(): ns for way, ns in costs.items()} | {
        "ratio": costs["zero-copy"] / costs["UDP"]}


def _link_metrics(ports) -> list[Metric]:
    metrics = []
    for key, name in (("socket", "bare socket, frame by frame"), ("udp", "bare socket, GSO"),
                      ("afxdp:copy", "bare AF_XDP copy")):
        if key == "afxdp:copy" and key not in ports:
            continue
        metrics += [Metric(f"tx {key}", f"{name}: sending", "ns/B"),
                    Metric(f"tx softirq {key}", f"{name}: softirq in the sender", "ns/B"),
                    Metric(f"rx {key}", f"{name}: receiving", "ns/B")]
    for port in ports:
        metrics += [Metric(f"whole {port}", f"{port}: whole", "ns/B"),
                    Metric(f"parts {port}", f"{port}: sum of its parts", "ns/B"),
                    Metric(f"over {port}", f"{port}: whole / sum of its parts"),
                    Metric(f"tcp {port}", f"{port}: whole / iperf3 TCP"),
                    Metric(f"goodput {port}", f"{port}: goodput", "Gbit/s"),
                    Metric(f"sending {port}", f"{port}: sending end without softirq", "ns/B"),
                    Metric(f"receiving {port}", f"{port}: receiving end with it", "ns/B")]
        metrics += [Metric(f"{name} {port}", f"{port}: {name}", "ns/B") for name in derive.THREADS]
    return metrics


def cases() -> list[Any]:
    alone = [Metric(f"{key}_{size}", f"AEAD, {text}, frames of {size}", "ns/B")
             for size in (1472, 8972) for key, text in (("seal", "sealing"), ("open", "opening"))]
    alone += [Metric("digest", "digest, XXH3", "ns/B"), Metric("read", "read, tmpfs", "ns/B"),
              Metric("write", "write, tmpfs", "ns/B"),
              Metric("copy_one", "copy beyond all caches, one core", "GB/s"),
              Metric("copy_all", "copy beyond all caches, all cores at once", "GB/s"),
              Metric("copy_cached", "copy of one block, in a cache", "GB/s")]
    memif = [Metric(key, text, unit) for name, about in (("memif", "memif"),
                                                         ("memif_zero", "memif, zero-copy"))
             for key, text, unit in ((name, about, "Gbit/s"),
                                     (f"{name}_over", f"{about} / AF_XDP copy", ""))]
    guest = [Metric(way.lower(), f"{way}: CPU of the guest, both ends", "instructions/B")
             for way in ("zero-copy", "copy", "UDP", "curl")]
    guest.append(Metric("ratio", "zero-copy / UDP", "", "<=", ZERO_COPY_OF_UDP))
    return [
        ("alone", "parts that need no link, each by itself on one core", alone, _alone),
        *((f"link-{key}", f"unshaped veth, {derive.LINKS[key][0]}: bare ports, and file to file "
           "in tmpfs the whole beside the sum of its parts", _link_metrics(ports), _link(key))
          for key, (_, _, ports) in LINKS.items()),
        ("memif", "DPDK's memif between two processes, MTU 1500, memory to memory, sealed, no "
         "digest, one busy core for each end", memif, _memif),
        ("guest", "two emulated virtio-net cards of one guest, MTU 1500, file to file in tmpfs: "
         "what the guest was busy, by a clock that counts instructions. curl seals nothing. This "
         "says nothing of a real card: what the emulated one copies is no instruction of the "
         "guest, and it neither segments nor sums, which the kernel then does for UDP and TCP",
         guest, _guest)
    ]
