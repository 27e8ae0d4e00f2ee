"""What a step may be told: the inputs of the core, one record per Kafka record that could be read.

Inputs are compared by value, and nobody changes them. Plain dataclasses with slots, on purpose: two inputs and two
effects are built for every run, and their fields are read some forty times. A frozen dataclass costs three times as
much to build, and a named tuple's fields six times as much to read.
Everything here has been checked by `streams.wire` for type, range and size; the core checks only what
depends on its state. Tokens and milliseconds are integers; `None` means "not stated".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streams.core.policy import Policy

STARTED: Final = "started"
HEARTBEAT: Final = "heartbeat"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
RETURNED: Final = "returned"


@dataclass(slots=True)
class Submit:
    """A tenant asks for a run. `(tenant, run_id)` is its identity."""

    position: int  # offset in the shard's requests partition: the FIFO place inside the flow, unique in the shard
    tenant: str
    run_id: str
    workflow: str
    class_: str | None = None  # None: the policy's first class
    estimate: int | None = None  # tokens, the producer's own guess
    max_tokens: int | None = None  # tokens, an upper bound the worker enforces; bounds the estimate
    not_before_ms: int | None = None
    deadline_ms: int | None = None  # dropped with a reason if still queued then
    max_attempts: int | None = None
    lease_ms: int | None = None
    submitted_ms: int = 0  # the record's timestamp; only ever used for waiting times
    body: bytes = b""  # payload and headers as `streams.wire` packed them; carried, never looked into

    # Written out, as in `Completion`: in compiled code the one that `dataclass` makes would be interpreted.
    def __init__(  # noqa: PLR0917 - by position: by name it costs twice as much, once for each run
        self,
        position: int,
        tenant: str,
        run_id: str,
        workflow: str,
        class_: str | None = None,
        estimate: int | None = None,
        max_tokens: int | None = None,
        not_before_ms: int | None = None,
        deadline_ms: int | None = None,
        max_attempts: int | None = None,
        lease_ms: int | None = None,
        submitted_ms: int = 0,
        body: bytes = b"",
    ) -> None:
        self.position = position
        self.tenant = tenant
        self.run_id = run_id
        self.workflow = workflow
        self.class_ = class_
        self.estimate = estimate
        self.max_tokens = max_tokens
        self.not_before_ms = not_before_ms
        self.deadline_ms = deadline_ms
        self.max_attempts = max_attempts
        self.lease_ms = lease_ms
        self.submitted_ms = submitted_ms
        self.body = body


@dataclass(slots=True)
class Cancel:
    """A tenant takes a run back, whether it is queued, delayed or in flight."""

    position: int
    tenant: str
    run_id: str


@dataclass(slots=True)
class Completion:
    """A worker reports on one attempt of a run."""

    position: int  # offset in the shard's completions partition
    tenant: str
    run_id: str
    attempt: int
    status: str  # one of STARTED, HEARTBEAT, SUCCEEDED, FAILED, RETURNED
    tokens: int | None = None  # spent so far (heartbeat) or in total (succeeded, failed); None: not reported
    retryable: bool = False  # only read with FAILED
    error: str | None = None
    worker: str | None = None

    def __init__(  # noqa: PLR0917 - see `Submit`
        self,
        position: int,
        tenant: str,
        run_id: str,
        attempt: int,
        status: str,
        tokens: int | None = None,
        retryable: bool = False,  # noqa: FBT001, FBT002 - see `Submit`
        error: str | None = None,
        worker: str | None = None,
    ) -> None:
        self.position = position
        self.tenant = tenant
        self.run_id = run_id
        self.attempt = attempt
        self.status = status
        self.tokens = tokens
        self.retryable = retryable
        self.error = error
        self.worker = worker


@dataclass(slots=True)
class SetPolicy:
    """The stated rules change, from this step on."""

    position: int  # offset in the policy topic; doubles as the policy's version
    policy: Policy


@dataclass(slots=True)
class Takeover:
    """A new owner begins: the first input of its first step.

    The time since the last step is an outage during which no worker could be heard, so it expires no lease.
    """

    epoch: int  # counts the owners of the shard, from 1; never goes back


@dataclass(slots=True)
class Undeliverable:
    """Kafka does not take the dispatch of a run, or what else must be written for it: the run is too large.

    It comes when the step that would have written it has been given up, so nothing of that step has happened.
    """

    tenant: str
    run_id: str
    size: int  # bytes of the record that was refused
    limit: int | None  # bytes that its topic takes; None: that is not known, but less


Input = Submit | Cancel | Completion | SetPolicy | Takeover | Undeliverable
