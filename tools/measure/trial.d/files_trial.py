#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Files that arrive in spite of kills, interrupts and odd contents: files_trial.py ONEHOP [WORD].

Goal:   whatever ends a transfer, the same two commands go on: nothing that is there is sent again
        but what was in flight, nothing
        is left over, and no file of the user's is touched.
Method: the real program in the lab; SIGKILL, SIGINT and SIGHUP to either end, at moments that a
        seed draws; files of all sizes.
Bounds: bytes on the wire beyond the files' own, less what headers add, as a transfer that nothing
        disturbed shows them.
"""

import os
import pty
import signal
import statistics
import sys
import time
from typing import Any

import trial
from program import ADDRESS_B, CODE, PATIENCE, End, World, check, main

MB = 1_000_000
OK, REFUSED, INTERRUPTED, DISK = 0, 5, 7, 8
# how an end may end whose peer, or which itself, was killed
GONE = (OK, 3, 5, INTERRUPTED, 11, -signal.SIGKILL)
# What a kill may cost: blocks that are not whole yet, and what is on its way.
RESENT_MEDIAN_MAX, RESENT_MAX = 2 * MB, 16 * MB


def received(world) -> int:
    return int(world.run_on("b", "cat", "/sys/class/net/vb/statistics/rx_bytes"))


def wire_bytes_per_byte(world, io) -> Any:
    """wire_bytes_per_byte is what an undisturbed transfer of 20 MB puts on the wire, per byte of
    the file."""
    path, target = world.file(20 * MB, f"whole-{io}"), world.work / f"whole-{io}.in"
    target.mkdir()
    before = received(world)
    finish(world, [path], io, target)
    return (received(world) - before) / (20 * MB)


def finish(world, files, io, target, *options) -> tuple[Any, Any]:
    """finish runs both commands to a good end, and returns their end events."""
    receiver = world.receive(io, *options, into=target)
    sender = world.send(files, io)
    check(sender.code() == OK,
          f"the same send goes on: {sender.process.returncode}: {sender.text()}")
    check(receiver.code() == OK,
          f"the same recv goes on: {receiver.process.returncode}: {receiver.text()}")
    for path in files:
        world.check_same(path, target)
    names = world.names(target)
    check(names == sorted(path.name for path in files), f"nothing is left over: {names}")
    return sender.end(), receiver.end()


def wait_until(condition, claim) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < give_up_at, f"{claim}: not in {PATIENCE} s")
        time.sleep(0.002)


def test_C1_a_small_file_that_was_complete_does_not_stop_the_same_commands(onehop) -> None:
    with World(onehop) as world:
        files = [world.file(1 * MB, "small"), world.file(50 * MB, "big"), world.file(0, "empty")]
        for number, (victim, how, options) in enumerate(
            (("send", signal.SIGKILL, ()), ("recv", signal.SIGKILL, ()),
             ("send", signal.SIGINT, ()), ("recv", signal.SIGINT, ("--on-exist", "rename")))):
            target = world.work / f"in{number}"
            target.mkdir()
            receiver = world.receive("udp", *options, into=target)
            sender = world.send(files)
            wait_until(lambda: (target / "small").exists(), "the small file is complete")
            wait_until(
                lambda:
                (target / ".big.part").exists() and (target / ".big.part").stat().st_size > 10 * MB,
                "the big one is under way")
            (sender if victim == "send" else receiver).process.send_signal(how)
            check(sender.code() in GONE and receiver.code() in GONE, "both ends end")
            check(not (target / "big").exists(), "the big one was interrupted")
            sent, got = finish(world, files, "udp", target, *options)
            check(got["bytes_skipped_total"] == sent["bytes_skipped_total"],
                  f"both count alike: {got['bytes_skipped_total']}, {sent['bytes_skipped_total']}")
            check(got["bytes_skipped_total"] > 9 * MB,
                  f"what was there is counted: {got['bytes_skipped_total']}")


def test_P5_other_content_of_the_same_size_stays_and_is_refused(onehop) -> None:
    with World(onehop) as world:
        path = world.file(1 * MB)
        mine = os.urandom(1 * MB)
        (world.target / path.name).write_bytes(mine)
        receiver = world.receive()
        sender = world.send(path)
        check(sender.code() == REFUSED and receiver.code() == DISK,
              f"5 and 8: {sender.process.returncode}, {receiver.process.returncode}")
        check("that name exists" in receiver.text() and "--on-exist" in receiver.text(),
              f"cause and remedy: {receiver.text()}")
        check((world.target / path.name).read_bytes() == mine and world.names() == [path.name],
              "the file is as it was, and nothing beside it")


def test_C2_an_interrupt_while_the_receiver_verifies_costs_nothing(onehop) -> None:
    with World(onehop) as world:
        path = world.file(300 * MB)
        ratio = wire_bytes_per_byte(world, "udp")
        receiver = End(
            world.on("b", onehop, "recv", "--dir", world.target, "--listen", ADDRESS_B, "--io",
                     "udp", "--json"), world.work, "recv-on", CODE)
        world._ends.append(receiver)
        receiver.wait_for(lambda: receiver.events("start"), "recv can accept")
        part = world.target / f".{path.name}.part"
        sender = world.send(path)
        wait_until(lambda: part.exists() and part.stat().st_size > 270 * MB, "270 MB are there")
        sender.process.send_signal(signal.SIGINT)
        check(sender.code() == INTERRUPTED, "the first run is interrupted")
        receiver.wait_for(lambda: len(receiver.events("end")) == 1, "the receiver knows")

        def is_verifying() -> bool:
            folder = f"/proc/{receiver.process.pid}/fd"
            return any(
                link.endswith(part.name) for link in (os.readlink(f"{folder}/{fd}")
                                                      for fd in os.listdir(folder)
                                                      if os.path.lexists(f"{folder}/{fd}")))

        sender = world.send(path)
        wait_until(is_verifying, "the receiver looks at what is there")
        sender.process.send_signal(signal.SIGKILL)
        sender.code()
        receiver.wait_for(lambda: len(receiver.events("end")) == 2, "the receiver knows again")
        before = received(world)
        sender = world.send(path)
        check(sender.code() == OK, f"the third run ends: {sender.text()}")
        receiver.wait_for(lambda: len(receiver.events("end")) == 3, "the receiver ends the third")
        world.check_same(path)
        check(world.names() == [path.name], f"nothing is left over: {world.names()}")
        sent, got = sender.end(), receiver.events("end")[-1]
        again = received(world) - before
        check(again <= ratio * 40 * MB, f"only the rest is sent: {again / MB:.1f} MB")
        for end in (sent, got):
            check(
                300 * MB - again / ratio <= end["bytes_skipped_total"] + 1 * MB
                and end["bytes_skipped_total"] <= 300 * MB,
                f"what was there is told: {end['bytes_skipped_total']}")
        check(sent["bytes_skipped_total"] == got["bytes_skipped_total"], "both ends tell the same")


def test_P5_a_users_own_part_file_is_never_taken(onehop) -> None:
    with World(onehop) as world:
        for number, size in enumerate((1000, 3 * MB)):
            path = world.file(size, f"q{number}")
            mine = world.target / f".q{number}.part"
            mine.write_bytes(os.urandom(2 * MB))
            mine.chmod(0o600)
            content = mine.read_bytes()
            world.transfer(path)
            check(mine.exists() and mine.read_bytes() == content,
                  f"the user's .q{number}.part is as it was")
            check(
                sorted(entry for entry in world.names()
                       if path.name in entry) == [mine.name, path.name],
                f"and nothing is beside it: {world.names()}")


def test_C4_a_file_of_proc_is_refused_with_a_reason(onehop) -> None:
    with World(onehop) as world:
        sender = world.send("/proc/self/status")
        check(sender.code() == DISK, f"8, not {sender.process.returncode}")
        check("/proc" in sender.text() and "cat" in sender.text(),
              f"cause and remedy: {sender.text()}")


def test_C4_holes_are_kept(onehop) -> None:
    with World(onehop) as world:
        path = world.work / "sparse"
        with open(path, "wb") as out:
            for at in (0, 33 * MB, 90 * MB):
                out.seek(at)
                out.write(os.urandom(1 * MB))
            out.truncate(150 * MB)
        world.transfer(path)
        taken = (world.target / path.name).stat().st_blocks * 512
        check(taken <= 4 * MB, f"150 MB with 3 MB of data take 3 MB: {taken / MB} MB")


def test_a_terminal_that_goes_away_is_an_interrupt(onehop) -> None:
    slowly = ("--max-rate", "100Mbit")  # 30 MB of 100 are seen in time, on a busy machine too
    for victim in ("send", "recv"):
        with World(onehop) as world:
            path = world.file(100 * MB)
            ratio = wire_bytes_per_byte(world, "udp")
            ours, theirs = pty.openpty()
            ends = {}

            def on_terminal(command, label) -> Any:
                # A session of its own, whose terminal is `theirs`: it gets SIGHUP when `ours` is
                # closed. This test may run below nohup.
                return End(["setsid", "--ctty", "env", "--default-signal=HUP", *command],
                           world.work, label, CODE, terminal=theirs)

            listen = [
                "recv", "--once", "--dir", world.target, "--listen", ADDRESS_B, "--io", "udp",
                "--json"
            ]
            before = received(world)
            if victim == "recv":
                ends["recv"] = on_terminal(world.on("b", onehop, *listen), "recv-tty")
                world._ends.append(ends["recv"])
                ends["recv"].wait_for(lambda: ends["recv"].events("start"), "recv can accept")
                ends["send"] = world.send(path, "udp", *slowly)
            else:
                ends["recv"] = world.receive()
                ends["send"] = on_terminal(
                    world.on("a", onehop, "send", path, "--to", ADDRESS_B, "--io", "udp", "--json",
                             *slowly), "send-tty")
                world._ends.append(ends["send"])
            os.close(theirs)
            part = world.target / f".{path.name}.part"
            wait_until(lambda: part.exists() and part.stat().st_size > 30 * MB, "30 MB are there")
            os.close(ours)
            check(ends[victim].code() == INTERRUPTED,
                  f"{victim}: 7, not {ends[victim].process.returncode}")
            check(ends["recv" if victim == "send" else "send"].code() == INTERRUPTED,
                  "7 at the other end, too")
            finish(world, [path], "udp", world.target)
            again = (received(world) - before) / ratio - 100 * MB
            check(again <= RESENT_MAX, f"{victim}: what arrived is kept: {again / MB:.1f} MB again")


def draw_files(world, random, number) -> list[Any]:
    """draw_files makes two to five files: empty ones, some of one block, some of many."""
    sizes = [
        random.choice((0, 1, random.randrange(262_144), 262_144, random.randrange(1 * MB, 8 * MB)))
        for _ in range(random.randrange(1, 5))
    ]
    sizes.insert(random.randrange(len(sizes) + 1), random.randrange(15 * MB, 40 * MB))
    return [world.file(size, f"r{number}-{i}") for i, size in enumerate(sizes)]


def kill_once(world, random, files, io, target, *options) -> Any:
    """kill_once starts both ends and kills one of them at a drawn moment. False: it was over
    before."""
    total = sum(path.stat().st_size for path in files)
    receiver = world.receive(io, *options, into=target)
    begun_at = received(world)
    sender = world.send(files, io)
    victim = random.choice((sender, receiver))
    is_by_time = random.random() < 0.25
    if is_by_time:
        time.sleep(random.uniform(0, 0.5))  # whatever it does then
    else:
        wanted = begun_at + random.randrange(total)
        wait_until(
            lambda: received(world) >= wanted or sender.process.poll() is not None or receiver.
            process.poll() is not None, "bytes come")
    was_running = victim.process.poll() is None
    victim.process.kill()
    if is_by_time and victim is sender:
        time.sleep(1)
        if receiver.process.poll() is None:
            # a sender that had not come to its offer: recv --once waits on
            receiver.process.send_signal(signal.SIGINT)
    codes = (sender.code(), receiver.code())
    check(all(code in GONE for code in codes),
          f"both ends end: {codes}: {sender.text()} {receiver.text()}")
    return was_running


def test_C2_sigkill_at_random_then_the_same_commands(onehop) -> None:
    random, resent, count = trial.dice("sigkill"), [], trial.rounds(6)
    with World(onehop) as world:
        ratio = {io: wire_bytes_per_byte(world, io) for io in ("udp", "afxdp")}
        for number in range(count):
            io, kills = random.choice(("udp", "afxdp")), random.choice((1, 1, 1, 2, 3))
            files, target = draw_files(world, random, number), world.work / f"round{number}"
            target.mkdir()
            claim = f"round {number}, {io}, {[path.stat().st_size for path in files]}"
            before = received(world)
            try:
                # Where all had arrived before the kill, nothing is left to know the session by: the
                # receiver asks about names that exist, and this is its person's answer.
                answer = ("--on-exist", "resume")
                killed = sum(kill_once(world, random, files, io, target, *answer)
                             for _ in range(kills))
                finish(world, files, io, target, *answer)
            except AssertionError as error:
                raise AssertionError(f"{claim}: {error}") from None
            again = (received(world) - before) / ratio[io] - sum(path.stat().st_size
                                                                 for path in files)
            if killed:
                resent.append(max(0, again) / killed)
            for path in (*files, *target.iterdir()):
                path.unlink()
    if not resent:
        return
    figures = (
        f"{len(resent)} rounds: sent again per SIGKILL median "
        f"{statistics.median(resent) / MB:.2f}, worst {max(resent) / MB:.2f} MB"
    )
    print(f"info  {figures}", flush=True)
    check(
        max(resent) <= RESENT_MAX
        and (len(resent) < 5 or statistics.median(resent) <= RESENT_MEDIAN_MAX), figures)


def change(path, random) -> None:
    """change does to a file what its owner may do between two runs."""
    size = path.stat().st_size
    kind = random.randrange(5)
    if kind == 0:
        os.utime(path, ns=(0, random.randrange(10**18)))
    elif kind == 1:
        path.chmod(random.choice((0o600, 0o640, 0o444)))
    elif kind == 2:
        with open(path, "ab") as file:
            file.write(os.urandom(random.randrange(1, 2 * MB)))
    elif kind == 3:
        os.truncate(path, random.randrange(size + 1))
    elif size > 0:
        with open(path, "r+b") as file:
            file.seek(random.randrange(size))
            file.write(b"x")


def test_C5_P8_files_that_change_between_kills_leave_nothing(onehop) -> None:
    random, options = trial.dice("changed"), ("--on-exist", "overwrite")
    with World(onehop) as world:
        for number in range(trial.rounds(4)):
            files, target = draw_files(world, random, number), world.work / f"changed{number}"
            target.mkdir()
            for _ in range(random.choice((1, 2, 3, 12))):
                kill_once(world, random, files, "udp", target, *options)
                parts = [name for name in world.names(target) if name.endswith(".part")]
                check(len(parts) <= len(files), f"round {number}: a part each: {parts}")
                for path in random.sample(files, 2):
                    change(path, random)
            try:
                finish(world, files, "udp", target, *options)
            except AssertionError as error:
                raise AssertionError(f"round {number}: {error}") from None
            for path in (*files, *target.iterdir()):
                path.unlink()


if __name__ == "__main__":
    sys.exit(main(globals()))
