#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What a file manager starts: desktop_test.py ONEHOP [WORD].

Goal:   paths of all kinds arrive at `onehop send` as they are, the window stays until Enter, and a
        desktop without a terminal says so.
Method: the script of configs/desktop with the real program on loopback; its terminal emulator runs
        the command in the terminal that this test watches.
Bounds: exit codes, texts, content.
"""

import subprocess
import sys
from pathlib import Path

from first_screen_test import GIVEN, Desk
from loopback import check
from program import main
from screen import Screen

DESKTOP = Path(__file__).resolve().parents[2] / "configs" / "desktop"
SCRIPT = DESKTOP / "send-with-onehop"


def programs(desk, **texts) -> str:
    """programs makes a folder with these shell scripts and what they call, as a PATH."""
    folder = desk.work / "bin"
    folder.mkdir()
    for name, text in texts.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    for name in ("sh", "readlink", "stty"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    return str(folder)


def test_what_was_selected_is_sent_and_the_window_stays(onehop) -> None:
    with Desk(onehop) as desk:
        receiver = desk.receive()
        odd = desk.text("a name with 'quotes' and $(spaces)", "odd")
        desk.onehop = str(Path(onehop).resolve())
        desk.text("-option", "as a file manager names what is in its folder")
        path = programs(
            desk, x_terminal_emulator='[ "$1" = -e ] && shift && exec "$@"',
            onehop=f'shift\nexec {desk.onehop} send --to {desk.address} --io udp "$@"')
        window = Screen(["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", desk.work, SCRIPT, odd,
                         "-option"], GIVEN | {"PATH": path}, desk.state)
        desk.screens.append(window)
        window.wait_text("Enter closes this window.")
        check(receiver.code() == 0, receiver.text())
        for name in (odd.name, "-option"):
            check((desk.target / name).read_bytes() == (desk.work / name).read_bytes(), name)
        window.write("\n")
        check(window.code() == 0, f"as send's: {window.rows()}")


def test_a_desktop_without_a_terminal_says_so(onehop) -> None:
    with Desk(onehop) as desk:
        path = programs(desk, notify_send=f'echo "$2" >{desk.work}/said')
        done = subprocess.run([SCRIPT, "/etc/hostname"], env={"PATH": path}, capture_output=True,
                              text=True, timeout=60)
        said = (desk.work / "said").read_text()
        check(done.returncode == 10 and all("Install one" in text for text in (done.stderr, said)),
              f"{done.returncode} {done.stderr} {said}")


def test_entries_start_what_is_installed(onehop) -> None:
    build = Path(onehop).resolve().parents[2] / "configs" / "desktop"
    for name in ("onehop.desktop", "onehop.kio.desktop", "onehop.nemo_action"):
        lines = (build / name).read_text().splitlines()
        commands = [line.removeprefix("Exec=") for line in lines if line.startswith("Exec=")]
        check(len(commands) == 1 and commands[0].endswith("/onehop/send-with-onehop %F"),
              f"{name}: {commands}")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
