#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The commands of docs/ and CONTRIBUTING.md, as they stand there: docs_test.py ONEHOP [WORD].

Goal:   whoever copies a line of the manual gets what the text says.
Method: each line of the sh blocks is run by the test of its page, in a lab, in the order of the
        page. `sudo` is left out (the test is root); FILE is a file of that name; HOST, PID and
        names of interfaces are the lab's; a benchmark's duration is made short.
Bounds: exit codes, and the files that a line says it makes. A line that no test runs is named
        with the reason, or this fails.
"""

import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from program import ADDRESS_B, CODE, End, Skip, World, check, end_all, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md")) + [ROOT / "CONTRIBUTING.md"]
# Pages whose commands a test of their own runs.
OWN_TEST: dict[str, str] = {
    "embedding.md": "tests/control/transfer/embedding_test.py",
    "packages.md": "tests/package/package_test.py",
    "rings.md": "tests/lab/rings_test.py",
    "wifi-direct.md": "tests/vm/p2p_send",
}
# Lines that nothing here runs: how they begin, and why not.
ELSEWHERE = {
    "tools/measure/quic-peers": "it builds peers from the network",
    'onehop recv --io dpdk --eal '
    '"--vdev=net_af_xdp0': "it takes a card; program dpdk plays a lab's",
    'onehop send FILE --to 192.168.49.1 --io dpdk --eal "--vdev=net_af_xdp0': "likewise",
    "build/tools/labs/ns3/onehop-ns3": "half an hour; the suite ns3 plays its scenario for less",
    "tools/measure/papers": "minutes to hours; tools/check plays --check-row",
    "tools/measure/headline": "tools/check runs it",
    "tools/measure/limits": "minutes; tools/measure/limits has what it derives judged",
    "tests/vm/zero_copy_cpu": "a virtual machine",
    "tools/measure/drawn": "an hour",
    "onehop stress rings --schedules 10000": "tools/check runs it",
    "tools/bootstrap": "it made this machine able to run the test",
    "meson setup build": "this test runs in what it made",
    "meson test": "it runs this test",
    "tools/check": "it runs this test",
    "tools/distros": "tools/check distros plays it",
    "onehop send video.mkv": "program find finds a receiver, and sends to one that is named",
    "onehop pair": "program pair has two hosts pair",
    "onehop peers set laptop": "paired devices sets rules, service sets quotas",
    "systemctl --user enable": "it takes systemd; service plays what the unit starts",
    "ln -s /usr/libexec/onehop/send-with-onehop": "file managers plays that script",
}


def lines(page) -> list[Any]:
    """The commands of a page's sh blocks, in order, without comments and sudo."""
    text = page.read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)
    found = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line.replace("sudo ", "") for line in found if line and not line.startswith("#")]


def lines_of(name, *starts) -> Any:
    """Those of a page that begin so, and that nothing else runs."""
    page = next(page for page in PAGES if page.name == name)
    found = [line for line in lines(page) if line.startswith(starts)]
    found = [line for line in found if not line.startswith(tuple(ELSEWHERE))]
    check(found, f"{name} has lines that begin with one of {starts}")
    return found


def shell(onehop, folder, line, host=None, code=0) -> Any:
    """Runs a line in a shell, of a lab's host where one is given, as somebody types it there."""
    path = f"{Path(onehop).resolve().parent}:{os.environ['PATH']}"
    command = ["env", f"PATH={path}", f"ONEHOP_CODE={CODE}", "bash", "-c", line]
    if host:
        world, name = host
        command = world.on(name, *command[:-1], f"cd {shlex.quote(str(folder))} && {line}")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    said = (done.stdout + done.stderr)[-1500:]
    check(done.returncode == code, f"`{line}` ends with {code}, not {done.returncode}: {said}")
    return done.stdout


def shortened(line) -> str:
    """A benchmark of the page with one short round."""
    line = re.sub(r" -[tOr] [\d.]+", "", line)
    if " -n " in line:
        return re.sub(r" -n \w+", " -n 32M", line) + " -r 1"
    return line + (" -t 0.2 -O 0.1 -r 1" if re.match(r"onehop bench (loop|port)", line) else "")


def test_bench(onehop) -> None:
    for line in lines_of("bench.md", "onehop bench loop", "onehop bench port"):
        if "--io dpdk" not in line and "--to HOST" not in line:
            shell(onehop, "/tmp", shortened(line))
    for line in lines_of("bench.md", "onehop bench aead", "onehop bench digest"):
        for command in line.split(" ; "):
            shell(onehop, "/tmp", command + " -t 0.05 -r 1")


def test_bench_of_two_hosts(onehop) -> None:
    (line,) = lines_of("bench.md", "onehop bench serve")
    serve, loop = line.split(" ; ")
    with World(onehop, "unshaped") as world:
        end = End(
            world.on("b", "bash", "-c", f"exec {serve.replace('onehop', onehop, 1)}"),
            world.work,
            "serve",
            CODE,
        )
        try:
            listens = lambda: ":7411" in world.run_on("b", "ss", "-Hltn")
            end.wait_for(listens, "serve listens")
            shell(onehop, world.work, shortened(loop.replace("HOST", ADDRESS_B)), (world, "a"))
        finally:
            end.process.terminate()
            end_all([end])


def test_dpdk(onehop) -> None:
    if (
        "off"
        in subprocess.run([onehop, "--version", "-v"], capture_output=True, text=True)
        .stdout.split("dpdk", 1)[-1]
        .splitlines()[0]
    ):
        raise Skip("this program has no DPDK")
    receive, send = lines_of("dpdk.md", "onehop recv", "onehop send")
    with World(onehop) as world:
        world.file(2_000_000, "FILE")
        receiver = End(
            world.on(
                "a",
                "bash",
                "-c",
                f"cd {world.target} && exec {receive.replace('onehop', onehop, 1)} --once",
            ),
            world.work,
            "recv",
            CODE,
        )
        try:
            receiver.wait_for(lambda: "listening" in receiver.text(), "recv listens")
            shell(onehop, world.work, send, (world, "a"))
            check(receiver.code() == 0, f"recv ends with 0: {receiver.text()}")
            world.check_same(world.work / "FILE")
        finally:
            end_all([receiver])
    values, *benches = lines_of("dpdk.md", "ARGS=", "onehop bench loop")
    benches += [line for line in lines_of("bench.md", "onehop bench loop") if "--io dpdk" in line]
    values = re.sub(r"-t 1.5 -O 0.3 -r 9", "-t 0.2 -O 0.1 -r 1", values)
    for line in benches:
        shell(onehop, "/tmp", f"{values}; {line}" if "$ARGS" in line else shortened(line))


def test_doctor(onehop) -> None:
    with World(onehop) as world:
        for page in ("doctor.md", "hardware.md"):
            for line in lines_of(page, "onehop doctor"):
                line = line.replace("wlan0", "mv0").replace("card.json", f"{page}.json")
                shell(onehop, world.work, line, (world, "a"))
            check((world.work / f"{page}.json").stat().st_size > 1000, f"{page}: a report is there")


def test_trees(onehop) -> None:
    with World(onehop) as world:
        for name in ("Photos/a", "Photos/b.tmp", "Photos/cache/c"):
            (world.work / name).parent.mkdir(parents=True, exist_ok=True)
            (world.work / name).write_text(name)
        for line in lines_of("trees.md", "onehop send"):
            said = shell(onehop, world.work, line.replace("HOST", ADDRESS_B))
            check("send      Photos/a" in said and said.count("excluded  ") == 2, said)
        (world.work / "Downloads/.onehop-stage").mkdir(parents=True, mode=0o700)
        for line in lines_of("trees.md", "onehop recv --clean"):
            shell(onehop, world.work, line)
            check((world.work / "Downloads/.onehop-stage").exists(), "it was listed only")


def test_streams(onehop) -> None:
    (send,) = lines_of("trees.md", "tar c")
    (receive,) = lines_of("trees.md", "onehop recv --dir -")
    with World(onehop) as world:
        for name in ("Photos/a", "in/x"):
            (world.work / name).parent.mkdir(parents=True, exist_ok=True)
        (world.work / "Photos/a").write_bytes(os.urandom(1_000_000))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            received = pool.submit(shell, onehop, world.work / "in", receive, (world, "b"))
            time.sleep(1)  # it listens
            shell(onehop, world.work, send.replace("HOST", ADDRESS_B), (world, "a"))
            received.result()
        same = (world.work / "in/Photos/a").read_bytes() == (world.work / "Photos/a").read_bytes()
        check(same, "the folder came out of the other end")


def test_lab(onehop) -> None:
    up, receive, send, down, run = lines_of("lab.md", "onehop lab")
    folder = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp", f"onehop-docs-{os.getpid()}")
    folder.mkdir()
    name = f"ONEHOP_DOCS_{os.getpid()}"
    try:
        (folder / "FILE").write_bytes(os.urandom(1_000_000))
        as_named = lambda line: re.sub(
            r"onehop lab (up|down|exec|run)", rf"onehop lab \1 --name docs{os.getpid()}", line
        )
        shell(onehop, folder, as_named(up))
        try:
            receive = receive.replace("--dir /tmp", f"--dir {folder}/in")
            (folder / "in").mkdir()
            together = f"{as_named(receive).rstrip('&')} & sleep 1; {as_named(send)} && wait $!"
            shell(onehop, folder, together)
            check(
                (folder / "in/FILE").read_bytes() == (folder / "FILE").read_bytes(),
                f"the file came ({name})",
            )
        finally:
            shell(onehop, folder, as_named(down))
        shell(onehop, folder, as_named(run).replace("iperf3 ...", "true"))
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_stress(onehop) -> None:
    for line in lines_of("stress.md", "onehop stress"):
        shell(onehop, ROOT, line.replace("s.csv", f"/tmp/onehop-docs-{os.getpid()}.csv"))
    Path(f"/tmp/onehop-docs-{os.getpid()}.csv").unlink()


def test_watch_and_plot(onehop) -> None:
    send, *plots = lines_of("watch.md", "onehop send", "onehop plot")
    with World(onehop) as world:
        world.file(40_000_000, "FILE")
        for trace in ("under.csv", "mid.csv"):
            receiver = world.receive()
            line = send.replace("HOST", ADDRESS_B).replace("under.csv", trace)
            sender = End(
                world.on(
                    "a",
                    "bash",
                    "-c",
                    f"cd {world.work} && exec {line.replace('onehop', onehop, 1)} --max-rate "
                    "200Mbit",
                ),
                world.work,
                trace,
                CODE,
            )
            try:
                receiver.wait_for(lambda: receiver.events("interval"), "data flows")
                if trace == "under.csv":
                    for watch in lines_of("watch.md", "onehop watch"):
                        watch = watch.replace("PID", str(sender.process.pid))
                        which = (
                            f"{watch} {sender.process.pid}"
                            if str(sender.process.pid) not in watch
                            else watch
                        )
                        shell(onehop, world.work, which + ("" if "--once" in which else " --once"))
                check(sender.code() == 0, f"`{line}` ends with 0: {sender.text()}")
                check(receiver.code() == 0, f"recv ends with 0: {receiver.text()}")
            finally:
                end_all([sender])
            (world.target / "FILE").unlink()
        (world.work / "report").mkdir()
        for line in plots:
            shell(onehop, world.work, line)
        for made in ("under.html", "report/two.html"):
            check((world.work / made).stat().st_size > 1000, f"{made} is there")
        (run,) = lines_of("watch.md", "onehop lab run")
        run = run.replace("lab run", f"lab run --name docs{os.getpid()}").replace(
            "...", "sleep 0.3"
        )
        shell(onehop, world.work, run)
        check((world.work / "rate.csv").exists(), "the rates are logged")


def test_no_command_is_left_out(_onehop) -> None:
    tested = {
        "bench.md": "onehop bench",
        "dpdk.md": ("onehop recv", "onehop send", "ARGS=", "onehop bench loop"),
        "doctor.md": "onehop doctor",
        "hardware.md": "onehop doctor",
        "lab.md": "onehop lab",
        "stress.md": "onehop stress",
        "trees.md": ("onehop send", "onehop recv --clean", "tar c", "onehop recv --dir -"),
        "watch.md": ("onehop watch", "onehop send", "onehop plot", "onehop lab run"),
    }
    readme = lines(ROOT / "README.md")
    left = [
        f"{page.name}: {line}"
        for page in PAGES
        if page.name not in OWN_TEST
        for line in lines(page)
        if not line.startswith(tested.get(page.name, "\0"))
        and not line.startswith(tuple(ELSEWHERE))
        and line not in readme
    ]
    check(not left, f"a test above runs each line, or ELSEWHERE says why none does: {left}")
    everything = [line for page in PAGES for line in lines(page)]
    gone = [start for start in ELSEWHERE if not any(line.startswith(start) for line in everything)]
    check(not gone, f"no page has a line that begins so: {gone}")


if __name__ == "__main__":
    sys.argv[1] = str(Path(sys.argv[1]).resolve())  # lines are run in other folders
    sys.exit(main(globals()))
