# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A tree over the lab's Wi-Fi link, beside rsync over TCP Cubic."""

import shutil
from typing import Any

import air
import lab as labs
import trees
from measure import background_cores
from report import Metric

PROFILE = "wifi-ac80"


def _round(context) -> dict[str, Any]:
    values: dict[str, Any] = {"background": background_cores()}

    def run(lab) -> dict[str, float]:
        air.give_tcp_its_buffers(lab)
        seconds = {}
        ways = [("onehop", trees.by_onehop),
                ("rsync", lambda *a: trees.by_rsync(*a, law=labs.IPERF3_LAW))]
        for i in range(len(ways)):
            name, move = ways[(i + context.round) % len(ways)]
            seconds[name] = move(context, lab, tree, context.folder).seconds
            trees.check_arrived(name, tree, context.folder)
            shutil.rmtree(context.folder / tree.name)
        return seconds

    with trees.made(context, lambda folder: trees.make_small(
            folder, context.size(10_000, 2_000), 25_000)) as tree:
        files, total = trees.count(tree)
        seconds, report = air.trusted(context, PROFILE, run)
    ceiling = report.model_bps * labs.PAYLOAD_BYTES / (labs.FRAME_BYTES - 42)
    return values | {
        "gain": seconds["rsync"] / seconds["onehop"], "s_onehop": seconds["onehop"],
        "s_rsync": seconds["rsync"], "rate": files / seconds["onehop"],
        "use": total * 8 / seconds["onehop"] / ceiling
    }


def cases() -> list[Any]:
    return [("ac80-tree", f"{PROFILE}: 250 MB in 10,000 files, beside rsync -a over TCP Cubic",
             [Metric("gain", "goodput / rsync's", "", ">=", 1.12),
              Metric("use", "goodput, from start to end / what the channel allows"),
              Metric("rate", "onehop: files a second"), Metric("s_onehop", "onehop: time", "s"),
              Metric("s_rsync", "rsync: time", "s"),
              Metric("background", "other programs, before the round", "cores")], _round)]
