# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Cases about 1 GiB as fast as the CPUs go: what the whole machine was busy for a byte, beside curl
over TLS and plain, rsync and scp.

Each link is played twice. Over the lab's macvlan, segments are cut in software before they leave,
as where a card cannot. Over a bare veth, TCP's segments of 64 KB cross uncut. The worse counts.
"""

import functools
from typing import Any

import lab as labs
import peers
from measure import background_cores
from report import Metric
from transfer import run_onehop

BYTES, BYTES_QUICK = 1 << 30, 256 << 20
UPPER, LOWER = "mv0", "va"  # host a's devices (tools/labs/lab/link.hpp)
PROGRAMS = {
    "own": "onehop --io auto, the default", "tls": "curl from nginx, TLS 1.3",
    "curl": "curl from nginx, plain, sendfile", "rsync": "rsync daemon", "scp": "scp aes128-gcm"
}
WAYS = {"macvlan": "macvlan over veth", "veth": "bare veth"}
# Case, profile, link, and what is required of onehop beside curl over TLS.
LINKS = (("gib-gro", "unshaped-gro", "MTU 1500, software GRO on", 0.78),
         ("gib-single", "unshaped", "MTU 1500, no GRO", 0.85),
         ("gib-9000", "unshaped-mtu9000", "MTU 9000", 0.8))


def _lay_bare(lab) -> None:
    """_lay_bare takes host a's macvlan away. The veth gets its address, and cuts nothing."""
    lab.read("a", "ip", "link", "del", UPPER)
    lab.read("a", "ethtool", "-K", LOWER, "tx", "on", "tso", "on", "gso", "on",
             "tx-udp-segmentation", "on")
    lab.read("a", "ip", "addr", "add", f"{labs.ADDRESS_A}/24", "dev", LOWER)
    # b knows the macvlan's link address still, and would send to it until it doubts that.
    lab.read("b", "ip", "neigh", "flush", "dev", "vb")


def _round(profile, context) -> dict[Any, Any]:
    size = context.size(BYTES, BYTES_QUICK)
    file = context.file(size)

    def peer(move, **how) -> Any:
        return lambda lab: move(lab, file, context.folder, context.work, **how)

    runs = {
        "own": lambda lab: run_onehop(lab, file, context.folder, "auto", context.work),
        "tls": peer(peers.curl, has_tls=True), "curl": peer(peers.curl),
        "rsync": peer(peers.rsync), "scp": peer(peers.scp)
    }
    names, values = list(runs), {"background": background_cores()}
    with context.lab(profile) as lab:
        for way in WAYS:
            if way == "veth":
                _lay_bare(lab)
            # Rotated, so that no program always follows the same other one.
            for i in range(len(names)):
                name = names[(i + context.round) % len(names)]
                done = context.backed(size, lambda name=name: runs[name](lab))
                values |= {f"busy_{way}_{name}": done.busy_ns_per_byte,
                           f"bps_{way}_{name}": done.goodput_bps / 1e9}
    for name in PROGRAMS:
        values[f"busy_{name}"] = max(values[f"busy_{way}_{name}"] for way in WAYS)
    for name in ("tls", "curl"):
        values[f"to_{name}"] = max(values[f"busy_{way}_own"] / values[f"busy_{way}_{name}"]
                                   for way in WAYS)
    values["goodput"] = min(values[f"bps_{way}_own"] / values[f"bps_{way}_tls"] for way in WAYS)
    return values


def _metrics(to_tls) -> list[Any]:
    metrics = [
        Metric("to_tls", "whole machine busy for a byte / curl's over TLS, the worse of both", "",
               "<=", to_tls),
        Metric("to_curl", "the same / plain curl's", "", "<=", 1.45),
        Metric("goodput", "goodput / curl's over TLS, the lower of both", "", ">=", 1.0)
    ]
    metrics += [Metric(f"busy_{name}", f"{text}: whole machine busy, the worse of both", "ns/B")
                for name, text in PROGRAMS.items()]
    for way, of in WAYS.items():
        for name, text in PROGRAMS.items():
            metrics += [Metric(f"busy_{way}_{name}", f"{of}: {text}: whole machine busy", "ns/B"),
                        Metric(f"bps_{way}_{name}", f"{of}: {text}: goodput", "Gbit/s")]
    return [*metrics, Metric("background", "other programs, before the round", "cores")]


def cases() -> list[Any]:
    return [(name, f"1 GiB, tmpfs to tmpfs, {about}: what the machine was busy, beside curl",
             _metrics(to_tls), functools.partial(_round, profile))
            for name, profile, about, to_tls in LINKS]
