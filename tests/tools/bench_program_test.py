#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""`onehop bench` without a link: bench_program_test.py ONEHOP [WORD].

Goal:   each part runs, says how it measured, and its JSON has every field; wrong words are refused
        with 2.
Method: the real program for a fraction of a second per part.
Bounds: none on speed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
# Found beside the lab's tests.
from program import CODE, PATIENCE, check, free_address, main  # noqa: E402

PARTS: dict[str, tuple[list[str], list[str]]] = {
    "aead": (["--frame-size", "1472"], [
        "cpu_ns_per_byte", "seal_ns_per_byte", "open_ns_per_byte", "seal_ns_per_frame",
        "open_ns_per_frame"
    ]),
    "digest": ([], ["cpu_ns_per_byte"]),
    "file": (["-n", "2M", "--dir", "/tmp"],
             ["cpu_ns_per_byte", "read_ns_per_byte", "write_ns_per_byte", "syscalls_per_block"]),
    "law": (["--law", "auto,fixed:300Mbit"], ["ns_per_tick"]),
    "ring": ([], ["ns_per_message"]),
}


def bench(onehop, *words, code=0) -> Any:
    done = subprocess.run([str(onehop), "bench", *words], capture_output=True, text=True,
                          timeout=PATIENCE)
    check(done.returncode == code,
          f"bench {' '.join(words)} ends with {code}, not {done.returncode}: {done.stderr}")
    return done


def test_each_part_has_every_field(onehop) -> None:
    for part, (words, metrics) in PARTS.items():
        lines = [
            json.loads(line) for line in bench(onehop, part, *words, "-t", "0.02", "-r", "2",
                                               "--json").stdout.splitlines()
        ]
        check([line["type"] for line in lines][0] == "start" and lines[-1]["type"] == "end",
              f"{part}: start first, end last")
        check(all(line["schema_version"] == 1 for line in lines),
              f"{part}: each line has the schema's version")
        check("cpu" in lines[0]["methods"], f"{part}: the method is named")
        check(lines[-1]["exit_code"] == 0, f"{part}: the end says 0")
        results = [line for line in lines if line["type"] == "result"]
        samples = [line for line in lines if line["type"] == "sample"]
        check(
            len(results) > 0 and len(samples) == 2 * len(results), f"{part}: two samples per point")
        for result in results:
            for name in metrics:
                summary = result["metrics"].get(name)
                check(summary is not None, f"{part} {result['name']}: {name} is there")
                check(
                    summary["count"] == 2 and summary["min"] <= summary["median"] <= summary["max"],
                    f"{part}: {name} is a summary of two rounds")
                check(summary["min"] > 0, f"{part}: {name} is more than nothing")
            has_cycles = any(name.startswith("cycles_per") for name in result["metrics"])
            check(
                has_cycles or part == "file"
                or "not available" in result["not_available"]["cycles"],
                f"{part}: cycles, or why not")


def test_one_document(onehop) -> None:
    document = json.loads(bench(onehop, "digest", "-t", "0.02", "-r", "1", "-J").stdout)
    check(document["type"] == "bench" and document["schema_version"] == 1, "-J is one document")
    check(
        len(document["results"]) == 2 and len(document["samples"]) == 2,
        "it holds samples and results")
    check(document["results"][1]["baseline"] == document["results"][0]["name"],
          "ratios are to the first point")
    check(document["results"][0]["ratios"]["cpu_ns_per_byte"]["median"] == 1,
          "whose own ratio is 1")
    check(document["end"]["exit_code"] == 0, "and the end")


def test_the_table_fits_a_terminal(onehop) -> None:
    done = bench(onehop, "aead", "--frame-size", "600,1472", "--aead", "openssl", "-t", "0.02",
                 "-r", "1")
    check("openssl 1472" in done.stdout and "ns/B" in done.stdout, "a row per point")
    check(all(len(line) <= 80 for line in done.stdout.splitlines()), "80 columns")


def test_wrong_words_end_with_2(onehop) -> None:
    for words in (["bench"], ["bench", "nothing"], ["bench", "aead", "--frame-size",
                                                    "10"], ["bench", "law", "--law", "nobody"],
                  ["bench", "digest", "--baseline", "md5"], ["bench", "aead", "-P",
                                                             "2"], ["bench", "loop", "--io", "tcp"],
                  ["bench", "loop", "--source",
                   "file"], ["bench", "port",
                             "-u"], ["bench", "loop", "--profile",
                                     "no-such-link"], ["bench", "loop", "-t", "1", "-n",
                                                       "1M"], ["bench", "loop", "-A", "0,999"],
                  ["bench", "port", "-A",
                   "4096"], ["bench", "loop", "--law",
                             "nobody"], ["bench", "loop", "--eal", "--vdev=net_memif0"
                                         ], ["bench", "loop", "--frame-size",
                                             "100"], ["bench", "port", "--frame-size", "44"]):
        done = subprocess.run([str(onehop), *words], capture_output=True, text=True,
                              timeout=PATIENCE)
        check(done.returncode == 2, f"{words} ends with 2, not {done.returncode}: {done.stderr}")
        check(done.stderr.strip() != "", f"{words} says why")


def test_what_is_wrong_is_told_with_a_remedy_and_before_a_lab_is_made(onehop) -> None:
    for words, said in ((("-A", "0,999"), "taskset"), (("--law", "nobody"), "wdtcp"),
                        (("--eal", "--vdev=net_memif0"), "--io"),
                        (("--frame-size", "100"), "larger ones"), (("-t", "1", "-n", "1M"),
                                                                   "Leave one of them out")):
        done = bench(onehop, "loop", *words, code=2)
        check(said in done.stderr and "measure" not in done.stderr, f"{words}: {done.stderr}")


def test_two_hosts_each_tell_their_end(onehop) -> None:
    address = free_address()
    environment = {**os.environ, "ONEHOP_CODE": CODE, "ONEHOP_STATE_DIR": ""}
    serve = subprocess.Popen(
        [str(onehop), "bench", "serve", "--listen", address, "-r", "2", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        loop = subprocess.run(
            [str(onehop), "bench", "loop", "--to", address, "-n", "4M", "-r", "2", "--json"],
            capture_output=True, text=True, timeout=PATIENCE, env=environment)
        check(loop.returncode == 0, f"the sending end: {loop.stderr}")
        out, errors = serve.communicate(timeout=PATIENCE)
        check(serve.returncode == 0, f"the receiving end: {errors}")
    finally:
        if serve.poll() is None:
            serve.kill()
        serve.wait()
    for text, side, other in ((loop.stdout, "sender", "receiver"), (out, "receiver", "sender")):
        result = [line for line in map(json.loads, text.splitlines())
                  if line["type"] == "result"][0]
        metrics = result["metrics"]
        check(metrics["bytes_total"]["median"] == 4 << 20 and metrics["bytes_total"]["count"] == 2,
              f"{side}: all bytes, twice: {metrics['bytes_total']}")
        check(metrics[f"{side}_ns_per_byte"]["min"] > 0 and f"{other}_ns_per_byte" not in metrics,
              f"{side}: its own end and no other")


def test_a_receiving_end_tells_its_wakeups_in_text(onehop) -> None:
    address = free_address()
    environment = {**os.environ, "ONEHOP_CODE": CODE, "ONEHOP_STATE_DIR": ""}
    serve = subprocess.Popen([str(onehop), "bench", "serve", "--listen", address, "-r", "1"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=environment)
    try:
        loop = subprocess.run(
            [str(onehop), "bench", "loop", "--to", address, "-n", "4M", "-r", "1"],
            capture_output=True, text=True, timeout=PATIENCE, env=environment)
        check(loop.returncode == 0 and "frames per wake-up: tx" in loop.stdout,
              f"the sending end: {loop.stderr}")
        out, errors = serve.communicate(timeout=PATIENCE)
        check(serve.returncode == 0 and "frames per wake-up: tx - rx" in out,
              f"the receiving end: {out} {errors}")
    finally:
        if serve.poll() is None:
            serve.kill()
        serve.wait()


def test_a_lab_without_root_ends_with_10(onehop) -> None:
    if os.geteuid() == 0:
        words = [
            "setpriv", "--reuid=65534", "--clear-groups",
            str(onehop), "bench", "port", "-t", "0.1", "-r", "1"
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
        if "ermission denied" in done.stderr and "setpriv" in done.stderr:
            print("      (the program's folder is closed to others: not tried)")
            return
    else:
        done = subprocess.run([str(onehop), "bench", "port", "-t", "0.1", "-r", "1"],
                              capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == 10, f"10, not {done.returncode}: {done.stderr}")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
