"""The subjects of the books: tenants, flows, runs and attempts, as far as the topics tell of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from heapq import heappop
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from streams.audit.verify.intervals import Interval
    from streams.audit.verify.stretch import Stretch
    from streams.core.policy import TenantRules

NEVER: Final = 1 << 63  # ms: of a run of which it is not known when it may go
UNKNOWN_POSITION: Final = -1

Identity = tuple[str, str]  # tenant, run_id
Key = tuple[str, str, int]  # tenant, run_id, attempt


class Place(Enum):
    """Where a run is."""

    READY = auto()  # queued, and may go
    DELAYED = auto()  # waits for its time
    OVERDUE = auto()  # past its deadline, still to be refused
    IN_FLIGHT = auto()
    ENDED = auto()


@dataclass(slots=True)
class Tenant:
    """What a tenant has open, over its flows."""

    name: str
    rules: TenantRules
    barred: bool  # paused, or its runs are to be rejected
    flows: list[Flow] = field(default_factory=list)
    queued: int = 0  # == its runs that are READY, DELAYED or OVERDUE
    flight_runs: int = 0
    flight_tokens: int = 0

    @property
    def plain(self) -> bool:
        """Whether it earns its weight in every round in which it has something queued: no cap, no group, no bar."""
        rules = self.rules
        capped = rules.max_runs_in_flight is not None or rules.max_tokens_in_flight is not None
        return not (self.barred or capped or rules.group is not None)


@dataclass(slots=True)
class Flow:
    """A (class, tenant)."""

    class_: str
    tenant: Tenant
    ready: int = 0  # == its runs that are READY
    heads: list[tuple[int, int, Run]] = field(default_factory=list)  # heap by position; some are READY no more
    charged: int = 0  # tokens, as are the next
    settled: int = 0
    dispatched: int = 0  # attempts
    peak: int = 1  # most attempts of its tenant in flight, plus late bills, since it last had nothing ready
    busy_since_ms: int = 0  # since when it has had something ready without a break, its rules being what they are
    stretch: Stretch | None = None  # what is measured of it while it is busy and plain
    due: list[Interval] = field(default_factory=list)  # intervals that wait for what its head costs

    def first(self) -> Run | None:
        """Return the READY run that came first."""
        heads = self.heads
        while heads and heads[0][2].place is not Place.READY:
            heappop(heads)
        return heads[0][2] if heads else None


@dataclass(slots=True)
class Run:
    """A run that has not ended."""

    flow: Flow
    run_id: str
    position: int  # offset of its request; below 0: not known
    ready_ms: int
    deadline_ms: int | None
    max_attempts: int
    lease_ms: int | None  # None: not known
    size: int  # bytes of its body
    asked: bytes  # digest of what its request says to the worker; empty: not known
    place: Place = Place.ENDED
    estimate: int | None = None  # tokens; None: never dispatched
    attempt: int = 0
    tries: int = 0
    lost: dict[int, int] = field(default_factory=dict)  # attempts given up, by number: tokens they were settled at

    @property
    def tenant(self) -> str:
        return self.flow.tenant.name

    @property
    def identity(self) -> Identity:
        return (self.flow.tenant.name, self.run_id)

    @property
    def known(self) -> bool:
        """Whether it has been followed since it came in."""
        return self.position >= 0

    @property
    def waits(self) -> bool:
        """Whether it counts as queued."""
        return self.place in {Place.READY, Place.DELAYED, Place.OVERDUE}


@dataclass(slots=True)
class Attempt:
    """An attempt in flight."""

    run: Run
    number: int
    seq: int
    estimate: int
    charged: int
    expires_ms: int | None  # on the lease clock; None: not known
    reported: int = 0
    heard: bool = False
    revoked: bool = False
    interval: Interval | None = None  # in which it was dispatched

    @property
    def key(self) -> Key:
        return (*self.run.identity, self.number)
