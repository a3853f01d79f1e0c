#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Whole transfers with the program itself, between two hosts of a lab: every port, pair and failure that a user meets.

Usage: transfer_test.py ONEHOP [CASE...]. Needs root; exits 77 with the reason where it cannot run. Each case gets an empty
folder on both sides; nothing outlives the test, also when it fails.
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ONEHOP = os.path.abspath(sys.argv[1])
LAB = f"tt{os.getpid()}"
CODE = "correct-horse-battery-staple"
A4, B4 = "10.111.0.1", "10.111.0.2"
B6 = "fd00:111::2"
LIMIT_S = 90


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def on(host, *command):
    return [ONEHOP, "lab", "exec", host, "--name", LAB, "--", *command]


class Ends:
    """Ends runs one receiver and one sender and keeps what they said."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.source = self.folder / "source"
        self.target = self.folder / "target"
        self.source.mkdir()
        self.target.mkdir()
        self.recv = None

    def file(self, name, size, seed=1):
        path = self.source / name
        block = hashlib.shake_256(f"{name}{seed}".encode()).digest(1 << 20)
        with open(path, "wb") as out:
            for at in range(0, size, len(block)):
                out.write(block[: size - at])
        return path

    def start_recv(self, *options, code=CODE, target=None, listen=B4):
        command = on("b", ONEHOP, "recv", "--once", "--json", "--listen", listen, "--dir", str(target or self.target),
                     "--key-interval", "4096", *options)
        self.recv = subprocess.Popen(command, env={**os.environ, "ONEHOP_CODE": code}, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
        line = self.recv.stdout.readline()
        check(line and json.loads(line)["type"] == "start", f"recv did not start: {line} {self.recv.stderr.read() if not line else ''}")

    def start_send(self, *paths, options=(), code=CODE, to=B4):
        command = on("a", ONEHOP, "send", *map(str, paths), "--to", to, "--json", "--key-interval", "4096", *options)
        return subprocess.Popen(command, env={**os.environ, "ONEHOP_CODE": code}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def finish(self, sender, code_send=0, code_recv=0):
        out, err = sender.communicate(timeout=LIMIT_S)
        recv_out, recv_err = self.recv.communicate(timeout=LIMIT_S)
        check(sender.returncode == code_send, f"send ended with {sender.returncode}, not {code_send}: {err}")
        check(self.recv.returncode == code_recv, f"recv ended with {self.recv.returncode}, not {code_recv}: {recv_err}")
        return last(out), last(recv_out), err, recv_err

    def send(self, *paths, options=(), recv=(), to=B4, listen=B4, **codes):
        self.start_recv(*recv, listen=listen)
        return self.finish(self.start_send(*paths, options=options, to=to), **codes)

    def same(self, path, target=None):
        arrived = (target or self.target) / path.name
        check(arrived.exists(), f"{path.name} did not arrive")
        check(arrived.read_bytes() == path.read_bytes(), f"{path.name} differs")


def last(text):
    events = [json.loads(line) for line in text.splitlines()]
    return next((event for event in reversed(events) if event["type"] == "end"), {})


def leftovers(folder):
    return [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]


def case_pairs(ends):
    """all pairs of ports move the same file, IPv4 and IPv6; AEAD is the only copy; keys change each 4096 frames"""
    path = ends.file("pair.bin", 12_000_000)
    for sender, receiver in (("udp", "udp"), ("afxdp", "afxdp"), ("udp", "afxdp"), ("afxdp", "udp")):
        for address in (B4, B6):
            end, recv_end, _, _ = ends.send(path, options=("--io", sender), recv=("--io", receiver),
                                            to=address if address == B4 else f"[{address}]",
                                            listen=address if address == B4 else f"[{address}]")
            label = f"{sender} to {receiver} over {address}"
            ends.same(path)
            (ends.target / path.name).unlink()
            check(leftovers(ends.target) == [], f"{label}: left {leftovers(ends.target)}")
            for event in (end, recv_end):
                check(event["hash_ok"] and event["bytes_total"] == 12_000_000, f"{label}: {event}")
                check(event["memcpy_bytes_total"] == 0, f"{label}: something else than the AEAD moved file bytes")
            check(end["io_used"] == sender and recv_end["io_used"] == receiver, f"{label}: {end['io_used']}")
            check(end["key_updates_total"] >= 2, f"{label}: {end['key_updates_total']} key updates")


def case_several_files_and_kinds(ends):
    """several files of awkward sizes, both kinds of file I/O, both digests (C4)"""
    for kind in ("threads", "io_uring"):
        for digest in ("xxh3", "sha256"):
            paths = [ends.file(f"{kind}-{digest}-{size}", size) for size in (0, 1, 262_144, 262_145, 3_000_001)]
            end, recv_end, _, _ = ends.send(*paths, options=("--file-io", kind, "--digest", digest),
                                            recv=("--file-io", kind))
            check(end["file_io"] == kind and recv_end["file_io"] == kind, f"{end['file_io']} {recv_end['file_io']}")
            check(end["files_total"] == 5, str(end["files_total"]))
            for path in paths:
                ends.same(path)


def case_wrong_code_ends_with_4(ends):
    """a wrong code is exit 4 at the sender; the third ends recv with 4 (K3)"""
    path = ends.file("secret.bin", 1000)
    ends.start_recv()
    for _ in range(3):
        sender = ends.start_send(path, code="quite-another-code-of-20")
        sender.communicate(timeout=LIMIT_S)
        check(sender.returncode == 4, f"send ended with {sender.returncode}")
    check(ends.recv.wait(timeout=LIMIT_S) == 4, f"recv ended with {ends.recv.returncode}")
    check(not list(ends.target.iterdir()), "something was written")


def case_nobody_listens_ends_with_3(ends):
    """no receiver is exit 3 after --wait"""
    sender = ends.start_send(ends.file("x", 10), options=("--wait", "0.3"))
    _, err = sender.communicate(timeout=LIMIT_S)
    check(sender.returncode == 3 and B4 in err, f"{sender.returncode}: {err}")


def case_usage_ends_with_2(ends):
    """wrong arguments and short codes are exit 2"""
    path = ends.file("x", 10)
    for options in (("--law", "warp"), ("--key-interval", "300"), ("--core", "999"), ("--io", "carrier-pigeon")):
        sender = ends.start_send(path, options=options)
        sender.communicate(timeout=LIMIT_S)
        check(sender.returncode == 2, f"{options}: {sender.returncode}")
    sender = ends.start_send(path, code="short")
    sender.communicate(timeout=LIMIT_S)
    check(sender.returncode == 2, f"short code: {sender.returncode}")


def case_bad_sources_end_with_8(ends):
    """a missing file, a folder, a fifo and a symbolic link are exit 8 before anyone is asked (C4)"""
    os.mkfifo(ends.source / "fifo")
    (ends.source / "link").symlink_to("/etc/passwd")
    for name in ("missing", ".", "fifo", "link"):
        sender = ends.start_send(ends.source / name, options=("--wait", "0"))
        sender.communicate(timeout=LIMIT_S)
        check(sender.returncode == 8, f"{name}: {sender.returncode}")


def case_existing_files_are_kept(ends):
    """an existing name is refused with 5 and 8, and kept; rename and overwrite are on request (P5)"""
    path = ends.file("twice.bin", 400_000)
    (ends.target / "twice.bin").write_text("mine")
    ends.send(path, code_send=5, code_recv=8)
    check((ends.target / "twice.bin").read_text() == "mine", "the user's file was touched")
    ends.send(path, recv=("--on-exist", "rename"))
    check((ends.target / "twice.bin").read_text() == "mine" and len(list(ends.target.iterdir())) == 2, "rename")
    ends.send(path, recv=("--on-exist", "overwrite"))
    ends.same(path)


def case_interrupt_and_resume(ends):
    """SIGINT at the sender is exit 7 on both ends, keeps what arrived, and resume goes on from there (C2)"""
    path = ends.file("resume.bin", 120_000_000)
    ends.start_recv()
    sender = ends.start_send(path)
    time.sleep(1.2)
    subprocess.run(["pkill", "-INT", "-P", str(sender.pid)], check=False)
    sender.send_signal(signal.SIGINT)
    ends.finish(sender, code_send=7, code_recv=7)
    check(not (ends.target / "resume.bin").exists(), "a name appeared that is not verified")
    check(leftovers(ends.target) != [], "nothing was kept")
    end, _, _, _ = ends.send(path, recv=("--on-exist", "resume"))
    ends.same(path)
    check(end["retransmitted_bytes_total"] < 1_000_000, str(end["retransmitted_bytes_total"]))
    check(end["frames_total"] < 120_000_000 / 1425 * 1.1, "everything was sent again")


def case_killed_sender(ends):
    """a sender that is killed leaves a receiver that ends with 7 and keeps what arrived (C1)"""
    path = ends.file("killed.bin", 200_000_000)
    ends.start_recv()
    sender = ends.start_send(path, options=("--io", "afxdp"))
    time.sleep(1.2)
    sender.kill()
    sender.wait()
    ends.recv.communicate(timeout=LIMIT_S)
    check(ends.recv.returncode == 7, f"recv ended with {ends.recv.returncode}")
    check(not (ends.target / "killed.bin").exists(), "a name appeared that is not verified")
    check("prog/xdp" not in subprocess.run(on("a", "ip", "-d", "link"), capture_output=True, text=True).stdout,
          "an XDP program is left")
    ends.send(path, recv=("--on-exist", "resume"), options=("--io", "afxdp"))
    ends.same(path)


def case_small_file_system(ends):
    """a target without room is refused before a byte moves; the sender hears 5 (Z2)"""
    mount = ends.folder / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(mount)], check=True)
    try:
        ends.start_recv(target=mount)
        ends.finish(ends.start_send(ends.file("large.bin", 20_000_000)), code_send=5, code_recv=8)
        check(not list(mount.iterdir()), "something was written")
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def case_unwritable_folder(ends):
    """a folder that does not exist is refused before the peer is told accepted (Z4)"""
    ends.start_recv(target=ends.folder / "nowhere")
    ends.finish(ends.start_send(ends.file("x", 10)), code_send=5, code_recv=8)


def case_source_changes(ends):
    """a source that changes while it is sent never gets its name at the target (C3)"""
    path = ends.file("changing.bin", 150_000_000)
    ends.start_recv()
    sender = ends.start_send(path)
    time.sleep(1.2)
    with open(path, "r+b") as out:
        out.seek(140_000_000)
        out.write(b"changed")
    ends.finish(sender, code_send=8, code_recv=5)
    check(not (ends.target / "changing.bin").exists(), "a changed source got its name")


def case_files_belong_to_the_sudo_user(ends):
    """started by sudo, the files belong to the user"""
    path = ends.file("owned.bin", 500_000)
    os.chown(ends.target, 65534, 65534)
    os.chmod(ends.folder, 0o755)
    os.environ.update(SUDO_UID="65534", SUDO_GID="65534")
    try:
        ends.send(path, options=("--io", "afxdp"), recv=("--io", "afxdp"))
    finally:
        del os.environ["SUDO_UID"], os.environ["SUDO_GID"]
    check((ends.target / "owned.bin").stat().st_uid == 65534, "the file is root's")


def main():
    if os.geteuid() != 0:
        print("skipped: network namespaces need root")
        return 77
    cases = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    wanted = sys.argv[2:] or list(cases)
    up = subprocess.run([ONEHOP, "lab", "up", "--name", LAB, "--profile", "steady-600"], capture_output=True, text=True)
    if up.returncode != 0:
        print(f"the lab does not come up: {up.stderr}")
        return 1
    failed = 0
    try:
        for name in wanted:
            folder = tempfile.mkdtemp(prefix="onehop-transfer-", dir="/dev/shm")
            ends = Ends(folder)
            began = time.monotonic()
            try:
                cases[name](ends)
                print(f"ok    {name} ({time.monotonic() - began:.1f} s): {cases[name].__doc__}", flush=True)
            except (Failure, subprocess.TimeoutExpired, OSError) as error:
                failed += 1
                print(f"FAIL  {name}: {error}", flush=True)
            finally:
                if ends.recv and ends.recv.poll() is None:
                    ends.recv.kill()
                    ends.recv.wait()
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        subprocess.run([ONEHOP, "lab", "down", "--name", LAB], capture_output=True)
    print(f"{len(wanted) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
