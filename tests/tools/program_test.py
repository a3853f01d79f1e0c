#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The program on loopback, without root: program_test.py ONEHOP [WORD].

Goal:   options, configuration files and what is remembered do what the README says; what people
        read is true.
Method: the real program, UDP over 127.0.0.1 on a free port, everything else in a temporary folder.
Bounds: none on time but that everything ends by itself.
"""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
from loopback import MB, Loopback  # noqa: E402
from program import check, main  # noqa: E402

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def test_an_interrupt_tells_what_there_is_to_keep(onehop) -> None:
    with Loopback(onehop) as here:
        receiver = here.receive()
        receiver.process.send_signal(signal.SIGINT)
        check(receiver.code() == 7,
              f"an idle receiver ends with 7, not {receiver.process.returncode}")
        check("nothing was under way" in receiver.text() and "kept" not in receiver.text(),
              f"nothing to keep: {receiver.text()}")
        sender = here.start("send", here.file(1), "--to", here.address, "--wait", "60", "--json")
        sender.wait_for(lambda: sender.events("start"), "send looks for its peer")
        sender.process.send_signal(signal.SIGINT)
        check(sender.code() == 7,
              f"a sender that found nobody ends with 7, not {sender.process.returncode}")
        check("before anything was sent" in sender.text() and "keeps" not in sender.text(),
              f"nothing to keep: {sender.text()}")
        receiver = here.receive()
        sender = here.start("send", here.file(8 * MB), "--to", here.address, "--law", "fixed:8M")
        receiver.wait_for(lambda: any(here.target.glob(".*.part")), "data comes")
        receiver.process.send_signal(signal.SIGINT)
        check(receiver.code() == 7,
              f"a receiver at work ends with 7, not {receiver.process.returncode}")
        check("what arrived is kept" in receiver.text(), f"something to keep: {receiver.text()}")
        check(sender.code() == 7,
              f"and so does the sender, not with {sender.process.returncode}: {sender.text()}")


def test_threads_are_counted_by_their_names_whatever_the_program_is_called(onehop) -> None:
    with Loopback(onehop) as here:
        copy = here.work / "onehop-copy"
        shutil.copy(onehop, copy)
        here.onehop = str(copy)
        receiver = here.receive()
        sender = here.start("send", here.file(8 * MB), "--to", here.address, "--json")
        for end, own in ((sender, "read"), (receiver, "write")):
            check(end.code() == 0, end.text())
            names = set(end.end()["thread_cpu_seconds"])
            check({"plane", "engine", own} <= names <= {"plane", "engine", "rate", own},
                  f"{names}")


def test_what_was_verified_before_a_failure_counts_at_both_ends(onehop) -> None:
    with Loopback(onehop) as here:
        small, receiver = here.work / "small.bin", here.receive()
        small.write_bytes(os.urandom(300_000))
        # The 8 MB take four seconds from when the small file is done.
        sender = here.start("send", small, here.file(8 * MB), "--to", here.address, "--json",
                            "--law", "fixed:16M")
        sender.wait_for(lambda: sender.events("file"), "the small file is verified")
        sender.process.send_signal(signal.SIGINT)
        check(sender.code() == 7 and receiver.code() == 7, f"{sender.text()} {receiver.text()}")
        for role, end in (("send", sender.end()), ("recv", receiver.end())):
            check((end["files_total"], end["bytes_total"], end["hash_ok"]) == (1, 300_000, False),
                  f"{role}: {end['files_total']}, {end['bytes_total']}")


def test_a_wrong_command_line_is_an_event_as_well(onehop) -> None:
    with Loopback(onehop) as here:
        for command in (("send", "x", "--to", here.address, "--io", "pigeon",
                         "--json"), ("recv", "--json", "--bogus"), ("send", "--json"),
                        ("send", "x", "--to", here.address, "--law", "vegas", "--json")):
            end = here.refused(*command)
            [event] = end.events("error")
            check(
                event["exit_code"] == 2 and all(event[key] for key in ("attempt", "cause", "hint")),
                f"{command}: {event}")
            check(event["cause"] in end.text() and end.text().startswith(f"onehop {command[0]}: "),
                  f"and text: {end.text()}")
        check(not here.refused("recv", "--bogus").events(), "no event where none was asked for")
        check(not here.refused("send", "--bogus", "--", "--json").events(),
              "nor by the name of a file")


def test_options_of_a_configuration_file_count_and_the_command_line_wins(onehop) -> None:
    with Loopback(onehop) as here:
        config = here.text(
            "options.toml",
            '[send]\nlaw = "fixed:400Mbit"\ndigest = "sha256"\n[recv]\ndigest = "xxh3"\n')
        end = here.send("--config", config).end()
        check(end["law"] == "fixed" and end["digest"] == "sha256",
              f"the file's options count: {end['law']}, {end['digest']}")
        check(
            here.send("--config", config, "--digest", "xxh3").end()["digest"] == "xxh3",
            "the command line wins")
        here.refused("recv", "--config", here.work / "none.toml", words=("none.toml",))
        for text, word in (("[send]\nbogus = 1\n", "send.bogus"), ("[sent]\nlaw = 1\n", "'sent'"),
                           ("bogus = 1\n", "bogus")):
            here.refused("send", "x", "--to", here.address, "--config", here.text("bad.toml", text),
                         words=(word, "bad.toml"))
        here.refused("send", "x", "--to", here.address, "--config",
                     here.text("bad.toml", '[send]\ntarget = "over"\n'), words=("over", ))


def test_the_receiver_tells_the_digest_that_was_agreed(onehop) -> None:
    with Loopback(onehop) as here:
        for asked, own, agreed in (("sha256", "xxh3", "sha256"), ("xxh3", "sha256", "sha256"),
                                   ("xxh3", "xxh3", "xxh3")):
            receiver = here.receive("--digest", own)
            sender = here.start("send", here.file(MB), "--to", here.address, "--json", "--digest",
                                asked)
            check(sender.code() == 0 and receiver.code() == 0,
                  f"{asked}: {sender.text()} {receiver.text()}")
            [sent], [came] = sender.events("file"), receiver.events("file")
            check(
                len(sent["digest"]) == {"xxh3": 32, "sha256": 64}[agreed]
                and sent["digest_kind"] == agreed, f"the sender's is {agreed}: {sent}")
            check(came == sent, f"the receiver's is the same: {came}")
            check(receiver.end()["digest"] == agreed,
                  f"also at the end: {receiver.end()['digest']}")


def test_the_end_event_of_a_small_file_is_as_full_as_that_of_a_large_one(onehop) -> None:
    """The receiver's statistics have no thread of their own, and such a transfer ends before their
    timer's first turn."""
    with Loopback(onehop) as here:
        for size in (1, 50_000, MB):
            receiver = here.receive()
            sender = here.start("send", here.file(size), "--to", here.address, "--json")
            check(sender.code() == 0 and receiver.code() == 0,
                  f"{size}: {sender.text()} {receiver.text()}")
            for end in (sender.end(), receiver.end()):
                scopes = [end[queue]["scope"] for queue in ("tx_queue", "rx_ring", "app_buffer")]
                check(end["frames_total"] * 65_536 >= size and end["frames_total"] > 0,
                      f"{size}: {end['role']} counts frames: {end['frames_total']}")
                check("none" not in scopes, f"{size}: {end['role']} knows its buffers: {scopes}")


def test_law_parameters_of_a_configuration_file_count(onehop) -> None:
    def rates(sender) -> list[Any]:
        with open(sender.trace, encoding="utf-8") as file:
            return [
                8 * int(row["rate_bytes_per_s"])
                for row in csv.DictReader(line for line in file if not line.startswith("#"))
            ]

    def send(here, *options) -> Any:
        trace = here.work / "trace.csv"
        sender = here.send(*options, "--trace", trace, size=4 * MB)
        sender.trace = trace
        return sender

    with Loopback(onehop) as here:
        send(here, "--config", CONFIGS / "law/safe-range.json")
        fast = here.text("fast.json", '{"law": "safe-range", "rate_start_bps": 400000000}')
        check(
            max(rates(send(here, "--config", fast))) >= 400e6,
            "the file's rate_start_bps is the first grant")
        slow = here.text("slow.json", '{"law": "safe-range", "rate_max_bps": 200000000}')
        # The trace has wire bytes: a frame is at most 9 % longer than what it carries.
        check(
            max(rates(send(here, "--config", slow))) <= 218e6,
            "the file's rate_max_bps bounds every grant")
        here.refused("send", "x", "--to", here.address, "--config", slow, "--law", "fixed:5M",
                     words=("safe-range", "--law"))
        wrong = here.text("wrong.json", '{"law": "safe-range", "d_1": 3}')
        here.refused("send", "x", "--to", here.address, "--config", wrong,
                     words=("'d_1'", "d_1_ms", "wrong.json"))
        here.refused("recv", "--config", wrong, words=("'d_1'",))
        gate = here.text("gate.json", '{"law": "qcut", "tau_wired_ms": 2}')
        here.refused("send", "x", "--to", here.address, "--config", gate, words=("qcut", "--law"))
        send(here, "--config", gate, "--qcut")
        send(here, "--config", CONFIGS / "law/auto.json")


def test_a_law_is_chosen_by_name_and_says_once_what_it_lacks(onehop) -> None:
    with Loopback(onehop) as here:
        for law, said in (("auto", None), ("safe-range", None), ("wdtcp", "wdtcp: neither"),
                          ("wdtcp:paper", "wdtcp: neither"), ("cupid", "cupid: the driver")):
            trace = here.work / "trace.csv"
            # 8 MB at 80 Mbit/s last 0.8 s: a sensor is missed after 0.3 s of data.
            sender = here.send("--law", law, "--max-rate", "80Mbit", "--trace", trace, size=8 * MB)
            check(sender.end()["law"] == law, f"the law that was asked for: {sender.end()['law']}")
            text = sender.text()
            for word in ("wdtcp:", "cupid:"):
                times = sum(line.count(word) for line in text.splitlines() if "law" not in line)
                check(times <= 1, f"said once at most: {text}")
            if said is not None:
                check(said in text, f"{law} tells what it lacks: {text}")
            with open(trace, encoding="utf-8") as file:
                rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
            check(all(row["law"] == law for row in rows), "each row names the law")
            check({row["beta_bytes_per_s"] for row in rows} == {""},
                  "what a law does not have is empty, not zero")
        check(
            here.send("--qcut", size=MB).end()["law"] == "auto+qcut",
            "the gate shows in the law's name")
        here.refused("send", "x", "--to", here.address, "--law", "vegas",
                     words=("--law", "auto, safe-range, wdtcp"))
        here.refused("send", "x", "--to", here.address, "--law", "wdtcp:real",
                     words=("wdtcp:paper", ))


def test_the_receiver_bounds_the_rate_as_well(onehop) -> None:
    with Loopback(onehop) as here:
        receiver, trace = here.receive("--max-rate", "80Mbit"), here.work / "trace.csv"
        # 4 MB at 80 Mbit/s are 0.4 s: the last row is long after the first report.
        sender = here.start("send", here.file(4 * MB), "--to", here.address, "--json", "--law",
                            "fixed:400Mbit", "--trace", trace)
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.text()} {receiver.text()}")
        with open(trace, encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        check(0 < int(rows[-1]["rate_bytes_per_s"]) <= 10e6,
              f"80 Mbit/s at most: {rows[-1]['rate_bytes_per_s']}")


def test_repair_is_agreed_on_by_both_ends(onehop) -> None:
    with Loopback(onehop) as here:
        for asked, allowed, agreed in (((), (), "eager"), (("lazy", ), (), "lazy"),
                                       (("lazy", ), ("lazy", ),
                                        "lazy"), (("lazy", ), ("eager", ),
                                                  "eager"), (("eager", ), ("lazy", ), "eager")):
            receiver = here.receive(*(word for a in allowed for word in ("--repair", a)))
            sender = here.start("send", here.file(8 * MB), "--to", here.address, "--json",
                                *(word for a in asked for word in ("--repair", a)))
            check(sender.code() == 0 and receiver.code() == 0,
                  f"{asked} {allowed}: {sender.text()} {receiver.text()}")
            check(sender.end()["repair"] == agreed == receiver.end()["repair"],
                  f"{asked} {allowed} agree on {agreed}: {sender.end()['repair']}")
            is_turned_down = asked == ("lazy",) and agreed == "eager"
            check(("keeps to eager repair" in sender.text()) == is_turned_down,
                  f"what is turned down is said: {sender.text()}")
        check(
            here.send("--repair", "lazy", "--law", "safe-range",
                      size=MB).end()["law"] == "safe-range+mask",
            "the mask shows in the law's name")
        here.refused("send", "x", "--to", here.address, "--repair", "sometimes",
                     words=("--repair", "lazy"))
        here.refused("recv", "--repair", "", words=("--repair",))


def test_the_help_of_every_command_fits_into_80_columns(onehop) -> None:
    def helped(*command) -> Any:
        done = subprocess.run([onehop, *command, "--help"], capture_output=True, text=True,
                              timeout=60, check=False)
        if command == ("ns3",) and "it is not installed" in done.stderr:
            return 1  # built only where ns-3 is
        check(done.returncode == 0 and not done.stderr,
              f"{command} has help: {done.returncode} {done.stderr}")
        lines = done.stdout.splitlines()
        check(any(line.startswith(" ".join(("Usage: onehop", *command))) for line in lines),
              f"by its name, however it was called: {lines[:3]}")
        for line in lines:
            check(len(line) < 80, f"{command}: {len(line)} columns: {line}")
        below = lines[lines.index("Subcommands:") + 1:] if "Subcommands:" in lines else []
        names = [line.split()[0] for line in below if line.startswith("  ") and line[2] != " "]
        return 1 + sum(helped(*command, name) for name in names)

    check(helped() >= 15, "every command was found")


def test_the_rate_of_the_last_run_is_where_the_next_one_starts(onehop) -> None:
    with Loopback(onehop) as here:
        # 8 MB last 320 ms
        slow = ("--config",
                here.text("slow.json", '{"law": "safe-range", "rate_max_bps": 200000000}'))
        check("starting at" not in here.send(*slow).text(),
              "nothing is remembered where it is switched off")
        here.state = here.work / "state"
        check("starting at" not in here.send(*slow).text(), "the first run knows nothing")
        file = here.state / "start-rates.json"
        [entry] = json.loads(file.read_text())["rates"]
        check(entry["peer"] == "127.0.0.1" and entry["interface"] == "lo",
              f"peer and interface: {entry}")
        check(1e6 < entry["rate_bytes_per_s"] <= 25.5e6,
              f"what 200 Mbit/s can carry at most: {entry}")
        entry["rate_bytes_per_s"] = 20_000_000
        file.write_text(json.dumps({"schema_version": 1, "rates": [entry]}))
        check("starting at 128 Mbit/s" in here.send(*slow).text(),
              "four fifths of what is remembered")
        check(
            json.loads(file.read_text())["rates"][0]["rate_bytes_per_s"] != 20_000_000,
            "the newest run counts")
        before = file.read_text()
        here.send("--max-rate", "100Mbit")
        check(file.read_text() == before, "a capped run does not show what the path carries")
        file.write_text("{ damaged")
        sender = here.send(*slow)
        check("damaged" in sender.text() and str(file) in sender.text(),
              f"a damaged file is told: {sender.text()}")
        check(len(json.loads(file.read_text())["rates"]) == 1, "and replaced")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
