# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What a person sees while tools/check works: what runs, how many of how many, time left.

On a terminal one line at the bottom is redrawn; elsewhere (a log) a line is printed whenever
nothing else was for 2.5 s. Time left is what the remaining parts took on the machine that
parts.py names, times how much slower than it this machine has been so far.
"""

import shutil
import sys
import threading
import time

PERIOD_S = {True: 0.5, False: 2.5}  # of the status line, on a terminal and elsewhere
SLOWER_MAX = 8.0  # what the first seconds of a part may claim about the machine


def clock(seconds: float) -> str:
    """75 s as 1:15."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes = f"{rest // 60}:{rest % 60:02}"
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else minutes


class Progress:
    """Its lines may be printed by several threads. tick() is called by a thread of its own."""

    def __init__(self, parts: list[tuple[str, float]]) -> None:
        """parts: names and seconds of those that are waited for, in their order."""
        self.is_terminal = sys.stdout.isatty()
        self.began = time.monotonic()
        self._parts = parts
        self._at = -1
        self._part_began = self.began
        self._done = 0.0
        self._fraction = 0.0
        self._doing = ""
        self._drawn = 0
        self._printed_at = self.began
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def enter(self, name: str) -> None:
        """The next part begins."""
        with self._lock:
            if self._at >= 0:
                self._done += self._parts[self._at][1]
            self._at = [part for part, _ in self._parts].index(name)
            self._part_began = time.monotonic()
            self._fraction = 0.0
            self._doing = ""
        self.say(f"== {name} ({self._at + 1} of {len(self._parts)})")

    def update(self, done: int, total: int, doing: str = "") -> None:
        """How far the part is."""
        with self._lock:
            self._fraction = done / total if total else 0.0
            self._doing = f"{done} of {total}" + (f", {doing}" if doing else "")

    def say(self, text: str) -> None:
        """A line that stays."""
        with self._lock:
            self._erase()
            print(text, flush=True)
            self._printed_at = time.monotonic()
            if self.is_terminal:
                self._draw()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        with self._lock:
            self._erase()

    def left(self) -> float | None:
        """Seconds until the last part ends; None while nothing is known."""
        if self._at < 0:
            return None
        now = time.monotonic()
        gone = self._done + self._fraction * self._parts[self._at][1]
        if gone < 5:
            slower = 1.0
        else:
            slower = min(SLOWER_MAX, (now - self.began) / gone)
        rest = sum(seconds for _, seconds in self._parts[self._at:])
        rest -= self._fraction * self._parts[self._at][1]
        return rest * slower

    def _status(self) -> str:
        name = self._parts[self._at][0] if self._at >= 0 else "begins"
        words = f"{name}: {self._doing}" if self._doing else name
        left = self.left()
        end = f"; {clock(time.monotonic() - self.began)} gone"
        if left is not None:
            end += f", about {clock(max(left, 1))} left"
        room = shutil.get_terminal_size().columns - 1 if self.is_terminal else 200
        return words[:max(room - len(end), 8)] + end

    def _erase(self) -> None:
        if self._drawn:
            sys.stdout.write("\r" + " " * self._drawn + "\r")
            self._drawn = 0

    def _draw(self) -> None:
        self._erase()
        text = self._status()
        sys.stdout.write(text)
        sys.stdout.flush()
        self._drawn = len(text)

    def _run(self) -> None:
        while not self._is_over.wait(PERIOD_S[self.is_terminal]):
            with self._lock:
                if self.is_terminal:
                    self._draw()
                elif time.monotonic() - self._printed_at >= PERIOD_S[False] - 0.1:
                    print(f"   {self._status()}", flush=True)
                    self._printed_at = time.monotonic()
