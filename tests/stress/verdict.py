# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What a run of `onehop stress rings` over a real link says, and whether to believe it.

For lab_test.py and iface_test.py. A busy machine can spoil a recovery, so one that came late is
played again alone. A program that recovers late does so each time.
"""

from typing import Any
import json

from program import check

TRIES = 3


def read(done) -> tuple[Any, Any]:
    """read returns (the faults, the summary) of a run with --json.

    It checks that exit code and summary say what the faults say.
    """
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    check(
        lines and lines[-1]["type"] == "stress_lab",
        f"a summary at the end: {done.stdout} {done.stderr}",
    )
    faults, summary = [line for line in lines if line["type"] == "stress_lab_fault"], lines[-1]
    late = [fault for fault in faults if not fault["is_in_time"]]
    check(
        len(faults) == summary["faults_total"] and len(late) == summary["late_total"],
        f"each fault is told: {summary}",
    )
    check(
        summary["is_held"] == (bool(faults) and not late),
        f"the verdict is what the faults say: {summary}",
    )
    check(
        done.returncode == (0 if summary["is_held"] else 1),
        f"the exit code is the verdict, not {done.returncode}: {done.stderr}",
    )
    return faults, summary


def check_in_time(play, count) -> tuple[Any, Any]:
    """check_in_time plays until each of the `count` schedules has recovered in time once.

    play(words...) is one run of the command. After the first run there are at most TRIES more. It
    returns the faults and the summary of the first run.
    """
    faults, first = read(play("--schedules", str(count)))
    check(first["schedules_total"] == count, f"{count} schedules were played: {first}")
    waiting = {schedule for schedule in range(count) if not is_in_time(faults, schedule)}
    for _ in range(TRIES):
        waiting = {
            schedule
            for schedule in waiting
            if not is_in_time(read(play("--only", str(schedule)))[0], schedule)
        }
    check(
        not waiting,
        "each schedule recovers in time, if not beside the others then alone, "
        f"in one of {TRIES}: {sorted(waiting)} do not",
    )
    return faults, first


def is_in_time(faults, schedule) -> bool:
    own = [fault for fault in faults if fault["schedule"] == schedule]
    return bool(own) and all(fault["is_in_time"] for fault in own)
