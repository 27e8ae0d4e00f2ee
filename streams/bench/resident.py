"""The memory of another process, as Linux counts it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from streams import clock

_KB: Final = 1024
_LOOK_S: Final = 1.0
_LOOKS: Final = 20
_STEADY: Final = 0.005  # of it: what it may still change by from one look to the next


class Resident(NamedTuple):
    """Bytes of a process in memory."""

    now: int
    peak: int  # since it began


def resident(pid: int) -> Resident:
    """Look at a process. Raises `FileNotFoundError` where there is no /proc, or the process has ended."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    sizes = dict(line.split(":", 1) for line in lines)
    return Resident(*(int(sizes[name].split()[0]) * _KB for name in ("VmRSS", "VmHWM")))


def settled(pid: int) -> Resident:
    """Look until it no longer changes much, for 20 s at most."""
    seen = resident(pid)
    for _ in range(_LOOKS):
        clock.pause(_LOOK_S)
        before, seen = seen, resident(pid)
        if abs(seen.now - before.now) <= _STEADY * before.now:
            break
    return seen
