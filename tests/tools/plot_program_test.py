#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""onehop plot from outside, without root: plot_program_test.py ONEHOP [WORD].

Goal:   the traces of a real transfer become a report that stands alone, in files that replace
        nothing unasked.
Method: a real transfer on loopback with --trace at both ends; gnuplot and Chromium where they are.
Bounds: none on time.
"""

import html.parser
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from program_test import MB, Loopback  # noqa: E402
from program import (  # noqa: E402
    PATIENCE, Skip, check, main)


class Report(html.parser.HTMLParser):
    """What a page consists of."""

    def __init__(self, path) -> None:
        super().__init__()
        self.tags, self.outside, self.text = [], [], ""
        self.open: list[Any] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes) -> None:
        self.tags.append(tag)
        self.outside += [
            value for name, value in attributes if name in ("src", "href", "data", "xlink:href")
        ]
        if tag not in ("meta", "path", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data) -> None:
        self.text += data


class Traced(Loopback):
    """A loopback whose transfer has left a trace at each end."""

    def __enter__(self) -> Any:
        super().__enter__()
        self.sent, self.received = self.work / "sent.csv", self.work / "received.csv"
        receiver = self.receive("--trace", self.received)
        sender = self.start("send", self.file(8 * MB), "--to", self.address, "--max-rate",
                            "100Mbit", "--trace", self.sent)
        check(sender.code() == 0 and receiver.code() == 0,
              f"both end well: {sender.text()} {receiver.text()}")
        return self

    def plot(self, *options, **more) -> subprocess.CompletedProcess[Any]:
        return subprocess.run([os.path.abspath(self.onehop), "plot", *map(str, options)],
                              capture_output=True, text=True, timeout=PATIENCE, cwd=self.work,
                              stdin=subprocess.DEVNULL, **more)


def test_a_report_stands_alone_and_shows_both_ends(onehop) -> None:
    with Traced(onehop) as here:
        done = here.plot(here.sent, here.received, "--label", "sender", "--label", "receiver",
                         "--out", here.work / "out", "--title", "a <b>")
        check(done.returncode == 0, f"it is made: {done.stderr}")
        page = here.work / "out" / "sent.html"
        check(str(page) in done.stdout.split(), f"it says where: {done.stdout}")
        report = Report(page)
        check(report.open == [], f"all elements end: {report.open}")
        check(
            report.outside == [] and "script" not in report.tags and "url(" not in page.read_text(),
            f"nothing from elsewhere: {report.outside}")
        check("a <b>" in report.text and "sender" in report.text and "receiver" in report.text,
              "title and labels are text")
        for words in ("rate on the link [Mbit/s]", "time [s]", "share of time [%]", "delay [ms]",
                      "CPU time [% of a core]", "a cap", "granted", "Receiver's ring"):
            check(words in report.text, f"the report has {words!r}")
        check(page.stat().st_size < 1_000_000, "and is small")
        check(not [name for name in os.listdir(page.parent) if name.endswith(".part")],
              "nothing half done is left")


def test_a_receiving_end_has_a_trace_of_its_own(onehop) -> None:
    with Traced(onehop) as here:
        lines = here.received.read_text().splitlines()
        check(lines[2].startswith("# config: recv ") and len(lines) > 5,
              f"rows of the receiving end: {lines[:3]}")


def test_pictures_come_from_gnuplot_and_a_page_without_it(onehop) -> None:
    with Traced(onehop) as here:
        without = here.plot(here.sent, "--out", "without",
                            env=os.environ | {"PATH": "/nonexistent"})
        check(without.returncode == 0 and "gnuplot is not installed" in without.stderr,
              f"it says so: {without.stderr}")
        check(
            sorted(os.listdir(here.work / "without")) == ["sent.gp", "sent.html"],
            f"the page is there: {os.listdir(here.work / 'without')}")
        if shutil.which("gnuplot") is None:
            raise Skip("gnuplot is not installed (gnuplot-nox)")
        done = here.plot(here.sent, here.received, "--out", "it's.html")
        check(done.returncode == 0 and done.stderr == "",
              f"gnuplot has nothing to say: {done.stderr}")
        picture = (here.work / "it's.png").read_bytes()
        svg = (here.work / "it's.svg").read_text()
        width = int(re.search(r'viewBox="0 0 (\d+) ', svg)[1])
        check(
            picture[:8] == b"\x89PNG\r\n\x1a\n"
            and struct.unpack(">I", picture[16:20])[0] == 2 * width,
            f"a PNG of twice the size: {width}")
        check("<svg" in svg and "rate on the link [Mbit/s]" in svg, "SVG with text as text")
        again = subprocess.run(["gnuplot", "it's.gp"], cwd=here.work, capture_output=True,
                               text=True, timeout=PATIENCE)
        check(again.returncode == 0 and again.stderr == "",
              f"the script draws again: {again.stderr}")


def test_nothing_is_replaced_unasked(onehop) -> None:
    with Traced(onehop) as here:
        check(here.plot(here.sent, "--out", "out").returncode == 0, "the first time")
        page = here.work / "out" / "sent.html"
        before = page.read_text()
        done = here.plot(here.sent, "--out", "out", "--title", "other")
        check(done.returncode == 8 and "sent.html" in done.stderr and "--on-exist" in done.stderr,
              f"exists: {done.returncode} {done.stderr}")
        check(page.read_text() == before, "it is as it was")
        done = here.plot(here.sent, "--out", "out", "--title", "other", "--on-exist", "rename")
        check(
            done.returncode == 0 and (page.parent / "sent-1.html").exists()
            and page.read_text() == before, "beside it")
        done = here.plot(here.sent, "--out", "out", "--title", "other", "--on-exist", "overwrite")
        check(done.returncode == 0 and "<h1>other</h1>" in page.read_text(), "replaced when asked")
        trace = here.work / "trace.svg"
        shutil.copy(here.sent, trace)
        done = here.plot(trace, "--on-exist", "overwrite")
        check(
            done.returncode == 2 and "the trace itself" in done.stderr
            and trace.read_bytes() == here.sent.read_bytes(), f"never the trace: {done.stderr}")


def test_the_capacity_stands_beside_the_rates_and_one_figure_alone(onehop) -> None:
    with Traced(onehop) as here:
        done = here.plot(here.sent, "--capacity", "200Mbit", "--only", "rates,delay", "--out",
                         "two.html")
        text = Report(here.work / "two.html").text
        check(done.returncode == 0 and "capacity of the link" in text and "200.0 Mbit/s" in text,
              f"a number: {done.stderr}")
        check("delay [ms]" in text and "Receiver's ring" not in text, "what was asked for alone")
        first = int(here.sent.read_text().splitlines()[4].split(",")[0])
        log = here.text("rate.csv", f"t_ns,rate_bytes_per_s\n{first - 1},12500000\n")
        done = here.plot(here.sent, here.received, "--capacity", log, "--capacity", "1G", "--out",
                         "file.html")
        check(done.returncode == 0 and "100.0 Mbit/s" in Report(here.work / "file.html").text,
              f"a file, for each trace its own: {done.stderr}")
        late = here.text("late.csv", f"t_ns,rate_bytes_per_s\n{2 ** 62},12500000\n")
        for words, code, said in ((("--capacity", late), 2, "after the trace's end"),
                                  (("--capacity", "none.csv"), 8, "600Mbit"),
                                  (("--only", "x"), 2, "--only"), (("--only", "losses"), 2,
                                                                   "no trace has data"),
                                  (("--capacity", "1G", "--capacity", "1G"), 2, "2 for 1 traces")):
            done = here.plot(here.sent, *words, "--out", "more", "--on-exist", "overwrite")
            check(done.returncode == code and said in done.stderr,
                  f"{words}: {done.returncode} {done.stderr}")


def test_an_interrupt_leaves_no_half_written_file(onehop) -> None:
    if shutil.which("gnuplot") is None:
        raise Skip("gnuplot is not installed (gnuplot-nox)")
    with Traced(onehop) as here:
        # gnuplot takes its time in this one: the interrupt comes while it draws.
        slow = here.work / "bin" / "gnuplot"
        slow.parent.mkdir()
        slow.write_text("#!/bin/sh\ntouch drawing\nexec sleep 60\n")
        slow.chmod(0o755)
        process = subprocess.Popen(
            [os.path.abspath(here.onehop), "plot",
             str(here.sent), "--out", "out"], cwd=here.work, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PATH": f"{slow.parent}:{os.environ['PATH']}"},
            start_new_session=True)
        give_up_at = time.monotonic() + PATIENCE
        while not (here.work / "out" / "drawing").exists():
            check(time.monotonic() < give_up_at, "it draws")
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        check(process.wait(PATIENCE) == -signal.SIGINT, f"the signal ends it: {process.returncode}")
        left = sorted(os.listdir(here.work / "out"))
        check(left == ["drawing", "sent.html"],
              f"the page is whole, and nothing else is there: {left}")


def test_wrong_arguments_and_wrong_traces_are_named(onehop) -> None:
    with Traced(onehop) as here:
        for words in ((), ("--out", "x"), (here.sent, "--on-exist", "resume"),
                      (here.sent, "--label"), (here.sent, "--bogus")):
            check(here.plot(*words).returncode == 2, f"{words} is refused")
        for name in ("figure.png", "figure.pdf", "new/figure.svg"):
            done = here.plot(here.sent, "--out", name)
            check(done.returncode == 2 and "FILE.html" in done.stderr,
                  f"a picture's name is no folder's: {done.stderr}")
            check(not (here.work / name).exists() and not (here.work / "new").exists(),
                  "nothing is made")
        done = here.plot(here.sent, "--label", "a", "--label", "b")
        check(done.returncode == 2 and "2 labels for 1 traces" in done.stderr,
              f"labels are counted: {done.stderr}")
        done = here.plot(*[here.sent] * 13)
        check(done.returncode == 2 and "at most 12" in done.stderr, f"traces too: {done.stderr}")
        done = here.plot(here.work / "none.csv")
        check(done.returncode == 8 and "none.csv" in done.stderr, f"a missing one: {done.stderr}")
        text = here.sent.read_text()
        for name, content, claim in (("empty", "", "line 1: the file is empty"),
                                     ("cut", text[:len(text) - 30], "the file is cut off here"),
                                     ("binary", "\0\1\2" * 50_000,
                                      "line 1"), ("other", "a,b\n1,2\n", "no column 't_ns'"),
                                     ("letters",
                                      text + text.splitlines()[-1].replace(",", ",x", 1) + "\n",
                                      "column 2 (tx_queue_bytes)")):
            path = here.text(f"{name}.csv", content)
            done = here.plot(path, "--out", "bad")
            check(done.returncode == 8 and claim in done.stderr,
                  f"{name}: {done.returncode} {done.stderr}")
            check(not (here.work / "bad").exists(), "nothing is written")


def test_no_text_of_a_trace_is_run(onehop) -> None:
    with Traced(onehop) as here:
        lines = here.sent.read_text().splitlines()
        lines[0] = "# command line: `touch pwned` $(touch pwned) \\"
        path = here.text("evil.csv", "\n".join(lines) + "\n")
        done = here.plot(path, "--label", "`touch pwned`", "--title", "'`touch pwned`", "--out",
                         "out")
        said = "" if shutil.which("gnuplot") else "no SVG and no PNG"  # the page is made anyway
        check(done.returncode == 0 and said in done.stderr and bool(said) == bool(done.stderr),
              f"it is plotted: {done.stderr}")
        check(not list(here.work.rglob("pwned")), "and no more")


def test_the_page_fits_wide_and_narrow_windows(onehop) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise Skip("chromium is not installed")
    with Traced(onehop) as here:
        check(
            here.plot(here.sent, here.received, "--out", "page.html").returncode == 0, "it is made")
        page = here.work / "page.html"
        # A copy that may run a script tells its own width in its title.
        copy = here.work / "measured.html"
        text = page.read_text()
        policy = text[text.index("<meta http-equiv"):]
        policy = policy[:policy.index(">") + 1]
        copy.write_text(
            text.replace(policy, "").replace(
                "</body>",
                "<script>document.title = 'width ' + document.documentElement.scrollWidth + ' of ' "
                "+ "
                "innerWidth</script></body>"))
        for width in (1280, 480):
            done = subprocess.run([
                chromium, "--headless", "--no-sandbox", "--disable-gpu",
                f"--user-data-dir={here.work}/profile", f"--window-size={width},900", "--dump-dom",
                copy.as_uri()
            ], capture_output=True, text=True, timeout=PATIENCE)
            if done.returncode != 0:
                raise Skip(f"chromium does not run here: {done.stderr.strip()[-200:]}")
            title = done.stdout[done.stdout.index("<title>") + 7:done.stdout.index("</title>")]
            shown, window = int(title.split()[1]), int(title.split()[3])
            # Chromium's windows are at least 500 wide
            check(shown <= window <= max(width, 500), f"nothing sticks out: {title}")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
