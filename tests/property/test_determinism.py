"""The same inputs give the same effects, in the same order, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.property.replayed import history_hash

ROOT = Path(__file__).parents[2]


def hash_in_another_process(seed: int, hash_seed: str) -> str:
    """Run the history where strings hash differently, so that sets and dicts would iterate differently."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.property.replayed", str(seed)]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout.strip()


def test_effects_do_not_depend_on_the_process() -> None:
    hashes = {hash_in_another_process(7, hash_seed) for hash_seed in ("0", "1", "4242")}
    assert hashes == {history_hash(7)}


def test_another_history_has_another_hash() -> None:
    assert history_hash(7, steps=50) != history_hash(8, steps=50)
