#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""onehop watch beside real transfers on loopback, without root: watch_program_test.py ONEHOP
[WORD].

Goal:   what watch tells is the transfer's own state; a transfer does not care who watches; the
        terminal is left as it was.
Method: the real program, UDP over 127.0.0.1 at a capped rate, a runtime folder of the test's own, a
        pseudo-terminal of 80 x 24.
Bounds: none on time but that everything ends by itself.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from program_test import MB, Loopback  # noqa: E402
from program import (  # noqa: E402
    CODE, PATIENCE, Skip, check, main)


class Watched(Loopback):
    """A loopback with a runtime folder of its own."""

    def __enter__(self) -> Any:
        super().__enter__()
        self.runtime = self.work / "run"
        self.runtime.mkdir(mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(self.runtime)
        return self

    def sockets(self) -> list[Any]:
        folder = self.runtime / "onehop"
        return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []

    def watch(self, *options, **more) -> subprocess.CompletedProcess[Any]:
        return subprocess.run([self.onehop, "watch", *map(str, options)], capture_output=True,
                              text=True, timeout=PATIENCE, **more)

    def begin(self, size=8 * MB) -> tuple[Any, Any]:
        """begin starts a transfer that lasts some seconds and returns both ends when data flows.
        Under an emulator a look alone takes a second: the transfer lasts for ten of them."""
        began = time.monotonic()
        self.watch("--once")
        self.rate_bps = int(2000 * min(1.0, 0.4 / (time.monotonic() - began))) * 8000
        receiver = self.receive()
        sender = self.start("send", self.file(size), "--to", self.address, "--json", "--max-rate",
                            f"{self.rate_bps}bit")
        sender.wait_for(lambda: self.told(sender)["bytes_done"] > 0, "data flows")
        return sender, receiver

    def told(self, end) -> Any:
        done = self.watch("--once", "--json", end.process.pid)
        return json.loads(done.stdout) if done.returncode == 0 else {"bytes_done": 0, "phase": ""}

    def finish(self, sender, receiver) -> None:
        check(sender.code() == 0 and receiver.code() == 0,
              f"both end well: {sender.text()} {receiver.text()}")
        check(self.sockets() == [], f"no socket is left: {self.sockets()}")


def as_nobody(onehop) -> Any:
    """as_nobody makes watch see no other transfers of this machine: root would see all."""
    if os.geteuid() != 0:
        return {}
    user: dict[str, Any] = {"user": 65532, "group": 65532, "extra_groups": [],
                            "env": {"PATH": os.environ["PATH"]}}
    try:
        subprocess.run([onehop, "--version"], capture_output=True, timeout=PATIENCE, **user)
    except PermissionError:
        raise Skip("the program's folder is closed to other users") from None
    return user


def test_no_transfer_is_exit_3_and_wrong_arguments_are_2(onehop) -> None:
    with Watched(onehop) as here:
        done = here.watch(**as_nobody(onehop))
        check(done.returncode == 3 and "none answers in" in done.stderr,
              f"none runs: {done.returncode} {done.stderr}")
        check(here.watch(os.getpid()).returncode == 3, "a process that is no transfer is not found")
        done = here.watch("--once", "--json", os.getpid())
        check(done.returncode == 3 and json.loads(done.stdout)["type"] == "error",
              f"the error is an event: {done.stdout}")
        for words in (("x", ), ("0", ), ("-5", ), ("--interval", "0"), ("--interval", "x"),
                      ("--trace", "x"), ("1", "2")):
            check(here.watch(*words).returncode == 2, f"{words} is refused")


def test_watch_once_tells_more_than_one_tick(onehop) -> None:
    """What leaves a buffer is told over about a second, as the goodput is, whenever one looks."""
    with Watched(onehop) as here:
        sender, receiver = here.begin()
        sender.wait_for(lambda: here.told(sender).get("elapsed_ns", 0) > 1_500_000_000, "it flows")
        ratios = []
        while len(ratios) < 15 and (state := here.told(sender))["phase"] == "transferring":
            time.sleep(0.05)
            ratios.append([buffer["drain_bps"] / state["goodput_bps"]
                           for buffer in state["buffers"][:2]])
        check(len(ratios) > 5, "it was looked at while it ran")
        check(all(0.5 < ratio < 2 for look in ratios for ratio in look), f"as fast: {ratios}")
        here.finish(sender, receiver)


def test_watch_once_tells_the_state_of_both_ends(onehop) -> None:
    with Watched(onehop) as here:
        sender, receiver = here.begin()
        check(here.sockets() == sorted(f"{end.process.pid}.sock" for end in (sender, receiver)),
              f"one socket each: {here.sockets()}")
        lines = [json.loads(line) for line in here.watch("--once", "--json").stdout.splitlines()]
        # root sees others', too, and one of them may have ended meanwhile, which is an error event
        ours = (sender.process.pid, receiver.process.pid)
        lines = [line for line in lines if line.get("pid") in ours]
        check({line["role"] for line in lines} == {"send", "recv"}, f"both are told: {lines}")
        state = here.told(sender)
        check(
            state["schema_version"] == 1 and state["type"] == "telemetry"
            and state["phase"] == "transferring", f"what it is: {state}")
        check(
            state["pid"] == sender.process.pid and state["peer"] == "127.0.0.1"
            and state["interface"] == "lo", f"who it is: {state}")
        check(state["bytes_expected"] == 8 * MB and 0 < state["bytes_done"] <= 8 * MB,
              f"how far it is: {state}")
        check(state["rate_bps"] == here.rate_bps and state["bottleneck"] == "cap",
              f"what was granted, and why: {state}")
        check([buffer["name"]
               for buffer in state["buffers"]] == ["tx_queue", "rx_ring", "app_buffer"],
              f"all buffers: {state}")
        app = state["buffers"][2]
        check(app["capacity_bytes"] > 0 and 0 <= app["occupancy_bytes"] <= app["capacity_bytes"],
              f"within its capacity: {app}")
        check(here.told(receiver)["rate_bps"] is None, "the receiving end grants nothing")
        check(
            here.told(receiver)["buffers"][0]["drain_bps"] == 0,
            "and knows no rate of its queue of answers")
        done = here.watch()
        check(done.returncode == 2 and f"onehop watch {sender.process.pid}" in done.stderr,
              f"of several one is to be chosen: {done.stderr}")
        secret = json.dumps(lines) + done.stderr
        check("file.bin" not in secret and os.environ.get("ONEHOP_CODE", "a-code-of") not in secret,
              "no names of files, no code")
        here.finish(sender, receiver)


def test_watch_follows_to_the_end_and_says_how_it_ended(onehop) -> None:
    with Watched(onehop) as here:
        sender, receiver = here.begin()
        done = here.watch("--json", "--interval", "0.2", sender.process.pid)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        check(done.returncode == 0, f"it ends with the transfer: {done.stderr}")
        states, ends = lines[:-1], [line for line in lines if line["type"] == "end"]
        check(
            len(ends) == 1 and lines[-1] is ends[0] and ends[0]["exit_code"] == 0,
            f"the end comes last: {lines[-1]}")
        check(ends[0]["bytes_total"] == sender.end()["bytes_total"], "and is the transfer's own")
        done_bytes = [state["bytes_done"] for state in states]
        check(
            len(states) > 2 and done_bytes == sorted(done_bytes), f"it goes forward: {done_bytes}")
        here.finish(sender, receiver)
        sender, receiver = here.begin(size=4 * MB)
        done = here.watch("--interval", "0.5", sender.process.pid)
        check("done and verified: 4.00 MB" in done.stdout and "\x1b" not in done.stdout,
              f"text has no escapes: {done.stdout[-200:]}")
        check(all(len(line) <= 80 for line in done.stdout.splitlines()),
              "nor lines of more than 80 columns")
        here.finish(sender, receiver)


def test_a_stopped_watcher_does_not_hold_up_the_transfer(onehop) -> None:
    with Watched(onehop) as here:
        sender, receiver = here.begin()
        watcher = subprocess.Popen(
            [onehop, "watch", "--json", str(sender.process.pid)], stdout=subprocess.PIPE)
        check(watcher.stdout.readline() != b"", "it watches")
        watcher.send_signal(signal.SIGSTOP)
        check(sender.code() == 0 and receiver.code() == 0,
              f"both end well: {sender.text()} {receiver.text()}")
        watcher.send_signal(signal.SIGCONT)
        rest = watcher.stdout.read().decode().splitlines()
        check(
            watcher.wait(PATIENCE) == 0 and json.loads(rest[-1]),
            f"what it gets late is whole: {rest[-1:]}")
        watcher.stdout.close()


def test_what_a_killed_transfer_left_behind_is_passed_over_and_removed(onehop) -> None:
    with Watched(onehop) as here:
        receiver = here.receive()
        receiver.wait_for(here.sockets, "it can be watched")
        receiver.process.kill()
        receiver.process.wait()
        check(len(here.sockets()) == 1, "a kill leaves the socket")
        check(here.watch(receiver.process.pid).returncode == 3, "nobody answers there")
        sender, receiver = here.begin(size=4 * MB)
        check(len(here.sockets()) <= 2, f"the next one has removed it: {here.sockets()}")
        here.finish(sender, receiver)


def test_of_a_transfer_that_sudo_started_its_user_and_root_alone_see_it(onehop) -> None:
    if os.geteuid() != 0:
        raise Skip("it takes root to become another user")
    nobody, other = 65534, 65533

    def watch_as(user, pid) -> subprocess.CompletedProcess[Any]:
        return subprocess.run([onehop, "watch", "--once", str(pid)], capture_output=True, text=True,
                              timeout=PATIENCE, user=user, group=user, extra_groups=[],
                              env={"PATH": os.environ["PATH"]})

    with Watched(onehop) as here:
        try:
            watch_as(nobody, 1)
        except PermissionError:
            raise Skip("the program's folder is closed to other users") from None
        here.work.chmod(0o755)
        receiver = here.receive()
        log = open(here.work / "sudo.err", "wb")
        sender = subprocess.Popen(
            [onehop, "send",
             str(here.file(4 * MB)), "--to", here.address, "--max-rate", "16Mbit"],
            stdin=subprocess.DEVNULL, stderr=log, env=os.environ
            | {"ONEHOP_CODE": CODE, "SUDO_UID": str(nobody), "SUDO_GID": str(nobody)})
        receiver.wait_for(lambda: here.watch("--once", sender.pid).returncode == 0, "root sees it")
        places = [
            place for place in (Path(f"/run/user/{nobody}/onehop"), Path(f"/tmp/onehop-{nobody}"))
            if (place / f"{sender.pid}.sock").exists()
        ]
        check(len(places) == 1, f"it is where that user's are: {places}")
        info, folder = (places[0] / f"{sender.pid}.sock").stat(), places[0].stat()
        check((info.st_uid, info.st_mode & 0o777, folder.st_uid,
               folder.st_mode & 0o777) == (nobody, 0o600, nobody, 0o700),
              f"closed to others: {info} {folder}")
        check(watch_as(nobody, sender.pid).returncode == 0, "its user sees it")
        check(watch_as(other, sender.pid).returncode == 3, "another user does not")
        check(sender.wait(PATIENCE) == 0 and receiver.code() == 0, "both end well")
        log.close()
        check(not (places[0] / f"{sender.pid}.sock").exists(), "nothing is left")
        if not list(places[0].iterdir()):
            places[0].rmdir()


class Screen:
    """watch, or another command, in a pseudo-terminal, and what it wrote there."""

    def __init__(self, here, *options, columns=80, rows=24, command="watch",
                 **environment) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm", "LC_ALL": "C.UTF-8"} | environment)
            time.sleep(0.2)  # until the size is set
            os.execv(here.onehop, [here.onehop, command, *map(str, options)])
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.fd)
        self.text = ""

    def resize(self, columns, rows) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, condition, claim) -> None:
        give_up_at = time.monotonic() + PATIENCE
        while not condition():
            check(time.monotonic() < give_up_at, f"{claim}: {self.text[-2000:]!r}")
            if not select.select([self.fd], [], [], 0.1)[0]:
                continue
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:  # the other side is closed
                check(condition(), f"{claim}: {self.text[-2000:]!r}")
                return

    def frames(self) -> list[Any]:
        """frames as rows of text, without escapes."""
        parts = self.text.split("\x1b[?1049l")[0].split("\x1b[H")[1:]
        return [
            re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", part).replace("\r", "").rstrip("\n").split("\n")
            for part in parts
        ]

    def end(self) -> Any:
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return code


def test_the_terminal_is_filled_followed_in_its_size_and_left_as_it_was(onehop) -> None:
    with Watched(onehop) as here:
        sender, receiver = here.begin()
        stop: Any
        for stop in ("q", signal.SIGINT):
            screen = Screen(here, sender.process.pid)
            screen.read_until(lambda: len(screen.frames()) >= 3, "it draws again and again")
            frame = screen.frames()[-2]
            check(len(frame) <= 24 and all(len(row) <= 80 for row in frame), f"80 x 24: {frame}")
            check("onehop send" in frame[0] and any("bottleneck: a cap" in row for row in frame),
                  f"what there is to see: {frame}")
            check(any("receiver's disk queue" in row for row in frame),
                  f"down to the receiver's disk: {frame}")
            screen.resize(40, 10)
            screen.read_until(
                lambda: len(screen.frames()[-2]) <= 10 and all(
                    len(row) <= 40 for row in screen.frames()[-2]), "it follows the size")
            if isinstance(stop, str):
                os.write(screen.fd, stop.encode())
            else:
                os.kill(screen.pid, stop)
            screen.read_until(lambda: "\x1b[?1049l" in screen.text and "\x1b[?25h" in screen.text,
                              "screen and cursor come back")
            check(termios.tcgetattr(screen.fd)[3] == screen.before[3], "keys are as they were")
            check(screen.end() == 0, "to look is no error")
        screen = Screen(here, sender.process.pid, NO_COLOR="1")
        screen.read_until(lambda: len(screen.frames()) >= 2, "it draws")
        check("\x1b[1m" not in screen.text and "\x1b[3" not in screen.text, "NO_COLOR is respected")
        os.kill(screen.pid, signal.SIGTERM)
        screen.read_until(lambda: "\x1b[?1049l" in screen.text, "the screen comes back")
        check(screen.end() == 0, "it ends")
        sender.process.send_signal(signal.SIGTERM)
        check(sender.code() == 7 and receiver.code() == 7,
              "the transfer is interrupted by its own user alone")


def test_a_screen_that_was_stopped_or_quit_leaves_the_keys_as_they_were(onehop) -> None:
    with Watched(onehop) as here:
        sender, _ = here.begin()

        def has_echo(screen) -> bool:
            return bool(termios.tcgetattr(screen.fd)[3] & termios.ECHO)

        screen = Screen(here, sender.process.pid)
        screen.read_until(lambda: len(screen.frames()) >= 2, "it draws")
        os.kill(screen.pid, signal.SIGSTOP)
        check(os.waitpid(screen.pid, os.WUNTRACED)[1] >> 8 == signal.SIGSTOP, "it is stopped")
        termios.tcsetattr(screen.fd, termios.TCSANOW, screen.before)  # as a shell does then
        os.kill(screen.pid, signal.SIGCONT)
        screen.read_until(lambda: not has_echo(screen), "it goes on, and keys are not shown")
        os.kill(screen.pid, signal.SIGQUIT)
        screen.read_until(lambda: has_echo(screen), "keys come back")
        check(screen.end() == 0, "to quit is no error")
        sender.process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
