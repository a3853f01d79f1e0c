#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Several sessions at once into one service, over a link: service_test.py ONEHOP [WORD].

Goal:   four senders share the link that one of them had, evenly, and the service takes no more
        memory than its accounts say.
Method: the lab, 600 Mbit/s; a paired device sends one file, then four at once. What b's interface
        received in a window is the sum; how far each sender came in the same seconds is its share.
Bounds: wide, for a busy machine: the sum is 0.8 of one session's, Jain's index of the shares 0.6.
        `tools/measure/compare --case service` judges 0.97 and 0.98 on an idle one. The memory is
        at most the highest that an account says, and that at most four times one session's.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from program import ADDRESS_B, CODE, End, World, check, main

MB, SESSIONS = 1_000_000, 4
SUM_LEAST, JAIN_LEAST = 0.8, 0.6
WINDOW_S, SIZE = 2, 200 * MB


class Served(World):
    """bob at b serves ann at a."""

    def start(self, host, *words, code=None) -> End:
        device = "ann" if host == "a" else "bob"
        end = End(self.on(host, "env", *([] if code else ["-u", "ONEHOP_CODE"]),
                          f"ONEHOP_CONFIG_DIR={self.work / device}", "ONEHOP_STATE_DIR=",
                          self.onehop, *words), self.work, f"end{len(self._ends)}", code or "")
        self._ends.append(end)
        return end

    def pair(self) -> None:
        shows = self.start("b", "pair", "--listen", ADDRESS_B, "--name", "bob", "--json",
                           code=CODE)
        shows.wait_for(lambda: shows.events("start"), "it waits")
        asks = self.start("a", "pair", ADDRESS_B, "--name", "ann", "--json", code=CODE)
        for end in (asks, shows):
            check(end.code() == 0, end.text())
        done = self.start("b", "peers", "set", "ann", "--rule", "accept")
        check(done.code() == 0, done.text())

    def serve(self) -> End:
        end = self.start("b", "recv", "--service", "--hidden", "--io", "udp", "--dir", self.target,
                         "--json")
        end.wait_for(lambda: end.events("start"), "it can accept")
        return end

    def send_as_ann(self, path) -> End:
        return self.start("a", "send", path, "--to", f"bob@{ADDRESS_B}", "--io", "udp", "--json")

    def rate(self, senders) -> float:
        """rate is what b receives, in bytes a second, while all of them send."""
        for sender in senders:
            sender.wait_for(lambda one=sender: one.events("interval"), "it sends")
        counter = ("cat", "/sys/class/net/vb/statistics/rx_bytes")
        began, before = time.monotonic(), int(self.run_on("b", *counter))
        time.sleep(WINDOW_S)
        rate = (int(self.run_on("b", *counter)) - before) / (time.monotonic() - began)
        ended = [f"{one.process.poll()} {one.text()}" for one in senders]
        check(all(one.startswith("None") for one in ended), f"all still send: {ended}")
        return rate


def shares(senders) -> list[int]:
    """shares are the bytes of each in the same number of seconds."""
    came = [[event["bytes_total"] for event in sender.events("interval")] for sender in senders]
    last = min(len(each) for each in came) - 1
    check(last > 0, f"there are two reports of each: {came}")
    return [each[last] - each[0] for each in came]


def peak_kib(pid) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def test_four_sessions_share_what_one_had(onehop) -> None:
    with Served(onehop) as world:
        world.pair()
        service = world.serve()
        whole = world.file(4 * SIZE, "one.bin")
        alone = world.send_as_ann(whole)
        rate_alone = world.rate([alone])
        check(alone.code() == 0, alone.text())
        (world.target / whole.name).unlink()
        os.truncate(whole, SIZE)
        paths: list[Any] = [world.work / f"file{i}.bin" for i in range(SESSIONS)]
        for path in paths:
            os.link(whole, path)
        senders = [world.send_as_ann(path) for path in paths]
        rate_all = world.rate(senders)
        for sender, path in zip(senders, paths):
            check(sender.code() == 0, sender.text())
            world.check_same(path)
        service.wait_for(lambda: len(service.events("end")) == SESSIONS + 1, "it has told all")
        each = shares(senders)
        jain = sum(each)**2 / (SESSIONS * sum(one**2 for one in each))
        told = service.events("end")
        peak, printed = peak_kib(service.process.pid), [one["rss_bytes_max"] for one in told]
        print(f"one: {rate_alone * 8e-6:.1f} Mbit/s; {SESSIONS}: {rate_all * 8e-6:.1f} Mbit/s, "
              f"{rate_all / rate_alone:.3f} of it; Jain {jain:.4f} of {each}; memory "
              f"{printed[0] / 2**20:.1f} MiB of one, {max(printed) / 2**20:.1f} MiB of all, of "
              f"these port {told[0]['port_memory_bytes'] / 2**20:.1f} MiB each", flush=True)
        check(rate_all >= SUM_LEAST * rate_alone, f"the sum: {rate_all / rate_alone:.3f} of one's")
        check(jain >= JAIN_LEAST, f"Jain's index is {jain:.4f} of {each}")
        check(peak * 1024 <= max(printed), f"{peak} KiB, and {max(printed)} bytes were printed")
        check(max(printed) <= SESSIONS * printed[0], f"four times one session's: {printed}")


if __name__ == "__main__":
    sys.exit(main(globals()))
