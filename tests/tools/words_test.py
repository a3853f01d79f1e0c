#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The list of words and what makes it: words_test.py TOOLS_WORDS [WORD].

Goal:   no word of the list is one that is refused, and tools/dev/words makes the same list again.
Method: the list as it is tracked. Made anew where both packages' files are on this machine.
Bounds: exact.
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
from program import PATIENCE, check, main  # noqa: E402  (found beside the lab's tests)

SCOWL = Path("/usr/share/dict/scowl")
SOUNDS = Path("/usr/share/festival/dicts/cmu/cmudict-0.4.out")


def words_of(script) -> list[str]:
    text = (Path(script).parents[2] / "control/session/code/word_list.cpp").read_text()
    return " ".join(re.findall(r'^    "([a-z ]+)"', text, re.MULTILINE)).split()


def test_no_word_is_refused(script) -> None:
    lines = (Path(script).parent / "words.d/refused.txt").read_text().splitlines()
    refused = [word for line in lines if not line.startswith("#") for word in line.split()]
    words = words_of(script)
    check(len(words) == 2048 and len(refused) > 200, "both lists are read")
    found = [word for word in words for wrong in refused
             if word == wrong or wrong.endswith("*") and word.startswith(wrong[:-1])]
    check(found == [], f"refused, and in the list: {found}")


def test_the_list_is_made_again(script) -> None:
    if not SCOWL.is_dir() or not SOUNDS.is_file():
        print("not made again: scowl and festlex-cmu are not installed")
        return
    done = subprocess.run([str(script), "--check", "--scowl", str(SCOWL), "--sounds", str(SOUNDS)],
                          capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == 0, f"the same list: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main(globals()))
