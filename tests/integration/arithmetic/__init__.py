"""Proof by arithmetic over the topics: what must be true of a deployment's records, whatever happened to it.

Everything is worked out again from what a read_committed reader sees; nothing is asked of a scheduler. The checks
return sentences, one for each thing found wrong, so that a test for a broken build can show that they do find it.
Each check stands in the file of its subject, and `tests/unit/arithmetic` has the damage that it must find.
"""

from __future__ import annotations

from contextlib import suppress

from streams import clock
from streams.core.snapshot import ShardView
from streams.wire import decode_status, topic_names
from tests.integration.arithmetic import accounts, dispatches, leases, requests, steps
from tests.integration.arithmetic.evidence import Evidence, assemble, gather
from tests.integration.arithmetic.requests import accepted
from tests.integration.topics import read_topic

__all__ = ["Evidence", "accepted", "assemble", "gather", "gather_when_drained", "problems", "problems_when_drained"]

ALWAYS = (
    steps.journal_unbroken,
    steps.chain_unbroken,
    steps.state_as_the_journal_says,
    steps.inputs_applied_once,
    dispatches.each_attempt_once,
    dispatches.sequence_gapless,
    dispatches.order_kept,
    dispatches.as_the_journal_says,
    requests.each_answered_once,
    requests.refused_as_the_journal_says,
    requests.forwarded_once,
    accounts.runs_conserved,
    accounts.settled_once,
    accounts.settled_or_in_flight,
    accounts.tokens_conserved,
    leases.one_attempt_at_a_time,
    leases.leases_honoured,
)
WHEN_DRAINED = (steps.all_inputs_applied, dispatches.all_served, accounts.nothing_left)


def problems(evidence: Evidence) -> list[str]:
    """Everything that is wrong, whether or not runs are queued or in flight: of topics nobody writes at the moment."""
    return [sentence for check in ALWAYS for sentence in check(evidence)]


def problems_when_drained(evidence: Evidence) -> list[str]:
    """Everything that is wrong once no run is left, beside `problems`."""
    return [sentence for check in WHEN_DRAINED for sentence in check(evidence)]


def gather_when_drained(servers: str, prefix: str, shards: int, deadline_s: float = 60.0) -> Evidence:
    """Wait until nothing is queued, in flight or unread, and return everything; as it is when time is up."""
    clock.wait_until(lambda: looks_idle(servers, prefix, shards), deadline_s, 0.5, what="idle shards")
    last: list[Evidence] = []

    def sound() -> bool:
        last[:] = [gather(servers, prefix, shards)]
        return not [*problems(last[0]), *problems_when_drained(last[0])]

    with suppress(TimeoutError):
        clock.wait_until(sound, deadline_s, 0.5)
    return last[0]


def looks_idle(servers: str, prefix: str, shards: int) -> bool:
    """Whether the shards' own views say so: cheap to ask, and not proof."""
    last = {
        seen.key: decode_status(seen.value).view
        for seen in read_topic(servers, topic_names(prefix).status)
        if seen.value
    }
    views = [view for view in last.values() if isinstance(view, ShardView)]
    return len(views) == shards and not any(view.queued_runs or view.flight_runs for view in views)
