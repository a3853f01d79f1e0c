# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Metrics with their bounds, collected over rounds, as a table and as a page. No figure is written
by hand."""

import datetime
import os
import platform
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from collections.abc import Iterator
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "results.d"))
import figures  # noqa: E402


@dataclass(frozen=True)
class Metric:
    """One measured quantity of a case; `relation` and `bound` are empty where nothing is required.
    `replaced` says why a bound is no longer required: it is judged and shown all the same."""

    key: str
    label: str
    unit: str = ""
    relation: str = ""
    bound: float = 0.0
    replaced: str = ""

    def holds(self, value) -> Any:
        return {
            "": None, ">=": value >= self.bound, "<=": value <= self.bound,
            "==": value == self.bound
        }[self.relation]

    def required(self) -> str:
        return (f"{self.relation} {self.bound:.4g}{figures.NO_LONGER if self.replaced else ''}"
                if self.relation else "")

    def verdict(self, holds) -> str:
        if holds is None or not self.relation:
            return ""
        return (f"{'met' if holds else 'missed'}; {self.replaced}"
                if self.replaced else "ok" if holds else "FAIL")


@dataclass
class Result:
    """The rounds of one case."""

    name: str
    about: str
    metrics: list
    values: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    failures: list = field(default_factory=list)

    def add(self, values) -> None:
        for key, value in values.items():
            if key == "note":
                if value not in self.notes:
                    self.notes.append(value)
            elif value is not None:
                self.values.setdefault(key, []).append(value)

    def rows(self) -> Any:
        """rows returns [label, median, min..max, required, verdict]; what no round measured says so
        and never passes."""
        out = []
        for metric in self.metrics:
            values = self.values.get(metric.key)
            if not values:
                out.append([
                    f"{metric.label} [{metric.unit}]" if metric.unit else metric.label,
                    "not measured", "",
                    metric.required(), "FAIL" if metric.relation and not metric.replaced else ""
                ])
                continue
            median = statistics.median(values)
            # What must be exactly so must be so in every round; the rest is judged by its median.
            verdict = all(map(metric.holds,
                              values)) if metric.relation == "==" else metric.holds(median)
            out.append([
                f"{metric.label} [{metric.unit}]" if metric.unit else metric.label, f"{median:.4g}",
                f"{min(values):.4g}..{max(values):.4g} (n={len(values)})",
                metric.required(),
                metric.verdict(verdict)
            ])
        return out

    def median(self, key) -> Any:
        return statistics.median(self.values[key])

    @property
    def is_ok(self) -> bool:
        return not self.failures and all(row[4] != "FAIL" for row in self.rows())


def machine() -> str:
    model = next((line.split(":", 1)[1].strip()
                  for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}"


HEAD = ["measure", "median", "min..max", "required", "verdict"]


def print_result(result) -> None:
    print(f"\n{result.name}: {result.about}")
    rows = [HEAD, *result.rows()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    for text in result.notes:
        print(f"  note: {text}")
    for text in result.failures:
        print(f"  FAILED: {text}")


def opening(results) -> Iterator[str]:
    """opening returns the first lines of a page."""
    rows = [(result, row) for result in results for row in result.rows()]
    judged = [row[4] for _, row in rows if row[4] in ("ok", "FAIL")]
    missed = [(result.name, text) for result in results for text in [
        *(f"{row[0]}: {row[1]} {row[3]}" for row in result.rows() if row[4] == "FAIL"),
        *(f"failed: {text}" for text in result.failures)]]
    replaced = []
    for result, row in rows:
        if row[3].endswith(figures.NO_LONGER):
            state, _, why = row[4].partition("; ")
            was = row[3].removesuffix(figures.NO_LONGER)
            replaced.append((result.name, f"{row[0]}: {row[1]} {was}", state, why))
    first = (f"{judged.count('ok')} of {len(judged)} bounds hold; "
             f"{sum(not result.is_ok for result in results)} of {len(results)} cases do not hold "
             "whole")
    return figures.opening(first, missed, replaced)


def bound_lines(cases) -> Iterator[Any]:
    """bound_lines lists what the cases require, or once did."""
    for name, _, metrics, _ in cases:
        for metric in metrics:
            if metric.relation:
                yield f"{name}: {metric.label}: {metric.relation} {metric.bound:g}"


def write_page(path, title, results, command, onehop_version, load, tcp_law, summary) -> None:
    """write_page makes the file at `path` of what this run measured; the lines of `summary` go
    before the cases."""
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only -->", f"# {title}", "",
        *opening(results), f"- command: `{command}`", f"- machine: {machine()}",
        f"- onehop: {onehop_version}",
        f"- commit: {figures.commit_of(Path(__file__).resolve().parents[3])}",
        f"- date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        f"- load average before the first round: {load:.2f} (of other programs; above 0.2 the CPU "
        "figures are rough)",
        f"- TCP congestion control of the programs compared: {tcp_law}", "",
        "Each figure is the median over the rounds, with the smallest and the largest. Ratios to "
        "iperf3 are formed within a round.", *summary
    ]
    for result in results:
        lines += [
            "", f"## {result.name}", "", result.about, "", "| " + " | ".join(HEAD) + " |",
            "|" + "---|" * len(HEAD)
        ]
        lines += ["| " + " | ".join(row) + " |" for row in result.rows()]
        lines += [""] if result.notes or result.failures else []
        lines += [f"- {text}"
                  for text in result.notes] + [f"- failed: {text}" for text in result.failures]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
