#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""send - and recv --dir - over loopback: stream_program_test.py ONEHOP [WORD].

Goal:   what comes from standard input arrives as a file, or on standard output, byte by byte; an
        end on the way leaves nothing and says so.
Method: the real program between pipes.
Bounds: exact.
"""

import hashlib
import os
import signal
import subprocess
import sys
import time

from loopback import Loopback, check
from program import CODE, main, without_confinement

ENVIRONMENT = {**os.environ, "ONEHOP_CODE": CODE}
CONTENT = os.urandom(1 << 20) * 21 + b"end"


def sender(world, *options, **more) -> subprocess.Popen:
    return subprocess.Popen([world.onehop, "send", *map(str, options), "--to", world.address],
                            env=ENVIRONMENT, stderr=subprocess.PIPE, **more)


def receiver(world, *options, **more) -> subprocess.Popen:
    end = subprocess.Popen([world.onehop, "recv", "--dir", "-", "--listen", world.address,
                            *map(str, options)], env=ENVIRONMENT, stderr=subprocess.PIPE, **more)
    assert end.stderr is not None
    said: list[str] = []
    while not said:
        line = end.stderr.readline().decode()
        said = without_confinement(world.onehop, [line])
    check("listening" in said[0], f"recv can accept: {said}")
    return end


def test_folder(onehop) -> None:
    with Loopback(onehop) as world:
        receipt = world.work / "r.json"
        end = world.receive("--receipt", receipt)
        send = sender(world, "-", "--name", "made/of it", stdin=subprocess.PIPE)
        _, told = send.communicate(CONTENT, timeout=60)
        check(send.returncode == 0 and end.code() == 0, f"both end with 0: {told!r} {end.text()}")
        check((world.target / "made/of it").read_bytes() == CONTENT, "it is the stream")
        event = end.events("end")[0]
        check(event["files_total"] == 1 and event["bytes_total"] == len(CONTENT), f"{event}")
        check(not end.events("file"), "pieces are not told")
        check('"kind": "piece"' in receipt.read_text(), "the receipt lists them")
        check(sorted(p.name for p in world.target.rglob("*")) == ["made", "of it"], "nothing else")


def test_output(onehop) -> None:
    with Loopback(onehop) as world:
        for is_file in (False, True):
            end = receiver(world, stdout=subprocess.PIPE)
            if is_file:
                (world.work / "f").write_bytes(CONTENT)
                send = sender(world, world.work / "f")
            else:
                send = sender(world, "-", "--name", "n", stdin=subprocess.PIPE)
                assert send.stdin is not None
                # Written beside: the reader is here as well.
                if os.fork() == 0:
                    send.stdin.write(CONTENT)
                    send.stdin.close()
                    os._exit(0)
                send.stdin.close()
            assert end.stdout is not None
            got = end.stdout.read()
            check(hashlib.sha256(got).digest() == hashlib.sha256(CONTENT).digest(), "all of it")
            check(end.wait(60) == 0 and send.wait(60) == 0, "both end with 0")


def test_gone(onehop) -> None:
    """The reader of standard output ends early."""
    for is_stream in (False, True):
        gone(onehop, is_stream)


def gone(onehop, is_stream) -> None:
    with Loopback(onehop) as world:
        (world.work / "f").write_bytes(CONTENT)
        end = receiver(world, stdout=subprocess.PIPE)
        assert end.stdout is not None and end.stderr is not None
        if is_stream:
            with open(world.work / "f", "rb") as content:
                send = sender(world, "-", "--name", "n", stdin=content)
        else:
            send = sender(world, world.work / "f")
        end.stdout.read(1000)
        end.stdout.close()
        check(end.wait(60) == 8 and send.wait(60) == 5, f"{end.returncode} {send.returncode}")
        assert send.stderr is not None
        for told in (end.stderr.read(), send.stderr.read()):
            check(told.count(b"Broken pipe. Nothing of a stream is kept") == 1, f"{told!r}")
            check(b"othing" in told and b"was kept" not in told, f"one thing is said: {told!r}")


def test_interrupted(onehop) -> None:
    with Loopback(onehop) as world:
        end = world.receive()
        send = sender(world, "-", "--name", "n", stdin=subprocess.PIPE)
        assert send.stdin is not None and send.stderr is not None
        send.stdin.write(CONTENT)
        send.stdin.flush()
        end.wait_for(lambda: end.events("interval"), "data flows")
        send.send_signal(signal.SIGINT)
        check(send.wait(60) == 7 and end.code() == 7, f"{send.returncode} {end.text()}")
        check(b"nothing of the stream is kept" in send.stderr.read(), "it is said")
        check(not list(world.target.iterdir()), "and so it is")


def test_what_is_said_of_a_stream_that_ends_early(onehop) -> None:
    """Neither end says in one breath that something is kept and that nothing is."""
    for victim in ("sender", "receiver"):
        for how in (signal.SIGINT, signal.SIGKILL):
            with Loopback(onehop) as world:
                end = world.receive()
                send = sender(world, "-", "--name", "n", "--law", "fixed:40M",
                              stdin=subprocess.PIPE)
                assert send.stdin is not None and send.stderr is not None
                os.set_blocking(send.stdin.fileno(), False)
                send.stdin.write(CONTENT[:60_000])
                send.stdin.flush()
                end.wait_for(lambda: end.events("interval"), "data flows")
                (send if victim == "sender" else end.process).send_signal(how)
                send.wait(60)
                end.process.wait(60)
                for text in (send.stderr.read().decode(), end.text()):
                    check("was kept" not in text and "keeps what" not in text and
                          "to go on" not in text, f"{victim} {how}: {text}")
                    check("othing of" in text or how == signal.SIGKILL, f"it is said: {text}")


def test_refused(onehop) -> None:
    with Loopback(onehop) as world:
        to = ("--to", world.address)
        for words, cause in ((("send", "-", *to), "no name"),
                             (("send", "-", "x", "--name", "y", *to), "beside it"),
                             (("send", "x", "--name", "y", *to), "not among the paths"),
                             (("send", "-", "--name", "n", "--dry-run", *to), "--dry-run"),
                             (("recv", "--dir", "-", "--json"), "--json")):
            world.refused(*words, words=[cause])
        world.refused("send", "-", "--name", "a/../b", *to, words=["'..'"], code=8)
        # A folder, and a name that is there.
        (world.work / "d").mkdir()
        (world.work / "d/f").write_text("f")
        end = receiver(world, stdout=subprocess.PIPE)
        check(sender(world, world.work / "d").wait(60) == 5, "a folder is refused")
        check(end.wait(60) == 8, "here, too")
        (world.target / "n").write_text("mine")
        recv = world.start("recv", "--once", "--dir", world.target, "--listen", world.address,
                           "--json")
        recv.wait_for(lambda: recv.events("start"), "recv can accept")
        send = sender(world, "-", "--name", "n", stdin=subprocess.DEVNULL)
        check(send.wait(60) == 5 and recv.code() == 8, "a name that is there is refused")
        check((world.target / "n").read_text() == "mine", "and it stays")


def test_slow(onehop) -> None:
    """What comes slowly arrives as it comes."""
    with Loopback(onehop) as world:
        end = receiver(world, stdout=subprocess.PIPE)
        send = sender(world, "-", "--name", "n", stdin=subprocess.PIPE)
        assert send.stdin is not None and end.stdout is not None
        for word in (b"one\n", b"two\n"):
            send.stdin.write(word)
            send.stdin.flush()
            check(end.stdout.readline() == word, "it is there before there is more")
            time.sleep(0.3)
        send.stdin.close()
        check(end.wait(60) == 0 and send.wait(60) == 0, "both end with 0")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
