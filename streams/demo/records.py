"""What was read from the topics of a deployment, as it was written there. Moments are ms since the epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from streams.core.effects import Settlement


class Filed(NamedTuple):
    """A request, in the order of its topic."""

    tenant: str
    run_id: str
    at_ms: int


class Handed(NamedTuple):
    """A dispatch, in the order of its topic."""

    seq: int
    tenant: str
    run_id: str
    attempt: int
    estimate: int  # tokens charged
    at_ms: int


class Report(NamedTuple):
    """What the fleet said of an attempt."""

    tenant: str
    run_id: str
    attempt: int
    status: str  # see `streams.core.inputs`
    tokens: int | None
    at_ms: int


class Account(NamedTuple):
    """A flow's row as the shard keeps it, in tokens."""

    charged: int
    actual: int


@dataclass(slots=True)
class Records:
    """Everything read so far."""

    filed: list[Filed] = field(default_factory=list)
    handed: list[Handed] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    settled: list[Settlement] = field(default_factory=list)  # from the journal, in its order
    succeeded: int = 0  # == settlements of that outcome: runs that are over and done
    refused: list[str] = field(default_factory=list)  # one sentence each; a story has none
    steps: int = 0  # records of the journal
