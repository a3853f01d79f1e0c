# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Installs what is missing, builds onehop, and tests it.

  tools/check              the root-less suites, the lab, the trials and the headline rows
  tools/check --turn       the same, and in turn (by the number of the commit) a share of --all
  tools/check --all        also virtual machines, sanitizers, fuzz targets, clang-tidy and papers
  tools/check PART...      these parts alone; tools/check --list names them

It says every few seconds what it does and how long it has to go, and ends with a list of what was
not played, and why. A failed test that is played once more, alone, and then passes is listed as
unsteady. The last line counts; the exit code is 0 only when nothing failed for good, 2 for a wrong
argument, 130 when interrupted.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True

from parts import GROUPS, MORE, PARTS, TURNS, Part  # noqa: E402
from progress import Progress, clock  # noqa: E402
from run import Commands, Tally  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
ALL = {part.name: part for part in [*PARTS, *MORE]}
BEFORE_ASIDES = ("build", "rootless")  # they want the cores for themselves


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/check", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every part")
    parser.add_argument("--turn", nargs="?", type=int, const=-1, metavar="N",
                        help=f"the share of turn N (of {len(TURNS)}); by default the number of the "
                             "commit decides")
    parser.add_argument("--list", action="store_true", help="the parts, and whose turn they are")
    parser.add_argument("part", nargs="*", help="a part's name")
    options = parser.parse_args(argv)
    options.part = [each for name in options.part for each in GROUPS.get(name, (name,))]
    unknown = [name for name in options.part if name not in ALL]
    if unknown:
        parser.error(f"no part is called {unknown[0]}. Parts: {', '.join([*ALL, *GROUPS])}")
    if options.part and (options.all or options.turn is not None):
        parser.error("name parts, or give --all or --turn, not both")
    return options


def turn_of(number: int) -> tuple[str, ...]:
    if number < 0:
        done = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=ROOT, text=True,
                              capture_output=True, check=False)
        number = int(done.stdout) if done.returncode == 0 else 0
    return TURNS[number % len(TURNS)]


def chosen(options: argparse.Namespace) -> list[Part]:
    if options.all:
        names = list(ALL)
    elif options.part:
        names = [name for name in ALL if any(
            name == part or name in ALL[part].needs for part in options.part)]
    else:
        names = [part.name for part in PARTS]
        if options.turn is not None:
            names += turn_of(options.turn)
    return [part for name, part in ALL.items() if name in names]


class Check:
    """Plays the chosen parts: those in the foreground here, the others on a thread beside."""

    def __init__(self, parts: list[Part]) -> None:
        self.off = {part.name: reason for part in parts if (reason := part.why_off())}
        on = [part for part in parts if part.name not in self.off]
        self.front = [part for part in on if not part.is_aside]
        self.asides = [part for part in on if part.is_aside]
        self.tallies: dict[str, Tally] = {}
        self.seconds: dict[str, float] = {}
        self.progress = Progress([(part.name, part.seconds)
                                  for part in [*self.front, *self.asides]])
        self.commands: list[Commands] = []
        self.is_done = {part.name: threading.Event() for part in on}
        self.thread: threading.Thread | None = None
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True
        for commands in self.commands:
            commands.stop()

    def play(self) -> None:
        for part in self.front:
            if part.name not in BEFORE_ASIDES:
                self.start_asides()
            self.progress.enter(part.name)
            self.wait_for(part)
            self.play_part(part, self.progress.update)
            if part.name == "build" and self.tallies[part.name].failures:
                self.leave_out_others()
                return
        self.start_asides()
        for part in self.asides:
            if not self.is_done[part.name].is_set():
                self.progress.enter(part.name)
                self.is_done[part.name].wait()

    def leave_out_others(self) -> None:
        """What was built before this is not played as if it were this."""
        for part in [*self.front, *self.asides]:
            if part.name not in self.tallies:
                self.off[part.name] = "the build failed"

    def start_asides(self) -> None:
        if self.asides and self.thread is None:
            self.thread = threading.Thread(target=self.play_asides, daemon=True)
            self.thread.start()

    def play_asides(self) -> None:
        for part in self.asides:
            self.play_part(part, lambda done, total, doing: None)

    def wait_for(self, part: Part) -> None:
        for name in part.needs:
            if name in self.is_done and ALL[name].is_aside:
                self.progress.update(0, 1, f"waits for {name}")
                self.is_done[name].wait()

    def play_part(self, part: Part, update) -> None:
        began = time.monotonic()
        commands = Commands(self.progress.say, update, part.is_aside)
        self.commands.append(commands)
        if self.is_stopped:
            commands.stop()
        try:
            part.play(commands)
        finally:
            self.tallies[part.name] = commands.tally
            self.seconds[part.name] = time.monotonic() - began
            self.is_done[part.name].set()


def report(check: Check, parts: list[Part], began: float) -> int:
    total = Tally()
    print("\n== what was played")
    for name, tally in check.tallies.items():
        total.add(tally)
        beside = " beside others" if ALL[name].is_aside else ""
        print(f"   {name:10}  {tally.passed:4} passed  {len(tally.failures):3} failed  "
              f"{clock(check.seconds[name]):>7}{beside}, CPU {tally.cpu_s:.0f} s")
    if total.failures:
        print("\n== failed")
        for failure in total.failures:
            print(f"---- {failure.name}\n{failure.output}")
        print("----\nfailed, and how each is played alone:")
        for failure in total.failures:
            print(f"   {failure.name}\n      {failure.again}")
    if total.unsteady:
        print("\n== unsteady: failed, then passed when played alone: " + ", ".join(total.unsteady))
    print("\n== what was not played")
    for name, reason in total.skipped:
        print(f"   {name}: {reason}")
    for name, reason in check.off.items():
        print(f"   part {name}: {reason}")
    played = {part.name for part in parts}
    for part in ALL.values():
        if part.name not in played:
            print(f"   part {part.name}, {part.what}: not asked for; tools/check {part.name}")
    print(f"\nall of it: {clock(time.monotonic() - began)}, CPU {total.cpu_s:.0f} s")
    print(f"{total.passed} passed, {len(total.failures)} failed, "
          f"{len(total.skipped) + len(check.off)} skipped", flush=True)
    return 1 if total.failures or total.passed == 0 else 0


def main(argv: list[str]) -> int:
    options = parse(argv)
    if options.list:
        for part in ALL.values():
            turns = [str(i) for i, names in enumerate(TURNS) if part.name in names]
            when = "always" if part in PARTS else f"turn {', '.join(turns)}"
            print(f"{part.name:10}  {when:8}  {part.what}")
        return 0
    os.chdir(ROOT)
    return play_parts(chosen(options))


def play_parts(parts: list[Part]) -> int:
    began = time.monotonic()
    check = Check(parts)

    def interrupt(number: int, _frame: object) -> None:
        check.stop()
        raise SystemExit(128 + number)

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        check.play()
    finally:
        check.progress.stop()
    return report(check, parts, began)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
