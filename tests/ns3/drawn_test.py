#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tools/measure/drawn: the same draw for the same seed, and a verdict on what must hold."""
import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib
from typing import Any


def load(path) -> Any:
    loader = importlib.machinery.SourceFileLoader("drawn", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def main(tool, program) -> None:
    def run(*arguments) -> subprocess.CompletedProcess[Any]:
        return subprocess.run([sys.executable, tool, "--program", program, *arguments],
                              capture_output=True, text=True, check=False)

    assert run("-n", "0").returncode == 2 and run("--only", "0").returncode == 2
    assert run("--program", "/nonexistent").returncode == 77
    printed = [run("--print", "--seed", seed, "-n", "20").stdout for seed in ("1", "1", "2")]
    assert printed[0] == printed[1] != printed[2]
    assert run("--print", "--seed", "1", "--only", "7").stdout in printed[0]

    drawn = load(tool)
    links = [drawn.draw(1, index) for index in range(1, 200)]
    for link in links:
        tomllib.loads(drawn.scenario_of(link, "x"))
    for key in ("standard", "width_mhz", "streams", "phy_loss", "ampdu_bytes", "block_ack",
                "pairs"):
        assert len({link[key] for link in links}) > 1, key
    # What is told is a draw of its own: the other keys of scenario 7 are those of before it was
    # drawn.
    assert links[6] | {"told": None} == {
        "standard": "ac", "width_mhz": 80, "streams": 1, "mcs": 5, "mcs_trace": [7, 2],
        "mcs_period_s": 0.1, "phy_loss": 0.1, "ampdu_bytes": 1048575, "block_ack": 64, "pairs": 1,
        "guard_ns": 800, "told": None
    }
    told = [link["told"] for link in links]
    assert {one["facts"] for one in told} == {"all", "queue", "medium", "none"
                                              } and {one["port"]
                                                     for one in told} == {"sees", "blind"}
    assert {one.get("facts_age_ms", 0)
            for one in told} >= {0, 10} and max(one.get("facts_loss", 0) for one in told) < 1
    assert all(drawn.is_queue_told(one) or "facts_age_ms" not in one for one in told)
    assert "facts = " in run("--print", "--only", "2").stdout and 'facts = "all"' in run(
        "--print", "--only", "2", "--all-told").stdout
    # 64 KB at 1201 Mbit/s: 43 MPDUs in 435 us; a slow one ends at a PPDU's longest time.
    fast = {
        "standard": "ax", "width_mhz": 80, "streams": 2, "mcs": 11, "ampdu_bytes": 65535,
        "block_ack": 64, "pairs": 1
    }
    assert 430 < drawn.aggregate_us(fast) < 440
    assert drawn.aggregate_us(
        fast | {"mcs": 0, "width_mhz": 20, "ampdu_bytes": 1048575, "block_ack": 256}
    ) == drawn.PPDU_MAX_US
    seen = drawn.p95_max_us(fast)
    assert seen == 3 * drawn.aggregate_us(fast) + 2000
    bound_of = lambda link, **told: drawn.p95_max_us(link | {"told": drawn.ALL_TOLD | told})
    assert bound_of(fast, facts="none") == 12_000 and bound_of(fast, facts="none",
                                                               port="blind") == seen + 40_000
    assert bound_of(fast, port="blind", facts_age_ms=5, facts_loss=0.5) == seen + 9000
    # a quarter of the rate and less: what stood for 8 ms stands for 33
    falling = fast | {"mcs_trace": [11, 3]}
    assert bound_of(falling) == 3 * drawn.aggregate_us(falling) + 2000 and bound_of(
        falling, facts="none") > bound_of(falling) + 33_000
    good = {"ratio": 0.97, "p95_us": 900, "p95_max_us": 1000, "jain": 1.0, "jain_udp": 1.0}
    assert drawn.misses_of(fast, good) == []
    assert len(drawn.misses_of(fast, good | {"ratio": 0.95, "p95_us": 1001})) == 2
    assert drawn.misses_of(fast | {"pairs": 2},
                           good | {"jain": 0.98, "p95_us": 1001})[0].startswith("Jain")
    assert drawn.misses_of(fast, "ended by signal 6")

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "out.json")
        done = run("--only", "3", "--json", str(path))
        assert "1 of 1: median" in done.stdout and done.returncode == (1 if "MISS" in done.stdout
                                                                       else 0), done
        assert json.loads(path.read_text())["scenarios"]["3"]["result"]["ratio"] > 0.9


if __name__ == "__main__":
    main(*sys.argv[1:])
