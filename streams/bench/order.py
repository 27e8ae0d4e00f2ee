"""Order alone: runs through a ring and nothing else, against a sweep that walks, and a queue that is not fair."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.core.flows import Flow, Tenant
from streams.core.inputs import Submit
from streams.core.ledger import charge
from streams.core.policy import TenantRules
from streams.core.records import FlowRecord, RingRecord
from streams.core.ring import Ring
from streams.core.runs import Run, RunState

if TYPE_CHECKING:
    from collections.abc import Iterator

QUANTUM: Final = 1_000  # tokens
_RULES: Final = TenantRules()


def ring_rate(flows: int, runs: int, cost: int) -> float:
    """Return runs per second, each queued and served once, over `flows` flows that stay backlogged."""
    ring = Ring(RingRecord(class_="bench"))
    members = _flows(flows)
    for flow in members:
        ring.add(flow)
    waiting = _backlog(members, runs, cost)
    for flow in members:
        ring.refresh(flow)
    begun = clock.monotonic()
    for run in waiting:
        flow_ = ring.next()
        assert flow_ is not None, "every flow is backlogged"
        _serve(flow_, run)
        ring.refresh(flow_)
    return runs / (clock.monotonic() - begun)


def sweep_rate(flows: int, runs: int, cost: int) -> float:
    """The same by walking over the same flows: each is visited in each round, whether it can afford its head or not.

    It knows no caps, no pauses and no flow that runs empty: it is what the ring costs at the very least.
    """
    members = _flows(flows)
    waiting = _backlog(members, runs, cost)
    begun = clock.monotonic()
    served = 0
    while served < runs:
        for flow in members:
            flow.deficit += flow.rate
            while flow.deficit >= cost and served < runs:
                _serve(flow, next(waiting))
                served += 1
    return runs / (clock.monotonic() - begun)


def fifo_rate(runs: int, cost: int) -> float:
    """The same through one plain queue of everybody's: what fairness is paid for against."""
    waiting = _backlog(_flows(1), runs, cost)
    queue: deque[Run] = deque([next(waiting)])
    spent = 0
    begun = clock.monotonic()
    for run in waiting:
        queue.append(run)
        spent += queue.popleft().estimate
    return runs / (clock.monotonic() - begun)


def _serve(flow: Flow, another: Run) -> None:
    """Serve the head of a flow and queue another run behind it."""
    queue = flow.queue
    head = queue.head()
    assert head is not None, "it is backlogged"
    queue.put(another)
    queue.drop(head, RunState.IN_FLIGHT)
    charge(flow, head.estimate)


def _flows(number: int) -> list[Flow]:
    members = []
    for place in range(number):
        tenant = Tenant(f"tenant-{place}", _RULES)
        members.append(Flow(FlowRecord(class_="bench", tenant=tenant.name, place=place), tenant, QUANTUM))
    return members


def _backlog(members: list[Flow], runs: int, cost: int) -> Iterator[Run]:
    """Queue one run in each flow; return `runs` more, made before the clock runs."""
    for position, flow in enumerate(members):
        flow.queue.put(_run(position, cost, flow))
    flows = len(members)
    return iter([_run(flows + number, cost, members[number % flows]) for number in range(runs)])


def _run(number: int, cost: int, flow: Flow) -> Run:
    return Run(Submit(number, flow.tenant, f"run-{number}", "bench"), flow, cost, 1, 60_000)
