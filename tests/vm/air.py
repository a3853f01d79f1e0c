# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The radio medium of tests/vm/medium for a test in the virtual machine, and what it says."""

import json
import re
import subprocess
import time
from typing import Any

from guest import check, on

# The radios' own addresses, as hwsim gives them.
RADIO_ADDRESS = {"a": "42:00:00:00:00:00", "b": "42:00:00:00:01:00"}
PHY = {"a": "phy0", "b": "phy1"}
# Of a frame as the medium counts it: Ethernet 14, CCMP 16, IPv4 and UDP 28, onehop 44.
OVERHEAD_BYTES = 14 + 16 + 28 + 44

# A frame that the medium does not report stays charged to its socket, and keeps an AF_XDP queue
# bound. What the ends have left in the queues is served within this time.
LINGER_S = 0.5


class Air:
    """The medium for the time of a with block. `report` has what it carried, after it."""

    def __init__(self, program, *options) -> None:
        self._command = [str(program), *map(str, options)]
        self.report: dict[str, Any] = {}
        self.idle = 0.0

    def __enter__(self) -> Any:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        check(self._process.stdout.readline() == "on the air\n", "the medium is there")
        self._cpu = cpu_times()
        return self

    def __exit__(self, *_) -> None:
        if not self.report:
            self.stop()

    def stop(self) -> Any:
        busy, idle = (now - then for now, then in zip(cpu_times(), self._cpu))
        self.idle = idle / max(busy + idle, 1)
        time.sleep(LINGER_S)
        self._process.terminate()
        out, _ = self._process.communicate(timeout=60)
        check(self._process.returncode == 0, "the medium ends well")
        self.report = json.loads(out)
        return self.report

    def of(self, host) -> Any:
        """of has what a radio's frames saw."""
        return next(radio for radio in self.report["radios"]
                    if radio["address"] == RADIO_ADDRESS[host])


def cpu_times() -> tuple[int, int]:
    """Busy and idle ticks of all CPUs of the guest."""
    with open("/proc/stat", encoding="ascii") as stat:
        fields = [int(field) for field in stat.readline().split()[1:]]
    idle = fields[3] + fields[4]
    return sum(fields[:8]) - idle, idle


def set_rate(group, mcs) -> None:
    """set_rate pins rate control of both radios to the medium's rate, so that nl80211 tells it."""
    for host in "ab":
        on(host, "iw", "dev", group.interfaces[host], "set", "bitrates", "legacy-5", "6", "12",
           "24", "ht-mcs-5", mcs, "sgi-5")


def told_rate(group, host) -> float:
    """told_rate is what nl80211 tells of the rate to the peer, in Mbit/s."""
    dump = on(host, "iw", "dev", group.interfaces[host], "station", "dump")
    found = re.search(r"tx bitrate:\s+([\d.]+) MBit/s", dump)
    return float(found[1]) if found else 0.0


def set_power_save(host, is_asleep) -> None:
    """set_power_save has the radio say that it sleeps, so that its peer holds frames back."""
    path = f"/sys/kernel/debug/ieee80211/{PHY[host]}/hwsim/ps"
    with open(path, "w", encoding="ascii") as control:
        control.write("1" if is_asleep else "0")


def share_of_limit(sent, radio) -> float:
    """share_of_limit is the goodput over what the medium carries in full frames of file data and
    nothing else, while file data flows."""
    payload = radio["largest_bytes"] - OVERHEAD_BYTES
    carried = sent["bytes_total"] - sent["bytes_hole_total"]
    return carried / (radio["bulk_frames_at_most"] * payload)


def wait_until(condition, seconds, period) -> float:
    """wait_until returns how long it took."""
    started = time.monotonic()
    while not condition():
        check(time.monotonic() - started < seconds, f"it happens within {seconds} s")
        time.sleep(period)
    return time.monotonic() - started
