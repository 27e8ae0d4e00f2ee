"""Test only: kills or stops this process at named points of a step. Inert unless asked for.

A test of what a crash leaves behind must crash at the worst moments, which an outside `kill -9` hardly
ever meets. The points are those between which a step's records reach the broker; each firing is first
written to a file, so that a test can prove that the fault happened at all.

    FAIRSTREAM_FAULTS="after_rows=0.01,before_commit=0.02;seed=7;trace=/tmp/faults.txt"   by chance, at each passing
    FAIRSTREAM_FAULTS="before_commit@3;signal=STOP;trace=/tmp/faults.txt"                  at the third passing
    FAIRSTREAM_FAULTS="after_rows=1,before_commit=1;arm=/tmp/arm;trace=/tmp/faults.txt"    once /tmp/arm names the point

A process that is stopped (SIGSTOP) in the middle of a transaction and told to go on later is the worst of zombies.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from streams.errors import ConfigError

POINTS: Final = ("before_begin", "after_rows", "after_dispatches", "before_commit", "after_commit")
_SIGNALS: Final = {"KILL": signal.SIGKILL, "STOP": signal.SIGSTOP}
_OPTIONS: Final = ("arm", "seed", "signal", "trace")


class Faults(Protocol):
    """Asked at each point of a step; may not return."""

    def at(self, point: str, flush: Callable[[], object]) -> None:
        """`flush` brings what was produced so far to the broker: it then holds half a transaction."""


class NoFaults:
    """What everybody runs with."""

    def at(self, point: str, flush: Callable[[], object]) -> None:
        """Go on."""


class FaultPoints:
    """Sends this process a signal at a point, with the probability given for it or at the passing given for it."""

    def __init__(
        self,
        chances: Mapping[str, float],
        *,
        trace: Path,
        passings: Mapping[str, int] | None = None,
        seed: int = 0,
        number: signal.Signals = signal.SIGKILL,
        arm: Path | None = None,
    ) -> None:
        """`passings` count from 1, over all shards of the process. `arm` is a file: it is gone once a fault fires."""
        self._chances = dict(chances)
        self._passings = dict(passings or {})
        self._passed: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._trace = trace
        self._number = number
        self._arm = arm
        self._lock = threading.Lock()  # every shard's thread asks

    def at(self, point: str, flush: Callable[[], object]) -> None:
        with self._lock:
            if not self._due(point):
                return
        if point != "before_begin":
            flush()
        with self._trace.open("ab", buffering=0) as file:
            file.write(f"{os.getpid()} {point}\n".encode())
        # To this thread: one that is sent to the process may reach another thread first, and this one gets further.
        signal.pthread_kill(threading.get_ident(), self._number)

    def _due(self, point: str) -> bool:
        self._passed[point] += 1
        if self._passed[point] != self._passings.get(point) and self._random.random() >= self._chances.get(point, 0.0):
            return False
        if self._arm is None:
            return True
        if not self._arm.exists() or self._arm.read_text(encoding="ascii") != point:
            return False
        self._arm.unlink()  # one arming, one fault
        return True


def parse_faults(text: str | None) -> Faults:
    """Read the forms shown above; None or empty: no faults. Raises `ConfigError` naming what is wrong."""
    if not text:
        return NoFaults()
    chances: dict[str, float] = {}
    passings: dict[str, int] = {}
    options: dict[str, str] = {}
    for part in text.replace(";", ",").split(","):
        point, at, number = part.strip().partition("@")
        name, separator, value = part.strip().partition("=")
        if at and point in POINTS:
            passings[point] = _passing(number)
        elif separator and name in POINTS:
            chances[name] = _chance(value)
        elif separator and name in _OPTIONS:
            options[name] = value
        else:
            raise ConfigError(
                "is not `point=chance`, `point@N`, `seed=N`, `signal=KILL` or `STOP`, `arm=FILE` or `trace=FILE`; "
                f"points: {', '.join(POINTS)}",
                field="faults",
                value=part,
            )
    if "trace" not in options:
        raise ConfigError("needs trace=FILE: a fault must be able to prove that it fired", field="faults", value=text)
    return FaultPoints(
        chances,
        trace=Path(options["trace"]),
        passings=passings,
        # One seed for all schedulers of a test would make them die together.
        seed=int(options.get("seed", "0")) ^ os.getpid(),
        number=_signal(options.get("signal", "KILL")),
        arm=Path(options["arm"]) if "arm" in options else None,
    )


def _chance(value: str) -> float:
    try:
        chance = float(value)
    except ValueError:
        chance = -1.0
    if not 0.0 <= chance <= 1.0:
        raise ConfigError("must be a probability between 0 and 1", field="faults", value=value)
    return chance


def _passing(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise ConfigError("must be the number of a passing, from 1", field="faults", value=value)
    return int(value)


def _signal(value: str) -> signal.Signals:
    if value not in _SIGNALS:
        raise ConfigError(f"must be one of {', '.join(_SIGNALS)}", field="faults", value=value)
    return _SIGNALS[value]
