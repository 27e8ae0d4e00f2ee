"""Each check of what is remembered can fail: a shard is corrupted in one way, and the check for it says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from streams.core.flows import Flow, Tenant
from streams.core.inputs import HEARTBEAT
from streams.core.invariants import InvariantBroken, check
from streams.core.lost import MAX_OF_PAGE, MAX_OF_RUN
from streams.core.policy import Leases, Limits, Memory
from streams.core.state import State
from tests.builders import make_cancel, make_policy, make_report
from tests.drivers import START_MS, Driver

Corrupt = Callable[[State], object]


@pytest.fixture
def driver() -> Driver:
    """A full table: `busy` in flight, queued and delayed; `lost` has an account open; `owes` and `free` are at rest."""
    policy = make_policy(
        runs=2,
        leases=Leases(lease_ms=100, min_lease_ms=1, max_lease_ms=10**9, max_attempts=1),
        limits=Limits(max_queued_runs=3, max_queued_bytes=90, overload="drop_longest"),
        memory=Memory(flows=5),
    )
    driver = Driver(policy)
    (dispatch,) = driver.submit("lost", "l1").dispatches
    driver.step(make_report(dispatch, HEARTBEAT, 10))
    driver.step(after_ms=100)
    driver.succeed(*driver.submit("free", "f1").dispatches)
    driver.succeed(*driver.submit("gone", "g1").dispatches)
    driver.succeed(*driver.submit("owes", "o1").dispatches, tokens=5_000)
    driver.succeed(*driver.submit("early", "e1").dispatches)
    driver.submit("busy", "b1", "b2", "b3", "b4", "b5", lease_ms=10**9, body=bytes(15))
    driver.submit("busy", "b6", not_before_ms=START_MS + 10**6, body=bytes(15))
    driver.step(make_cancel("busy", "b1"))
    driver.submit("busy", "b7", body=bytes(60))
    state = driver.shard._state
    assert state.resting is not None
    assert state.backlogs is not None
    assert state.heaviest is not None
    assert len(state.lost) == 1
    return driver


def flow(state: State, name: str) -> Flow:
    return state.tenants[name].flows[0]


def change(name: str, by: int, tenant: str | None = None) -> Corrupt:
    """Corrupt a number of the state, of a tenant, or of its flow."""

    def corrupt(state: State) -> None:
        owner: State | Tenant | Flow = state
        if tenant is not None:
            owner = flow(state, tenant) if hasattr(flow(state, tenant), name) else state.tenants[tenant]
        setattr(owner, name, getattr(owner, name) + by)

    return corrupt


def double_flow(state: State) -> None:
    state.tenants["owes"].flows *= 2


def add_tenant(state: State) -> None:
    state.tenants["nobody"] = Tenant("nobody", state.policy.policy.default)


def same_number(state: State) -> None:
    flow(state, "owes").left = flow(state, "gone").left


def forget_account(state: State) -> None:
    state.lost._accounts.clear()


def page_of(state: State) -> list[tuple[str, str, str, int, int]]:
    return next(page.lost for page in state.pages if page.lost)


def account_of_nobody(state: State) -> None:
    ((attempt, account),) = state.lost._accounts.items()
    unknown = Flow(account.flow, account.flow.parent, 1)
    unknown.place = 999
    state.lost._accounts[attempt] = account._replace(flow=unknown)


def account_twice(state: State) -> None:
    ((attempt, account),) = state.lost._accounts.items()
    state.lost._accounts[attempt[0], attempt[1], 2] = account


def account_elsewhere(state: State) -> None:
    page = next(page for page in state.pages if page.lost)
    page.runs.remove(("lost", "l1"))
    del state.ended["lost", "l1"]


def many_accounts(state: State) -> None:
    page_of(state).extend(page_of(state) * MAX_OF_PAGE)
    flow(state, "lost").open += MAX_OF_PAGE


def many_lost(state: State) -> None:
    run = next(iter(state.tenants["busy"].runs.values()))
    run.lost = dict.fromkeys(range(MAX_OF_RUN + 1), 0)


def lose_resting(state: State) -> None:
    assert state.resting is not None
    state.resting._free.clear()


def early(state: State) -> None:
    assert state.resting is not None
    ((_, owing),) = state.resting._owing.values()
    owing[:] = [(-1, place, left, each) for _, place, left, each in owing]


def lose_backlog(state: State) -> None:
    assert state.heaviest is not None
    state.heaviest._heap.clear()


def close_policy(state: State) -> None:
    """A policy that names nobody, put in force without looking for those it removes."""
    state.policy = replace(state.policy, policy=replace(state.policy.policy, closed=True, on_removal="reject"))
    for tenant in state.tenants.values():
        tenant.obey(state.policy.policy)
        state.refresh(tenant)


@pytest.mark.parametrize(
    ("corrupt", "message"),
    [
        (change("known_flows", 1), "known flows"),
        (double_flow, "the flows of the tenants are not those of the rings"),
        (add_tenant, "a tenant without a flow"),
        (same_number, "flows at rest: their order"),
        (change("left", 10**6, "owes"), "flows at rest: their order"),
        (change("open", 1, "busy"), "default/busy: 5 counted open, 4 are"),
        (change("left", 1, "busy"), "default/busy: .* is at rest: True"),
        (change("held_bytes", 1, "busy"), "busy: bytes held"),
        (change("held_bytes", 1), "bytes held by the shard"),
        (many_accounts, "page .*: too many accounts"),
        (forget_account, "lost: the account of l1, attempt 1, is not that of its page"),
        (account_of_nobody, "lost: an open account of l1, and its flow is not known"),
        (account_elsewhere, "lost: an account of l1, which is not on that page"),
        (account_twice, "open accounts: more than on the pages"),
        (many_lost, "a run with too many lost attempts"),
        (lose_resting, "at rest, and would never be forgotten"),
        (early, "default/owes: was to have no balance by now"),
        (lose_backlog, "busy: has more waiting than is noted"),
        (close_policy, "removed: runs of a tenant that is no longer named are not to be rejected"),
    ],
)
def test_a_corrupted_memory_is_found_out(driver: Driver, corrupt: Corrupt, message: str) -> None:
    check(driver.shard)
    corrupt(driver.shard._state)
    with pytest.raises(InvariantBroken, match=message):
        check(driver.shard)
