#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""onehop rings beside programs with AF_XDP rings: rings_test.py ONEHOP SUBJECT [WORD].

Goal:   what rings tells of another program is what that program's rings hold, without its help, and
        the program is none the worse for it.
Method: a C program of bare system calls whose rings hold what the test says, onehop over AF_XDP and
        over DPDK's net_af_xdp; in network namespaces of their own, seen from outside of them.
Bounds: none on time. States that stand still are told exactly.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from docs_test import PAGES, lines  # noqa: E402
from dpdk_test import MB, eal_of, need_dpdk  # noqa: E402
from program import PATIENCE, End, Skip, World, check, main  # noqa: E402
from spaces import Spaces  # noqa: E402
from watch_program_test import Screen  # noqa: E402

RINGS = ("rx", "tx", "fill", "completion")
SUBJECT = ""


class Subject:
    """The C program on one end of a cable, in a namespace of its own."""

    def __init__(self, spaces, interface, entries) -> None:
        self.process = subprocess.Popen(spaces.on("a", SUBJECT, interface, entries),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.state = self._read()

    def _read(self) -> dict[str, int]:
        line = self.process.stdout.readline().split()
        check(len(line) == 8, f"the subject tells its rings: {line}")
        return {name: int(count) for name, count in zip(line[::2], line[1::2])}

    def do(self, *commands) -> dict[str, int]:
        for command in commands:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            self.state = self._read()
        return self.state

    def do_until(self, command, condition) -> None:
        give_up_at = time.monotonic() + PATIENCE
        while not condition(self.do(command)):
            check(time.monotonic() < give_up_at, f"{command}: {self.state}")

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()


class Cable(Spaces):
    """A cable without any frames of the kernel's own on it: a's end is the subject's."""

    def __init__(self, onehop) -> None:
        super().__init__(onehop, "a")
        self._subjects: list[Subject] = []

    def __enter__(self) -> Any:
        super().__enter__()
        try:
            self.run_on("a", "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
            for name in ("x0", "x1"):
                self.ip("a", f"link add {name} type veth peer name {name}far",
                        *(f"link set {end} arp off up" for end in (name, name + "far")))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error) -> None:
        for subject in self._subjects:
            subject.end()
        super().__exit__(*error)

    def subject(self, interface="x0", entries=64) -> Subject:
        self._subjects.append(Subject(self, interface, entries))
        return self._subjects[-1]

    def arrive(self, count, interface="x0") -> None:
        """arrive puts frames on the wire towards the subject."""
        code = ("import socket, sys; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); "
                "s.bind((sys.argv[1], 0)); "
                "[s.send(bytes(12) + b'\\x88\\xb5' + bytes(46)) for _ in range(int(sys.argv[2]))]")
        self.run_on("a", sys.executable, "-c", code, interface + "far", count)

    def rings(self, *options, **more) -> subprocess.CompletedProcess[Any]:
        return subprocess.run([self.onehop, "rings", *map(str, options)], capture_output=True,
                              text=True, timeout=PATIENCE, **more)

    def follow(self, *options) -> End:
        """follow begins a run with --json that goes on by itself."""
        end = End([self.onehop, "rings", *map(str, options), "--json", "--interval", "0.1"],
                  self.work, f"rings{len(self._ends)}", "")
        self._ends.append(end)
        end.wait_for(lambda: end.events("rings"), "it tells something")
        return end

    def seen(self, subject, *options) -> list[Any]:
        """seen is what one interval shows of the subject's sockets."""
        end = End([self.onehop, "rings", str(subject.pid), "--once", "--json", "--interval",
                   "0.2", *map(str, options)], self.work, f"rings{len(self._ends)}", "")
        self._ends.append(end)
        check(end.code() == 0, f"it ends well: {end.text()}")
        return end.events("rings")


def check_same(event, state) -> None:
    """A state that stands still is told exactly, in each sample."""
    check(event["samples"] > 5, f"it was looked at: {event}")
    for name in RINGS:
        ring = event[name]
        held = {ring[key] for key in ("held", "held_min", "held_p50", "held_p99", "held_max")}
        check(held == {state[name]}, f"{name} holds {state[name]}: {ring}")
        check(sum(ring["tenths"]) == event["samples"], f"each sample is counted: {ring}")


def test_rings_that_stand_still_are_told_exactly(onehop) -> None:
    with Cable(onehop) as cable:
        for entries in (64, 512, 2048):
            subject = cable.subject(entries=entries)
            for commands in ((), ("fill 1", ), (f"fill {entries - 4}", "tx 7"), ("fill 3", )):
                state = subject.do(*commands) if commands else subject.state
                event, = cable.seen(subject)
                check_same(event, state)
            check(state == {"rx": 0, "tx": 7, "fill": entries, "completion": 0}, f"{state}")
            cable.arrive(10)
            subject.do_until("look", lambda now: now["rx"] == 10)
            event, = cable.seen(subject)
            check_same(event, subject.state | {"rx": 10, "fill": entries - 10})
            subject.do_until("kick", lambda now: now["completion"] == 7)
            event, = cable.seen(subject)
            check_same(event, subject.state | {"tx": 0, "completion": 7})
            check(event["pid"] == subject.pid and event["program"] == "rings_subject"[:15],
                  f"whose they are: {event}")
            check(event["is_zero_copy"] is False, f"how it is bound: {event}")
            if entries > 256:  # of more than one page
                check(all(event[name]["entries"] == entries for name in RINGS), f"sizes: {event}")
            subject.end()


def test_the_size_of_a_small_ring_is_known_once_its_entries_went_round(onehop) -> None:
    with Cable(onehop) as cable:
        subject = cable.subject(entries=64)
        event, = cable.seen(subject)
        check(event["fill"]["entries"] in (None, 64), f"nobody could know: {event}")
        subject.do("fill 64")
        for _ in range(5):
            cable.arrive(20)
            subject.do_until("look", lambda now: now["rx"] == 20)
            subject.do("take 20", "fill 20", "tx 20")
            subject.do_until("kick", lambda now: now["completion"] == 20)
            subject.do("reclaim 20")
        event, = cable.seen(subject)
        check(all(event[name]["entries"] == 64 for name in RINGS), f"now it is: {event}")


def test_frames_that_find_no_room_are_counted(onehop) -> None:
    with Cable(onehop) as cable:
        subject = cable.subject()
        subject.do("fill 5")
        cable.arrive(12)
        subject.do_until("look", lambda now: now["rx"] == 5)
        event, = cable.seen(subject)
        dropped = event["rx_dropped_total"] + event["fill_ring_empty_total"]
        check(event["fill"]["held"] == 0 and dropped >= 7, f"7 found no chunk: {event}")
        text = cable.rings(subject.pid, "--once").stdout
        check("empty: frames are dropped" in text, f"and people read it: {text}")
        check(all(len(line) <= 80 for line in text.splitlines()), f"in 80 columns: {text}")


def test_thresholds_are_exit_codes(onehop) -> None:
    with Cable(onehop) as cable:
        subject = cable.subject(entries=512)
        subject.do("fill 256", "tx 100")
        for options, code in (
            (("--fail-above", "50"), 0), (("--fail-above", "49.9"), 6),
            (("--fail-above", "tx=19"), 6), (("--fail-above", "tx=20"), 0),
            (("--fail-above", "rx=0"), 0), (("--fail-below", "fill=50"), 0),
            (("--fail-below", "fill=51"), 6), (("--fail-below", "1"), 6),
            (("--fail-above", "tx=90", "--fail-above", "fill=20"), 6),
            (("--fail-above", "tx=101"), 2), (("--fail-above", "umem=1"), 2),
            (("--fail-above", "x"), 2), (("--fail-above", "nan"), 2), (("--rate", "0"), 2)):
            done = cable.rings("--once", "--interval", "0.1", *options, subject.pid)
            check(done.returncode == code, f"{options}: {code}, not {done.returncode} {done}")
            if code == 6:
                check("entries (" in done.stderr, f"it says which: {done.stderr}")
        check(cable.rings("--fail-above", "1", subject.pid).returncode == 2, "without --once")


def test_a_program_is_chosen_by_pid_or_name(onehop) -> None:
    with Cable(onehop) as cable:
        done = cable.rings("nobody-is-called-so", "--once")
        check(done.returncode == 3, f"none: {done}")
        check(cable.rings(os.getpid(), "--once").returncode == 3, "a process without rings")
        check(cable.rings(4_194_303, "--once").returncode == 3, "no process")
        check(cable.rings("(", "--once").returncode == 2, "no expression")
        one = cable.subject("x0")
        for name in ("rings_subject"[:15], "^rings_", "subj"):
            done = cable.rings(name, "--once", "--json")
            check(json.loads(done.stdout)["pid"] == one.pid, f"{name} is found: {done}")
        two = cable.subject("x1")
        for words in ((), ("rings_s", )):
            done = cable.rings(*words)
            check(done.returncode == 2 and all(f"onehop rings {subject.pid}" in done.stderr
                                               for subject in (one, two)),
                  f"of several one is to be chosen: {done}")


def test_sockets_that_come_and_go_are_followed_to_the_end_of_the_program(onehop) -> None:
    with Cable(onehop) as cable:
        subject = cable.subject()
        run = cable.follow(subject.pid)

        def sockets() -> set[int]:
            events = run.events("rings")
            return {event["socket"] for event in events if event["t_ns"] == events[-1]["t_ns"]}

        first = sockets()
        subject.do("share")
        run.wait_for(lambda: len(sockets()) == 2, "a second socket is seen")
        other = next(event for event in run.events("rings") if event["socket"] not in first)
        check(other["rx"]["held"] == 0 and other["fill"] is None and other["tx"] is None,
              f"it has no fill ring of its own: {other}")
        subject.do("unshare", "fill 9")
        run.wait_for(lambda: sockets() == first, "and that it has gone")
        run.wait_for(lambda: run.events("rings")[-1]["fill"]["held"] == 9, "the other goes on")
        subject.do("forget")  # the rings alone keep the socket now
        run.wait_for(lambda: run.events("rings")[-1]["rx_dropped_total"] is None,
                     "nobody can ask it any more")
        check(run.events("rings")[-1]["fill"]["held"] == 9, "its rings are there all the same")
        subject.process.stdin.close()
        check(run.code() == 0 and "has ended" in run.text(), f"it ends with it: {run.text()}")


def test_nothing_of_the_program_outlives_it(onehop) -> None:
    """A descriptor that was kept would keep the queue: rings is stopped while its program ends."""
    with Cable(onehop) as cable:
        for _ in range(5):
            subject = cable.subject()
            run = cable.follow("--rate", "2000", subject.pid)
            run.process.send_signal(signal.SIGSTOP)
            subject.process.stdin.close()
            check(subject.process.wait(PATIENCE) == 0, "the program ends")
            cable.subject().end()  # it has the same queue
            run.process.send_signal(signal.SIGCONT)
            check(run.code() == 0, f"and then rings does: {run.text()}")


def test_who_may_not_look_is_told_what_it_takes(onehop) -> None:
    with Cable(onehop) as cable:
        subject = cable.subject()
        nobody: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": [],
                                  "env": {"PATH": os.environ["PATH"]}}
        try:
            done = cable.rings(subject.pid, "--once", **nobody)
        except PermissionError:
            raise Skip("the program's folder is closed to other users") from None
        check(done.returncode == 10 and "root" in done.stderr, f"not without rights: {done}")
        done = cable.rings("--once", **nobody)
        check(done.returncode == 3 and "all users" in done.stderr, f"none is seen: {done}")


def test_a_trace_has_each_sample(onehop) -> None:
    with Cable(onehop) as cable:
        subject = cable.subject(entries=512)
        subject.do("fill 33", "tx 2")
        trace = cable.work / "rings.csv"
        event, = cable.seen(subject, "--trace", trace)
        rows = [line.split(",") for line in trace.read_text().splitlines()
                if not line.startswith("#")]
        check(len(rows) == event["samples"] + 1, f"{len(rows)} rows, {event['samples']} samples")
        row = dict(zip(rows[0], rows[-1]))
        check((row["fill_held_entries"], row["fill_ring_entries"], row["tx_held_entries"],
               row["rx_held_entries"]) == ("33", "512", "2", "0"), f"what they hold: {row}")
        done = cable.rings(subject.pid, "--once", "--trace", cable.work / "no" / "x.csv")
        check(done.returncode == 8, f"a file that cannot be: {done}")
        with open("/dev/full", "wb"):
            done = cable.rings(subject.pid, "--once", "--trace", "/dev/full")
        check(done.returncode == 8, f"a disk that is full: {done}")


def test_the_lines_of_the_page_do_what_it_says(onehop) -> None:
    with Cable(onehop) as cable:
        subject = cable.subject(entries=512)
        subject.do("fill 500")
        page = next(page for page in PAGES if page.name == "rings.md")
        for line in lines(page):
            words = line.replace("PID", str(subject.pid)).replace("NAME", "rings_s").split()
            check(words[0] == "onehop", f"a line of another program: {line}")
            with subprocess.Popen([Path(onehop).resolve(), *words[1:]], cwd=cable.work,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
                said = [run.stdout.readline()]
                if words[1] == "rings" and "--once" not in words:
                    run.send_signal(signal.SIGINT)
                said += run.communicate(timeout=PATIENCE)
            # Another program with rings may run on this machine: it is listed then.
            good = (0, 2) if words == ["onehop", "rings"] else (0, )
            check(run.returncode in good and "".join(said), f"`{line}`: {run.returncode} {said}")
        picture = (cable.work / "rings.html").read_text()
        check("500 / 500.0 / 500 of 512" in picture, f"the fill ring was drawn: {picture[-900:]}")


def test_a_terminal_shows_bars_that_follow_and_is_left_as_it_was(onehop) -> None:
    with Cable(onehop) as cable:
        subject = cable.subject(entries=512)
        subject.do("fill 256")
        screen = Screen(cable, subject.pid, command="rings")
        screen.read_until(lambda: len(screen.frames()) >= 2, "it draws again and again")
        frame = screen.frames()[-2]
        check(len(frame) <= 24 and all(len(row) <= 80 for row in frame), f"80 x 24: {frame}")
        check(any(row.startswith("fill") and "256 of 512" in row for row in frame), f"{frame}")
        subject.do("fill 255")
        screen.read_until(lambda: "511 of 512" in screen.text, "it follows")
        os.write(screen.fd, b"q")
        screen.read_until(lambda: "\x1b[?1049l" in screen.text, "the screen comes back")
        check(screen.end() == 0, "to look is no error")


def look_at(world, end, run_for=3) -> list[Any]:
    """look_at samples a running end and returns what was told."""
    done = subprocess.Popen([world.onehop, "rings", str(end.process.pid), "--json", "--interval",
                             "0.5", "--rate", "500"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    time.sleep(run_for)
    done.send_signal(signal.SIGINT)
    out, said = done.communicate(timeout=PATIENCE)
    check(done.returncode == 0, f"Ctrl-C is no error: {said}")
    return [json.loads(line) for line in out.splitlines()]


def check_moving(events, names) -> None:
    check(len(events) >= 2, f"it was looked at: {events}")
    for event in events:
        for name in RINGS:
            ring = event[name]
            check(ring is None or ring["held_max"] is None
                  or ring["held_max"] <= ring["entries_max"], f"never more than there is: {ring}")
    for name in names:
        check(any(event[name] and event[name]["moved_per_second"] > 100 for event in events),
              f"{name} moves: {events}")
        check(all(event[name]["entries"] == event[name]["entries_max"] for event in events
                  if event[name]), f"and its size is known: {events}")


def test_a_transfer_of_onehop_is_seen_from_outside(onehop) -> None:
    with World(onehop) as world:
        path = world.file(120 * MB)
        receiver = world.receive("afxdp")
        sender = world.send(path, "afxdp", "--max-rate", "150Mbit")
        world.wait_bytes(2 * MB, receiver)
        check_moving(look_at(world, receiver), ("rx", "fill"))
        check_moving(look_at(world, sender, 1.5), ("tx", "completion"))
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.text()} {receiver.text()}")
        world.check_same(path)


def test_dpdk_is_seen_from_outside(onehop) -> None:
    need_dpdk(onehop)
    with World(onehop) as world:
        path = world.file(120 * MB)
        receiver = world.receive("dpdk", *eal_of("vb"))
        sender = world.send(path, "dpdk", *eal_of("mv0"), "--max-rate", "150Mbit")
        world.wait_bytes(2 * MB, receiver)
        check_moving(look_at(world, receiver), ("rx", "fill"))
        check_moving(look_at(world, sender, 1.5), ("tx", "completion"))
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.text()} {receiver.text()}")
        world.check_same(path)


if __name__ == "__main__":
    SUBJECT = sys.argv.pop(2)
    sys.exit(main(globals()))
