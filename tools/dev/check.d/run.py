# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Runs what a part consists of: Meson's setup, ninja, suites of meson test, single commands.

Each call counts into a Tally: what passed, what failed, what was skipped and why, and the CPU time
of all processes that it waited for.
"""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import threading
from collections.abc import Callable

SKIPPED = 77  # the exit code by which a test says that it cannot run here
REASON_MAX = 160  # columns of a reason that a skipped test gave
TAIL_LINES = 60  # of what a failed test has printed

# Who wants the core has it: SCHED_IDLE, in a session whose autogroup is as modest (sched(7)).
IDLE = ["chrt", "--idle", "0", "sh", "-c", "echo 19 >/proc/self/autogroup; exec \"$@\"", "sh"]

Progress = Callable[[int, int, str], None]


@dataclasses.dataclass
class Failure:
    name: str
    again: str  # the command that plays it alone
    output: str


@dataclasses.dataclass
class Tally:
    passed: int = 0
    failures: list[Failure] = dataclasses.field(default_factory=list)
    unsteady: list[str] = dataclasses.field(default_factory=list)  # passed when played again, alone
    skipped: list[tuple[str, str]] = dataclasses.field(default_factory=list)  # name, reason
    cpu_s: float = 0.0

    def add(self, other: "Tally") -> None:
        self.passed += other.passed
        self.failures += other.failures
        self.unsteady += other.unsteady
        self.skipped += other.skipped
        self.cpu_s += other.cpu_s


class Commands:
    """The commands of one part. All are ended by stop(), from another thread."""

    def __init__(self, say: Callable[[str], None], update: Progress, is_idle: bool = False) -> None:
        self.say = say
        self.update = update
        self.tally = Tally()
        # Of another system's root (systems.py): what stands before a command, what a person types
        # there, and where its packages are.
        self.inside: list[str] = []
        self.alone = ""
        self.root = pathlib.Path("/")
        self._before = IDLE if is_idle else []
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._is_stopped = False

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            if self._process is not None and self._process.returncode is None:
                try:
                    # The first process of a namespace ignores what it has no handler for; with it
                    # goes all that is in there.
                    os.killpg(self._process.pid, 9 if self.inside else 15)
                except ProcessLookupError:
                    pass

    def run(self, words: list[str], on_line: Callable[[str], None],
            environment: dict[str, str] | None = None) -> int:
        """Runs it in this folder, hands each line on, and counts its CPU time."""
        with self._lock:
            if self._is_stopped:
                return 130
            process = subprocess.Popen(
                [*self._before, *self.inside, *words], text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True, env={**os.environ, **(environment or {})})
            self._process = process
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                on_line(line.rstrip("\n"))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.tally.cpu_s += used.ru_utime + used.ru_stime
        return process.returncode

    def one(self, name: str, words: list[str], again: str) -> None:
        """A check that passes, fails, or cannot run here (77)."""
        lines: list[str] = []
        code = self.run(words, lines.append)
        if code == 0:
            self.tally.passed += 1
            self.say("\n".join(f"   {line}" for line in lines[-12:]))
        elif code == SKIPPED:
            self.tally.skipped.append((name, reason_of("\n".join(lines))))
        else:
            self.tally.failures.append(Failure(name, again, tail(lines)))
        self.say(f"   {'ok' if code == 0 else 'skipped' if code == SKIPPED else 'FAILED'}  {name}")

    def setup(self, folder: str, options: list[str],
              environment: dict[str, str] | None = None) -> bool:
        """Configures once, anew where packages came since, or for the product alone
        (tools/quickstart); warnings are errors."""
        words = ["meson", "setup", folder, "-Dwerror=true", *options]
        made = pathlib.Path(folder) / "build.ninja"
        if made.exists():
            status = self.root / "var/lib/dpkg/status"
            is_new = not status.exists() or status.stat().st_mtime <= made.stat().st_mtime
            if is_new and (made.parent / "meson-info/intro-tests.json").read_text() != "[]":
                return True
            # What was configured before a package came does not know it.
            self.run(["meson", "configure", folder, "--clearcache"], lambda line: None)
            words.insert(2, "--reconfigure")
        lines: list[str] = []
        code = self.run(words, lines.append, environment)
        return self._note(f"meson setup {folder}", code, lines)

    def ninja(self, folder: str, targets: list[str]) -> bool:
        """Builds them. Says of each step how many are left."""
        def on_line(line: str) -> None:
            step = re.match(r"\[(\d+)/(\d+)\] (.*)", line)
            if step:
                self.update(int(step[1]), int(step[2]), step[3].rsplit("/", 1)[-1])
            lines.append(line)

        lines: list[str] = []
        code = self.run(["ninja", "-C", folder, *targets], on_line, {"NINJA_STATUS": "[%f/%t] "})
        return self._note(f"ninja -C {folder}", code, lines)

    def _note(self, name: str, code: int, lines: list[str]) -> bool:
        if code != 0:
            wrong = [line for line in lines if re.search(r"error|FAILED", line, re.IGNORECASE)]
            self.tally.failures.append(
                Failure(name, self.alone + name, tail(wrong[:20] + lines[-40:])))
            self.say(f"   FAILED  {name}")
        return code == 0

    def suites(self, folder: str, suites: list[str], options: list[str] | None = None,
               environment: dict[str, str] | None = None,
               names: list[str] | None = None) -> list[str]:
        """Plays the tests of these suites (of them the named ones). Returns those that failed."""
        log = log_of(folder, suites)
        if names:
            log = log.with_stem(log.stem + "-again")
        words = ["meson", "test", "-C", folder, "--logbase", log.stem, *(options or [])]
        for suite in suites:
            words += ["--suite", suite]
        order = [test["name"] for test in tests_of(folder, suites)]
        finished: list[str] = []

        def on_line(line: str) -> None:
            built = re.match(r"\[(\d+)/(\d+)\] ", line)
            if built:
                self.update(0, total, f"builds, {built[1]} of {built[2]}")
            step = re.match(r" *(\d+)/(\d+) (.*\S) +(\S+(?: \S+)?) +([\d.]+) ?s\b", line)
            if not step:
                return
            done, name, result = int(step[1]), step[3].split(" / ")[-1], step[4]
            finished.append(name)
            if result != "SKIP":
                word = "ok" if result in ("OK", "EXPECTEDFAIL") else "FAILED"
                self.say(f"   {word:6}  {done:3}/{total} {name}  {step[5]} s")
            waits = next((other for other in order if other not in finished), "")
            self.update(done, total, waits)

        log.unlink(missing_ok=True)
        total = len(names or order)
        self.update(0, total, "")
        code = self.run([*words, *(names or [])], on_line, environment)
        return self._count(folder, suites, log, code)

    def _count(self, folder: str, suites: list[str], log: pathlib.Path, code: int) -> list[str]:
        again = f"{self.alone}meson test -C {folder} --suite {' --suite '.join(suites)}"
        failed: list[str] = []
        seen = 0
        for line in log.read_text(errors="replace").splitlines() if log.exists() else []:
            test = json.loads(line)
            name = test["name"].split(" / ")[-1]
            output = test.get("stdout", "") + test.get("stderr", "")
            seen += 1
            if test["result"] in ("OK", "EXPECTEDFAIL"):
                self.tally.passed += 1
                if self.inside:
                    self.tally.skipped += [(name, reason) for reason in cases_skipped(output)]
            elif test["result"] == "SKIP":
                self.tally.skipped.append((name, reason_of(output)))
            else:
                failed.append(name)
                self.tally.failures.append(Failure(
                    f"{suites[0]}: {name} ({test['result'].lower()}, {test['duration']:.0f} s)",
                    f"{again} '{name}'", tail(output.splitlines())))
        if seen == 0 or (code != 0 and not failed):
            self.tally.failures.append(Failure(f"{again} did not run", again, f"exit code {code}"))
        return failed

    def again(self, folder: str, suites: list[str], failed: list[str], before: int,
              options: list[str], environment: dict[str, str] | None = None) -> None:
        """What failed since `before` failures, once more and alone: a busy machine may have been
        the cause. Both results are in the report."""
        if not failed or len(failed) != len(self.tally.failures) - before:
            return
        first = self.tally.failures[before:]
        self.say(f"   once more, alone: {', '.join(failed)}")
        for failure in first:
            self.say(f"---- {failure.name}\n{failure.output}\n----")
        del self.tally.failures[before:]
        still = self.suites(folder, suites, ["--num-processes", "1", *options], environment, failed)
        self.tally.unsteady += [failure.name for name, failure in zip(failed, first, strict=True)
                                if name not in still]


def log_of(folder: str, suites: list[str]) -> pathlib.Path:
    return pathlib.Path(folder) / "meson-logs" / f"testlog-{'-'.join(suites)}.json"


def tests_of(folder: str, suites: list[str]) -> list[dict]:
    """The tests of these suites, in the order in which meson test plays them."""
    information = pathlib.Path(folder) / "meson-info" / "intro-tests.json"
    tests = json.loads(information.read_text()) if information.exists() else []
    mine = [test for test in tests
            if any(suite.rsplit(":", 1)[-1] in suites for suite in test["suite"])]
    return sorted(mine, key=lambda test: -test["priority"])


def targets_of(folder: str, suites: list[str]) -> list[str]:
    """What these tests need, as ninja names it."""
    wanted = {target for test in tests_of(folder, suites) for target in test["depends"]}
    targets = json.loads((pathlib.Path(folder) / "meson-info" / "intro-targets.json").read_text())
    build = str(pathlib.Path(folder).resolve()) + "/"
    return sorted({name.removeprefix(build) for target in targets if target["id"] in wanted
                   for name in target["filename"]})


def tail(lines: list[str]) -> str:
    return "\n".join(lines[-TAIL_LINES:])


def cases_skipped(output: str) -> list[str]:
    """Why a test that passed has left out some of its cases: a line of a Python test, or a warning
    of Catch2."""
    found = re.findall(r"^(?:skip  |  skipped: )(.*)", output, re.MULTILINE)
    return [reason.strip()[:REASON_MAX] for reason in dict.fromkeys(found)]


def reason_of(output: str) -> str:
    """What a skipped test said last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:REASON_MAX] if lines else "it does not say why"
