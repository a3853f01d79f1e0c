# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""No line of code or script has more than 100 columns."""

from collections.abc import Iterator
from typing import Any

COLUMNS_MAX = 100
ENDINGS = (".py", ".cpp", ".hpp", ".c", ".h", ".sh")


def findings(tree) -> Iterator[Any]:
    """Yields (path, line, text)."""
    for path, text in tree.texts.items():
        if not path.endswith(ENDINGS) and not text.startswith("#!"):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > COLUMNS_MAX:
                yield path, number, f"{len(line)} columns, {COLUMNS_MAX} at most"
