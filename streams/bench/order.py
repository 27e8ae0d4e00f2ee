"""Order alone: runs through a ring and nothing else, against a sweep that walks, and a queue that is not fair."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.core.flows import Flow, Tenant
from streams.core.ledger import charge
from streams.core.policy import TenantRules
from streams.core.records import FlowRecord, RingRecord
from streams.core.ring import Ring
from streams.core.runs import Run, RunState

if TYPE_CHECKING:
    from collections.abc import Callable

_QUANTUM: Final = 1_000
_RULES: Final = TenantRules()


def ring_rate(flows: int, runs: int, cost: int) -> int:
    """Return runs per second, each queued and served once, over `flows` flows that stay backlogged."""
    ring = Ring(RingRecord(class_="bench"))
    members = []
    for place in range(flows):
        tenant = Tenant(f"tenant-{place}", _RULES)
        flow = Flow(FlowRecord(class_="bench", tenant=tenant.name, place=place), tenant, _QUANTUM)
        ring.add(flow)
        members.append(flow)
    waiting = [_run(number, cost, members[number % flows]) for number in range(runs + flows)]
    for flow, run in zip(members, waiting, strict=False):
        flow.queue.put(run)
        ring.refresh(flow)
    begun = clock.monotonic()
    for run in waiting[flows:]:
        served = ring.next()
        assert served is not None, "every flow is backlogged"
        head = served.queue.head()
        assert head is not None, "it is its turn"
        served.queue.put(run)
        served.queue.drop(head, RunState.IN_FLIGHT)
        charge(served, head.estimate)
        ring.refresh(served)
    return round(runs / (clock.monotonic() - begun))


def sweep_rate(flows: int, runs: int, cost: int) -> int:
    """The same by walking the flows: each is visited in each round, whether it can afford its head or not."""
    queues = [deque([cost]) for _ in range(flows)]
    deficits = [0] * flows
    served = 0

    def sweep() -> None:
        nonlocal served
        for place, queue in enumerate(queues):
            deficits[place] += _QUANTUM
            while deficits[place] >= queue[0]:
                deficits[place] -= queue.popleft()
                queue.append(cost)
                served += 1

    begun = clock.monotonic()
    while served < runs:
        sweep()
    return round(served / (clock.monotonic() - begun))


def fifo_rate(runs: int, cost: int) -> int:
    """The same through one plain queue: what fairness is paid for against."""
    tenant = Tenant("tenant", _RULES)
    flow = Flow(FlowRecord(class_="bench", tenant=tenant.name, place=0), tenant, _QUANTUM)
    queue: deque[Run] = deque([_run(0, cost, flow)])
    waiting = [_run(number, cost, flow) for number in range(1, runs + 1)]
    spent = 0
    begun = clock.monotonic()
    for run in waiting:
        queue.append(run)
        spent += queue.popleft().estimate
    return round(runs / (clock.monotonic() - begun))


def best_of(times: int, measure: Callable[[], int]) -> int:
    """Return the best of some measurements: noise only ever slows down."""
    return max(measure() for _ in range(times))


def _run(number: int, cost: int, flow: Flow) -> Run:
    run = Run("tenant", f"run-{number}", "bench", "bench", number, cost, None, None, 1, 60_000, 0, 0, b"")
    run.begin(flow)
    return run
