#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tools/drawn: the same draw for the same seed, and a verdict on what must hold."""
import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib


def load(path):
    loader = importlib.machinery.SourceFileLoader("drawn", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def main(tool, program):
    def run(*arguments):
        return subprocess.run([sys.executable, tool, "--program", program, *arguments], capture_output=True, text=True, check=False)

    assert run("-n", "0").returncode == 2 and run("--only", "0").returncode == 2
    assert run("--program", "/nonexistent").returncode == 77
    printed = [run("--print", "--seed", seed, "-n", "20").stdout for seed in ("1", "1", "2")]
    assert printed[0] == printed[1] != printed[2]
    assert run("--print", "--seed", "1", "--only", "7").stdout in printed[0]

    drawn = load(tool)
    links = [drawn.draw(1, index) for index in range(1, 200)]
    for link in links:
        tomllib.loads(drawn.scenario_of(link, "x"))
    for key in ("standard", "width_mhz", "streams", "phy_loss", "ampdu_bytes", "block_ack", "pairs"):
        assert len({link[key] for link in links}) > 1, key
    # 64 KB at 1201 Mbit/s: 43 MPDUs in 435 us; a slow one ends at a PPDU's longest time.
    fast = {"standard": "ax", "width_mhz": 80, "streams": 2, "mcs": 11, "ampdu_bytes": 65535, "block_ack": 64, "pairs": 1}
    assert 430 < drawn.aggregate_us(fast) < 440
    assert drawn.aggregate_us(fast | {"mcs": 0, "width_mhz": 20, "ampdu_bytes": 1048575, "block_ack": 256}) == drawn.PPDU_MAX_US
    good = {"ratio": 0.97, "p95_us": 900, "p95_max_us": 1000, "jain": 1.0, "jain_udp": 1.0}
    assert drawn.misses_of(fast, good) == []
    assert len(drawn.misses_of(fast, good | {"ratio": 0.95, "p95_us": 1001})) == 2
    assert drawn.misses_of(fast | {"pairs": 2}, good | {"jain": 0.98, "p95_us": 1001})[0].startswith("Jain")
    assert drawn.misses_of(fast, "ended by signal 6")

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "out.json")
        done = run("--only", "3", "--json", str(path))
        assert "1 of 1: median" in done.stdout and done.returncode == (1 if "MISS" in done.stdout else 0), done
        assert json.loads(path.read_text())["scenarios"]["3"]["result"]["ratio"] > 0.9


if __name__ == "__main__":
    main(*sys.argv[1:])
