# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What the tests of the lab share. PROGRAM is onehop, the first word of their command line."""

import ctypes
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SKIP = 77
CLONE_NEWNET = 0x40000000
NAME = f"labtest{os.getpid()}"
LIBC = ctypes.CDLL(None, use_errno=True)
SO_RCVBUFFORCE = 33
UDP_SEGMENT = 103
ETH_P_ALL = 3
PORT = 7000
FRAMES = 10_000
PAYLOAD_BYTES = 300
PROGRAM = sys.argv[1]


def lab(*arguments, **options) -> subprocess.CompletedProcess[Any]:
    return subprocess.run([PROGRAM, "lab", *arguments], capture_output=True, text=True, timeout=60,
                          **options)


def run(profile, *command, on="host") -> subprocess.CompletedProcess[Any]:
    return lab("run", "--name", NAME, "--profile", profile, "--on", on, "--", *command)


def is_gone() -> bool:
    namespaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True,
                                check=True).stdout
    mounts = Path("/proc/mounts").read_text()
    return NAME not in namespaces and NAME not in mounts and not Path(
        f"/dev/shm/{NAME}.disk").exists() and not own_files()


def own_files() -> list[Any]:
    return list(Path("/run/onehop-lab").glob(f"{NAME}.*"))


def check(condition, claim) -> None:
    if not condition:
        raise AssertionError(claim)


class Up:
    """A lab that is up for the time of a with block."""

    def __init__(self, profile) -> None:
        self._profile = profile

    def __enter__(self) -> None:
        done = lab("up", "--name", NAME, "--profile", self._profile)
        check(done.returncode == 0, done.stderr)

    def __exit__(self, *_) -> None:
        done = lab("down", "--name", NAME)
        check(done.returncode == 0, done.stderr)
        check(is_gone(), "lab down leaves nothing")


def socket_on(host, *arguments) -> Any:
    """socket_on opens a socket in a host's namespace; it stays there when this process goes
    home."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{NAME}-{host}", os.O_RDONLY)
    try:
        check(LIBC.setns(there, CLONE_NEWNET) == 0, "setns")
        return socket.socket(*arguments)
    finally:
        check(LIBC.setns(home, CLONE_NEWNET) == 0, "setns back")
        os.close(home)
        os.close(there)


def drain(receiver) -> Any:
    """drain counts what waits in a socket; frames of other programs (neighbour discovery) have
    another size."""
    count = 0
    try:
        while True:
            count += len(receiver.recv(70_000)) == PAYLOAD_BYTES
    except BlockingIOError:
        return count


def on(host, *command) -> subprocess.CompletedProcess[Any]:
    return lab("exec", "--name", NAME, host, "--", *command)


def profile_file(folder, text) -> str:
    path = Path(folder, "own.toml")
    path.write_text(text)
    return str(path)


def frames_through(sender_host, receiver_host, family, address) -> Any:
    sender = socket_on(sender_host, family, socket.SOCK_DGRAM)
    receiver = socket_on(receiver_host, family, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    receiver.bind((address, PORT))
    receiver.setblocking(False)
    count = 0
    with sender, receiver:
        for sent in range(FRAMES):
            sender.sendto(bytes(PAYLOAD_BYTES), (address, PORT))
            # 30 KB: far below what the queue holds, so that only the loss program drops
            if sent % 100 == 99:
                time.sleep(0.001)
                count += drain(receiver)
        time.sleep(0.3)
        return count + drain(receiver)


def main(namespace: dict[str, Any]) -> int:
    """main runs the test functions of a module: FILE LAB_PROGRAM."""
    if os.geteuid() != 0:
        print("skipped: network namespaces need root")
        return SKIP
    failed = 0
    tests = [(name, value) for name, value in namespace.items() if name.startswith("test_")]
    try:
        for name, test in tests:
            title, started = name[5:].replace("_", " "), time.monotonic()
            try:
                test()
                print(f"ok    {title} ({time.monotonic() - started:.1f} s)", flush=True)
            except Exception as error:  # each test stands alone
                failed += 1
                print(f"FAIL  {title}: {type(error).__name__}: {error}", flush=True)
                lab("down", "--name", NAME)
    finally:
        lab("down", "--name", NAME)
    return 1 if failed else 0
