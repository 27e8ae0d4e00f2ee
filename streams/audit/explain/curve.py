"""A long time in few points: at most some hundreds, whatever its length. The same record gives the same points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_POINTS: Final = 256
MAX_SLICES: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """How the run and its tenant stood after a step."""

    step: int
    at_ms: int
    part: str  # why it had not been dispatched (a part, see `parts`), or "": it was in flight
    ahead_runs: int  # of its own flow, before it
    ahead_tokens: int
    deficit: int  # of its flow, tokens; negative: debt
    round: int  # of its class
    flight_runs: int  # of its tenant
    flight_tokens: int
    shard_flight_runs: int
    shard_flight_tokens: int


class Curve:
    """The points that are kept of one a step: every one at first, then every second, every fourth, ..."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self._stride = 1
        self._seen = 0

    def wants(self) -> bool:
        """Count a step, and tell whether its point is to be added: it costs something to work out."""
        self._seen += 1
        return (self._seen - 1) % self._stride == 0

    def add(self, point: Point) -> None:
        self.points.append(point)
        if len(self.points) > MAX_POINTS:
            self.points = self.points[::2]
            self._stride *= 2

    def end(self, point: Point) -> None:
        """Add the last one, whether it is wanted or not."""
        if not self.points or self.points[-1].step != point.step:
            self.points.append(point)


class Slices:
    """Amounts by name over time, in slices of equal length: as many ms as it takes for `MAX_SLICES` to hold them."""

    def __init__(self, begin_ms: int) -> None:
        self.begin_ms: Final = begin_ms
        self.width_ms = 1
        self._slices: dict[int, dict[str, int]] = {}

    def add(self, at_ms: int, name: str, amount: int) -> None:
        """Book an amount at a moment; what is before the beginning counts at the beginning."""
        after = max(0, at_ms - self.begin_ms)
        while after // self.width_ms >= MAX_SLICES:
            self._widen()
        slice_ = self._slices.setdefault(after // self.width_ms, {})
        slice_[name] = slice_.get(name, 0) + amount

    def fill(self, begin_ms: int, end_ms: int, name: str) -> None:
        """Book each ms of an interval as 1."""
        if begin_ms < end_ms:
            self.add(end_ms - 1, name, 0)  # first, for it may widen the slices
        while begin_ms < end_ms:
            upto = min(end_ms, begin_ms + self.width_ms - (begin_ms - self.begin_ms) % self.width_ms)
            self.add(begin_ms, name, upto - begin_ms)
            begin_ms = upto

    def __iter__(self) -> Iterator[tuple[int, dict[str, int]]]:
        """Yield (beginning in ms, amount by name) of the slices that hold something, in order."""
        for number in sorted(self._slices):
            amounts = {name: amount for name, amount in self._slices[number].items() if amount}
            yield self.begin_ms + number * self.width_ms, amounts

    def _widen(self) -> None:
        self.width_ms *= 2
        before, self._slices = self._slices, {}
        for number, amounts in before.items():
            into = self._slices.setdefault(number // 2, {})
            for name, amount in amounts.items():
                into[name] = into.get(name, 0) + amount
