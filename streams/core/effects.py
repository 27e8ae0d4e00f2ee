"""What a step decided: the effects its caller must carry out, all or none of them, in one transaction.

They are compared by value, and nobody changes them; see `streams.core.inputs` for why that is not enforced.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streams.core.records import Key, Record


@dataclass(slots=True)
class Dispatch:
    """Hand one attempt of a run to the workers."""

    seq: int  # gapless per shard, from 1: a reader that misses one has lost a record
    tenant: str
    run_id: str
    workflow: str
    class_: str
    attempt: int  # from 1
    estimate: int  # tokens charged now
    lease_ms: int
    deadline_ms: int | None
    body: bytes
    submitted_ms: int
    round: int  # the ring's round in which the visit fell
    deficit_before: int  # tokens, just before the charge
    deficit_after: int  # == deficit_before - estimate

    # Written out, as in `Settlement`: in compiled code the one that `dataclass` makes would be interpreted.
    def __init__(  # noqa: PLR0917 - by position: by name it costs twice as much, once for each run
        self,
        seq: int,
        tenant: str,
        run_id: str,
        workflow: str,
        class_: str,
        attempt: int,
        estimate: int,
        lease_ms: int,
        deadline_ms: int | None,
        body: bytes,
        submitted_ms: int,
        round: int,  # noqa: A002 - it is the ring's word
        deficit_before: int,
        deficit_after: int,
    ) -> None:
        self.seq = seq
        self.tenant = tenant
        self.run_id = run_id
        self.workflow = workflow
        self.class_ = class_
        self.attempt = attempt
        self.estimate = estimate
        self.lease_ms = lease_ms
        self.deadline_ms = deadline_ms
        self.body = body
        self.submitted_ms = submitted_ms
        self.round = round
        self.deficit_before = deficit_before
        self.deficit_after = deficit_after


@dataclass(slots=True)
class Revoke:
    """Tell the workers that an attempt in flight is no longer wanted. Its tokens are charged when they come."""

    seq: int  # shares the dispatches' sequence
    tenant: str
    run_id: str
    attempt: int
    reason: str


@dataclass(slots=True)
class Rejection:
    """A run that will not be served (again), with a reason a program can act on."""

    tenant: str
    run_id: str
    reason: str  # one of the names in `streams.core.reasons`
    detail: str  # one sentence for a person, naming the field and the value
    limit: int | None  # the limit that was met, in the reason's unit
    value: int | None  # what it was compared with
    retry_after_ms: int | None  # None: retrying will not help
    position: int  # the request's offset
    body: bytes
    left_out: int = 0  # bytes of the body that is not here, for it would not fit; `position` tells where it is


@dataclass(slots=True)
class Settlement:
    """An attempt ended and its account was closed. A second one amends the first: a lost attempt was heard of."""

    tenant: str
    run_id: str
    attempt: int
    outcome: str  # succeeded, failed, returned, lost
    estimate: int  # tokens charged at dispatch (amending: by the first settlement)
    actual: int  # tokens charged in the end
    reported: bool  # False: the worker named no usage, so the estimate stands

    def __init__(  # noqa: PLR0917 - see `Dispatch`
        self,
        tenant: str,
        run_id: str,
        attempt: int,
        outcome: str,
        estimate: int,
        actual: int,
        reported: bool,  # noqa: FBT001 - see `Dispatch`
    ) -> None:
        self.tenant = tenant
        self.run_id = run_id
        self.attempt = attempt
        self.outcome = outcome
        self.estimate = estimate
        self.actual = actual
        self.reported = reported


class Effects:
    """All of one step. `changed` names exactly the rows to write; the objects in it are live: encode them at once."""

    __slots__ = ("changed", "counts", "dispatches", "now_ms", "rejections", "revokes", "settlements", "step")

    def __init__(self, step: int, now_ms: int) -> None:
        """Begin empty."""
        self.step = step
        self.now_ms = now_ms
        self.dispatches: list[Dispatch] = []
        self.revokes: list[Revoke] = []
        self.rejections: list[Rejection] = []
        self.settlements: list[Settlement] = []
        self.changed: dict[Key, Record | None] = {}  # None: the row is gone
        self.counts: defaultdict[str, int] = defaultdict(int)  # names in `streams.core.counts`
