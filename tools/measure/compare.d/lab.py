# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The lab of one measurement: network namespaces that `onehop lab run` builds and removes.

Owns one lab at a time. `onehop lab run` gets a command that reads a FIFO; the FIFO is held open by
this process, so the lab comes down also when this process dies by SIGKILL. Never builds a namespace
itself.
"""

import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
ADDRESS_A, ADDRESS_B = "10.111.0.1", "10.111.0.2"
UP_SECONDS_MAX = 30  # building namespaces takes 1-2 s on two busy cores
# the kernel lets a namespace default only to an unrestricted law; a root socket takes any
TCP_LAW, IPERF3_LAW = "reno", "cubic"
# At MTU 1500 a frame on the link has 1514 bytes: Ethernet 14, IPv4 20, UDP 8, and 1472 of ours, of
# which header and tag take 44 (engine/wire/frame.hpp overhead_bytes). What is left is a file's.
PAYLOAD_BYTES, FRAME_BYTES = 1428, 1514
BEYOND = 1.005  # of a ceiling; what a shaper's bucket gives away at the start is less

_HOLD = (
    "import json,os,sys; open(sys.argv[1],'w').write(json.dumps(dict(os.environ))); "
    "os.rename(sys.argv[1], sys.argv[1]+'.up'); open(sys.argv[2]).read()"
)


class LabError(Exception):
    pass


_RATE_UNITS = {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3, "bit": 1}


def rate_bps(text) -> Any:
    """rate_bps reads '600Mbit' as bits per second."""
    low = text.lower()
    for unit, factor in _RATE_UNITS.items():
        if low.endswith(unit):
            return float(low[: -len(unit)]) * factor
    return float(low)


def profile(name) -> Any:
    """profile returns the parsed profile file, the very one that `onehop lab` reads."""
    bases = [ROOT / "configs"]
    if "ONEHOP_CONFIGS" in os.environ:
        bases.insert(0, Path(os.environ["ONEHOP_CONFIGS"]))
    tried = [base / sub / f"{name}.toml" for base in bases for sub in ("lab", ".")]
    for path in tried:
        if path.exists():
            return tomllib.loads(path.read_text())
    raise LabError(f"find lab profile {name}: none of {', '.join(map(str, tried))} exists")


def link_bps(name) -> Any:
    """link_bps is the rate of the profile's link: of a trace, the mean over one cycle of equal
    steps."""
    keys = profile(name)
    if "rate" in keys:
        return rate_bps(keys["rate"])
    steps = keys["trace"]
    return sum(rate_bps(step["rate"]) for step in steps) / len(steps)


def ceiling_bps(name) -> Any:
    """ceiling_bps is the goodput that a transfer with full frames cannot pass."""
    return link_bps(name) * PAYLOAD_BYTES / FRAME_BYTES


def of_ceiling(bps, ceiling) -> Any:
    """of_ceiling is goodput / ceiling. More than 1 is no result: then the ceiling, or the clock, is
    wrong."""
    if bps > ceiling * BEYOND:
        raise LabError(
            f"judge {bps / 1e6:.1f} Mbit/s: the link carries {ceiling / 1e6:.1f} at most")
    return bps / ceiling


class Lab:
    """A lab that is up inside its `with` block."""

    def __init__(self, onehop, profile_name, work, name) -> None:
        self.onehop, self.profile, self.name = str(onehop), profile_name, name
        self._work = Path(work)
        self._process: Any = None
        self._hold: Any = None
        self.env: dict[Any, Any] = {}

    def __enter__(self) -> Any:
        fifo, mark = self._work / "lab.fifo", self._work / "lab.env"
        for path in (fifo, mark, Path(f"{mark}.up")):
            path.unlink(missing_ok=True)
        os.mkfifo(fifo)
        self._hold = os.open(fifo, os.O_RDWR | os.O_CLOEXEC)
        log = open(self._work / "lab.log", "wb")
        self._process = subprocess.Popen([
            self.onehop, "lab", "run", "--profile", self.profile, "--name", self.name, "--on",
            "host", "--", sys.executable, "-c", _HOLD,
            str(mark),
            str(fifo)
        ], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        log.close()
        give_up_at = time.monotonic() + UP_SECONDS_MAX
        try:
            while not Path(f"{mark}.up").exists():
                if self._process.poll() is not None or time.monotonic() > give_up_at:
                    raise LabError(
                        f"start lab {self.profile}: "
                        f"{(self._work / 'lab.log').read_text().strip()[-600:]}"
                    )
                time.sleep(0.02)
        except BaseException:  # a signal included
            self.__exit__()
            raise
        self.env = json.loads(Path(f"{mark}.up").read_text())
        try:
            for host in "ab":
                # A socket born under bbr keeps its pacing whatever it is switched to later, and
                # pacing is dear at these rates. Where nothing is lost, reno and cubic cost the
                # same.
                self.read(host, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={TCP_LAW}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        if self._hold is not None:
            os.close(self._hold)  # end of file: the held command ends and `lab run` removes the lab
            self._hold = None
        try:
            self._process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        # Idempotent; the only effect is on what a lab that died half-way left behind.
        subprocess.run([self.onehop, "lab", "down", "--name", self.name], capture_output=True,
                       timeout=30)

    @property
    def disk(self) -> Any:
        """disk is the mount point of the profile's slow disk."""
        return self.env["ONEHOP_LAB_DISK"]

    def on(self, host, *command) -> list[Any]:
        """on returns the command line that runs `command` on host a or b; it execs, so the pid is
        the command's."""
        return ["ip", "netns", "exec", f"{self.name}-{host}", *map(str, command)]

    def read(self, host, *command) -> Any:
        return subprocess.run(self.on(host, *command), check=True, capture_output=True,
                              text=True).stdout
