# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What the trials share: the world of the lab tests, and a seed and a number of rounds for what is
random.

A trial is a module NAME_trial.py beside this file with test_* functions that take the path of
`onehop`. ONEHOP_TRIAL_SEED repeats a run; ONEHOP_TRIAL_ROUNDS sets the rounds of the random ones.
Both are options of tools/measure/trial.
"""

import os
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "lab"))

_SEED = int(os.environ.get("ONEHOP_TRIAL_SEED") or time.time_ns() % 1_000_000)


def rounds(short) -> int:
    """rounds is how often a random trial repeats itself: `short` in tools/check, more where
    tools/measure/trial was asked for it."""
    return int(os.environ.get("ONEHOP_TRIAL_ROUNDS") or short)


def dice(title) -> Any:
    """dice returns a random source of its own for the trial `title`, and prints how to repeat
    it."""
    print(f"seed  {title}: --seed {_SEED}", flush=True)
    return random.Random(f"{title} {_SEED}")
