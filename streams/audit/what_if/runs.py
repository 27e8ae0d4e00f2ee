"""What the record says of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from streams.core.inputs import Submit

# How a run stands at the end of the record, beside the reasons of `streams.core.reasons` and a worker's last word.
CANCELLED: Final = "cancelled"
WAITING: Final = "waiting"
IN_FLIGHT: Final = "in_flight"


@dataclass(slots=True)
class Attempt:
    """One dispatch of a run. Moments are ms since the epoch, none before the one that it follows."""

    seq: int
    estimate: int  # tokens charged at dispatch
    decided_ms: int  # the dispatch record's timestamp; if that is gone, the time of the step
    started_ms: int | None = None  # the started report's timestamp; None: there is no such report
    reported_ms: int | None = None  # that of the worker's last word
    retryable: bool = False
    outcome: str | None = None  # None: in flight
    ended_ms: int = 0  # the worker's last word; of one that was lost, the step that gave it up
    tokens: int = 0  # settled, as far as the record goes

    @property
    def begun_ms(self) -> int:
        """When its slot began to work."""
        return self.decided_ms if self.started_ms is None else self.started_ms


@dataclass(slots=True)
class RecordedRun:
    """One request that stands in the record, and what became of it."""

    shard: int
    submit: Submit  # without its body
    body_bytes: int
    at_ms: int  # the request record's timestamp
    attempts: dict[int, Attempt] = field(default_factory=dict)  # by number
    end: str | None = None  # what ended it: a worker's last word, a reason of its rejection, or `CANCELLED`

    @property
    def ended(self) -> list[Attempt]:
        """The attempts that are over, in the order in which they were decided."""
        return [attempt for attempt in self.attempts.values() if attempt.outcome is not None]

    @property
    def state(self) -> str:
        """How it stands at the end of the record."""
        flying = any(attempt.outcome is None for attempt in self.attempts.values())
        return self.end or (IN_FLIGHT if flying else WAITING)
