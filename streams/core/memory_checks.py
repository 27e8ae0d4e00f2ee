"""The part of `invariants` on what is remembered and what keeps it from being forgotten, worked out from scratch."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from streams.core.estimator import MAX_COUNTED
from streams.core.lost import MAX_OF_PAGE, MAX_OF_RUN
from streams.core.records import FlowState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.core.estimator import History
    from streams.core.state import State

_FlowName = tuple[str, str]  # class, tenant


def memory_faults(state: State) -> Iterator[str]:
    """Yield what is wrong, a sentence each; nothing if all is well. O(everything)."""
    yield from _histories(state)
    yield from _flows(state)
    yield from _bytes(state)
    yield from _lost(state)
    yield from _resting(state)
    yield from _backlogs(state)
    removes = state.policy.policy.removes
    waiting = {name for name, tenant in state.tenants.items() if tenant.queued_runs and removes(name)}
    if not waiting <= {tenant.name for tenant in state.removed}:
        yield "removed: runs of a tenant that is no longer named are not to be rejected"


def _flows(state: State) -> Iterator[str]:
    known = [flow for ring in state.rings.values() for flow in ring.flows.values()]
    if state.known_flows != len(known):
        yield "known flows"
    of_tenants = [id(flow) for tenant in state.tenants.values() for flow in tenant.flows]
    if sorted(of_tenants) != sorted(map(id, known)):
        yield "the flows of the tenants are not those of the rings"
    if not all(tenant.flows for tenant in state.tenants.values()):
        yield "a tenant without a flow"
    numbers = [flow.left for flow in known if flow.left]
    if len(set(numbers)) != len(numbers) or any(number > state.record.uses for number in numbers):
        yield "flows at rest: their order"
    held = _what_holds(state)
    for flow in known:
        name = f"{flow.class_}/{flow.tenant}"
        if flow.open != held[flow.class_, flow.tenant]:
            yield f"{name}: {flow.open} counted open, {held[flow.class_, flow.tenant]} are"
        if (flow.left != 0) != (flow.state is FlowState.IDLE and not flow.open):
            yield f"{name}: {flow.state.name} with {flow.open} open is at rest: {flow.left != 0}"


def _what_holds(state: State) -> Counter[_FlowName]:
    held = Counter((run.class_, run.tenant) for tenant in state.tenants.values() for run in tenant.runs.values())
    held.update((flight.class_, flight.tenant) for flight in state.flights.values() if flight.revoked)
    held.update((class_, tenant) for page in state.pages for tenant, _, class_, _, _ in page.lost)
    return held


def _bytes(state: State) -> Iterator[str]:
    total = 0
    for tenant in state.tenants.values():
        size = sum(len(run.body) for run in tenant.runs.values())
        total += size
        if tenant.held_bytes != size:
            yield f"{tenant.name}: bytes held"
    if state.held_bytes != total:
        yield "bytes held by the shard"


def _lost(state: State) -> Iterator[str]:
    count = 0
    for page in state.pages:
        count += len(page.lost)
        if len(page.lost) > MAX_OF_PAGE:
            yield f"page {page.step}: too many accounts"
        ended = set(page.runs)
        for tenant, run_id, class_, attempt, charged in page.lost:
            account = state.lost.find((tenant, run_id, attempt))
            if account is None or account.page is not page or account.charged != charged:
                yield f"{tenant}: the account of {run_id}, attempt {attempt}, is not that of its page"
            elif account.flow is not state.rings[class_].flows.get(account.flow.place):
                yield f"{tenant}: an open account of {run_id}, and its flow is not known"
            if (tenant, run_id) not in ended:
                yield f"{tenant}: an account of {run_id}, which is not on that page"
    if len(state.lost) != count:
        yield "open accounts: more than on the pages"
    if any(len(run.lost) > MAX_OF_RUN for tenant in state.tenants.values() for run in tenant.runs.values()):
        yield "a run with too many lost attempts"


def _resting(state: State) -> Iterator[str]:
    if state.resting is None:
        return
    waits = state.resting.waits()
    for ring in state.rings.values():
        for flow in ring.flows.values():
            if not flow.left:
                continue
            balance = ring.deficit_now(flow)
            if flow.left in waits:
                if balance and waits[flow.left] < ring.record.round:
                    yield f"{flow.class_}/{flow.tenant}: was to have no balance by now"
            elif flow.rate or not balance:
                yield f"{flow.class_}/{flow.tenant}: at rest, and would never be forgotten"


def _backlogs(state: State) -> Iterator[str]:
    for backlogs in (state.backlogs, state.heaviest):
        if backlogs is None:
            continue
        noted = backlogs.noted()
        for tenant in state.tenants.values():
            if tenant.queued_runs and noted.get(tenant.name, -1) < backlogs.load(tenant):
                yield f"{tenant.name}: has more waiting than is noted"


def _histories(state: State) -> Iterator[str]:
    estimator = state.estimator
    histories = list(estimator.histories.values())
    order = [history.last_use for history in histories]
    if order != sorted(set(order)):
        yield "histories: not in the order of their use"
    if order and not 0 < min(order) <= max(order) <= state.record.uses:
        yield "histories: a use that was never counted"
    tenants: defaultdict[str, list[History]] = defaultdict(list)
    workflows: defaultdict[str, list[History]] = defaultdict(list)
    for history in histories:
        tenants[history.tenant].append(history)
        workflows[history.workflow].append(history)
        name = f"history {history.tenant}/{history.workflow}"
        if not history.count or not all(history.ratios.values()):
            yield f"{name}: remembered without a run"
        if history.counted != sum(history.ratios.values()) or history.counted >= MAX_COUNTED:
            yield f"{name}: runs in the sketch"
    own = {name: list(known.histories.values()) for name, known in estimator.tenants.items()}
    if own != tenants:
        yield "histories: not those of the tenants"
    for means, below in ((estimator.tenants, tenants), (estimator.workflows, workflows)):
        sums = {name: (len(group), sum(each.mean_fp for each in group)) for name, group in below.items()}
        if {name: (mean.number, mean.sum_fp) for name, mean in means.items()} != sums:
            yield "histories: a mean of means"
