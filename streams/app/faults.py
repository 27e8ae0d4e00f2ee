"""Test only: kills this process at named points of a step. Inert unless asked for.

A test of what a crash leaves behind must crash at the worst moments, which an outside `kill -9` hardly
ever meets. The points are those between which a step's records reach the broker; each firing is first
written to a file, so that a test can prove that the fault happened at all.

    FAIRSTREAM_FAULTS="after_rows=0.01,before_commit=0.02;seed=7;trace=/tmp/faults.txt"
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from streams.errors import ConfigError

POINTS: Final = ("before_begin", "after_rows", "after_dispatches", "before_commit", "after_commit")


class Faults(Protocol):
    """Asked at each point of a step; may not return."""

    def at(self, point: str, flush: Callable[[], object]) -> None:
        """`flush` brings what was produced so far to the broker: it then holds half a transaction."""


class NoFaults:
    """What everybody runs with."""

    def at(self, point: str, flush: Callable[[], object]) -> None:
        """Go on."""


class KillPoints:
    """Kills the process at each point with the probability given for it."""

    def __init__(self, chances: Mapping[str, float], *, seed: int, trace: Path) -> None:
        self._chances = dict(chances)
        self._random = random.Random(seed)
        self._trace = trace

    def at(self, point: str, flush: Callable[[], object]) -> None:
        if self._random.random() >= self._chances.get(point, 0.0):
            return
        if point != "before_begin":
            flush()
        with self._trace.open("ab", buffering=0) as file:
            file.write(f"{os.getpid()} {point}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def parse_faults(text: str | None) -> Faults:
    """Read the form shown above; None or empty: no faults. Raises `ConfigError` naming what is wrong."""
    if not text:
        return NoFaults()
    chances: dict[str, float] = {}
    options: dict[str, str] = {}
    for part in text.replace(";", ",").split(","):
        name, separator, value = part.strip().partition("=")
        if not separator or (name not in POINTS and name not in {"seed", "trace"}):
            raise ConfigError(
                f"is not `point=chance`, `seed=N` or `trace=FILE`; points: {', '.join(POINTS)}",
                field="faults",
                value=part,
            )
        if name in POINTS:
            chances[name] = _chance(value)
        else:
            options[name] = value
    if "trace" not in options:
        raise ConfigError("needs trace=FILE: a fault must be able to prove that it fired", field="faults", value=text)
    # One seed for all schedulers of a test would make them die together.
    return KillPoints(chances, seed=int(options.get("seed", "0")) ^ os.getpid(), trace=Path(options["trace"]))


def _chance(value: str) -> float:
    try:
        chance = float(value)
    except ValueError:
        chance = -1.0
    if not 0.0 <= chance <= 1.0:
        raise ConfigError("must be a probability between 0 and 1", field="faults", value=value)
    return chance
