#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The lab itself: lab_test.py LAB_PROGRAM. Needs root; exits 77 with the reason otherwise.

Goal:   a lab is what its profile says, refuses a second one, and leaves nothing behind however it ends.
Method: run the program as a user does, count what passes through, look at the namespaces afterwards.
Bounds: of 10,000 frames at 10 % loss the count has a standard deviation of 30; 8 to 12 % is more than 6 of them.
        Rates are judged by what the shaper let through in a time that is measured, with 5 % for its burst and clock.
"""

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIP = 77
CLONE_NEWNET = 0x40000000
SO_RCVBUFFORCE = 33
UDP_SEGMENT = 103
ETH_P_ALL = 3
NAME = f"labtest{os.getpid()}"
PORT = 7000
FRAMES = 10_000
LIBC = ctypes.CDLL(None, use_errno=True)


def lab(*arguments, **options):
    return subprocess.run([PROGRAM, "lab", *arguments], capture_output=True, text=True, timeout=60, **options)


def run(profile, *command, on="host"):
    return lab("run", "--name", NAME, "--profile", profile, "--on", on, "--", *command)


def is_gone():
    namespaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    mounts = Path("/proc/mounts").read_text()
    return NAME not in namespaces and NAME not in mounts and not Path(f"/dev/shm/{NAME}.disk").exists() and not own_files()


def own_files():
    return list(Path("/run/onehop-lab").glob(f"{NAME}.*"))


def check(condition, claim):
    if not condition:
        raise AssertionError(claim)


class Up:
    """A lab that is up for the time of a with block."""

    def __init__(self, profile):
        self._profile = profile

    def __enter__(self):
        done = lab("up", "--name", NAME, "--profile", self._profile)
        check(done.returncode == 0, done.stderr)

    def __exit__(self, *_):
        done = lab("down", "--name", NAME)
        check(done.returncode == 0, done.stderr)
        check(is_gone(), "lab down leaves nothing")


def socket_on(host, *arguments):
    """socket_on opens a socket in a host's namespace; it stays there when this process goes home."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{NAME}-{host}", os.O_RDONLY)
    try:
        check(LIBC.setns(there, CLONE_NEWNET) == 0, "setns")
        return socket.socket(*arguments)
    finally:
        check(LIBC.setns(home, CLONE_NEWNET) == 0, "setns back")
        os.close(home)
        os.close(there)


def drain(receiver):
    """drain counts what waits in a socket; frames of other programs (neighbour discovery) have another size."""
    count = 0
    try:
        while True:
            count += len(receiver.recv(70_000)) == PAYLOAD_BYTES
    except BlockingIOError:
        return count


PAYLOAD_BYTES = 300


def frames_through(sender_host, receiver_host, family, address):
    sender = socket_on(sender_host, family, socket.SOCK_DGRAM)
    receiver = socket_on(receiver_host, family, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    receiver.bind((address, PORT))
    receiver.setblocking(False)
    count = 0
    with sender, receiver:
        for sent in range(FRAMES):
            sender.sendto(bytes(PAYLOAD_BYTES), (address, PORT))
            if sent % 100 == 99:  # 30 KB: far below what the queue holds, so that only the loss program drops
                time.sleep(0.001)
                count += drain(receiver)
        time.sleep(0.3)
        return count + drain(receiver)


def test_loss_of_ten_percent_drops_8_to_12_percent_of_the_frames():
    with Up("loss-10"):
        for sender, receiver, family, address in (("a", "b", socket.AF_INET, "10.111.0.2"), ("a", "b", socket.AF_INET6, "fd00:111::2"),
                                                  ("b", "a", socket.AF_INET, "10.111.0.1")):
            passed = frames_through(sender, receiver, family, address)
            check(0.88 * FRAMES <= passed <= 0.92 * FRAMES, f"{sender} to {address}: {passed} of {FRAMES} frames passed")


def test_a_lab_without_loss_loses_nothing():
    with Up("steady-600"):
        passed = frames_through("a", "b", socket.AF_INET, "10.111.0.2")
        check(passed == FRAMES, f"{passed} of {FRAMES} frames passed")


def test_the_middle_is_a_piece_of_wire():
    """Whoever sent it, to whomever: a frame goes through as it came. A bridge that learned would, after b's own address came
    from a's side, send what is for b back to a."""
    with Up("steady-600"):
        address_b = bytes.fromhex(on("b", "cat", "/sys/class/net/vb/address").stdout.strip().replace(":", ""))
        sender, tap = (socket_on(host, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) for host in ("a", "b"))
        sender.bind(("va", ETH_P_ALL))
        tap.bind(("vb", ETH_P_ALL))
        tap.settimeout(5)
        stranger, nobody, group = bytes.fromhex("020000000001"), bytes.fromhex("020000000002"), bytes.fromhex("333300000123")
        with tap, sender:
            for target, source in ((nobody, stranger), (group, stranger), (b"\xff" * 6, stranger), (nobody, address_b), (address_b, stranger)):
                frame = target + source + b"\x88\xb6" + os.urandom(1486)
                sender.send(frame)
                while (got := tap.recv(70_000))[12:14] != frame[12:14]:
                    pass
                check(got == frame, f"to {target.hex()} from {source.hex()}: the frame came as it was sent")
        check(on("a", "ping", "-c", "1", "-W", "2", "10.111.0.2").returncode == 0, "the hosts still reach each other")


def test_frames_on_the_wire_have_mtu_size_and_whole_checksums():
    """What a sender hands down as one 10-KB super-packet must reach b as frames, for an AF_XDP socket sees them as they are."""
    with Up("steady-600"):
        tap = socket_on("b", socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        tap.bind(("vb", ETH_P_ALL))
        tap.settimeout(2)
        sender = socket_on("a", socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1400)
        with tap, sender:
            sender.sendto(b"\x5a" * 9800, ("10.111.0.2", PORT))
            frames = []
            while len(frames) < 7:
                frame = tap.recv(70_000)
                if frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_UDP and frame[26:30] == bytes((10, 111, 0, 1)):
                    frames.append(frame)
        check(all(len(frame) == 14 + 20 + 8 + 1400 for frame in frames), f"sizes {[len(frame) for frame in frames]}")
        for frame in frames:
            pseudo = frame[26:34] + bytes((0, socket.IPPROTO_UDP)) + (len(frame) - 34).to_bytes(2, "big")
            check(internet_checksum(pseudo + frame[34:]) == 0, "the UDP checksum is whole")


def internet_checksum(data):
    total = sum(int.from_bytes(data[i : i + 2].ljust(2, b"\0"), "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def test_b_learns_the_address_of_the_macvlan_and_of_nothing_else():
    """An answer by va, the device below, would lead b's frames past an XDP program on mv0."""
    with Up("steady-600"):
        for _ in range(5):
            for command in (("a", "ip", "neigh", "flush", "all"), ("b", "ip", "neigh", "flush", "all"), ("b", "ping", "-c", "1", "-W", "2", "10.111.0.1")):
                check(on(*command).returncode == 0, command)
            time.sleep(0.05)
            macvlan = on("a", "cat", "/sys/class/net/mv0/address").stdout.strip()
            check(macvlan in on("b", "ip", "neigh", "show", "10.111.0.1").stdout, "b knows mv0's address")
            check("dev va" not in on("a", "ip", "neigh").stdout, "va takes no part")


def on(host, *command):
    return lab("exec", "--name", NAME, host, "--", *command)


FLOOD = r"""
import os, socket, subprocess, sys, time
def counter():
    return int(subprocess.run(["ip", "netns", "exec", sys.argv[1] + "-b", "cat", "/sys/class/net/vb/statistics/rx_bytes"],
                              capture_output=True, check=True).stdout)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
sender.setsockopt(socket.IPPROTO_UDP, 103, 1400)
sender.connect((os.environ["ONEHOP_LAB_B4"], 7000))
def flood(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            sender.send(bytes(44 * 1400))
        except OSError:
            pass
flood(0.3)  # the bucket is full at first
begin_at, begin = time.monotonic(), counter()
flood(float(sys.argv[2]))
end_at, end = time.monotonic(), counter()
print((end - begin) * 8 / (end_at - begin_at) / 1e6)
"""


def flooded_mbit(profile, seconds):
    done = run(profile, sys.executable, "-c", FLOOD, NAME, str(seconds), on="a")
    check(done.returncode == 0, done.stderr)
    check(is_gone(), "lab run leaves nothing")
    return float(done.stdout)


def profile_file(folder, text):
    path = Path(folder, "own.toml")
    path.write_text(text)
    return str(path)


def test_the_shaper_carries_its_rate():
    with tempfile.TemporaryDirectory() as folder:
        rate = flooded_mbit(profile_file(folder, 'rate = "50Mbit"\nqueue = "200KB"\nburst = "20KB"\n'), 2)
    check(0.95 * 50 <= rate <= 1.05 * 50, f"a shaper of 50 Mbit/s carried {rate:.1f}")


def test_a_trace_carries_the_mean_of_its_rates():
    """100 changes in 2 s turned a TBF of 50 Mbit/s into 137: the trace must not give a bucket away at each change."""
    with tempfile.TemporaryDirectory() as folder:
        text = 'trace_period = 0.1\nqueue = "200KB"\nburst = "64KB"\n[[trace]]\nat = 0\nrate = "20Mbit"\n[[trace]]\nat = 0.05\nrate = "60Mbit"\n'
        rate = flooded_mbit(profile_file(folder, text), 4)
    check(0.9 * 40 <= rate <= 1.1 * 40, f"a trace of 40 Mbit/s on average carried {rate:.1f}")


def test_a_blackout_ends_when_the_trace_says_so():
    """An HTB class stays silent for 1.4 s after 200 ms at 8 kbit/s; with it, this trace carries a quarter of what it should."""
    with tempfile.TemporaryDirectory() as folder:
        text = 'trace_period = 1\nqueue = "200KB"\nburst = "16KB"\n[[trace]]\nat = 0\nrate = "50Mbit"\n[[trace]]\nat = 0.2\nrate = "8kbit"\n[[trace]]\nat = 0.4\nrate = "50Mbit"\n'
        rate = flooded_mbit(profile_file(folder, text), 4)
    check(0.9 * 40 <= rate <= 1.1 * 40, f"a trace of 40 Mbit/s on average carried {rate:.1f}")


def test_the_rate_log_tells_each_rate_from_when_it_held():
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "rate.csv"
        logged = ("run", "--name", NAME, "--on", "host", "--rate-log", str(log))
        before = time.monotonic_ns()
        done = lab(*logged, "--profile", "trace-150-900", "--", "sleep", "1.3")
        check(done.returncode == 0, done.stderr)
        lines = log.read_text().splitlines()
        check(lines[:2] == ["# onehop lab run: profile trace-150-900", "t_ns,rate_bytes_per_s"], f"its head: {lines[:2]}")
        rows = [[int(cell) for cell in line.split(",")] for line in lines[2:]]
        check([rate * 8 // 1_000_000 for _, rate in rows] == [150, 300, 600], f"each rate: {rows}")
        check(before < rows[0][0] < rows[1][0] < rows[2][0] < time.monotonic_ns(), f"on the monotonic clock: {rows}")
        done = lab(*logged, "--profile", "steady-600", "--", "true")
        check(done.returncode == 8 and "File exists" in done.stderr and "another name" in done.stderr, f"nothing is replaced: {done.stderr}")
        for profile, words in (("unshaped", "no rate"), ("wifi-ac80", "--link-model")):
            done = lab("run", "--name", NAME, "--profile", profile, "--rate-log", f"{folder}/{profile}", "--", "true")
            check(done.returncode == 2 and words in done.stderr and not Path(f"{folder}/{profile}").exists(), f"{profile}: {done.returncode} {done.stderr}")
    check(is_gone(), "nothing is left")


def test_run_exits_as_its_command_did():
    check(run("steady-600", "sh", "-c", "exit 42").returncode == 42, "the command's code")
    check(run("steady-600", "sh", "-c", "kill -9 $$").returncode == 128 + 9, "128 + the command's signal")
    check(run("steady-600", "/nonexistent").returncode == 127, "127 where there is no such command")
    check(is_gone(), "lab run leaves nothing")


def test_run_leaves_nothing_when_it_is_interrupted():
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen([PROGRAM, "lab", "run", "--name", NAME, "--", "sh", "-c", "sleep 60 & echo ready; exec sleep 60"],
                              stdout=subprocess.PIPE, text=True) as process:
            check(process.stdout.readline() == "ready\n", "the command runs")
            process.send_signal(number)
            check(process.wait(30) == 128 + number, f"the exit code says {number.name}")
        check(is_gone(), f"nothing is left after {number.name}")


def test_a_second_lab_of_the_same_name_is_refused():
    with subprocess.Popen([PROGRAM, "lab", "run", "--name", NAME, "--", "sh", "-c", "echo ready; read x"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        check(process.stdout.readline() == "ready\n", "the command runs")
        for refused in (run("steady-600", "true"), lab("up", "--name", NAME), lab("down", "--name", NAME)):
            check(refused.returncode == 5 and "another onehop lab" in refused.stderr, refused.stderr)
        process.stdin.close()
        process.wait(30)
    with Up("steady-600"):
        refused = lab("up", "--name", NAME)
        check(refused.returncode == 5 and "lab down" in refused.stderr, refused.stderr)


def test_labs_that_contend_for_a_name_are_one_at_a_time_and_leave_no_lock():
    """Each removes the lock file while others open it: a lock of a removed file must not count."""
    mark = Path(f"/dev/shm/{NAME}.mark")
    body = f"mkdir {mark} || exit 42; sleep 0.05; rmdir {mark}"
    contenders = []
    for _ in range(12):
        contenders.append(subprocess.Popen([PROGRAM, "lab", "run", "--name", NAME, "--profile", "steady-600", "--on", "host", "--", "sh", "-c", body],
                                           stderr=subprocess.PIPE, text=True))
        time.sleep(0.1)
    codes = [contender.wait(60) for contender in contenders]
    said = [contender.stderr.read() for contender in contenders]
    check(set(codes) <= {0, 5} and 0 in codes, f"each ran alone or was refused: {codes} {said}")
    check(is_gone(), f"nothing is left, no lock either: {own_files()}")


def test_locks_that_nobody_holds_go_with_the_next_lab():
    stale, held = (Path(f"/run/onehop-lab/{NAME}-{word}.lock") for word in ("stale", "held"))
    stale.touch()
    with open(held, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        check(run("steady-600", "true").returncode == 0, "a lab runs")
        check(not stale.exists() and held.exists(), "what nobody holds is gone, what somebody holds is there")
    with Up("steady-600"):
        check(not held.exists(), "and goes when it is let go")
        check(run_other("true").returncode == 0 and Path(f"/run/onehop-lab/{NAME}.lock").exists(), "a lab that is up keeps its own")


def run_other(*command):
    return lab("run", "--name", f"{NAME}-other", "--profile", "steady-600", "--on", "host", "--", *command)


def test_what_a_killed_lab_left_is_removed():
    process = subprocess.Popen([PROGRAM, "lab", "run", "--name", NAME, "--profile", "slow-disk", "--", "sh", "-c", "echo ready; exec sleep 60"],
                               stdout=subprocess.PIPE, text=True)
    check(process.stdout.readline() == "ready\n", "the command runs")
    process.kill()
    process.wait()
    process.stdout.close()
    check(not is_gone(), "a killed lab cannot clean up")
    check(lab("down", "--name", NAME).returncode == 0 and is_gone(), "lab down removes what a killed lab left")
    check(lab("down", "--name", NAME).returncode == 0, "no lab is no error for lab down")


def test_a_slow_disk_takes_its_rate_and_goes_with_the_lab():
    with tempfile.TemporaryDirectory() as folder:
        own = profile_file(folder, '[disk]\nrate = "80Mbit"\nerrors = ["rename=EIO"]\n')
        script = "import os,sys,time\nt=time.monotonic()\nf=open(os.environ['ONEHOP_LAB_DISK']+'/x','wb',0)\n" \
                 "for i in range(20): f.write(bytes(1<<20))\nos.fsync(f.fileno())\nprint(time.monotonic()-t)\n" \
                 "try: os.rename(f.name, f.name+'y')\nexcept OSError as e: print(e.errno)\n"
        done = run(own, sys.executable, "-c", script, on="b")
    check(done.returncode == 0, done.stderr)
    seconds, error = done.stdout.split()
    check(float(seconds) >= 0.9 * (20 << 20) * 8 / 80e6, f"20 MiB at 80 Mbit/s took {seconds} s")
    check(int(error) == 5, "the rename fails with EIO")
    check(is_gone(), "the disk is gone")


def test_wrong_profiles_are_refused_with_the_key():
    for text, word in (('rat = "1Mbit"', "rat"), ('rate = "fast"', "fast"), ('mtu = 100', "mtu"), ('direct = true\nloss_permille = 1', "direct"),
                       ('[[trace]]\nat = 1\nrate = "1Mbit"', "trace"), ("rate = ", "line 1"), ('[disk]\nspeed = 1', "speed")):
        with tempfile.TemporaryDirectory() as folder:
            done = run(profile_file(folder, text), "true")
            check(done.returncode == 2 and word in done.stderr, f"{text!r}: {done.returncode} {done.stderr}")
    refused = lab("up", "--name", NAME, "--profile", "blackout")
    check(refused.returncode == 2 and "lab run" in refused.stderr, "a trace needs lab run")
    check(is_gone(), "nothing was built")


def test_a_direct_lab_has_no_middle():
    with Up("unshaped"):
        check(not Path(f"/run/netns/{NAME}-m").exists(), "no middle namespace")
        check(frames_through("a", "b", socket.AF_INET, "10.111.0.2") == FRAMES, "frames pass")


def main():
    failed = 0
    tests = [(name, value) for name, value in globals().items() if name.startswith("test_")]
    for name, test in tests:
        started = time.monotonic()
        try:
            test()
            print(f"ok    {name[5:].replace('_', ' ')} ({time.monotonic() - started:.1f} s)", flush=True)
        except Exception as error:  # each test stands alone; what it left is removed before the next
            failed += 1
            print(f"FAIL  {name[5:].replace('_', ' ')}: {type(error).__name__}: {error}", flush=True)
            lab("down", "--name", NAME)
    return 1 if failed else 0


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: network namespaces need root")
        sys.exit(SKIP)
    PROGRAM = sys.argv[1]
    try:
        sys.exit(main())
    finally:
        lab("down", "--name", NAME)
