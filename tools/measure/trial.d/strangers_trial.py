#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Strangers, guessers, slow and dead senders, and limits that refuse threads and memory, against
the built program (root).

Goal:   nobody without the code keeps a sender out, ends the receiver or fills its log; nobody with
        the code holds it for nothing;
        what the system refuses ends both ends at once, with its name.
Method: namespaces; strangers are plain sockets on either host; limits by prlimit.
"""

import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

import trial
from program import ADDRESS_B, CODE, PATIENCE, End, World, check, main

MB = 1 << 20
WRONG = "another-code-of-twenty-letters"
STRONG = "abcd-efgh-ijkl-mnop-qrst-uvwx-yzpg"
# Connects N times and resets; or connects N times and holds; or connects N times and closes.
RESET = (
    "import socket,struct,sys\nfor i in range(int(sys.argv[1])):\n s=socket.socket()\n "
    "s.setsockopt(socket.SOL_SOCKET,socket.SO_LINGER,struct.pack('ii',1,0))\n"
    " s.settimeout(5)\n try: s.connect(('" + ADDRESS_B
    + "',7411))\n except OSError: pass\n s.close()\n")
HOLD = (
    "import socket,sys,time\nheld=[]\nfor address in sys.argv[1:]:\n for i in range(4):\n  "
    "s=socket.socket()\n  s.bind((address,0))\n"
    "  s.connect(('" + ADDRESS_B
    + "',7411))\n  held.append(s)\nprint('held',flush=True)\ntime.sleep(60)\n")
KNOCK = (
    "import socket,sys,time\nfor i in range(int(sys.argv[1])):\n try:\n  "
    "s=socket.create_connection(('"
    + ADDRESS_B + "',7411),5)\n  s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
    "  s.close()\n except OSError: pass\n")


def python_on(world, host, text, *arguments) -> Any:
    return world.run_on(host, sys.executable, "-c", text, *arguments)


def serve(world, *options, code=CODE, label="serve") -> Any:
    """serve starts a receiver that goes on after a session."""
    end = End(
        world.on("b", world.onehop, "recv", "--dir", world.target, "--listen", ADDRESS_B, "--io",
                 "udp", "--json", *options), world.work, label, code)
    world._ends.append(end)
    end.wait_for(lambda: end.events("start"), "recv can accept")
    return end


def ends_with(end, code, claim) -> None:
    check(end.code() == code, f"{claim}: {code}, not {end.process.returncode}: {end.text()}")


def stop(end) -> None:
    end.process.send_signal(signal.SIGINT)
    end.code()


def test_reset_connections_lock_nobody_out(onehop) -> None:
    with World(onehop) as world:
        receiver = serve(world)
        python_on(world, "a", RESET, str(trial.rounds(600)))
        path = world.file(1 * MB)
        ends_with(world.send(path), 0, "a sender from the same address")
        world.check_same(path)
        stop(receiver)


def test_idle_connections_keep_nobody_out(onehop) -> None:
    with World(onehop) as world:
        addresses = [f"10.111.0.{number}" for number in range(21, 25)]
        for address in addresses:
            world.run_on("a", "ip", "address", "add", f"{address}/24", "dev", "mv0")
        receiver = serve(world)
        idle = subprocess.Popen(world.on("a", sys.executable, "-c", HOLD, *addresses),
                                stdout=subprocess.PIPE, text=True)
        try:
            check(idle.stdout.readline().strip() == "held", "sixteen idle connections are there")
            path = world.file(1 * MB)
            ends_with(world.send(path, "udp", "--wait", "3"), 0,
                      "a sender does not wait until they time out")
        finally:
            idle.kill()
            idle.wait()
        stop(receiver)


def test_strangers_get_a_line_a_minute(onehop) -> None:
    with World(onehop) as world:
        receiver = serve(world)
        python_on(world, "a", KNOCK, str(trial.rounds(60)))
        path = world.file(1 * MB)
        ends_with(world.send(path), 0, "a sender after them")
        lines = [
            line for line in receiver.errors.read_text().splitlines() if "authenticate" in line
        ]
        check(1 <= len(lines) <= 2, f"one line for all of them, not {len(lines)}: {lines[:3]}")
        stop(receiver)


def test_K3_wrong_codes_do_not_end_a_receiver_of_a_strong_code(onehop) -> None:
    with World(onehop) as world:
        path = world.file(1 * MB)
        receiver = world.receive(code=STRONG)
        for _ in range(5):
            ends_with(world.send(path, code=WRONG), 4, "a wrong code")
        check(receiver.process.poll() is None, f"it goes on: {receiver.text()}")
        check(receiver.errors.read_text().count("too long to be guessed") == 1,
              f"said once: {receiver.text()}")
        ends_with(world.send(path, code=STRONG), 0, "the right code")
        ends_with(receiver, 0, "recv --once")


def test_K3_a_chosen_code_burns_with_a_message_and_recv_goes_on_with_a_new_one(onehop) -> None:
    with World(onehop) as world:
        path = world.file(1 * MB)
        receiver = world.receive()
        for _ in range(3):
            ends_with(world.send(path, code=WRONG), 4, "a wrong code")
        ends_with(receiver, 4, "recv --once")
        check("burnt" in receiver.text() and receiver.end()["exit_code"] == 4,
              f"a last message and an end event: {receiver.text()}")
        receiver = serve(world, label="renewed")
        for _ in range(3):
            ends_with(world.send(path, code=WRONG), 4, "a wrong code")
        receiver.wait_for(lambda: receiver.events("code"), "a new code")
        ends_with(world.send(path), 4, "the burnt code")
        ends_with(world.send(path, code=receiver.events("code")[0]["code"]), 0, "the new code")
        stop(receiver)


def test_an_idle_receiver_that_is_interrupted_has_an_end_event(onehop) -> None:
    with World(onehop) as world:
        receiver = world.receive()
        receiver.process.send_signal(signal.SIGINT)
        ends_with(receiver, 7, "interrupted")
        check(receiver.end()["exit_code"] == 7, "the end event says so")


def test_U2_the_same_command_takes_the_place_of_its_dead_connection(onehop) -> None:
    """The sender's machine goes away without a word: its link is cut, it is killed, and the link
    comes back under another address."""
    with World(onehop, 'rate = "50Mbit"\n') as world:
        receiver = world.receive()
        path = world.file(20 * MB)
        sender = world.send(path)
        world.wait_bytes(4 * MB, receiver)
        world.run_on("a", "ip", "link", "set", "mv0", "down")
        sender.process.kill()
        sender.process.wait()
        world.run_on("a", "ip", "address", "flush", "dev", "mv0", "scope", "global")
        world.run_on("a", "ip", "address", "add", "10.111.0.77/24", "dev", "mv0")
        world.run_on("a", "ip", "link", "set", "mv0", "up")
        check(receiver.process.poll() is None,
              f"the receiver knows of nothing yet: {receiver.text()}")
        again = world.send(path)  # its wait is 5 s, the silence that ends a session 30 s
        ends_with(again, 0, "the same command goes on")
        ends_with(receiver, 0, "recv --once")
        world.check_same(path)
        check(again.end()["bytes_skipped_total"] > 0, "what had arrived was not sent again")


def test_U3_another_sender_waits_and_does_not_end_a_live_transfer(onehop) -> None:
    with World(onehop, 'rate = "100Mbit"\n') as world:
        receiver = serve(world)
        first, second = world.file(25 * MB), world.file(1 * MB, "second")
        sender = world.send(first)
        world.wait_bytes(5 * MB, receiver)
        twin = world.send(first, "udp", "--wait", "0.5")
        other = world.send(second, "udp", "--wait", "30")
        ends_with(twin, 5, "the same command beside it")
        check("busy" in twin.text() and "--wait" in twin.text(), twin.text())
        ends_with(sender, 0, "the first sender is not disturbed")
        ends_with(other, 0, "the second one is served after it")
        world.check_same(first), world.check_same(second)
        stop(receiver)


def test_a_sender_that_hardly_sends_makes_room_for_one_that_waits(onehop) -> None:
    with World(onehop) as world:
        receiver = serve(world)
        slow, quick = world.file(1 * MB, "slow"), world.file(1 * MB, "quick")
        holder = world.send(slow, "udp", "--max-rate", "20kbit")
        world.wait_bytes(10_000, receiver)
        time.sleep(10)  # the window in which it must bring something
        check(holder.process.poll() is None, "alone it may take its time")
        ends_with(world.send(quick), 0, "another sender is served within its wait of 5 s")
        ends_with(holder, 11, "the slow one is told")
        check("another sender waits" in holder.text(), holder.text())
        stop(receiver)


def limited(world, host, limit, value, *command) -> Any:
    return world.on(host, "prlimit", f"--{limit}={value}", *map(str, command))


def run_limited(world, path, host, limit, value, user=(), other=()) -> tuple[Any, Any, Any]:
    """run_limited transfers a file with one end under a limit, which runs as `user` and its peer as
    `other` (words of setpriv), and returns both ends and how long they took."""
    label = f"{host}-{limit}-{value}"
    receiving = [
        world.onehop, "recv", "--once", "--dir", world.target, "--listen", ADDRESS_B, "--io", "udp",
        "--json", "--on-exist", "overwrite"
    ]
    sending = [
        world.onehop, "send", path, "--to", ADDRESS_B, "--io", "udp", "--json", "--wait", "2"
    ]
    on = {
        "a": world.on("a", *other, *map(str, sending)),
        "b": world.on("b", *other, *map(str, receiving))
    }
    on[host] = limited(world, host, limit, value, *user, *(sending if host == "a" else receiving))
    receiver = End(on["b"], world.work, label + "-recv", CODE)
    world._ends.append(receiver)
    give_up_at = time.monotonic() + PATIENCE
    while not receiver.events(
            "start") and receiver.process.poll() is None and time.monotonic() < give_up_at:
        time.sleep(0.01)
    began = time.monotonic()
    sender = End(on["a"], world.work, label + "-send", CODE)
    world._ends.append(sender)
    sender.code()
    if sender.process.returncode in (3, 9):  # nobody came, so recv --once waits on, or it ends
        try:
            receiver.process.wait(1)
        except subprocess.TimeoutExpired:
            receiver.process.send_signal(signal.SIGINT)
    receiver.code()
    return sender, receiver, time.monotonic() - began


def check_typed(sender, receiver, seconds, claim) -> None:
    """check_typed: neither end crashed or hung; an end that fails has a reason in words."""
    for name, end in (("send", sender), ("recv", receiver)):
        check(0 <= end.process.returncode <= 11,
              f"{claim}: {name} ends typed, not with {end.process.returncode}: {end.text()}")
        check(end.process.returncode == 0 or end.text(), f"{claim}: {name} says why")
    check(
        seconds < 25,
        f"{claim}: at once, not after {seconds:.0f} s (send {sender.process.returncode}, recv "
        f"{receiver.process.returncode}): {sender.text()} {receiver.text()}"
    )


def test_a_thread_that_is_refused_ends_both_ends_with_its_name(onehop) -> None:
    """RLIMIT_NPROC counts a user's threads and does not bind root: the limited end is run as a user
    that nobody else is, not even its peer, whose threads would let it not even start."""
    def user_of(uid) -> tuple[str, ...]:
        return ("setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups")

    with World(onehop) as world:
        os.chmod(world.work, 0o755)
        os.chmod(world.target, 0o777)
        path = world.file(1 * MB)
        path.chmod(0o644)
        named = 0
        for host in ("a", "b"):
            for threads in (1, 2, 3, 4):
                sender, receiver, seconds = run_limited(world, path, host, "nproc",
                                                        f"{threads}:{threads}", user_of(54321),
                                                        user_of(54322))
                check_typed(sender, receiver, seconds, f"{threads} threads at {host}")
                failed = sender if host == "a" else receiver
                named += bool(failed.process.returncode == 9 and re.search(
                    r"start (the|a) .*thread.*(Resource temporarily unavailable)", failed.text()))
        check(named >= 3, f"what was refused is named: {named} times")


def test_memory_that_is_refused_ends_both_ends_typed(onehop) -> None:
    with World(onehop) as world:
        path = world.file(1 * MB)
        dice = trial.dice("memory")
        for host in ("a", "b"):
            named = 0
            for megabytes in sorted(dice.choices(range(36, 112), k=trial.rounds(12))) + [60, 72]:
                sender, receiver, seconds = run_limited(world, path, host, "as", megabytes * MB)
                failed = sender if host == "a" else receiver
                if failed.process.returncode == 127:  # not even the loader had room
                    continue
                check_typed(sender, receiver, seconds, f"{megabytes} MB at {host}")
                named += failed.process.returncode == 9 and bool(
                    re.search("(memory|thread).*(Cannot allocate memory|Resource temporarily)",
                              failed.text()))
            check(named >= 1, f"what was refused at {host} is named: {named} times")


if __name__ == "__main__":
    sys.exit(main(globals()))
