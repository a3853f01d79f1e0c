# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A terminal of 80 x 24 with one command in it, and what a person sees there."""

import os
import re
import select
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

from program import PATIENCE, check  # noqa: E402
from prompt_program_test import Shell  # noqa: E402

COLUMNS, ROWS = 80, 24


class Screen(Shell):
    """The command is the process itself: it has the terminal and its signals."""

    def __init__(self, words, environment=None, state="", rows=ROWS) -> None:
        super().__init__(
            ["sh", "-c", f'stty rows {rows} cols {COLUMNS}; exec "$@"', "sh", *map(str, words)],
            {"ONEHOP_STATE_DIR": str(state)} | (environment or {}))
        self.is_open = True

    def code(self) -> Any:
        """code reads to the end, and is the exit code."""
        give_up_at = time.monotonic() + PATIENCE
        while True:
            check(time.monotonic() < give_up_at, f"it ends by itself: {self.rows()}")
            try:
                if select.select([self.fd], [], [], 0.05)[0]:
                    self.text += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                break
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        self.is_open = False
        return status

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            super().close()

    def wait_text(self, words) -> None:
        self.read_until(lambda: words in " ".join(self.text.split()), f"it says '{words}'")

    def rows(self) -> list[str]:
        """rows is all that stood on the screen when it had scrolled by, without what was drawn
        over."""
        rows, _ = render(self.text)
        return rows

    @property
    def cut(self) -> int:
        """cut is how often the terminal broke a line that the program did not."""
        return render(self.text)[1]

    def check_whole(self) -> None:
        check(self.cut == 0, f"no line is broken by the terminal: {self.rows()}")


def render(text) -> tuple[list[str], int]:
    rows, row, column, cut = [], [], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|.", text, re.S):
        if part == "\x1b[K":
            del row[column:]
        elif part == "\r":
            column = 0
        elif part == "\n":
            rows.append("".join(row))
            row, column = [], 0
        elif not part.startswith("\x1b"):
            if column == COLUMNS:
                rows.append("".join(row))
                row, column, cut = [], 0, cut + 1
            row[column:column + 1] = [part]
            column += 1
    return [line.rstrip() for line in [*rows, "".join(row)]], cut
