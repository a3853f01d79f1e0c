# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A file over one TCP connection, as a program on each host: `tcp_file.py recv ADDRESS PORT FILE`,
`tcp_file.py send ADDRESS PORT FILE LAW`.

The receiver takes one connection, writes what comes, has it on disk under its name, and says so
with one byte. The sender prints the seconds from before the connection to that byte. iperf3 counts
what it handed to its socket, which for 10 MB is not what arrived.
"""

import os
import socket
import sys
import time

CHUNK_BYTES = 1 << 20
TCP_CONGESTION = 13  # of <linux/tcp.h>


def receive(address, port, path) -> None:
    with socket.create_server((address, port)) as server:
        print("ready", flush=True)
        connection, _ = server.accept()
    part, chunk = path + ".part", memoryview(bytearray(CHUNK_BYTES))
    with connection, open(part, "wb", buffering=0) as out:
        while count := connection.recv_into(chunk):
            out.write(chunk[:count])
        os.fsync(out.fileno())
        os.rename(part, path)
        connection.sendall(b"k")


def send(address, port, path, law) -> None:
    with open(path, "rb") as file, socket.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, law.encode())
        begin = time.monotonic()
        connection.connect((address, port))
        connection.sendfile(file)
        connection.shutdown(socket.SHUT_WR)
        if connection.recv(1) != b"k":
            sys.exit("the receiver went away before it had the file")
        print(time.monotonic() - begin)


if __name__ == "__main__":
    if sys.argv[1] == "recv":
        receive(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        send(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
