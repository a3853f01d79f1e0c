#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What is refused before anything is sent, on loopback and without root: FILE ONEHOP [WORD].

Goal:   what this machine lacks and what a user may not do is said at once, with the exit code.
Method: the real program, UDP over 127.0.0.1 on a free port, all else in a temporary folder.
Bounds: none on time but that everything ends by itself.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
from loopback import MB, Loopback  # noqa: E402
from program import Skip, check, main  # noqa: E402



def test_the_mode_of_afxdp_is_refused_without_it(onehop) -> None:
    with Loopback(onehop) as here:
        for command in (("send", here.file(1), "--to", here.address), ("recv", "--listen",
                                                                       here.address)):
            for io in ((), ("--io", "auto"), ("--io", "udp")):
                here.refused_at_once(*command, *io, "--xdp-mode", "skb",
                                     words=("--xdp-mode skb", "--io afxdp"))


def test_an_empty_value_is_not_taken_for_none(onehop) -> None:
    """What a script writes where its variable is not set."""
    with Loopback(onehop) as here:
        commands = {"send": (here.file(1), "--to", here.address),
                    "recv": ("--listen", here.address)}
        options = {"send": ("--wait", "--exclude", "--exclude-from", "--link-model"), "recv": ()}
        both = ("--max-rate", "--core", "--frame-size", "--key-interval", "--law", "--iface",
                "--code-file", "--trace", "--receipt", "--report", "--io", "--priority", "--eal")
        for command, words in commands.items():
            for option in (*both, *options[command]):
                here.refused_at_once(command, *words, option, "", words=(option,))
                here.refused_at_once(command, *words, f"{option}=", words=(option,))
        config = here.text("options.toml", '[send]\nmax-rate = ""\n')
        here.refused_at_once("send", *commands["send"], "--config", config, words=("--max-rate",))


def test_a_number_that_is_none_or_beyond_its_limits_is_refused(onehop) -> None:
    numbers = ("nan", "-nan", "nan(1)", "inf", "-inf", "-1", "1e400", "1e99", "0x1p70", "1,5",
               "99999999999999999999", " ", "7 s")
    with Loopback(onehop) as here:
        send = ("send", here.file(1), "--to", here.address)
        recv = ("recv", "--listen", here.address)
        whole = [(send, option) for option in ("--frame-size", "--key-interval", "--core",
                                               "--max-rate")]
        commands = [(send, "--wait"), *whole, (recv, "--core"), (recv, "--max-rate"),
                    (("watch",), "--interval")]
        for command, option in commands:
            for number in numbers:
                here.refused_at_once(*command, f"{option}={number}",
                                     words=(option.split("-")[-1], number.strip()))
        for option in ("--time", "--bytes"):
            for number in numbers:
                here.refused("bench", "loop", f"{option}={number}", words=(number.strip(),))
        for number in ("nan", "-nan", "NAN"):
            config = here.text("options.toml", f'[send]\nwait = "{number}"\n')
            here.refused_at_once(*send, "--config", config, words=("--wait", number))


def test_a_text_in_another_encoding_is_refused_by_its_name(onehop) -> None:
    with Loopback(onehop) as here:
        to = (here.file(1), "--to", here.address, "--wait", "0")
        for encoding, word in (("utf-16", "UTF-16"), ("utf-16-be", "UTF-16"), ("utf-32", "UTF-32"),
                               ("utf-16-le", "UTF-16")):
            rules, options = here.work / "rules", here.work / "options.toml"
            rules.write_bytes("*.tmp\n".encode(encoding))
            options.write_bytes('[send]\nlaw = "auto"\n'.encode(encoding))
            here.refused_at_once("send", *to, "--exclude-from", rules,
                                 words=("--exclude-from", word, "UTF-8"))
            here.refused_at_once("send", *to, "--config", options, words=(word, "UTF-8"))


def test_what_this_machine_lacks_is_refused_before_the_other_one_is_asked(onehop) -> None:
    with Loopback(onehop) as here:
        file, folder = here.file(1), here.target
        to, listen = ("--to", here.address, "--wait", "0"), ("--listen", here.address)
        here.refused_at_once("send", here.work / "none", *to,
                             words=("offer", "No such file", "a path that is there"), code=8)
        here.refused_at_once("send", "", *to, words=("offer ''", "a path that is there"), code=8)
        here.refused_at_once("send", file, *to, "--exclude-from", here.work / "none",
                             words=("--exclude-from", "No such file"))
        here.refused_at_once("send", file, *to, "--exclude-from", folder, words=("--exclude-from",))
        here.refused_at_once("send", file, *to, "--code-file", folder,
                             words=("read the pairing code", "--code-file"))
        here.refused_at_once("send", file, *to, "--code-file", here.work / "none",
                             words=("code file", "No such file", "--code-file"))
        here.refused_at_once("send", file, "--to", ":7411", words=("read --to", "names no host"))
        # no name that is looked up
        here.refused_at_once("send", file, "--to", "no..host", "--iface", "lo",
                             words=("find no..host", "numeric"), code=3)
        here.refused_at_once("send", file, *to, "--core", "9999", words=("core 9999", "taskset"))
        here.refused_at_once("send", file, *to, "--max-rate", "fast", words=("'fast'", "600Mbit"))
        here.refused_at_once("send", file, *to, "--iface", "none",
                             words=("interface none", "ip link"), code=9)
        here.refused_at_once("recv", *listen, "--iface", "none",
                             words=("interface none", "ip link"), code=9)
        here.refused_at_once("doctor", "--iface", "none", words=("interface 'none'", "ip link"),
                             code=9)
        here.refused_at_once("recv", *listen, "--dir", here.work / "none",
                             words=("receive into", "No such file", "--dir"), code=8)
        here.refused_at_once("recv", *listen, "--dir", file, words=("it is no folder", "--dir"),
                             code=8)
        for command in (("send", file, *to), ("recv", *listen)):
            here.refused_at_once(*command, "--trace", here.work / "none/t.csv",
                                 words=("t.csv", "No such file", "--trace"), code=8)
            here.refused_at_once(*command, "--trace", folder, words=("it is a folder", "--trace"),
                                 code=8)
            here.refused_at_once(*command, "--trace", file / "t.csv",
                                 words=("Not a directory", "--trace"), code=8)
        if "--p2p" in subprocess.check_output([onehop, "recv", "--help"], text=True):
            for end in (("send", file), ("recv",)):  # before a group is formed
                here.refused_at_once(*end, "--p2p", "--iface", "lo", "--trace",
                                     here.work / "none/t.csv",
                                     words=("t.csv", "No such file", "--trace"), code=8)
        check(
            here.work.joinpath("file.bin").stat().st_size == 1 and not any(folder.iterdir()),
            "nothing was touched")
        # 198.51.100.1 is for documentation (RFC 5737), nobody's own.
        here.refused_at_once("recv", "--listen", "198.51.100.1",
                             words=("Cannot assign", "ip address"), code=9)
        here.refused_at_once("recv", "--listen", "localhost",
                             words=("not a numeric address", "ip address"))
        address = ("127.0.0.1", int(here.address.rsplit(":", 1)[1]))
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_INET, kind) as taken:
                taken.bind(address)
                if kind == socket.SOCK_STREAM:
                    taken.listen()
                here.refused_at_once("recv", *listen, words=(here.address, "in use", "--listen"),
                                     code=9)


def test_what_a_user_may_not_do_is_refused_before_the_other_one_is_asked(onehop) -> None:
    with Loopback(onehop) as here:
        if os.geteuid() == 0:  # who may all
            here.prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
            if subprocess.run([*here.prefix, onehop, "--version"], capture_output=True,
                              check=False).returncode != 0:
                raise Skip("the program lies where only root can run it")
        here.work.chmod(0o755)
        file, folder = here.file(1), here.target
        trace = here.text("t.csv", "kept")
        trace.chmod(0o444)
        folder.chmod(0o555)
        to, listen = ("--to", here.address, "--wait", "0"), ("--listen", here.address)
        here.refused_at_once("recv", *listen, "--dir", folder,
                             words=("receive into", "Permission denied", "--dir"), code=8)
        for command in (("send", file, *to), ("recv", *listen, "--dir", "/tmp")):
            here.refused_at_once(*command, "--trace", trace,
                                 words=("t.csv", "Permission denied", "--trace"), code=8)
            here.refused_at_once(*command, "--trace", folder / "t.csv",
                                 words=("Permission denied", "--trace"), code=8)
        if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) > 1:
            here.refused_at_once("recv", "--dir", "/tmp", "--listen", "127.0.0.1:1",
                                 words=("127.0.0.1:1", "Permission denied", "1024"), code=10)
        file.chmod(0)
        here.refused_at_once("send", file, *to, words=("offer", "Permission denied", "may read"),
                             code=8)
        check(trace.read_text() == "kept", "nothing was touched")


def test_fragments_are_refused_where_they_cannot_be(onehop) -> None:
    with Loopback(onehop) as here:
        for io in (("afxdp",), ("dpdk", "--eal=--vdev=net_null0")):
            here.refused("send", here.file(MB), "--to", here.address, "--fragment", "--io", *io,
                         words=("--fragment", "--io udp"), code=9)
        here.refused("send", here.file(MB), "--to", here.address, "--fragment", "--frame-size",
                     "1000", words=("--fragment", "--frame-size"))
        here.refused("recv", "--fragment", words=("--fragment",))  # the sender alone asks for them


def test_the_no_ack_map_is_refused_where_it_cannot_be(onehop) -> None:
    with Loopback(onehop) as here:
        here.refused("send", here.file(MB), "--to", here.address, "--mac-noack",
                     words=("--mac-noack", "--repair lazy"))
        here.refused("send", here.file(MB), "--to", here.address, "--mac-noack", "--repair",
                     "eager", words=("--repair lazy", ))
        here.refused("send", here.file(MB), "--to", here.address, "--mac-noack", "--repair", "lazy",
                     words=("no-ack map of lo", "Leave --mac-noack out"), code=9)
        here.refused("recv", "--mac-noack", words=("--mac-noack",))


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
