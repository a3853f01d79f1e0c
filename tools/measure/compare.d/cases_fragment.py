# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Case about datagrams of 64 KB in IP fragments (`send --fragment`) beside single frames: goodput
and CPU against loss [SMUFF].

A datagram is lost with any of its 36 fragments, so that what fragments save is lost again from a
loss of about 0.1 % on. There the sender gives them up; `kept` says in which share of the rounds it
did not.
"""

from report import Metric
from transfer import run_onehop
from typing import Any

PROFILES = (("unshaped", "as fast as the CPUs go"), ("steady-600", "600 Mbit/s"),
            ("loss-0.1", "600 Mbit/s, 0.1 % lost"), ("loss-1", "600 Mbit/s, 1 % lost"))
WAYS = (("single", "single frames", ()), ("fragment", "64-KB datagrams", ("--fragment",)))


def _round(context) -> Any:
    values = {}
    for profile, _ in PROFILES:
        file = context.file(context.size(500_000_000, 100_000_000))
        with context.lab(profile) as lab:
            for i in range(len(WAYS)):
                way, _, extra = WAYS[(i + context.round) % len(WAYS)]
                outcome = run_onehop(lab, file, context.folder, "udp", context.work, extra=extra)
                values[f"bps_{way}_{profile}"] = outcome.goodput_bps / 1e6
                values[f"cpu_{way}_{profile}"] = outcome.ns_per_byte
                values[f"busy_{way}_{profile}"] = outcome.busy_ns_per_byte
                if extra:
                    values[f"kept_{profile}"] = 1.0 if outcome.sender["fragments"] == "on" else 0.0
    return values


def cases() -> list[Any]:
    metrics = []
    for profile, text in PROFILES:
        for way, name, _ in WAYS:
            metrics += [Metric(f"bps_{way}_{profile}", f"{text}, {name}: goodput", "Mbit/s"),
                        Metric(f"cpu_{way}_{profile}", f"{text}, {name}: CPU, both ends", "ns/B"),
                        Metric(f"busy_{way}_{profile}", f"{text}, {name}: system busy", "ns/B")]
        metrics.append(Metric(f"kept_{profile}", f"{text}: fragments kept to the end"))
    return [("fragment", "--fragment beside single frames, --io udp, against loss", metrics, _round)
            ]
