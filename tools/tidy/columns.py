# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""No line has more than 100 columns. In shell a longer one is only a warning."""

from collections.abc import Iterator
from typing import Any

COLUMNS_MAX = 100
ENDINGS = (".py", ".cpp", ".hpp", ".c", ".h", ".sh")


def findings(tree) -> Iterator[Any]:
    """Yields (path, line, text, is_warning)."""
    for path, text in tree.texts.items():
        head = text[:40].splitlines()[0] if text.strip() else ""
        if not path.endswith(ENDINGS) and not head.startswith("#!"):
            continue
        is_shell = path.endswith(".sh") or ("sh" in head and "python" not in head)
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > COLUMNS_MAX:
                yield (path, number, f"{len(line)} columns, {COLUMNS_MAX} at most", is_shell)
