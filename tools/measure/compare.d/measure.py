# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Measures processes from outside: CPU and switches by wait4, ksoftirqd and whole-system time by
/proc, memory by polling.

Owns the processes it starts and ends only those, by pid. Nothing here trusts what a measured
program says of itself.
"""

import collections
import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# each poll costs CPU that is in every whole-system figure: only a process whose memory is asked for
# is polled
POLL_SECONDS = 0.2
# the first 0.4 s, so that the peak memory of a 1 MB transfer is seen at all
POLL_FAST_SECONDS, POLLS_FAST = 0.02, 20
_alive: set[Any] = set()
_alive_lock = threading.Lock()


class MeasureError(Exception):
    pass


def end_all() -> None:
    """end_all kills what this run started and did not see end; for the last cleanup only."""
    with _alive_lock:
        left = list(_alive)
    for process in left:
        process.kill()


class Process:
    """A started process. output and errors are files in the work folder; rss_bytes_max stays 0
    unless is_memory_read, thread_switches empty unless are_threads_read."""

    def __init__(self, command, work, label, env=None, is_memory_read=False,
                 are_threads_read=False) -> None:
        self.label = label
        self.output, self.errors = Path(work) / f"{label}.out", Path(work) / f"{label}.err"
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SUDO_")}
        clean["ONEHOP_STATE_DIR"] = ""  # no run starts from what another one reached
        with open(self.output, "wb") as out, open(self.errors, "wb") as err:
            self._popen = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL,
                                           stdout=out, stderr=err, env={**clean, **(env or {})},
                                           start_new_session=True)
        self.pid = self._popen.pid
        self.started_at = time.monotonic()
        # Known when it has ended.
        self.ended_at: Any = None
        self.cpu_seconds: Any = None
        self.exit_code: Any = None
        self.voluntary_switches_total: Any = None
        self.rss_bytes_max = 0
        self._switches: dict[str, tuple[str, int]] = {}  # by thread: its name, and switches
        self._ended = threading.Event()
        with _alive_lock:
            _alive.add(self)
        threading.Thread(target=self._wait, daemon=True).start()
        if is_memory_read:
            threading.Thread(target=self._poll, daemon=True).start()
        if are_threads_read:
            threading.Thread(target=self._poll_threads, daemon=True).start()

    def _wait(self) -> None:
        _, status, usage = os.wait4(self.pid, 0)
        self.ended_at = time.monotonic()
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        self.voluntary_switches_total = usage.ru_nvcsw
        # ru_maxrss would do for memory, but exec does not reset it: a fork of a fat Python shows up
        # in it.
        self.exit_code = self._popen.returncode = os.waitstatus_to_exitcode(status)
        with _alive_lock:
            _alive.discard(self)
        self._ended.set()

    def _poll(self) -> None:
        polls = 0
        while not self._ended.wait(POLL_SECONDS if polls >= POLLS_FAST else POLL_FAST_SECONDS):
            self._read_memory()
            polls += 1

    def _read_memory(self) -> None:
        try:
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    self.rss_bytes_max = max(self.rss_bytes_max, int(line.split()[1]) * 1024)
        except (FileNotFoundError, ProcessLookupError):
            pass  # the process ended meanwhile; the last value stands

    def _poll_threads(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            for task in Path(f"/proc/{self.pid}/task").glob("*"):
                with contextlib.suppress(OSError):  # it has ended; the last value stands
                    name = (task / "comm").read_text().strip()
                    if not name.startswith("onehop-") or task.name == str(self.pid):
                        name = "plane"  # as the program itself names them
                    self._switches[task.name] = (name.removeprefix("onehop-"),
                                                 _switches((task / "status").read_text()))

    @property
    def thread_switches(self) -> dict[str, int]:
        """thread_switches is how often each thread slept, by name, as last read."""
        totals: collections.Counter[str] = collections.Counter()
        for name, count in list(self._switches.values()):
            totals[name] += count
        return dict(totals)

    @property
    def is_alive(self) -> bool:
        return not self._ended.is_set()

    def wait(self, seconds) -> Any:
        """wait returns self when the process ended with 0; anything else is an error that carries
        its stderr."""
        if not self._ended.wait(seconds):
            self.end()
            raise MeasureError(f"{self.label}: not done after {seconds} s: {self.tail()}")
        if self.exit_code != 0:
            raise MeasureError(f"{self.label}: exit {self.exit_code}: {self.tail()}")
        return self

    def wait_line(self, needle, seconds, where=None) -> None:
        """wait_line waits until the output (or another file) holds `needle`."""
        path, give_up_at = where or self.output, time.monotonic() + seconds
        while needle not in path.read_text(errors="replace"):
            if not self.is_alive or time.monotonic() > give_up_at:
                raise MeasureError(
                    f"{self.label}: '{needle}' not seen in {seconds} s: {self.tail()}")
            time.sleep(0.01)

    def end(self, number=signal.SIGTERM) -> None:
        """end asks the process to end and kills it after 5 s."""
        if self.is_alive:
            os.kill(self.pid, number)
            if not self._ended.wait(5):
                self.kill()

    def kill(self) -> None:
        if self.is_alive:
            os.kill(self.pid, signal.SIGKILL)
            self._ended.wait(5)

    def tail(self) -> Any:
        text = self.errors.read_text(errors="replace") + self.output.read_text(errors="replace")
        return " | ".join(text.strip().splitlines()[-4:])[-600:]


def _switches(status) -> int:
    """_switches is how often a thread gave its core away, from its /proc/.../status."""
    return next(int(line.split()[1]) for line in status.splitlines()
                if line.startswith("voluntary_ctxt_switches:"))


def _ksoftirqd_pids() -> Any:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "comm").read_text().startswith("ksoftirqd/"):
                    found.append(entry.name)
            except OSError:
                pass
    return found


class SystemMeter:
    """Growth of ksoftirqd's time and of the whole machine's busy time since construction.

    Busy is what was not idle. The kernel times idle to the microsecond; its other columns are
    samples of the tick, which stands still while an idle CPU serves interrupts: a shaper's timer
    and all that the softirq then does for the receiver go unseen there.
    """

    def __init__(self) -> None:
        self._pids = _ksoftirqd_pids()
        self._softirq, self._idle = self._read_softirq(), self._read_idle()
        self._at = time.monotonic()

    def _read_softirq(self) -> Any:
        ticks = 0
        for pid in self._pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS_PER_SECOND

    @staticmethod
    def _read_idle() -> Any:
        _user, _nice, _system, idle, iowait = map(
            int,
            Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:6])
        return (idle + iowait) / TICKS_PER_SECOND

    def softirq_seconds(self) -> Any:
        return self._read_softirq() - self._softirq

    def busy_seconds(self) -> Any:
        return max((time.monotonic() - self._at) * os.cpu_count() -
                   (self._read_idle() - self._idle), 0.0)


def background_cores(seconds=0.5) -> Any:
    """background_cores is how many cores other programs use right now; what they use is in every
    whole-system figure."""
    meter, at = SystemMeter(), time.monotonic()
    time.sleep(seconds)
    return meter.busy_seconds() / (time.monotonic() - at)


class Sampler:
    """Runs sampler.py on a host of the lab; rows() ends it and returns [(seconds, value)]."""

    def __init__(self, lab, host, what, interface, period, work) -> None:
        self._out = Path(work) / f"sample-{what}.txt"
        self._out.unlink(missing_ok=True)
        program = Path(__file__).with_name("sampler.py")
        self._process = Process(
            lab.on(host, "python3", program, what, interface, period, self._out), work,
            f"sampler-{what}")
        time.sleep(0.15)  # the interpreter's start, so that the first rows precede the data

    def rows(self) -> list[Any]:
        self._process.end()
        if not self._out.exists():
            raise MeasureError(f"{self._process.label}: no samples: {self._process.tail()}")
        return [(int(at) / 1e9, int(value))
                for at, value in (line.split() for line in self._out.read_text().splitlines())]
