#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A flood of garbage at the data port and at the control port while a transfer runs (root).

Goal:   N7: who has no key stops nothing, learns nothing and costs little: no answer leaves, memory
        does not follow the flood, and the file arrives.
Method: namespaces. At the data port: datagrams by a packet socket beside the sender, with the
        sender's own address and port, each a full frame of random bytes. Half of them have
        no header of ours and go no further than the socket's filter; the others have one of the
        session, with a number that was not seen, and take the whole way to the key. At the control
        port: connections that send what is no TLS, and connections that send nothing.
Bounds: memory within 8 MiB of a transfer without a flood; the receiver's CPU time for a frame of
        garbage at most 10 us, of which the kernel's way of a datagram through a veth is the most.
"""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from program import ADDRESS_B, PATIENCE, World, check, main

MB = 1 << 20
MEMORY_BYTES_MAX = 8 * MB
FRAME_NS_MAX = 10_000
FRAMES = 200_000
FRAMES_TRIED_MIN = 1000  # what the sockets' buffers lose is no work of ours
CONNECTIONS_MIN = 20  # more than there are places for those that have not proven the code
RATE = "80Mbit"

# Listens for one frame of the sender's, takes its headers, and sends garbage under them.
FLOOD = r"""
import os, socket, struct, sys
frames = int(sys.argv[1])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("mv0", 0))
s.settimeout(30)
while True:
    f = s.recv(65536)
    if f[12:14] == b"\x08\x00" and f[23] == 17 and f[36:38] == struct.pack("!H", 7411) \
            and len(f) > 1000:
        break
s.close()
f = f[:1442]  # one frame of the batch that is seen before it is cut (UDP_SEGMENT)
f = f[:38] + struct.pack("!H", len(f) - 34) + f[40:]
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
bodies = []
for i in range(64):
    number = struct.unpack("!Q", f[50:58])[0] + 100_000 + i
    header = f[42:50] + struct.pack("!QI", number, 0) + f[62:70]
    body = f[14:42] + (header if i % 2 else os.urandom(28)) + os.urandom(len(f) - 70)
    bodies.append(body[:26] + b"\0\0" + body[28:])
print("seen", flush=True)
sent = 0
for i in range(frames):
    try:
        out.sendto(bodies[i % 64], (sys.argv[2], 0))
        sent += 1
    except OSError:
        pass
print(sent, flush=True)
"""

# Connections with garbage, one after the other, beside some that say nothing.
KNOCK = r"""
import os, socket, sys, time
idle = []
until = time.monotonic() + float(sys.argv[1])
count = 0
print("begun", flush=True)
while time.monotonic() < until:
    try:
        s = socket.create_connection((sys.argv[2], 7411), 5)
        s.settimeout(0.2)
        if count % 3 == 0:
            idle.append(s)
            idle = idle[-64:]
        else:
            s.sendall(os.urandom(20000) if count % 3 == 1 else
                      b"\x16\x03\x01\x40\x00" + os.urandom(16384))
            s.close()
    except OSError:
        pass
    count += 1
print(count, flush=True)
"""


def memory_bytes(pid) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmHWM")


def transfer(world, text=None, *arguments, host="a") -> tuple[Any, Any, int, int]:
    """transfer sends 20 MB at a known rate, beside a program that disturbs it. It returns the ends,
    what the program counted, and the receiver's memory."""
    path = world.file(20 * MB)
    receiver = world.receive("udp")
    disturber = None
    if text is not None:
        disturber = subprocess.Popen(world.on(host, sys.executable, "-c", text, *arguments),
                                     stdout=subprocess.PIPE, text=True)
    sender = world.send(path, "udp", "--max-rate", RATE)
    count, peak = 0, 0
    while receiver.process.poll() is None:
        try:
            peak = max(peak, memory_bytes(receiver.process.pid))
        except (OSError, AssertionError):
            break
        time.sleep(0.02)
    check(sender.code() == 0, f"send: {sender.text()}")
    check(receiver.code() == 0, f"recv: {receiver.text()}")
    if disturber is not None:
        lines = disturber.communicate(timeout=PATIENCE)[0].split()
        check(len(lines) == 2, f"it disturbs: {lines}")
        count = int(lines[1])
    world.check_same(path)
    (world.target / path.name).unlink()
    return sender.end(), receiver.end(), count, peak


def test_N7_a_flood_at_the_data_port_with_the_senders_own_address(onehop) -> None:
    with World(onehop, "unshaped") as world:
        _, quiet, _, peak_quiet = transfer(world)
        sent, flooded, frames, peak = transfer(world, FLOOD, str(FRAMES), ADDRESS_B)
        check(frames > FRAMES / 2, f"a flood it is: {frames} frames")
        check(sent["hash_ok"] is True and flooded["hash_ok"] is True, "the file is whole")
        tried = flooded["auth_failures_total"]
        check(tried > FRAMES_TRIED_MIN, f"{tried} frames went as far as the key")
        cost_ns = (flooded["cpu_seconds"] - quiet["cpu_seconds"]) / tried * 1e9
        print(f"      {frames} frames, {tried} tried by the key, "
              f"{cost_ns:.0f} ns of the receiver's CPU each, memory "
              f"{(peak - peak_quiet) / MB:+.1f} MiB")
        check(cost_ns < FRAME_NS_MAX, f"{cost_ns:.0f} ns for a frame of garbage")
        check(peak - peak_quiet < MEMORY_BYTES_MAX,
              f"memory: {peak_quiet} bytes without, {peak} with the flood")


def test_N7_a_flood_of_connections_while_a_transfer_runs(onehop) -> None:
    with World(onehop, "unshaped") as world:
        _, _, _, peak_quiet = transfer(world)
        sent, received, connections, peak = transfer(world, KNOCK, "1.5", ADDRESS_B)
        check(connections > CONNECTIONS_MIN, f"a flood it is: {connections} connections")
        check(sent["hash_ok"] is True and received["hash_ok"] is True, "the file is whole")
        print(f"      {connections} connections, memory {(peak - peak_quiet) / MB:+.1f} MiB")
        check(peak - peak_quiet < MEMORY_BYTES_MAX,
              f"memory: {peak_quiet} bytes without, {peak} with the flood")


def test_N6_N7_garbage_from_another_address_is_answered_by_nothing(onehop) -> None:
    """Also while a session is there: a packet socket beside the flood sees no answer."""
    text = r"""
import os, socket, struct, sys
back = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
back.bind(("mv0", 0))
back.settimeout(0.3)
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.bind(("10.111.0.77", 0))
print("begun", flush=True)
for _ in range(20000):
    out.sendto(os.urandom(1400), (sys.argv[1], 7411))
seen = 0
try:
    while True:
        f = back.recv(65536)
        if f[12:14] == b"\x08\x00" and f[23] == 17 and f[30:34] == bytes([10, 111, 0, 77]):
            seen += 1
except socket.timeout:
    pass
print(seen, flush=True)
"""
    with World(onehop, "unshaped") as world:
        world.run_on("a", "ip", "address", "add", "10.111.0.77/24", "dev", "mv0")
        _, _, seen, _ = transfer(world, text, ADDRESS_B)
        check(seen == 0, f"{seen} datagrams came back")


if __name__ == "__main__":
    sys.exit(main(globals()))
