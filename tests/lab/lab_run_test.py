#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""onehop lab run, its locks, its disk: lab_run_test.py LAB_PROGRAM. Needs root; exits 77 without.

Goal:   a lab ends as its command did, refuses a second one of its name, and leaves nothing behind.
Method: run the program as a user does, interrupt and kill it, look at the namespaces afterwards.
Bounds: the disk's rate by the time that an fsync takes.
"""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lab_world import (
    FRAMES, NAME, PROGRAM, Up, check, frames_through, is_gone, lab, main, on, own_files,
    profile_file, run)


def test_the_rate_log_tells_each_rate_from_when_it_held() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "rate.csv"
        logged = ("run", "--name", NAME, "--on", "host", "--rate-log", str(log))
        before = time.monotonic_ns()
        done = lab(*logged, "--profile", "trace-150-900", "--", "sleep", "1.3")
        check(done.returncode == 0, done.stderr)
        lines = log.read_text().splitlines()
        check(lines[:2] == ["# onehop lab run: profile trace-150-900", "t_ns,rate_bytes_per_s"],
              f"its head: {lines[:2]}")
        rows = [[int(cell) for cell in line.split(",")] for line in lines[2:]]
        check([rate * 8 // 1_000_000 for _, rate in rows] == [150, 300, 600], f"each rate: {rows}")
        check(before < rows[0][0] < rows[1][0] < rows[2][0] < time.monotonic_ns(),
              f"on the monotonic clock: {rows}")
        done = lab(*logged, "--profile", "steady-600", "--", "true")
        check(
            done.returncode == 8 and "File exists" in done.stderr and "another name" in done.stderr,
            f"nothing is replaced: {done.stderr}")
        for profile, words in (("unshaped", "no rate"), ("wifi-ac80", "--link-model")):
            done = lab("run", "--name", NAME, "--profile", profile, "--rate-log",
                       f"{folder}/{profile}", "--", "true")
            check(
                done.returncode == 2 and words in done.stderr
                and not Path(f"{folder}/{profile}").exists(),
                f"{profile}: {done.returncode} {done.stderr}")
    check(is_gone(), "nothing is left")


def test_run_exits_as_its_command_did() -> None:
    check(run("steady-600", "sh", "-c", "exit 42").returncode == 42, "the command's code")
    check(
        run("steady-600", "sh", "-c", "kill -9 $$").returncode == 128 + 9,
        "128 + the command's signal")
    check(run("steady-600", "/nonexistent").returncode == 127, "127 where there is no such command")
    check(is_gone(), "lab run leaves nothing")


def test_run_leaves_nothing_when_it_is_interrupted() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen([
                PROGRAM, "lab", "run", "--name", NAME, "--", "sh", "-c",
                "sleep 60 & echo ready; exec sleep 60"
        ], stdout=subprocess.PIPE, text=True) as process:
            check(process.stdout.readline() == "ready\n", "the command runs")
            process.send_signal(number)
            check(process.wait(30) == 128 + number, f"the exit code says {number.name}")
        check(is_gone(), f"nothing is left after {number.name}")


def test_a_second_lab_of_the_same_name_is_refused() -> None:
    with subprocess.Popen(
        [PROGRAM, "lab", "run", "--name", NAME, "--", "sh", "-c", "echo ready; read x"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        check(process.stdout.readline() == "ready\n", "the command runs")
        for refused in (run("steady-600", "true"), lab("up", "--name",
                                                       NAME), lab("down", "--name", NAME)):
            check(refused.returncode == 5 and "another onehop lab" in refused.stderr,
                  refused.stderr)
        process.stdin.close()
        process.wait(30)
    with Up("steady-600"):
        refused = lab("up", "--name", NAME)
        check(refused.returncode == 5 and "lab down" in refused.stderr, refused.stderr)


def test_labs_that_contend_for_a_name_are_one_at_a_time_and_leave_no_lock() -> None:
    """Each removes the lock file while others open it: a lock of a removed file must not count."""
    mark = Path(f"/dev/shm/{NAME}.mark")
    body = f"mkdir {mark} || exit 42; sleep 0.05; rmdir {mark}"
    contenders = []
    for _ in range(12):
        contenders.append(
            subprocess.Popen([
                PROGRAM, "lab", "run", "--name", NAME, "--profile", "steady-600", "--on", "host",
                "--", "sh", "-c", body
            ], stderr=subprocess.PIPE, text=True))
        time.sleep(0.1)
    codes = [contender.wait(60) for contender in contenders]
    said = [contender.stderr.read() for contender in contenders]
    check(set(codes) <= {0, 5} and 0 in codes, f"each ran alone or was refused: {codes} {said}")
    check(is_gone(), f"nothing is left, no lock either: {own_files()}")


def test_locks_that_nobody_holds_go_with_the_next_lab() -> None:
    stale, held = (Path(f"/run/onehop-lab/{NAME}-{word}.lock") for word in ("stale", "held"))
    stale.touch()
    with open(held, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        check(run("steady-600", "true").returncode == 0, "a lab runs")
        check(not stale.exists() and held.exists(),
              "what nobody holds is gone, what somebody holds is there")
    with Up("steady-600"):
        check(not held.exists(), "and goes when it is let go")
        check(
            run_other("true").returncode == 0 and Path(f"/run/onehop-lab/{NAME}.lock").exists(),
            "a lab that is up keeps its own")


def run_other(*command) -> Any:
    return lab("run", "--name", f"{NAME}-other", "--profile", "steady-600", "--on", "host", "--",
               *command)


def test_what_a_killed_lab_left_is_removed() -> None:
    process = subprocess.Popen([
        PROGRAM, "lab", "run", "--name", NAME, "--profile", "slow-disk", "--", "sh", "-c",
        "echo ready; exec sleep 60"
    ], stdout=subprocess.PIPE, text=True)
    check(process.stdout.readline() == "ready\n", "the command runs")
    process.kill()
    process.wait()
    process.stdout.close()
    check(not is_gone(), "a killed lab cannot clean up")
    check(
        lab("down", "--name", NAME).returncode == 0 and is_gone(),
        "lab down removes what a killed lab left")
    check(lab("down", "--name", NAME).returncode == 0, "no lab is no error for lab down")


def namespaces_of(name) -> list[Any]:
    return sorted(path.name for path in Path("/run/netns").glob(f"{name}-*"))


def running(name) -> subprocess.Popen[Any]:
    process = subprocess.Popen(
        [PROGRAM, "lab", "run", "--name", name, "--", "sh", "-c", "echo ready; exec sleep 60"],
        stdout=subprocess.PIPE, text=True)
    check(process.stdout.readline() == "ready\n", "the command runs")
    process.stdout.close()
    return process


def test_the_next_lab_of_any_name_removes_what_dead_ones_left_and_nothing_of_the_living() -> None:
    dead, alive = f"{NAME}-dead", f"{NAME}-alive"
    with Up("steady-600"):
        killed, living = running(dead), running(alive)
        try:
            killed.kill()
            killed.wait()
            before = namespaces_of(alive)
            check(namespaces_of(dead), "a killed lab cannot clean up")
            done = run_other("true")
            check(done.returncode == 0, done.stderr)
            check(not namespaces_of(dead), f"its namespaces go: {namespaces_of(dead)}")
            check(not list(Path("/run/onehop-lab").glob(f"{dead}.*")), "and its files")
            check(dead in done.stderr, f"it is told: {done.stderr}")
            check(before and namespaces_of(alive) == before, "those of a lab that runs stay")
            check(living.poll() is None, "and what runs in it")
            check(len(namespaces_of(NAME)) >= 3, "a lab that is up needs no process to stay")
            check(on("a", "true").returncode == 0, "and can be used")
        finally:
            living.terminate()
            living.wait()
            for name in (dead, alive):
                lab("down", "--name", name)


def test_a_slow_disk_takes_its_rate_and_goes_with_the_lab() -> None:
    with tempfile.TemporaryDirectory() as folder:
        own = profile_file(folder, '[disk]\nrate = "80Mbit"\nerrors = ["rename=EIO"]\n')
        script = (
            "import os,sys,time\nt=time.monotonic()\nf=open(os.environ['ONEHOP_LAB_DISK']+'/x',"
            "'wb',0)\n"
            "for i in range(20): "
            "f.write(bytes(1<<20))\nos.fsync(f.fileno())\nprint(time.monotonic()-t)\n"
            "try: os.rename(f.name, f.name+'y')\nexcept OSError as e: print(e.errno)\n")
        done = run(own, sys.executable, "-c", script, on="b")
    check(done.returncode == 0, done.stderr)
    seconds, error = done.stdout.split()
    check(float(seconds) >= 0.9 * (20 << 20) * 8 / 80e6, f"20 MiB at 80 Mbit/s took {seconds} s")
    check(int(error) == 5, "the rename fails with EIO")
    check(is_gone(), "the disk is gone")


def test_wrong_profiles_are_refused_with_the_key() -> None:
    for text, word in (('rat = "1Mbit"', "rat"), ('rate = "fast"', "fast"), ('mtu = 100', "mtu"),
                       ('direct = true\nloss_permille = 1',
                        "direct"), ('[[trace]]\nat = 1\nrate = "1Mbit"', "trace"),
                       ("rate = ", "line 1"), ('[disk]\nspeed = 1', "speed")):
        with tempfile.TemporaryDirectory() as folder:
            done = run(profile_file(folder, text), "true")
            check(done.returncode == 2 and word in done.stderr,
                  f"{text!r}: {done.returncode} {done.stderr}")
    refused = lab("up", "--name", NAME, "--profile", "blackout")
    check(refused.returncode == 2 and "lab run" in refused.stderr, "a trace needs lab run")
    check(is_gone(), "nothing was built")


def test_a_direct_lab_has_no_middle() -> None:
    with Up("unshaped"):
        check(not Path(f"/run/netns/{NAME}-m").exists(), "no middle namespace")
        check(frames_through("a", "b", socket.AF_INET, "10.111.0.2") == FRAMES, "frames pass")


if __name__ == "__main__":
    sys.exit(main(globals()))
