#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The other end by another hand: other_end_test.py ONEHOP [WORD].

Goal:   whoever follows the draft and the two RFCs gets into a receiver with its words, and nobody
        with other words; and as a receiver is let in by a sender.
Method: CPace in Python (cpace.py), then TLS by OpenSSL's command with the key as an external PSK,
        against the real program on loopback.
Bounds: exact.
"""

import os
import secrets
import socket
import subprocess
import sys
import threading
from typing import Any

import cpace
from loopback import Loopback, check
from program import main

TAG = b"onehop1\n"
CHANNEL = cpace.lv(b"sender", b"receiver")
IDENTITY = "onehop pairing v1; client=sender; server=receiver"
WORDS = "abandon-abbey-ability"


def read(connection, count) -> bytes:
    got = b""
    while len(got) < count:
        more = connection.recv(count - len(got))
        check(more != b"", f"closed after {len(got)} of {count} bytes")
        got += more
    return got


def read_message(connection) -> tuple[bytes, bytes]:
    head = read(connection, 33)
    return head[:32], read(connection, head[32])


def message(point: bytes, said: bytes) -> bytes:
    return point + bytes([len(said)]) + said


def psk_of_sender(connection, words) -> bytes:
    nonce, said = secrets.token_bytes(16), b"another hand"
    connection.sendall(TAG + nonce + b"\0")
    greeting = read(connection, 25)
    check(greeting[:8] == TAG, f"a greeting: {greeting!r}")
    end = cpace.End(words.encode(), CHANNEL, nonce + greeting[8:24])
    connection.sendall(message(end.point, said))
    theirs = read_message(connection)
    check(b"CPACE-RISTR255-SHA512" in theirs[1], f"it names the suite: {theirs}")
    return cpace.psk_of(end.key(theirs[0], (end.point, said), theirs))


def psk_of_receiver(connection, words) -> bytes:
    nonce, said = secrets.token_bytes(16), b"another hand"
    greeting = read(connection, 25)
    check(greeting[:8] == TAG, f"a greeting: {greeting!r}")
    connection.sendall(TAG + nonce + b"\0")
    theirs = read_message(connection)
    end = cpace.End(words.encode(), CHANNEL, greeting[8:24] + nonce)
    connection.sendall(message(end.point, said))
    return cpace.psk_of(end.key(theirs[0], theirs, (end.point, said)))


def pass_on(source, target) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def join(a, b) -> None:
    for source, target in ((a, b), (b, a)):
        threading.Thread(target=pass_on, args=(source, target), daemon=True).start()


def openssl(role, port, psk) -> Any:
    where = ["-connect", f"127.0.0.1:{port}"] if role == "s_client" else [
        "-accept", f"127.0.0.1:{port}", "-nocert", "-naccept", "1"]
    return subprocess.Popen(
        ["openssl", role, *where, "-tls1_3", "-psk", psk.hex(), "-psk_identity", IDENTITY,
         "-ciphersuites", "TLS_AES_128_GCM_SHA256", "-groups", "X25519", "-alpn", "onehop/5"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace")  # the program's first message is no text


def enter(address, words) -> str:
    """enter is what OpenSSL says of a receiver that it came to with these words."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as outer, \
            socket.create_server(("127.0.0.1", 0)) as listener:
        psk = psk_of_sender(outer, words)
        client = openssl("s_client", listener.getsockname()[1], psk)
        inner, _ = listener.accept()
        join(inner, outer)
        said = ""
        while "SSL-Session:" not in said and (line := client.stdout.readline()):
            said += line
        client.stdin.close()
        client.kill()
        client.wait()
        client.stdout.close()
        inner.close()
    return said


def test_the_draft_s_vectors(_) -> None:
    known = (b"Password", bytes.fromhex("0b415f696e69746961746f720b425f726573706f6e646572"),
             bytes.fromhex("7e4b4791d6a8ef019b936c79fb7f2c57"))
    scalars = ["da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08",
               "d2316b454718c35362d83d69df6320f38578ed5984651435e2949762d900b80d"]
    a, b = (cpace.End(*known, int.from_bytes(bytes.fromhex(scalar), "little"))
            for scalar in scalars)
    check(a.point.hex() == "d6bac480f2c386c394efc7c47adb9925dcd2630b64f240c50f8d0eec482b9157",
          a.point.hex())
    sides = (a.point, b"ADa"), (b.point, b"ADb")
    key = ("b69effbf61b51d56401c0f65601abe428de8206feaaf0e32198896dcae7b35cd"
           "2b38950a39dfd5d4a79164614c2984f7daa460b588c1e80c3fa2068af7900447")
    check(a.key(b.point, *sides).hex() == key and b.key(a.point, *sides).hex() == key, "the key")


def test_a_sender_by_another_hand_gets_in_with_the_words_alone(onehop) -> None:
    with Loopback(onehop) as world:
        receiver = world.start("recv", "--dir", world.target, "--listen", world.address, "--io",
                               "udp", "--code-file", world.text("words", WORDS))
        receiver.wait_for(lambda: "listening on" in receiver.text(), "it listens")
        said = enter(world.address, WORDS)
        check("Reused, TLSv1.3" in said and "ALPN protocol: onehop/5" in said, said)
        receiver.wait_for(lambda: "it knows the code" in receiver.text(), "the receiver says so")
        said = enter(world.address, "abandon-abbey-absence")
        check("Reused" not in said, said)


def test_a_receiver_by_another_hand_is_taken_by_a_sender(onehop) -> None:
    with Loopback(onehop) as world:
        for words, is_right in (WORDS, True), ("abandon-abbey-absence", False):
            with socket.create_server(("127.0.0.1", 0)) as front, socket.socket() as place:
                place.bind(("127.0.0.1", 0))
                port = place.getsockname()[1]
                sender = world.start("send", world.text("note", "x"), "--io", "udp", "--to",
                                     f"127.0.0.1:{front.getsockname()[1]}", "--code-file",
                                     world.text("words", WORDS))
                front.settimeout(20)
                outer, _ = front.accept()
                outer.settimeout(20)
                psk = psk_of_receiver(outer, words)
                place.close()
                server = openssl("s_server", port, psk)
                while "ACCEPT" not in server.stdout.readline():
                    check(server.poll() is None, "s_server listens")
                inner = socket.create_connection(("127.0.0.1", port))
                join(inner, outer)
                said = ""
                while "Reused" not in said and "error" not in said:
                    line = server.stdout.readline()
                    if not line:
                        break
                    said += line
                check(("Reused" in said) == is_right, f"{words}: {said}")
                server.kill()
                server.communicate()
                inner.close()
                outer.close()
                code = sender.code()
                check((code == 4) == (not is_right), f"{words}: {code} {sender.text()}")


if __name__ == "__main__":
    check(os.path.exists("/usr/bin/openssl"), "the openssl command is here")
    sys.exit(main(globals(), needs_root=False))
